/** How far the run is, as the supervisor hears of it: never older than an interval, never a flood. */

import type { Cancel, ClockPort } from "../ports/clock.ts";
import type { Progress } from "../wire/control.ts";

/** Frames are this far apart at least; the newest is sent when the time is over. */
const INTERVAL_MS = 100;

/** After usage: the tree's accounts must not lag behind an endpoint that answers within moments. */
const SPENT_INTERVAL_MS = 10;

/** Sends progress frames. */
export class ProgressFrames {
  readonly #clock: ClockPort;
  readonly #send: (doing: Progress["doing"]) => void;
  #doing: Progress["doing"] = "connecting";
  #sentMs = -Infinity;
  #cancel: Cancel | null = null;

  constructor(clock: ClockPort, send: (doing: Progress["doing"]) => void) {
    this.#clock = clock;
    this.#send = send;
  }

  /** Something began: it is told now, or with the next frame. */
  tell(doing: Progress["doing"]): void {
    this.#doing = doing;
    if (this.#cancel === null) this.#sendAfter(INTERVAL_MS);
  }

  /** Tokens were used: that is told before anything is done about it, or with a frame that is near. */
  spent(): void {
    this.stop();
    this.#sendAfter(SPENT_INTERVAL_MS);
  }

  /** The result says the rest. */
  stop(): void {
    this.#cancel?.();
    this.#cancel = null;
  }

  #sendAfter(intervalMs: number): void {
    const waitMs = this.#sentMs + intervalMs - this.#clock.monotonicMs();
    if (waitMs <= 0) return this.#flush();
    this.#cancel = this.#clock.after(waitMs, () => {
      this.#cancel = null;
      this.#flush();
    });
  }

  #flush(): void {
    this.#sentMs = this.#clock.monotonicMs();
    this.#send(this.#doing);
  }
}
