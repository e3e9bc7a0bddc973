/**
 * The process groups of exec's commands, kept by the main thread: it may send signals, which in Deno
 * takes permission to run anything, and starts nothing but the guard and `ps`.
 */

import { PROCESS_TABLE_WAIT_MS } from "../core/limits.ts";
import { treeOfGroup } from "../core/process_tree.ts";
import { type ClockPort, withinTurns } from "../ports/clock.ts";
import type { ChildProcess, ProcessPort, ProcessRow } from "../ports/process.ts";
import type { GroupSignal } from "./messages.ts";

/**
 * Reads `+ID` and `-ID` lines and, at the end of its input, kills every group that is left. It runs
 * in a session of its own, so that it outlives a SIGKILL of the server and of the server's group.
 */
const GUARD = [
  "trap '' TERM INT HUP",
  "groups=' '",
  "while read -r line; do",
  "  id=${line#?}",
  "  case $line in",
  '    +*) groups="$groups$id " ;;',
  '    -*) case $groups in *" $id "*) groups="${groups%% $id *} ${groups#* $id }" ;; esac ;;',
  "  esac",
  "done",
  // Without `--`: dash does not take it here.
  'for id in $groups; do kill -KILL "-$id" 2>/dev/null; done',
  "exit 0",
].join("\n");

const encoder = new TextEncoder();

/** Guards of one server: somebody who kills them again and again wins. */
const GUARDS_MAX = 5;

/** Signals groups, and sees to it that none outlives this process. */
export class GroupKeeper {
  readonly #process: ProcessPort;
  readonly #clock: ClockPort;
  /** Each with the processes that were seen to descend from it and to have left it. */
  readonly #groups = new Map<number, Set<number>>();
  #guard: WritableStreamDefaultWriter<Uint8Array> | null = null;
  #hasGuard: boolean;
  #guardsLeft = GUARDS_MAX;
  #guardGone: Promise<void> = Promise.resolve();

  constructor(process: ProcessPort, clock: ClockPort) {
    this.#process = process;
    this.#clock = clock;
    this.#hasGuard = this.#startGuard();
  }

  /**
   * Whether commands may have groups of their own. Without a guard (no POSIX shell, as on Windows)
   * they stay in the server's group, and only their first process is stopped.
   */
  get available(): boolean {
    return this.#hasGuard;
  }

  started(groupId: number): void {
    this.#groups.set(groupId, new Set());
    this.#tell(`+${groupId}\n`);
  }

  ended(groupId: number): void {
    const strays = this.#groups.get(groupId);
    if (strays === undefined) return;
    this.#groups.delete(groupId);
    // The program itself is gone; without a group its id may be somebody else's by now.
    if (this.#hasGuard) this.#process.signalGroup(groupId, "SIGKILL");
    for (const pid of strays) this.#process.signal(pid, "SIGKILL");
    this.#tell(`-${groupId}\n`);
  }

  /**
   * Sends a signal to a group that was started here and has not ended. What left the group is only
   * found while its parents live, so that the process table is read first.
   */
  async signal(groupId: number, signal: GroupSignal): Promise<void> {
    if (!this.#groups.has(groupId)) return;
    if (!this.#hasGuard) {
      this.#process.signal(groupId, signal);
      return;
    }
    const strays = await this.#findStrays(groupId);
    const known = this.#groups.get(groupId);
    if (known === undefined) {
      // It ended meanwhile, and nobody else will look after these.
      for (const pid of strays) this.#process.signal(pid, "SIGKILL");
      return;
    }
    for (const pid of strays) known.add(pid);
    this.#process.signalGroup(groupId, signal);
  }

  /** Kills every group that is left, and lets the guard go. */
  async close(): Promise<void> {
    await Promise.all([...this.#groups.keys()].map(async (groupId) => {
      await this.signal(groupId, "SIGKILL");
      this.ended(groupId);
    }));
    this.#guardsLeft = 0;
    await this.#guard?.close().catch(() => {});
    await this.#guardGone;
  }

  async #findStrays(groupId: number): Promise<number[]> {
    let rows: ProcessRow[] = [];
    const table = this.#process.table().then((table) => rows = table);
    await withinTurns(this.#clock, PROCESS_TABLE_WAIT_MS, table);
    return treeOfGroup(rows, groupId).filter((row) => row.groupId !== groupId)
      .map((row) => row.pid);
  }

  #tell(line: string): void {
    this.#guard?.write(encoder.encode(line)).catch(() => {});
  }

  #startGuard(): boolean {
    if (this.#guardsLeft === 0) return false;
    this.#guardsLeft--;
    const spawned = this.#process.spawn({
      command: "/bin/sh",
      args: ["-c", GUARD],
      env: {},
      clearEnv: true,
      cwd: "/",
      detached: true,
      stdin: "piped",
      stdout: "null",
      stderr: "null",
    });
    if (!spawned.ok) {
      this.#guard = null;
      return false;
    }
    const child: ChildProcess = spawned.value;
    this.#guard = child.stdin!.getWriter();
    this.#guard.closed.catch(() => {});
    this.#guardGone = child.exited.then(() => {
      // Killed by somebody: another one takes over what is still running.
      this.#guard = null;
      if (!this.#startGuard()) return;
      for (const groupId of this.#groups.keys()) this.#tell(`+${groupId}\n`);
    });
    return true;
  }
}
