/** What a server's Worker does, over the ports that it is given. */

import { DRAIN_MS, EXEC_GRACE_MS } from "../core/tool_limits.ts";
import { type ClockPort, within } from "../ports/clock.ts";
import type { ProcessPort } from "../ports/process.ts";
import type { RandomPort } from "../ports/random.ts";
import type { SocketPort } from "../ports/socket.ts";
import type { TreePort } from "../ports/tree.ts";
import { buildExecTools, type GroupsPort } from "./exec.ts";
import { buildFsTools, type BuiltTools } from "./fs.ts";
import { buildHttpTools } from "./http.ts";
import type { FromToolWorker, GroupSignal, ServerOrder, ToToolWorker } from "./messages.ts";
import { serveTools } from "./server.ts";
import { LineTransport } from "./transport.ts";

/** Effects of a Worker; Deno's permissions hold each to the server's grant. */
export interface ServingPorts {
  tree: TreePort;
  sockets: SocketPort;
  process: Pick<ProcessPort, "spawn">;
  clock: ClockPort;
  random: RandomPort;
  input: ReadableStream<Uint8Array>;
  output: WritableStream<Uint8Array>;
  post(message: FromToolWorker): void;
}

/** A Worker's side of the messages: give it each one that comes. */
export function createServing(ports: ServingPorts): (message: ToToolWorker) => void {
  const groups = new RemoteGroups(ports.post);
  return (message) => {
    if (message.type === "signalled") groups.signalled(message.groupId);
    else serve(message.order, ports, groups);
  };
}

/** Groups as the Worker knows them: it asks the main thread. */
class RemoteGroups implements GroupsPort {
  readonly #post: (message: FromToolWorker) => void;
  readonly #waiting = new Map<number, () => void>();

  constructor(post: (message: FromToolWorker) => void) {
    this.#post = post;
  }

  started(groupId: number): void {
    this.#post({ type: "group_started", groupId });
  }

  ended(groupId: number): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.set(groupId, resolve);
      this.#post({ type: "group_ended", groupId });
    });
  }

  signal(groupId: number, signal: GroupSignal): void {
    this.#post({ type: "signal_group", groupId, signal });
  }

  signalled(groupId: number): void {
    this.#waiting.get(groupId)?.();
    this.#waiting.delete(groupId);
  }
}

function build(order: ServerOrder, ports: ServingPorts, groups: GroupsPort): BuiltTools {
  switch (order.kind) {
    case "fs":
      return buildFsTools(ports, order.permissions, order.workingDirectory);
    case "http":
      return buildHttpTools({ ...ports, version: order.version }, order.permissions);
    case "exec":
      return buildExecTools({ ...ports, groups, order });
  }
}

async function serve(order: ServerOrder, ports: ServingPorts, groups: GroupsPort): Promise<void> {
  const built = build(order, ports, groups);
  const transport = new LineTransport(ports.input, ports.output);
  const served = serveTools(
    { name: `agentd-${order.kind}`, version: order.version, ...built },
    transport,
  );
  ports.post({ type: "up" });
  await transport.ended;
  await within(ports.clock, DRAIN_MS, transport.settled());
  // Cancels what is still under way; commands then get their grace.
  await transport.close();
  await within(ports.clock, EXEC_GRACE_MS * 2, served.settled());
  ports.post({ type: "done" });
}
