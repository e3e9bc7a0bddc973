import type { Cancel } from "./clock.ts";

/** Signals to this process. Contract: a handler replaces the default action. */
export interface SignalsPort {
  on(signal: "SIGINT" | "SIGTERM" | "SIGHUP", handle: () => void): Cancel;
}
