import type { ClockPort } from "../ports/clock.ts";

/** The system's clock. Timers do not keep the process alive by themselves once cancelled. */
export const systemClock: ClockPort = {
  wallMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  after(delayMs, fire) {
    // setTimeout takes 2^31 - 1 ms at most and fires at once beyond it.
    const timer = setTimeout(fire, Math.min(Math.max(0, delayMs), 2 ** 31 - 1));
    return () => clearTimeout(timer);
  },
};
