/** A record read back: its events through the machine, its actions as a list. */

import { isObject } from "../core/json.ts";
import { clip } from "../core/text.ts";
import type { FilesPort } from "../ports/files.ts";
import { readRecord } from "../record/read.ts";
import type { RecordLine } from "../wire/record.ts";
import type { AgentEvent, AgentEventType } from "./event.ts";
import type { AgentState } from "./state.ts";
import type { Action } from "./plan.ts";
import { step, TABLE } from "./step.ts";

/** Every line type that is an event: the columns of the table. */
export const EVENT_TYPES: ReadonlySet<string> = new Set(Object.keys(TABLE.new) as AgentEventType[]);

/** The event of a record line; null where the line is a decision or an annotation. */
function eventOf(line: RecordLine): AgentEvent | null {
  if (!EVENT_TYPES.has(line.type)) return null;
  return line as unknown as AgentEvent;
}

/** One line through the machine: what it decides, nothing if the line is no event. */
export function foldLine(state: AgentState, line: RecordLine): Action[] {
  const event = eventOf(line);
  return event === null ? [] : step(state, event);
}

const LEDGER_CHARS_MAX = 4 * 1024 * 1024;

/** Every action of a record with its outcome class, a line each: the ledger with nothing left out. */
export function ledgerText(files: FilesPort, path: string): string {
  const intents = new Map<string, string>();
  const lines: string[] = [];
  let chars = 0;
  for (const item of readRecord(files, path)) {
    if (item.kind !== "line") continue;
    const { line } = item;
    if (line.type === "call.intended") {
      const what = `${line.tool} ${clip(JSON.stringify(line.arguments), 300)}`;
      intents.set(String(line.call), what);
    } else if (
      line.type === "call.observed" || line.type === "call.refused" ||
      line.type === "call.abandoned"
    ) {
      const text = ledgerLine(line, intents.get(String(line.call)) ?? String(line.tool ?? ""));
      intents.delete(String(line.call));
      chars += text.length + 1;
      if (chars > LEDGER_CHARS_MAX) break;
      lines.push(text);
    }
  }
  return lines.join("\n");
}

function ledgerLine(line: RecordLine, what: string): string {
  const observation = isObject(line.observation) ? line.observation : line;
  const detail = observation.message ?? observation.why ?? "";
  const suffix = detail === "" ? "" : `: ${clip(String(detail).replace(/\s+/g, " "), 300)}`;
  return `- ${line.call} ${what} -> ${observation.class}${suffix}`;
}
