/** The one writer of telemetry lines that every process uses (contract 7). */

import { formatIso } from "../core/time.ts";
import type { Vault } from "../core/secret.ts";
import type { ClockPort } from "../ports/clock.ts";
import type { Fields, TelemetryPort } from "../ports/telemetry.ts";
import type { LogSettings } from "./payload.ts";
import {
  DEBUG_EVENTS,
  type EventName,
  type Level,
  LEVEL_RANK,
  type TelemetryContext,
  type TelemetryLine,
} from "./telemetry.ts";
import { formatText } from "./telemetry_text.ts";

/** Fields that are content: left out unless the operator asked for them. */
const CONTENT_FIELDS: ReadonlySet<string> = new Set(["arguments", "content", "text"]);

/**
 * Telemetry for one process. `write` gets whole lines and must not throw; secrets are masked in the
 * finished line, whatever field they came in.
 */
export function createTelemetry(
  context: TelemetryContext,
  settings: LogSettings,
  vault: Vault,
  write: (line: string) => void,
  clock: ClockPort,
): TelemetryPort {
  const least = settings.quiet ? LEVEL_RANK.error : LEVEL_RANK[settings.level];
  return {
    emit(event: EventName, fields: Fields = {}, level?: Level): void {
      const at: Level = level ?? (DEBUG_EVENTS.has(event) ? "debug" : "info");
      if (LEVEL_RANK[at] < least) return;
      const line: TelemetryLine = {
        ts: formatIso(clock.wallMs()),
        level: at,
        event,
        ...context,
        ...(settings.content ? fields : withoutContent(fields)),
      };
      const text = settings.format === "json" ? JSON.stringify(line) : formatText(line);
      if (text !== null) write(vault.mask(text) + "\n");
    },
  };
}

function withoutContent(fields: Fields): Fields {
  let out = fields;
  for (const name of CONTENT_FIELDS) {
    if (!(name in out)) continue;
    const { [name]: _content, ...rest } = out;
    out = rest;
  }
  return out;
}
