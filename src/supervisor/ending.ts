/** The result of an agent that could not, or may not, hand over its own. */

import { formatSize } from "../core/units.ts";
import type { ChildEnd, Progress } from "../wire/control.ts";
import { type AgentResult, failedResult } from "../wire/result.ts";
import type { ChildState, Why } from "./state.ts";

/** What came of an agent, by the machine's last state and the last progress it reported. */
export function resultOf(state: ChildState, progress: Progress | null): AgentResult {
  if (state.tag !== "reaped" && state.tag !== "failed") {
    return failedResult("crashed", "the agent was given up while it ran");
  }
  if (state.result) return state.result;
  const result = state.why
    ? resultFor(state.why)
    : state.tag === "failed"
    ? failedResult("crashed", state.message)
    : failedResult("crashed", describeExit(state.exit));
  if (!progress) return result;
  // All that is known is what it said of itself; a sum of both directions.
  const usage = { ...result.usage, steps: progress.step, tokens_in: progress.tokens };
  return { ...result, usage: { ...usage, tokens_estimated: true } };
}

/**
 * Tells a parent how its child ended. A result that just fits the child's own frame may not fit this
 * one: then the end is told without it, since the parent waits for it. `send` answers false where a
 * frame is not taken.
 */
export function tellEnd(
  send: (end: ChildEnd) => boolean,
  child: { id: string; path: string },
  result: AgentResult,
): void {
  const end = { childId: child.id, path: child.path, status: result.status };
  if (send({ ...end, result })) return;
  const reason = `${result.reason}; its result is over the size of a frame and was left out`;
  send({ ...end, result: { ...result, result: null, artifact: null, partial: false, reason } });
}

function resultFor(why: Why): AgentResult {
  switch (why.kind) {
    case "cancel":
    case "killed":
      return cancelled(why.reason);
    case "deadline":
      return failedResult("deadline", "the agent went on past its deadline and was killed");
    case "memory":
      return failedResult(
        "crashed",
        `memory: ${formatSize(why.bytes)} resident, at most ${formatSize(why.bytesMax)}`,
      );
    default:
      return failedResult("crashed", describeWhy(why));
  }
}

function cancelled(reason: Extract<Why, { kind: "cancel" }>["reason"]): AgentResult {
  switch (reason) {
    case "deadline":
      return failedResult("deadline", "the deadline passed");
    case "tree_tokens":
      return failedResult("exhausted_tokens", "tree_tokens: the tree has spent its tokens");
    case "tree_cost":
      return failedResult("exhausted_tokens", "cost: the tree has spent its budget");
    default:
      return failedResult("cancelled", reason);
  }
}

/** One sentence on why the supervisor ended an agent. */
export function describeWhy(why: Why): string {
  switch (why.kind) {
    case "cancel":
    case "killed":
      return why.reason;
    case "deadline":
      return "deadline";
    case "memory":
      return `resident size ${formatSize(why.bytes)} over ${formatSize(why.bytesMax)}`;
    case "silent":
      return `stuck: no sign of work for ${Math.round(why.forMs)} ms`;
    case "mute":
      return `stuck: ${why.misses} pings without an answer`;
    case "start":
      return "stuck: it did not get ready in time";
    case "frame":
      return `broke the control protocol: ${why.message}`;
    case "output_ended":
      return "closed its control channel and lived on";
  }
}

function describeExit(exit: { code: number; signal: string | null }): string {
  return exit.signal
    ? `the agent was ended by ${exit.signal}`
    : `the agent exited with code ${exit.code} without a result`;
}
