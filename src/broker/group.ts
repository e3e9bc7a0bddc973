/** The end of the agent's process group, and of what left it. */

import { FROZEN_TABLE_WAIT_MS, FROZEN_TABLES_MAX } from "../core/limits.ts";
import { isAlive, treeOfGroup } from "../core/process_tree.ts";
import { withinTurns } from "../ports/clock.ts";
import type { ProcessRow } from "../ports/process.ts";
import type { TelemetryPort } from "../ports/telemetry.ts";
import type { BrokerPorts } from "./ports.ts";

/**
 * Kills the group with SIGKILL, this process included; what left the group first. Whoever is found is
 * stopped, and looked for again until nobody new is there, so that meanwhile nobody starts anybody.
 */
export async function endGroup(
  ports: BrokerPorts,
  groupId: number,
  mark: string | undefined,
): Promise<void> {
  const { clock, process, self } = ports;
  const found = new Map<number, ProcessRow>();
  for (let look = 0; look < FROZEN_TABLES_MAX; look++) {
    let rows: ProcessRow[] = [];
    const table = process.table(mark).then((table) => rows = table);
    if (!await withinTurns(clock, FROZEN_TABLE_WAIT_MS, table)) break;
    let more = false;
    for (const row of treeOfGroup(rows, groupId)) {
      if (row.pid === self.pid || found.has(row.pid)) continue;
      found.set(row.pid, row);
      more = process.signal(row.pid, "SIGSTOP") === "sent" || more;
    }
    if (!more) break;
  }
  for (const row of found.values()) {
    if (row.groupId === groupId) continue;
    process.signal(row.pid, "SIGKILL");
    // With the group goes what was born in it since the table was read.
    if (row.pid === row.groupId) process.signalGroup(row.pid, "SIGKILL");
  }
  process.signalGroup(groupId, "SIGKILL");
  // Without process groups nobody killed us yet.
  self.exit(1);
}

/** Kills what was seen of the group and below it, but for this process: all servers are closed. */
export function sweepGroup(
  ports: BrokerPorts,
  seen: readonly ProcessRow[],
  telemetry: TelemetryPort,
): void {
  const own = ports.self.pid;
  for (const row of treeOfGroup(seen, own)) {
    if (row.pid === own || !isAlive(row)) continue;
    const answer = ports.process.signal(row.pid, "SIGKILL");
    if (row.groupId === own) continue;
    if (row.pid === row.groupId) ports.process.signalGroup(row.pid, "SIGKILL");
    if (answer === "sent") {
      telemetry.emit("subagent.signal", {
        signal: "SIGKILL",
        child_pid: row.pid,
        why: "left the agent's process group",
      }, "warn");
    }
  }
}
