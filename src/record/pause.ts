import type { ClockPort } from "../ports/clock.ts";

/** Waits, or until the signal aborts; at once if it has. */
export function pause(clock: ClockPort, delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const end = (): void => {
      cancel();
      signal.removeEventListener("abort", end);
      resolve();
    };
    const cancel = clock.after(delayMs, end);
    signal.addEventListener("abort", end);
  });
}
