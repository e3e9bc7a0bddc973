/**
 * The governor of what is started anew after it ended unwanted: warm sessions and watchers, never
 * the root of `once`. Whoever restarts waits in its own rhythm; this says when it is no use. Plain
 * data in, plain data out; times are monotonic milliseconds.
 */

import { backoffMs, type BackoffPlan } from "../core/backoff.ts";

/** How many ends are borne, and how long the circuit stays open after them. */
export interface RestartPlan {
  /** So many unwanted ends within the period are borne; the next opens the circuit. */
  intensityMax: number;
  periodMs: number;
  /** An end sooner than this after its start is a crash on spawn. */
  spawnCrashMs: number;
  /** Crashes on spawn in a row that are borne. */
  spawnCrashesMax: number;
  /** How long the circuit stays open: longer each time in a row. */
  cooldown: BackoffPlan;
}

/** The plan for watchers and warm sessions. */
export const RESTART_PLAN: RestartPlan = {
  intensityMax: 5,
  periodMs: 60_000,
  spawnCrashMs: 1_000,
  spawnCrashesMax: 2,
  cooldown: { baseMs: 30_000, capMs: 600_000, attemptsMax: Infinity },
};

/** What the governor remembers of one thing that is restarted. */
export interface RestartState {
  /** Moments of unwanted ends within the period, oldest first; at most `intensityMax`. */
  endsMs: number[];
  spawnCrashes: number;
  /** Openings in a row. */
  opened: number;
  /** While it is open: until when, and why. */
  open: { untilMs: number; why: string } | null;
}

/** Nothing has ended yet. */
export const FRESH_RESTARTS: Readonly<RestartState> = {
  endsMs: [],
  spawnCrashes: 0,
  opened: 0,
  open: null,
};

/** Why nothing may be started now; null: it may. */
export function refuseStart(state: RestartState, nowMs: number): string | null {
  return state.open !== null && nowMs < state.open.untilMs ? state.open.why : null;
}

/** Takes note of an end that nobody wanted; `open` of the answer is set where the circuit opens. */
export function noteEnd(
  plan: RestartPlan,
  state: RestartState,
  end: { startedMs: number; endedMs: number; reason: string },
  unit: number,
): RestartState {
  const livedMs = end.endedMs - end.startedMs;
  const spawnCrashes = livedMs < plan.spawnCrashMs ? state.spawnCrashes + 1 : 0;
  const recent = state.endsMs.filter((at) => end.endedMs - at < plan.periodMs);
  // Who lived a whole period is well: the next opening is a first one again.
  const opened = livedMs >= plan.periodMs ? 0 : state.opened;
  const why = spawnCrashes > plan.spawnCrashesMax
    ? `it crashed ${spawnCrashes} times in a row as it started: ${end.reason}`
    : recent.length >= plan.intensityMax
    ? `it ended ${recent.length + 1} times within ${plan.periodMs / 1000} s: ${end.reason}`
    : null;
  if (why === null) {
    return { endsMs: [...recent, end.endedMs], spawnCrashes, opened, open: null };
  }
  const waitMs = backoffMs(plan.cooldown, opened + 1, 0.5 + unit / 2);
  return {
    endsMs: [],
    spawnCrashes,
    opened: opened + 1,
    open: { untilMs: end.endedMs + waitMs, why: `the circuit is open: ${why}` },
  };
}
