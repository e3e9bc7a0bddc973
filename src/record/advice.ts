/** How an end reads to an operator: one sentence on why, one on what to do. */

import type { AgentResult } from "../wire/result.ts";
import type { AgentTrace } from "./trace.ts";
import { RECORD_FULL } from "./append.ts";
import { formatElapsed } from "./output.ts";
import type { RunState } from "./runs.ts";

/** The end of a run in one sentence. */
export function endSentence(end: AgentResult | null, state: RunState): string {
  if (end === null) {
    switch (state) {
      case "running":
        return "The run is still going on.";
      case "damaged":
        return "The record is damaged: what is shown is what stands before the damage.";
      default:
        return "The run was interrupted: its record has no terminal line and no supervisor holds it.";
    }
  }
  const name = end.status ?? `abort ${end.abort}`;
  return `Ended ${name}: ${end.reason}${/[.!?]$/.test(end.reason) ? "" : "."}`;
}

/** What an operator does about it. `id` is the run's, for the command to copy. */
export function endAdvice(root: AgentTrace, state: RunState, id: string): string {
  const { end } = root;
  if (end === null) {
    if (state === "running") return `Follow it with: agentd inspect ${id} --follow`;
    if (state === "damaged") return `Replay it up to the damage with: agentd replay ${id}`;
    return `Go on from its record with: agentd resume ${id}`;
  }
  if (end.abort === "intelligence") {
    return `Check the endpoint, its credentials and its quota, then: agentd resume ${id}`;
  }
  if (end.abort === "mcp") {
    return `Run that tool server's command by itself and read what it says, then: agentd resume ${id}`;
  }
  return statusAdvice(root, end, id);
}

function statusAdvice(root: AgentTrace, end: AgentResult, id: string): string {
  const resume = `agentd resume ${id}`;
  switch (end.status) {
    case "completed":
      return end.verification === "none declared"
        ? "Nothing was declared to check it: add --check, --require or --output-schema to be sure."
        : "Nothing is left to do: what was declared was checked.";
    case "refused":
      return "Read the reason, change the task or what it is granted, and start a new run.";
    case "exhausted_steps":
      return `If the last iterations advanced, give it more: ${resume} --max-steps +20`;
    case "exhausted_tokens":
      return tokenAdvice(end.reason, resume);
    case "deadline":
      return `The slowest part was ${slowest(root)}; give it more time: ${resume} --deadline +10m`;
    case "stalled":
    case "loop_detected": {
      const first = root.first_non_advancing;
      const where = first === null ? "" : ` Look at step ${first}, the first without new evidence.`;
      return end.reason.startsWith("failing")
        ? `Its calls fail: read their errors, mend the tool or the task, then: ${resume}`
        : `The same answers came again.${where} Change the task or the tools, then: ${resume}`;
    }
    case "cancelled":
      return `It was stopped from outside; go on with: ${resume}`;
    default:
      if (end.reason.startsWith(RECORD_FULL)) return `Make room on that disk, then: ${resume}`;
      return `Read the telemetry of its process for the cause, then: ${resume}`;
  }
}

function tokenAdvice(reason: string, resume: string): string {
  if (reason.startsWith("cost")) return `Allow more: ${resume} --max-cost +1`;
  if (reason.startsWith("tree")) return `Allow the tree more: ${resume} --tree-tokens +1000000`;
  if (reason.startsWith("context")) {
    return "The context cannot be made smaller: use a larger --context-window or smaller inputs.";
  }
  return `Look where the tokens went (column TOKENS), then: ${resume} --max-tokens +200000`;
}

function slowest(root: AgentTrace): string {
  const sums = new Map<string, number>();
  for (const span of root.spans) {
    const name = span.kind === "tool" ? span.name : "the model";
    sums.set(name, (sums.get(name) ?? 0) + span.end - span.start);
  }
  let worst = ["the model", 0] as [string, number];
  for (const entry of sums) if (entry[1] > worst[1]) worst = entry;
  return `${worst[0]} (${formatElapsed(worst[1])} in all)`;
}
