/** Several endpoints as one: which to ask, in what order, and what their failures come to. */

import type { Outcome } from "../core/outcome.ts";
import type { ModelFailure, ModelFailureClass, ModelReply, ModelRequest } from "../ports/model.ts";

/** One endpoint, over a wire or recorded. */
export interface Member {
  /** How it is named in telemetry and failures. */
  readonly label: string;
  /** Used only if {@link Member.probe} finds it. */
  readonly mustProbe: boolean;
  probe(signal: AbortSignal): Promise<boolean>;
  complete(
    request: ModelRequest,
    signal: AbortSignal,
    hasNext: boolean,
  ): Promise<Outcome<ModelReply, ModelFailure>>;
}

const SKIP_BASE_MS = 5_000;
const SKIP_CAP_MS = 300_000;

/** What the conversation itself brings about: another endpoint is not asked. */
const OWN_FAULTS: ReadonlySet<ModelFailureClass> = new Set([
  "context_length",
  "tools_unsupported",
  "cancelled",
]);

/** Failures that time alone seldom mends: such an endpoint is left alone for the longest time. */
const LASTING: ReadonlySet<ModelFailureClass> = new Set([
  "auth",
  "quota",
  "not_found",
  "bad_request",
  "uncovered",
]);

/** Whether the next endpoint is asked after this failure. */
export function goesToNext(failureClass: ModelFailureClass): boolean {
  return !OWN_FAULTS.has(failureClass);
}

/** Remembers which of `size` endpoints failed, and skips each for a growing time. */
export class HealthMemory {
  readonly #failures: number[];
  readonly #skipUntilMs: number[];

  constructor(size: number) {
    this.#failures = new Array(size).fill(0);
    this.#skipUntilMs = new Array(size).fill(0);
  }

  /** All places in the order to try: healthy ones as configured, then skipped ones. */
  order(nowMs: number): number[] {
    const places = this.#failures.map((_count, place) => place);
    const isSkipped = (place: number) => this.#skipUntilMs[place]! > nowMs;
    return [
      ...places.filter((place) => !isSkipped(place)),
      ...places.filter(isSkipped).sort((a, b) => this.#skipUntilMs[a]! - this.#skipUntilMs[b]!),
    ];
  }

  succeeded(place: number): void {
    this.#failures[place] = 0;
    this.#skipUntilMs[place] = 0;
  }

  failed(place: number, failureClass: ModelFailureClass, nowMs: number): void {
    const count = ++this.#failures[place]!;
    const growing = Math.min(SKIP_CAP_MS, SKIP_BASE_MS * 2 ** (count - 1));
    this.#skipUntilMs[place] = nowMs + (LASTING.has(failureClass) ? SKIP_CAP_MS : growing);
  }
}

/**
 * The one failure that several come to. If any of them may pass, it decides class and
 * `retryable`; else the first one does. The message holds them all.
 */
export function joinFailures(failures: readonly ModelFailure[]): ModelFailure {
  const decisive = failures.find((failure) => failure.retryable) ?? failures[0]!;
  const attempts = failures.reduce((sum, failure) => sum + failure.attempts, 0);
  if (failures.length === 1) return decisive;
  const message = `Cannot use any of ${failures.length} model endpoints: ${
    failures.map((failure) => failure.message).join("; ")
  }`;
  return { ...decisive, message, attempts };
}
