/** Ends of a run: the result that names one of the nine statuses or two aborts, exactly once. */

import type { Json } from "../core/json.ts";
import { INLINE_RESULT_BYTES_MAX } from "../core/limits.ts";
import { byteLength } from "../core/text.ts";
import type { Abort, AgentResult, Status, UsageTotals, Verification } from "../wire/result.ts";
import type { Decision } from "./event.ts";
import type { AgentState } from "./state.ts";
import type { Action } from "./plan.ts";
import type { Stop } from "./stops.ts";

/** Statuses from which a run can go on. */
const FINAL: ReadonlySet<Status> = new Set(["completed", "refused"]);

/** Ends the run with a status. */
export function stopRun(state: AgentState, stop: Stop, out: Action[], value?: Json): null {
  const completed = stop.status === "completed";
  const partial = !completed && stop.status !== "refused" && state.lastText.trim() !== "";
  return end(state, out, {
    status: stop.status,
    abort: null,
    reason: stop.reason,
    retryable: stop.status === "deadline" || stop.status === "crashed",
    resumable: !FINAL.has(stop.status),
    partial,
    result: completed ? value ?? null : partial ? state.lastText : null,
    artifact: null,
    verification: verificationOf(state, completed),
    usage: usageTotals(state),
    evidence: state.evidence,
  });
}

/** Ends the run with an abort. */
export function abortRun(
  state: AgentState,
  abort: Abort,
  reason: string,
  retryable: boolean,
  out: Action[],
): null {
  const partial = state.lastText.trim() !== "";
  return end(state, out, {
    status: null,
    abort,
    reason,
    retryable,
    resumable: true,
    partial,
    result: partial ? state.lastText : null,
    artifact: null,
    verification: verificationOf(state, false),
    usage: usageTotals(state),
    evidence: state.evidence,
  });
}

function end(state: AgentState, out: Action[], ended: AgentResult): null {
  const { result: value } = ended;
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const result = byteLength(text) > INLINE_RESULT_BYTES_MAX
    ? { ...ended, artifact: `result-${state.counters.steps}` }
    : ended;
  const line: Decision = { type: "run.ended", ...result };
  out.push({ do: "append", decision: line }, { do: "stop", result });
  state.phase = { tag: "stopped", result };
  return null;
}

/** What was spent since the agent's first start, as the result shows it. */
export function usageTotals(state: AgentState): UsageTotals {
  const { counters } = state;
  return {
    steps: counters.steps,
    model_calls: counters.modelCalls,
    tool_calls: counters.toolCalls,
    tokens_in: counters.tokensIn,
    tokens_out: counters.tokensOut,
    tokens_cached: counters.tokensCached,
    tokens_estimated: counters.estimated,
    cost: counters.cost,
  };
}

function verificationOf(state: AgentState, completed: boolean): Verification {
  const { task } = state;
  if (
    task.outputSchema === null && task.require.length === 0 && task.checks.length === 0 &&
    state.stopHooks === 0
  ) {
    return "none declared";
  }
  return { passed: completed, items: state.verification ?? [] };
}
