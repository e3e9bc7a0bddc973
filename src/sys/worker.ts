import type { WorkerPort } from "../ports/worker.ts";

/** Workers that load the module at `url`. */
export function systemWorkers(url: URL): WorkerPort {
  return {
    start(spec) {
      const worker = new Worker(url, {
        type: "module",
        name: spec.name,
        deno: { permissions: spec.permissions as Deno.PermissionOptionsObject },
      });
      let over = false;
      const fail = (message: string) => {
        if (over) return;
        over = true;
        spec.onError(message);
      };
      worker.onmessage = (event) => {
        if (!over) spec.onMessage(event.data);
      };
      worker.onmessageerror = () => fail("a message could not be read");
      worker.onerror = (event) => {
        event.preventDefault();
        fail(event.message || "unknown error");
      };
      return {
        post(message, transfer) {
          if (!over) worker.postMessage(message, transfer ?? []);
        },
        terminate() {
          over = true;
          worker.terminate();
        },
      };
    },
  };
}
