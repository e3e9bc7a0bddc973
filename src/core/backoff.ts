/** The wait before a retry: doubling from `baseMs` to `capMs`, with full jitter. */
export interface BackoffPlan {
  baseMs: number;
  capMs: number;
  attemptsMax: number;
}

/** Milliseconds to wait before attempt `attempt` (1 is the first retry); `unit` is in [0, 1). */
export function backoffMs(plan: BackoffPlan, attempt: number, unit: number): number {
  const ceiling = Math.min(plan.capMs, plan.baseMs * 2 ** Math.max(0, attempt - 1));
  return Math.floor(unit * ceiling);
}
