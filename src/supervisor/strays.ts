/** Processes that left an agent's group but still descend from it: remembered, killed, reported. */

import { treeOfGroup } from "../core/process_tree.ts";
import type { ProcessPort, ProcessRow } from "../ports/process.ts";
import type { TelemetryPort } from "../ports/telemetry.ts";

/** How many strays of one agent are remembered. */
const STRAYS_MAX = 1_000;

/** What was seen to have left one agent's group. */
export class Strays {
  readonly #process: ProcessPort;
  readonly #telemetry: TelemetryPort;
  readonly #seen = new Map<number, ProcessRow>();
  readonly #frozen = new Set<number>();

  constructor(process: ProcessPort, telemetry: TelemetryPort) {
    this.#process = process;
    this.#telemetry = telemetry;
  }

  /** Takes note of a process table: what descends from the group and is not in it. */
  see(rows: readonly ProcessRow[], groupId: number): void {
    if (rows.length === 0) return;
    const byPid = new Map(rows.map((row) => [row.pid, row]));
    for (const [pid, row] of this.#seen) {
      const now = byPid.get(pid);
      if (now === undefined || isAnother(row, now)) this.#seen.delete(pid);
    }
    for (const row of treeOfGroup(rows, groupId, new Set(this.#seen.keys()))) {
      if (row.groupId !== groupId && this.#seen.size < STRAYS_MAX) this.#seen.set(row.pid, row);
    }
  }

  /** Stops whoever is seen and runs, so that nobody is started meanwhile; whether anybody did. */
  freeze(): boolean {
    let any = false;
    for (const { pid } of this.#seen.values()) {
      if (this.#frozen.has(pid)) continue;
      this.#frozen.add(pid);
      any = this.#process.signal(pid, "SIGSTOP") === "sent" || any;
    }
    return any;
  }

  /** SIGKILL to each that was seen last. */
  kill(): void {
    for (const row of this.#seen.values()) {
      const answer = this.#process.signal(row.pid, "SIGKILL");
      // With the group goes what was born in it since the table was read.
      if (row.pid === row.groupId) this.#process.signalGroup(row.pid, "SIGKILL");
      if (answer !== "sent") continue;
      this.#telemetry.emit("subagent.signal", {
        signal: "SIGKILL",
        child_pid: row.pid,
        why: "left its agent's process group",
        command: row.command.split(" ", 1)[0],
      }, "warn");
    }
    this.#seen.clear();
    this.#frozen.clear();
  }
}

/**
 * Whether an id is another process's by now. Its session tells, since no id of a process, a group or a
 * session that is in use is given away; only of who leads its session, a new one may do the same.
 */
function isAnother(before: ProcessRow, now: ProcessRow): boolean {
  if (now.sessionId !== before.sessionId) return true;
  if (now.pid !== now.sessionId) return false;
  // One of the two may have its environment behind it.
  return !now.command.startsWith(before.command) && !before.command.startsWith(now.command);
}
