/** Stops what was scheduled or subscribed; calling it twice does no harm. */
export type Cancel = () => void;

/**
 * Time. Contract: `monotonicMs` never goes back, whatever happens to the wall clock; `after` calls
 * back once, not before `delayMs` have passed on the monotonic clock, unless cancelled.
 */
export interface ClockPort {
  /** Milliseconds since the Unix epoch. */
  wallMs(): number;
  monotonicMs(): number;
  after(delayMs: number, fire: () => void): Cancel;
}

/** Waits `delayMs`; false, at once and with no timer left, if the signal aborts first or has aborted. */
export function pause(clock: ClockPort, delayMs: number, signal: AbortSignal): Promise<boolean> {
  if (signal.aborted) return Promise.resolve(false);
  return new Promise((resolve) => {
    const onAbort = (): void => {
      cancel();
      resolve(false);
    };
    const cancel = clock.after(delayMs, () => {
      signal.removeEventListener("abort", onAbort);
      resolve(true);
    });
    signal.addEventListener("abort", onAbort, { once: true });
  });
}

/** Turns that `withinTurns` splits a time into. */
const TURNS = 25;

/**
 * As `within`, for what is there already and only waits to be read: the time is split into turns of
 * the event loop, so that a machine that was halted or busy for longer than the time does not judge.
 */
export async function withinTurns(
  clock: ClockPort,
  timeoutMs: number,
  promise: Promise<unknown>,
): Promise<boolean> {
  for (let turn = 0; turn < TURNS; turn++) {
    if (await within(clock, timeoutMs / TURNS, promise)) return true;
  }
  return false;
}

/** Whether a promise is fulfilled within a time; it rejects if that does. Leaves no timer. */
export function within(
  clock: ClockPort,
  timeoutMs: number,
  promise: Promise<unknown>,
): Promise<boolean> {
  const over = Promise.withResolvers<false>();
  const cancel = clock.after(timeoutMs, () => over.resolve(false));
  return Promise.race([promise.then(() => true), over.promise]).finally(cancel);
}
