/** A rate with a burst: `take` answers how long to wait, 0 when a token was taken. */
export class TokenBucket {
  readonly #burst: number;
  readonly #perSecond: number;
  #tokens: number;
  #atMs: number;

  constructor(burst: number, perSecond: number, nowMs: number) {
    this.#burst = burst;
    this.#perSecond = perSecond;
    this.#tokens = burst;
    this.#atMs = nowMs;
  }

  /** Milliseconds until there is a token; 0: one was taken. */
  take(nowMs: number): number {
    const refill = (nowMs - this.#atMs) * this.#perSecond / 1000;
    this.#tokens = Math.min(this.#burst, this.#tokens + Math.max(0, refill));
    this.#atMs = Math.max(this.#atMs, nowMs);
    if (this.#tokens < 1) return Math.ceil((1 - this.#tokens) * 1000 / this.#perSecond);
    this.#tokens--;
    return 0;
  }
}
