/**
 * The Worker of a built-in tool server, which has the server's grant and nothing else. It speaks MCP
 * on the process's own stdin and stdout. A composition root: it names the system's ports.
 */

import { DRAIN_MS, EXEC_GRACE_MS } from "../core/tool_limits.ts";
import type { ClockPort } from "../ports/clock.ts";
import { systemClock } from "../sys/clock.ts";
import { systemProcess } from "../sys/process.ts";
import { systemRandom } from "../sys/random.ts";
import { systemSelf } from "../sys/self.ts";
import { systemSockets } from "../sys/socket.ts";
import { systemTree } from "../sys/tree.ts";
import { buildExecTools, type GroupsPort } from "./exec.ts";
import { buildFsTools, type BuiltTools } from "./fs.ts";
import { buildHttpTools } from "./http.ts";
import type { FromToolWorker, ServerOrder, ToToolWorker } from "./messages.ts";
import { serveTools } from "./server.ts";
import { LineTransport } from "./transport.ts";

interface WorkerScope {
  onmessage: ((event: MessageEvent<ToToolWorker>) => void) | null;
  postMessage(message: FromToolWorker): void;
}

const scope = globalThis as unknown as WorkerScope;

/** Groups as the Worker knows them: it asks the main thread. */
class RemoteGroups implements GroupsPort {
  readonly #waiting = new Map<number, () => void>();

  started(groupId: number): void {
    scope.postMessage({ type: "group_started", groupId });
  }

  ended(groupId: number): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.set(groupId, resolve);
      scope.postMessage({ type: "group_ended", groupId });
    });
  }

  signal(groupId: number, signal: "SIGTERM" | "SIGKILL"): void {
    scope.postMessage({ type: "signal_group", groupId, signal });
  }

  signalled(groupId: number): void {
    this.#waiting.get(groupId)?.();
    this.#waiting.delete(groupId);
  }
}

function build(order: ServerOrder, groups: GroupsPort): BuiltTools {
  switch (order.kind) {
    case "fs":
      return buildFsTools(
        { tree: systemTree, clock: systemClock, random: systemRandom },
        order.permissions,
        order.workingDirectory,
      );
    case "http":
      return buildHttpTools(
        { sockets: systemSockets, clock: systemClock, version: order.version },
        order.permissions,
      );
    case "exec":
      return buildExecTools({ process: systemProcess, clock: systemClock, groups, order });
  }
}

async function serve(order: ServerOrder, groups: GroupsPort): Promise<void> {
  const built = build(order, groups);
  const transport = new LineTransport(systemSelf.stdin, systemSelf.stdout);
  const served = serveTools(
    { name: `agentd-${order.kind}`, version: order.version, ...built },
    transport,
  );
  scope.postMessage({ type: "up" });
  await transport.ended;
  await within(systemClock, DRAIN_MS, transport.settled());
  // Cancels what is still under way; commands then get their grace.
  await transport.close();
  await within(systemClock, EXEC_GRACE_MS * 2, served.settled());
  scope.postMessage({ type: "done" });
}

async function within(clock: ClockPort, delayMs: number, wait: Promise<void>): Promise<void> {
  await new Promise<void>((resolve) => {
    const stop = clock.after(delayMs, resolve);
    wait.then(() => {
      stop();
      resolve();
    });
  });
}

const groups = new RemoteGroups();
scope.onmessage = ({ data }) => {
  if (data.type === "signalled") groups.signalled(data.groupId);
  else serve(data.order, groups);
};
