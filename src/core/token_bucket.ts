/**
 * A rate with a burst, as a token bucket: `burst` tokens at once, then one every `msPerToken`, never
 * more than `burst` saved up. Moments are monotonic milliseconds; whoever asks brings them.
 */
export class TokenBucket {
  readonly #burst: number;
  readonly #msPerToken: number;
  /** Below zero: taken in advance. */
  #tokens: number;
  #filledMs: number;

  /** Full at `nowMs`. */
  constructor(burst: number, msPerToken: number, nowMs: number) {
    this.#burst = burst;
    this.#msPerToken = msPerToken;
    this.#tokens = burst;
    this.#filledMs = nowMs;
  }

  /** Whole milliseconds until `amount` tokens are there; 0: they are. Takes nothing. */
  waitMs(amount: number, nowMs: number): number {
    const gained = (nowMs - this.#filledMs) / this.#msPerToken;
    this.#tokens = Math.min(this.#burst, this.#tokens + gained);
    this.#filledMs = nowMs;
    return Math.ceil(Math.max(0, amount - this.#tokens) * this.#msPerToken);
  }

  /** Takes `amount` tokens, in advance where they are not there yet; whole milliseconds until they are. */
  take(amount: number, nowMs: number): number {
    const waitMs = this.waitMs(amount, nowMs);
    this.#tokens -= amount;
    return waitMs;
  }

  /** Gives back tokens that were taken and not used. */
  giveBack(amount: number): void {
    this.#tokens = Math.min(this.#burst, this.#tokens + amount);
  }
}
