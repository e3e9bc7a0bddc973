/** Time limits of requests: a signal that ends when its time is over or its owner's signal does. */

import type { Cancel, ClockPort } from "../ports/clock.ts";

/** Why a limited signal ended. */
export type LimitCause = "timeout" | "cancelled";

/** A signal with a time limit. */
export class TimeLimit {
  /** What ended it, null while it runs. */
  cause: LimitCause | null = null;
  readonly #clock: ClockPort;
  readonly #timeoutMs: number;
  readonly #outer: AbortSignal;
  readonly #controller = new AbortController();
  readonly #onOuterAbort = (): void => this.#end("cancelled");
  #extensions: number;
  #startMs: number;
  #cancelTimer: Cancel;

  /** `extensionsMax`: how often {@link extend} may start the time anew. */
  constructor(clock: ClockPort, timeoutMs: number, outer: AbortSignal, extensionsMax = 0) {
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
    this.#outer = outer;
    this.#extensions = extensionsMax;
    this.#startMs = clock.monotonicMs();
    this.#cancelTimer = clock.after(timeoutMs, () => this.#fire());
    if (outer.aborted) this.#end("cancelled");
    else outer.addEventListener("abort", this.#onOuterAbort, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /**
   * Starts the time anew, from now. Counted only when the old time runs out, so that a server that
   * reports progress often does not use up its extensions in an instant.
   */
  extend(): void {
    if (this.#extensions > 0) this.#startMs = this.#clock.monotonicMs();
  }

  /** Ends the watch; the signal stays as it is. */
  clear(): void {
    this.#cancelTimer();
    this.#outer.removeEventListener("abort", this.#onOuterAbort);
  }

  #fire(): void {
    const leftMs = this.#startMs + this.#timeoutMs - this.#clock.monotonicMs();
    // Timers are whole milliseconds: less than one left is none.
    if (leftMs < 1) return this.#end("timeout");
    this.#extensions--;
    this.#cancelTimer = this.#clock.after(leftMs, () => this.#fire());
  }

  #end(cause: LimitCause): void {
    this.clear();
    if (this.cause !== null) return;
    this.cause = cause;
    this.#controller.abort(new Error(cause));
  }
}

/** The promise's value, or undefined if the signal aborts first. */
export function unlessAborted<Value>(
  promise: Promise<Value>,
  signal: AbortSignal,
): Promise<Value | undefined> {
  if (signal.aborted) return Promise.resolve(undefined);
  return new Promise((resolve, reject) => {
    const onAbort = (): void => resolve(undefined);
    signal.addEventListener("abort", onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
