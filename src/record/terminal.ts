/** The terminal line of an agent that could not write its own. */

import { failed, type Outcome, success } from "../core/outcome.ts";
import { formatIso, parseIso } from "../core/time.ts";
import type { ClockPort } from "../ports/clock.ts";
import type { FilesPort } from "../ports/files.ts";
import { CHAIN_START, RECORD_VERSION } from "../wire/record.ts";
import type { AgentResult } from "../wire/result.ts";
import type { Json, JsonObject } from "../core/json.ts";
import { maskDeep } from "./mask.ts";
import { RECORD_FILE, type RecordFailure, recordFailure } from "./append.ts";
import { readTail, type RecordTail } from "./read.ts";

/** The type of the line that ends a stretch of a run. */
export const TERMINAL_TYPE = "run.ended";

/** What {@link appendTerminal} needs. */
export interface TerminalDeps {
  files: FilesPort;
  clock: ClockPort;
  /** The agent's own directory. */
  directory: string;
  mask: (text: string) => string;
}

/**
 * Writes `run.ended` for an agent that was killed, unless its record ends with one already. A torn
 * last line is dropped first; a record that does not exist is begun, and what it says cannot be
 * resumed: it does not hold how the run started. The line carries `by: "supervisor"`, which tells
 * replay that no decision of the agent is behind it. The agent must be dead by then.
 */
export function appendTerminal(
  deps: TerminalDeps,
  result: AgentResult,
): Outcome<"written" | "begun" | "present", RecordFailure> {
  const { files } = deps;
  const path = `${deps.directory}/${RECORD_FILE}`;
  const stat = files.stat(path);
  let tail: RecordTail | undefined = { last: null, hash: CHAIN_START, bytes: 0, tornBytes: 0 };
  if (stat.ok) tail = readTail(files, path);
  else if (stat.failure.class !== "not_found") return failed(recordFailure(stat.failure));
  else {
    const made = files.makeDirectory(deps.directory);
    if (!made.ok) return failed(recordFailure(made.failure));
  }
  if (tail === undefined) {
    return failed({
      class: "corrupt",
      message: `Cannot end the record ${path}: its last line cannot be read`,
    });
  }
  if (tail.last?.type === TERMINAL_TYPE) return success("present");
  if (tail.tornBytes > 0) {
    const cut = files.truncate(path, tail.bytes);
    if (!cut.ok) return failed(recordFailure(cut.failure));
  }
  return write(deps, path, tail, result);
}

function write(
  deps: TerminalDeps,
  path: string,
  tail: RecordTail,
  result: AgentResult,
): Outcome<"written" | "begun", RecordFailure> {
  const wallMs = deps.clock.wallMs();
  const lastWallMs = tail.last ? parseIso(tail.last.ts) ?? wallMs : wallMs;
  const resumable = result.resumable && tail.last !== null;
  const end = { ...result, resumable, by: "supervisor" };
  const masked = maskDeep(end as unknown as Json, deps.mask);
  const line = JSON.stringify({
    v: RECORD_VERSION,
    seq: (tail.last?.seq ?? 0) + 1,
    ts: formatIso(wallMs),
    // The agent's own clock is gone with it: go on from its last line by the wall clock.
    at: (tail.last?.at ?? 0) + Math.max(0, wallMs - lastWallMs),
    type: TERMINAL_TYPE,
    ...(masked as JsonObject),
    prev: tail.hash,
  });
  const handle = deps.files.openAppend(path);
  if (!handle.ok) return failed(recordFailure(handle.failure));
  try {
    const written = handle.value.append(new TextEncoder().encode(line + "\n"));
    if (!written.ok) {
      deps.files.truncate(path, tail.bytes);
      return failed(recordFailure(written.failure));
    }
    const synced = handle.value.sync();
    if (!synced.ok) return failed(recordFailure(synced.failure));
    return success(tail.last === null ? "begun" : "written");
  } finally {
    handle.value.close();
  }
}
