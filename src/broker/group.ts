/** The end of the agent's process group, and of what left it. */

import { isAlive, treeOfGroup } from "../core/process_tree.ts";
import type { ProcessRow } from "../ports/process.ts";
import type { TelemetryPort } from "../ports/telemetry.ts";
import type { BrokerPorts } from "./ports.ts";
import { within } from "./servers.ts";

/** How long the process table may take before the group dies without it; it is read twice. */
const TABLE_WAIT_MS = 700;

/**
 * Kills the group with SIGKILL, this process included; what left the group first. Its members are
 * stopped before it is read who left, so that meanwhile nobody starts anybody else.
 */
export async function endGroup(ports: BrokerPorts, groupId: number): Promise<void> {
  const { process, self } = ports;
  for (const row of await lookAt(ports)) {
    if (row.groupId === groupId && row.pid !== self.pid) process.signal(row.pid, "SIGSTOP");
  }
  for (const row of treeOfGroup(await lookAt(ports), groupId)) {
    if (row.groupId === groupId) continue;
    process.signal(row.pid, "SIGKILL");
    // With the group goes what was born in it since the table was read.
    if (row.pid === row.groupId) process.signalGroup(row.pid, "SIGKILL");
  }
  process.signalGroup(groupId, "SIGKILL");
  // Without process groups nobody killed us yet.
  self.exit(1);
}

async function lookAt({ clock, process }: BrokerPorts): Promise<ProcessRow[]> {
  let rows: ProcessRow[] = [];
  await within(clock, TABLE_WAIT_MS, process.table().then((table) => rows = table));
  return rows;
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
