/** A clock that a test moves by hand. */

import type { ClockPort } from "../../src/ports/clock.ts";

interface Timer {
  dueMs: number;
  fire(): void;
}

/** The clock: `advance` fires what falls due, in order, each at its own time. */
export class ManualClock implements ClockPort {
  #nowMs = 0;
  #timers: Timer[] = [];

  /** Timers that have not fired and were not cancelled. */
  get pending(): number {
    return this.#timers.length;
  }

  wallMs(): number {
    return 1_700_000_000_000 + this.#nowMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  after(delayMs: number, fire: () => void): () => void {
    const timer = { dueMs: this.#nowMs + Math.max(0, delayMs), fire };
    this.#timers.push(timer);
    return () => void (this.#timers = this.#timers.filter((each) => each !== timer));
  }

  /** Moves time on. */
  advance(byMs: number): void {
    const endMs = this.#nowMs + byMs;
    for (;;) {
      const [next] = this.#timers.toSorted((a, b) => a.dueMs - b.dueMs);
      if (next === undefined || next.dueMs > endMs) break;
      this.#timers = this.#timers.filter((each) => each !== next);
      this.#nowMs = next.dueMs;
      next.fire();
    }
    this.#nowMs = endMs;
  }
}
