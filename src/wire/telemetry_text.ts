/** Telemetry for people: one short line for what they want to follow, nothing for the rest. */

import type { TelemetryLine } from "./telemetry.ts";

/** A line for a terminal, or null where people need none. */
export function formatText(line: TelemetryLine): string | null {
  switch (line.event) {
    case "loop.step":
      return `turn ${line.step}  ${line.verdict}  +${line.delta}  ${
        Array.isArray(line.actions) ? line.actions.join(" ") : ""
      }`;
    case "loop.final":
      return `end  ${line.status ?? `abort ${line.abort}`}  ${line.reason}`;
    default:
      return line.level === "info" || line.level === "debug"
        ? null
        : `${line.level}  ${line.event}  ${JSON.stringify(line.err ?? "")}`;
  }
}
