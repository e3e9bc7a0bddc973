/** Notices a reply that only repeats itself, while it streams, at a cost of what is new in it. */

import { REPETITION_CHARS_MAX } from "../core/limits.ts";

/** The longest unit whose repetition is looked for, in characters. */
export const PERIOD_CHARS_MAX = 200;
/** A tail is looked at after this many new characters. */
const STRIDE_CHARS = 500;

/**
 * The shortest period, at most {@link PERIOD_CHARS_MAX}, with which the whole text repeats, or 0.
 * If a text has such a period, its last block occurs one period earlier and no shift in between
 * that is not itself a period (Fine and Wilf), so the nearest earlier occurrence decides.
 */
export function repeatedPeriod(text: string): number {
  const block = text.slice(-PERIOD_CHARS_MAX);
  if (text.length < 2 * PERIOD_CHARS_MAX) return 0;
  const window = text.slice(-2 * PERIOD_CHARS_MAX);
  const at = window.lastIndexOf(block, PERIOD_CHARS_MAX - 1);
  if (at === -1) return 0;
  const period = PERIOD_CHARS_MAX - at;
  for (let i = period; i < text.length; i++) {
    if (text.charCodeAt(i) !== text.charCodeAt(i - period)) return 0;
  }
  return period;
}

/** Watches one growing text. Holds its tail only. */
export class RepetitionGauge {
  #tail = "";
  #pending = "";
  #seen = 0;
  readonly #charsMax: number;

  /** `charsMax`: how much of the end must be nothing but repetition. */
  constructor(charsMax: number = REPETITION_CHARS_MAX) {
    this.#charsMax = charsMax;
  }

  /** Takes what is new; the period in characters once the tail only repeats itself, else 0. */
  push(delta: string): number {
    this.#pending += delta;
    this.#seen += delta.length;
    if (this.#pending.length < STRIDE_CHARS) return 0;
    this.#tail = (this.#tail + this.#pending).slice(-this.#charsMax);
    this.#pending = "";
    return this.#seen < this.#charsMax ? 0 : repeatedPeriod(this.#tail);
  }
}

/** The text up to where its repetition with this period began, and two periods of that. */
export function withoutRepetition(text: string, period: number): string {
  let start = text.length - 1;
  while (start >= period && text.charCodeAt(start) === text.charCodeAt(start - period)) start--;
  let end = Math.min(text.length, start - period + 1 + 2 * period);
  if (end < text.length && (text.charCodeAt(end - 1) & 0xfc00) === 0xd800) end++;
  return text.slice(0, Math.max(0, end));
}
