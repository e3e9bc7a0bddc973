/** Processes of the system whose looks at the process table can be waited for. */

import type { ProcessPort, ProcessRow, SignalName } from "../../src/ports/process.ts";
import { systemProcess } from "../../src/sys/process.ts";

/**
 * The program waits for a look at the table for a bound time only; on a busy machine a test would
 * leave `ps` behind, which is a leak to Deno's eyes. Disposing waits for every look.
 */
export class SettlingProcess implements ProcessPort, AsyncDisposable {
  readonly #looks = new Set<Promise<ProcessRow[]>>();

  spawn: ProcessPort["spawn"] = (spec) => systemProcess.spawn(spec);
  signal = (pid: number, signal: SignalName) => systemProcess.signal(pid, signal);
  signalGroup = (groupId: number, signal: SignalName) => systemProcess.signalGroup(groupId, signal);

  table = (): Promise<ProcessRow[]> => {
    const look = systemProcess.table();
    this.#looks.add(look);
    return look.finally(() => this.#looks.delete(look));
  };

  async [Symbol.asyncDispose](): Promise<void> {
    while (this.#looks.size > 0) await Promise.all(this.#looks);
  }
}
