/** The one way that telemetry leaves a process: levels, content, secrets, form, one line at a time. */

import { TELEMETRY_CONTENT_CHARS_MAX, TELEMETRY_FIELD_CHARS_MAX } from "../core/config_limits.ts";
import type { Vault } from "../core/secret.ts";
import { clip } from "../core/text.ts";
import { formatIso } from "../core/time.ts";
import type { ClockPort } from "../ports/clock.ts";
import type { TelemetryPort } from "../ports/telemetry.ts";
import type { LogSettings } from "./payload.ts";
import {
  DEBUG_EVENTS,
  LEVEL_RANK,
  type TelemetryContext,
  type TelemetryLine,
} from "./telemetry.ts";
import { formatText } from "./telemetry_text.ts";

/** Fields, at any depth, that hold what models, tools and users said. */
const CONTENT_FIELDS: ReadonlySet<string> = new Set(["content", "arguments", "text"]);

/**
 * Telemetry of one process or Worker. `write` gets whole lines with their line feed; what it throws
 * is lost, since no run may end because nobody reads its log. Fields may set `span_id` and the like
 * anew; content is left out unless the settings ask for it, and every known secret is `***`.
 */
export function createTelemetry(
  context: TelemetryContext,
  settings: LogSettings,
  vault: Vault,
  write: (line: string) => void,
  clock: ClockPort,
): TelemetryPort {
  const least = LEVEL_RANK[settings.quiet ? "error" : settings.level];
  const charsMax = settings.content ? TELEMETRY_CONTENT_CHARS_MAX : TELEMETRY_FIELD_CHARS_MAX;
  const render = (key: string, value: unknown): unknown => {
    if (!settings.content && CONTENT_FIELDS.has(key)) return undefined;
    if (typeof value === "string") return clip(vault.mask(value), charsMax);
    return typeof value === "bigint" ? String(value) : value;
  };
  return {
    emit(event, fields = {}, level = DEBUG_EVENTS.has(event) ? "debug" : "info") {
      if (LEVEL_RANK[level] < least) return;
      try {
        const { run_id, agent_id, agent_path, comp, pid, ...trace } = context;
        const line: TelemetryLine = {
          ts: formatIso(clock.wallMs()),
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
        const json = JSON.stringify(line, render);
        if (settings.format === "json") return write(json + "\n");
        const text = formatText(JSON.parse(json) as TelemetryLine);
        if (text !== null) write(text + "\n");
      } catch {
        // A closed pipe, or a field that cannot be rendered: the run goes on.
      }
    },
  };
}
