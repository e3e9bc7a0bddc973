import type { SignalsPort } from "../ports/signals.ts";

/** Signals to this process. Windows knows no SIGTERM; its closing of a console is SIGHUP. */
export const systemSignals: SignalsPort = {
  on(signal, handle) {
    if (Deno.build.os === "windows" && signal === "SIGTERM") return () => {};
    Deno.addSignalListener(signal, handle);
    return () => Deno.removeSignalListener(signal, handle);
  },
};
