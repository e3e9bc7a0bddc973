/** The one way that telemetry leaves a process: levels, content, secrets, form, one line at a time. */

import { TELEMETRY_CONTENT_CHARS_MAX, TELEMETRY_FIELD_CHARS_MAX } from "../core/config_limits.ts";
import type { Vault } from "../core/secret.ts";
import { clip } from "../core/text.ts";
import { formatIso } from "../core/time.ts";
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

/** Fields, at any depth, that hold what models, tools and users said. */
const CONTENT_FIELDS: ReadonlySet<string> = new Set(["content", "arguments", "text"]);

/**
 * Telemetry of one process or Worker. `write` gets whole lines with their line feed; where it answers
 * false or throws, the line is lost, since no run may end because nobody reads its log, and the next
 * line that goes out is preceded by a count of them. Fields may set `span_id` and the like anew;
 * content is left out unless the settings ask for it, and every known secret is `***`.
 */
export function createTelemetry(
  context: TelemetryContext,
  settings: LogSettings,
  vault: Vault,
  write: (line: string) => unknown,
  clock: ClockPort,
): TelemetryPort {
  const least = LEVEL_RANK[settings.quiet ? "error" : settings.level];
  const charsMax = settings.content ? TELEMETRY_CONTENT_CHARS_MAX : TELEMETRY_FIELD_CHARS_MAX;
  const render = (key: string, value: unknown): unknown => {
    if (!settings.content && CONTENT_FIELDS.has(key)) return undefined;
    if (typeof value === "string") return clip(vault.mask(value), charsMax);
    return typeof value === "bigint" ? String(value) : value;
  };
  /** The line, or null where there is nothing to tell, or a field cannot be rendered. */
  const compose = (event: EventName, fields: Fields, level: Level): string | null => {
    const { run_id, agent_id, agent_path, comp, pid, ...trace } = context;
    const ts = formatIso(clock.wallMs());
    const line: TelemetryLine = {
      ts,
      level,
      event,
      run_id,
      agent_id,
      agent_path,
      comp,
      pid,
      ...trace,
      ...fields,
    };
    try {
      const json = JSON.stringify(line, render);
      return settings.format === "json" ? json : formatText(JSON.parse(json) as TelemetryLine);
    } catch {
      return null;
    }
  };
  const send = (event: EventName, fields: Fields, level: Level): boolean => {
    const line = compose(event, fields, level);
    try {
      return line === null || write(line + "\n") !== false;
    } catch {
      return false;
    }
  };
  let lost = 0;
  return {
    emit(event, fields = {}, level = DEBUG_EVENTS.has(event) ? "debug" : "info") {
      if (LEVEL_RANK[level] < least) return;
      const tells = LEVEL_RANK.warn >= least;
      if (tells && lost > 0 && send("limit.exceeded", { limit: "stderr_bytes", lost }, "warn")) {
        lost = 0;
      }
      if (!send(event, fields, level)) lost++;
    },
  };
}
