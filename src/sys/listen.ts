import { LISTEN_CLOSE_MS } from "../core/limits.ts";
import { failed, success } from "../core/outcome.ts";
import type { ListenPort } from "../ports/listen.ts";

/** HTTP by the runtime's own server. */
export const systemListen: ListenPort = {
  listen(hostname, port, handle) {
    try {
      const server = Deno.serve({
        hostname,
        port,
        onListen: () => {},
        onError: () => new Response("internal error\n", { status: 500 }),
      }, handle);
      return success({ port: server.addr.port, close: () => within(server.shutdown()) });
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      if (error instanceof Deno.errors.AddrInUse) return failed({ class: "in_use", message });
      const denied = error instanceof Deno.errors.NotCapable ||
        error instanceof Deno.errors.PermissionDenied;
      return failed({ class: denied ? "denied" : "other", message });
    }
  },
};

/** Whoever sends half a request and waits must not keep a daemon from its end. */
function within(closing: Promise<void>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, LISTEN_CLOSE_MS);
  void closing.catch(() => {}).then(() => {
    clearTimeout(timer);
    resolve();
  });
  return promise;
}
