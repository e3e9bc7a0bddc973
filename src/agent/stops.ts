/**
 * Termination: one disjunction before each model call and one after each turn, the
 * cheapest check first. Each stop has a name from the closed set and a sentence.
 */

import type { Limits } from "../core/limits.ts";
import type { CancelReason } from "../wire/control.ts";
import type { Status } from "../wire/result.ts";
import type { Progress } from "./progress.ts";

/** A named end. `reason` starts with a closed word where one status has several causes. */
export interface Stop {
  status: Status;
  reason: string;
}

/** What has been spent, in this stretch of the run. */
export interface Spent {
  steps: number;
  /** Prompt and completion tokens. */
  tokens: number;
  /** USD; null when a price is unknown. */
  cost: number | null;
  elapsedMs: number;
}

/** The end that a cancel of this kind means. */
export function cancelStop(reason: CancelReason): Stop {
  switch (reason) {
    case "deadline":
      return { status: "deadline", reason: "deadline: the wall clock of the run is used up" };
    case "tree_tokens":
      return {
        status: "exhausted_tokens",
        reason: "tree: the tokens of the whole tree of agents are used up",
      };
    case "tree_cost":
      return {
        status: "exhausted_tokens",
        reason: "cost: the budget of the whole tree of agents is used up",
      };
    case "sigint":
    case "sigterm":
      return { status: "cancelled", reason: `${reason}: stopped by a signal` };
    case "parent":
      return { status: "cancelled", reason: "parent: stopped by its parent" };
    case "drain":
      return { status: "cancelled", reason: "drain: the supervisor is shutting down" };
    case "replaced":
      return { status: "cancelled", reason: "replaced: a newer run took its place" };
  }
}

/** Before a model call that is estimated at `estimate` tokens and `estimateCost` USD. */
export function stopBeforeCall(
  limits: Limits,
  spent: Spent,
  cancel: CancelReason | null,
  estimate: number,
  estimateCost: number,
): Stop | null {
  if (cancel !== null) return cancelStop(cancel);
  if (spent.elapsedMs >= limits.deadlineMs) {
    return {
      status: "deadline",
      reason: `deadline: ${Math.round(spent.elapsedMs / 1000)} s of ${
        limits.deadlineMs / 1000
      } s used`,
    };
  }
  if (spent.tokens + estimate >= limits.maxTokens) {
    return {
      status: "exhausted_tokens",
      reason:
        `tokens: ${spent.tokens} used and ${estimate} estimated for the next call, of ${limits.maxTokens}`,
    };
  }
  if (
    limits.maxCost !== null && spent.cost !== null && spent.cost + estimateCost >= limits.maxCost
  ) {
    return {
      status: "exhausted_tokens",
      reason: `cost: ${spent.cost.toFixed(4)} USD spent and ${
        estimateCost.toFixed(4)
      } estimated for the next call, of ${limits.maxCost}`,
    };
  }
  return null;
}

/** After a turn. */
export function stopAfterTurn(
  limits: Limits,
  spent: Spent,
  progress: Progress,
  cancel: CancelReason | null,
): Stop | null {
  if (cancel !== null) return cancelStop(cancel);
  if (spent.steps >= limits.maxSteps) {
    return {
      status: "exhausted_steps",
      reason: `steps: ${spent.steps} of ${limits.maxSteps} used`,
    };
  }
  if (progress.idle >= limits.idleLimit) {
    return {
      status: "stalled",
      reason: `idle: ${progress.idle} turns in a row brought no new evidence`,
    };
  }
  if (progress.failing >= limits.failLimit) {
    return {
      status: "stalled",
      reason: `failing: ${progress.failing} turns in a row without a single success`,
    };
  }
  if (progress.attemptsHigh > limits.repeatCap * 2) {
    return {
      status: "loop_detected",
      reason: `repeat: one call was tried ${progress.attemptsHigh} times without new content`,
    };
  }
  return null;
}
