/** What a Worker's own code sees of its surroundings. */

import { fetchOnce } from "./http.ts";

/** The Worker's end of its channel; `onMessage` is set before the first message can come. */
export function workerScope<In, Out>(): {
  pid: number;
  post: (message: Out, transfer?: Transferable[]) => void;
  onMessage: (handle: (message: In) => void) => void;
} {
  const scope = self as unknown as {
    postMessage(message: unknown, transfer?: Transferable[]): void;
    onmessage: ((event: MessageEvent) => void) | null;
  };
  return {
    pid: Deno.pid,
    post: (message, transfer) => scope.postMessage(message, transfer ?? []),
    onMessage: (handle) => {
      scope.onmessage = (event) => handle(event.data as In);
    },
  };
}

/** `fetch` that sends a call once: what a server may have acted on is not sent again below us. */
export const systemFetch: typeof fetch = (input, init) => fetchOnce(input, init);
