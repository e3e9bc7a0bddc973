/**
 * The restart governor of what lives long: warm sessions and watchers, never the root of `once`.
 * Plain data in, a decision out.
 */

import { backoffMs, type BackoffPlan } from "../core/backoff.ts";

/** How many ends are borne, and how long is waited after each. */
export interface RestartPlan {
  backoff: BackoffPlan;
  /** So many restarts within the period are borne; the next opens the circuit. */
  intensityMax: number;
  periodMs: number;
  /** An end sooner than this after a spawn is a crash on spawn. */
  spawnCrashMs: number;
  /** Crashes on spawn in a row that are borne. */
  spawnCrashesMax: number;
}

/** The plan for watchers and warm sessions. */
export const RESTART_PLAN: RestartPlan = {
  backoff: { baseMs: 200, capMs: 30_000, attemptsMax: Infinity },
  intensityMax: 5,
  periodMs: 60_000,
  spawnCrashMs: 1_000,
  spawnCrashesMax: 2,
};

/** What the governor remembers of one thing that is restarted. */
export interface RestartState {
  /** Moments of restarts within the period, oldest first; at most `intensityMax`. */
  restartsMs: number[];
  spawnCrashes: number;
  /** Why there will be no more; null: there may be. */
  open: string | null;
}

/** Nothing was restarted yet. */
export const FRESH_RESTARTS: Readonly<RestartState> = {
  restartsMs: [],
  spawnCrashes: 0,
  open: null,
};

/** To start it anew after a wait, or to leave it, and why. */
export type RestartDecision = { restart: true; afterMs: number } | { restart: false; why: string };

/** What to do after an end that nobody wanted. `unit` is chance in [0, 1). */
export function decideRestart(
  plan: RestartPlan,
  state: RestartState,
  end: { startedMs: number; endedMs: number; reason: string },
  unit: number,
): [RestartState, RestartDecision] {
  if (state.open !== null) return [state, { restart: false, why: state.open }];
  const quick = end.endedMs - end.startedMs < plan.spawnCrashMs;
  const spawnCrashes = quick ? state.spawnCrashes + 1 : 0;
  const restartsMs = state.restartsMs.filter((at) => end.endedMs - at < plan.periodMs);
  const openWith = (why: string): [RestartState, RestartDecision] => [
    { restartsMs, spawnCrashes, open: why },
    { restart: false, why },
  ];
  if (spawnCrashes > plan.spawnCrashesMax) {
    return openWith(`it crashed ${spawnCrashes} times in a row as it started: ${end.reason}`);
  }
  if (restartsMs.length >= plan.intensityMax) {
    const seconds = Math.round(plan.periodMs / 1000);
    return openWith(
      `it was restarted ${restartsMs.length} times within ${seconds} s and ended again: ${end.reason}`,
    );
  }
  const afterMs = backoffMs(plan.backoff, restartsMs.length + 1, 0.5 + unit / 2);
  return [
    { restartsMs: [...restartsMs, end.endedMs], spawnCrashes, open: null },
    { restart: true, afterMs },
  ];
}
