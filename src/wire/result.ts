/** The closed set of ends, and what a run hands over at its end. */

import type { Json } from "../core/json.ts";

/** How a run can end. No tenth value exists. */
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

/** One of the nine ends. */
export type Status = (typeof STATUSES)[number];

/** The two failures of infrastructure that are no statuses. */
export type Abort = "intelligence" | "mcp";

/** One declared check of the final, as it ended. */
export interface VerificationItem {
  /** What sort of check it was; `hook` is an `on_stop` hook. */
  kind: "schema" | "require" | "check" | "hook";
  /** The schema, the artifact, or the command as declared. */
  name: string;
  /** Whether it passed at the end. */
  passed: boolean;
  /** It passed before the first turn already, and so proves little. */
  passed_before: boolean;
  /** What failed of it, in words; empty where it passed. */
  detail: string;
}

/** How the declared checks came out; `none declared` where there were none. */
export type Verification = "none declared" | { passed: boolean; items: VerificationItem[] };

/** What a run used, its summarising calls included. */
export interface UsageTotals {
  /** Turns taken. */
  steps: number;
  /** Requests to the model that were answered, summaries included. */
  model_calls: number;
  /** Calls that were sent to a tool. */
  tool_calls: number;
  /** Prompt tokens, cached ones included. */
  tokens_in: number;
  /** Completion tokens. */
  tokens_out: number;
  /** Prompt tokens that the endpoint had cached. */
  tokens_cached: number;
  /** Some endpoint reported none, and they were estimated. */
  tokens_estimated: boolean;
  /** USD; null when a price is unknown. */
  cost: number | null;
}

/** What an agent hands to its supervisor. Exactly one of `status` and `abort` is set. */
export interface AgentResult {
  status: Status | null;
  abort: Abort | null;
  /** One sentence: why it ended. A closed word first where a budget or a detector ended it. */
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

/** `--output json`: one object, these keys, this order. */
export interface RunResult {
  /** The run's id. */
  run_id: string;
  /** How it ended; null exactly when `abort` is not. */
  status: Status | null;
  /** Which part of the infrastructure failed, if one did. */
  abort: Abort | null;
  /** The code that the command line exits with. */
  exit_code: number;
  /** Whether the same run may succeed later, unchanged. */
  retryable: boolean;
  /** Whether `agentd resume` can go on with it. */
  resumable: boolean;
  /** The result is a usable partial, not a verified one. */
  partial: boolean;
  /** The final value, the partial text, or null. */
  result: Json;
  /** One sentence: why it ended. */
  reason: string;
  /** What was declared, and how each of it came out. */
  verification: Verification;
  /** What it used. */
  usage: UsageTotals;
  /** ISO 8601, UTC. */
  started_at: string;
  /** ISO 8601, UTC. */
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
