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
