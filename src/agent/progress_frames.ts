/** How far the run is, as the supervisor hears of it: never older than an interval, never a flood. */

import type { Cancel, ClockPort } from "../ports/clock.ts";
import type { Progress } from "../wire/control.ts";

/** Frames are this far apart at least; the newest is sent when the time is over. */
const INTERVAL_MS = 100;

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
    if (this.#cancel !== null) return;
    const waitMs = this.#sentMs + INTERVAL_MS - this.#clock.monotonicMs();
    if (waitMs <= 0) return this.#flush();
    this.#cancel = this.#clock.after(waitMs, () => {
      this.#cancel = null;
      this.#flush();
    });
  }

  /** The result says the rest. */
  stop(): void {
    this.#cancel?.();
    this.#cancel = null;
  }

  #flush(): void {
    this.#sentMs = this.#clock.monotonicMs();
    this.#send(this.#doing);
  }
}
