import type { SignalsPort } from "../ports/signals.ts";

/** Signals to this process. */
export const systemSignals: SignalsPort = {
  on(signal, handle) {
    Deno.addSignalListener(signal, handle);
    return () => Deno.removeSignalListener(signal, handle);
  },
};
