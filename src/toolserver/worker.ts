/**
 * The Worker of a built-in tool server, which has the server's grant and nothing else. It speaks MCP
 * on the process's own stdin and stdout. A composition root: it names the system's ports.
 */

import { systemClock } from "../sys/clock.ts";
import { systemProcess } from "../sys/process.ts";
import { systemRandom } from "../sys/random.ts";
import { systemSelf } from "../sys/self.ts";
import { systemSockets } from "../sys/socket.ts";
import { systemTree } from "../sys/tree.ts";
import type { FromToolWorker, ToToolWorker } from "./messages.ts";
import { createServing } from "./serve.ts";

interface WorkerScope {
  onmessage: ((event: MessageEvent<ToToolWorker>) => void) | null;
  postMessage(message: FromToolWorker): void;
}

const scope = globalThis as unknown as WorkerScope;
const handle = createServing({
  tree: systemTree,
  sockets: systemSockets,
  process: systemProcess,
  clock: systemClock,
  random: systemRandom,
  input: systemSelf.stdin,
  output: systemSelf.stdout,
  post: (message) => scope.postMessage(message),
});
scope.onmessage = ({ data }) => handle(data);
