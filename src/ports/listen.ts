import type { Outcome } from "../core/outcome.ts";

/** Why an address could not be bound. */
export interface ListenFailure {
  class: "in_use" | "denied" | "other";
  message: string;
}

/** A server that listens. */
export interface Listening {
  /** The port in fact: what 0 became. */
  port: number;
  /** Stops taking requests and waits for those in progress, LISTEN_CLOSE_MS at most. */
  close(): Promise<void>;
}

/**
 * Incoming HTTP. Contract: nothing throws for the world; a handler that throws is a 500 and no more;
 * the address is bound when the outcome is a success.
 */
export interface ListenPort {
  listen(
    hostname: string,
    port: number,
    handle: (request: Request) => Promise<Response>,
  ): Outcome<Listening, ListenFailure>;
}
