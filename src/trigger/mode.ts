/** When a mode starts again and when it exits: pure predicates over the same daemon. */

import { IDLE_BACKOFF_BASE_MS, IDLE_BACKOFF_CAP_MS } from "../core/limits.ts";
import type { AgentResult } from "../wire/result.ts";

/**
 * How a daemon ends, closed. `drained`, `bounded` (its number of iterations) and `locked` (another
 * one is at work) are clean; the exit codes are those of the README.
 */
export type DaemonEnd =
  | "drained"
  | "bounded"
  | "locked"
  | "lifetime"
  | "lifetime_tokens"
  | "credentials"
  | "required_server"
  /** A second signal. */
  | "killed";

/** What the predicates know. Durations in milliseconds. */
export interface DaemonFacts {
  /** Runs, or deliveries to a warm session, that are over. */
  iterations: number;
  /** Those that were started. */
  started: number;
  /** Since the daemon started, on the monotonic clock. */
  elapsedMs: number;
  /** Tokens of all its runs so far. */
  tokens: number;
  /** A signal asked for it to stop. */
  draining: boolean;
  /** Runs in progress. */
  inflight: number;
  /** Nothing can ever start again (a schedule without a further slot). */
  exhausted: boolean;
  failure: null | "credentials" | "required_server";
}

/** Bounds of a daemon as a whole. */
export interface DaemonBounds {
  /** 0: none, here and below. */
  maxIterations: number;
  lifetimeMs: number;
  lifetimeTokens: number;
}

/** Why nothing more may be started, or null; runs in progress may still have to end. */
export function stopReason(facts: DaemonFacts, bounds: DaemonBounds): DaemonEnd | null {
  if (facts.failure !== null) return facts.failure;
  if (bounds.lifetimeTokens > 0 && facts.tokens >= bounds.lifetimeTokens) return "lifetime_tokens";
  if (bounds.lifetimeMs > 0 && facts.elapsedMs >= bounds.lifetimeMs) return "lifetime";
  if (facts.draining) return "drained";
  if (bounds.maxIterations > 0 && facts.started >= bounds.maxIterations) return "bounded";
  if (facts.exhausted && facts.inflight === 0) return "bounded";
  return null;
}

/** Whether runs in progress are to be wound down: a clean bound lets them end by themselves. */
export function cutsRuns(reason: DaemonEnd): boolean {
  return reason !== "bounded";
}

/** The end, once nothing is in flight any more; null: the daemon goes on, or waits for its runs. */
export function exitOf(reason: DaemonEnd | null, inflight: number): DaemonEnd | null {
  return reason !== null && inflight === 0 ? reason : null;
}

/** Milliseconds until {@link stopReason} may change by time alone; null: never. */
export function boundSleepMs(facts: DaemonFacts, bounds: DaemonBounds): number | null {
  return bounds.lifetimeMs > 0 ? Math.max(0, bounds.lifetimeMs - facts.elapsedMs) : null;
}

/** Whether a run did real work: it brought new evidence from a tool. */
export function isRealWork(result: AgentResult): boolean {
  return (result.evidence ?? result.usage.tool_calls) > 0;
}

/** The credentials were refused: the one end of a run that ends its daemon. */
export function isCredentialsRefusal(result: AgentResult): boolean {
  return result.abort === "intelligence" && !result.retryable &&
    /^(auth|credentials)\b/.test(result.reason);
}

/** The infrastructure failed under a run, or its process did: its trigger is not yet served. */
export function isUnserved(result: AgentResult): boolean {
  return result.abort !== null || result.status === "crashed" || result.status === "cancelled";
}

/** A loop between two runs. */
export interface LoopState {
  /** Consecutive runs without real work. */
  idleRuns: number;
}

/** A loop that has run nothing yet: its first run starts at once. */
export function startLoop(): LoopState {
  return { idleRuns: 0 };
}

/**
 * After a run: the state, and the wait before the next in milliseconds. The wait is the interval (0:
 * at once), or, after runs without real work, at least 1 s doubling to the interval or 60 s.
 */
export function stepLoop(
  state: LoopState,
  result: AgentResult,
  intervalMs: number,
): [LoopState, number] {
  if (isRealWork(result) && !isUnserved(result)) return [{ idleRuns: 0 }, intervalMs];
  const capMs = intervalMs > 0 ? intervalMs : IDLE_BACKOFF_CAP_MS;
  const backoffMs = Math.min(capMs, IDLE_BACKOFF_BASE_MS * 2 ** Math.min(state.idleRuns, 30));
  return [{ idleRuns: state.idleRuns + 1 }, Math.max(intervalMs, backoffMs)];
}
