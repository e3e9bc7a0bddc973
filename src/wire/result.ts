/** The closed set of ends, and what a run hands over at its end. */

import type { Json } from "../core/json.ts";

/** Contract 4. No tenth value exists. */
export const STATUSES = [
  "completed",
  "refused",
  "exhausted_steps",
  "exhausted_tokens",
  "deadline",
  "stalled",
  "loop_detected",
  "cancelled",
  "crashed",
] as const;

export type Status = (typeof STATUSES)[number];

/** The two failures of infrastructure that are no statuses. */
export type Abort = "intelligence" | "mcp";

/** One declared check of the final, as it ended. */
export interface VerificationItem {
  kind: "schema" | "require" | "check" | "hook";
  name: string;
  passed: boolean;
  /** It passed before the first turn already, and so proves little. */
  passedBefore: boolean;
  detail: string;
}

export type Verification = "none declared" | { passed: boolean; items: VerificationItem[] };

export interface UsageTotals {
  steps: number;
  model_calls: number;
  tool_calls: number;
  tokens_in: number;
  tokens_out: number;
  tokens_cached: number;
  tokens_estimated: boolean;
  /** USD; null when a price is unknown. */
  cost: number | null;
}

/** What an agent hands to its supervisor. Exactly one of `status` and `abort` is set. */
export interface AgentResult {
  status: Status | null;
  abort: Abort | null;
  /** One sentence: why it ended. A closed word first where the contract names one. */
  reason: string;
  retryable: boolean;
  resumable: boolean;
  /** The result is a usable partial, not a verified one. */
  partial: boolean;
  /** The final value, or the partial text, or null. */
  result: Json;
  /** Set when the value is over the inline bound and kept as an artifact. */
  artifact: string | null;
  verification: Verification;
  usage: UsageTotals;
  /**
   * Observations of tools that were new evidence, over the run or this delivery: what resets the
   * idle back-off of a daemon. Absent: unknown, and tool calls are taken for it.
   */
  evidence?: number;
}

/** `--output json` (contract 4): one object, these keys, this order. */
export interface RunResult {
  run_id: string;
  status: Status | null;
  abort: Abort | null;
  exit_code: number;
  retryable: boolean;
  resumable: boolean;
  partial: boolean;
  result: Json;
  reason: string;
  verification: Verification;
  usage: UsageTotals;
  started_at: string;
  ended_at: string;
  /** Path of the record. */
  record: string;
}

/** Usage of an agent that did nothing, or of which nothing is known. */
export const NO_USAGE: Readonly<UsageTotals> = {
  steps: 0,
  model_calls: 0,
  tool_calls: 0,
  tokens_in: 0,
  tokens_out: 0,
  tokens_cached: 0,
  tokens_estimated: false,
  cost: null,
};

/** The result of an agent that ended without one of its own. */
export function failedResult(status: Status, reason: string): AgentResult {
  return {
    status,
    abort: null,
    reason,
    retryable: false,
    resumable: true,
    partial: false,
    result: null,
    artifact: null,
    verification: "none declared",
    usage: { ...NO_USAGE },
  };
}
