/** How a stretch of a run begins: fresh, resumed from a record, or by a delivery to a warm session. */

import { callCost, emptyCounters } from "./budget.ts";
import { noteOnLast, pushMessage, startTranscript } from "./context.ts";
import type { EventOf } from "./event.ts";
import { deliveryText, firstParts } from "./opening.ts";
import { resumeNote } from "./prompt.ts";
import { compactionMark, useJsonMode } from "./assemble.ts";
import type { AgentState } from "./state.ts";
import type { Action, Next } from "./plan.ts";
import { abandonTurn } from "./calls.ts";
import { loseChildren } from "./children.ts";

/** A fresh run. */
export function beginRun(state: AgentState, event: EventOf<"run.started">, out: Action[]): Next {
  state.identity = event.identity;
  state.task = event.task;
  state.limits = event.limits;
  state.model = event.model;
  state.notes = event.notes;
  state.warm = event.warm;
  state.stopHooks = event.stop_hooks;
  state.selfTools = event.self_tools;
  state.toolMode = event.model.tool_mode === "json" ? "json" : "native";
  state.startedAt = event.at;
  state.counters = emptyCounters(event.model.prices !== null);
  state.markTokens = compactionMark(state);
  state.transcript = startTranscript(firstParts(state));
  state.phase = { tag: "starting", resumed: false };
  out.push({ do: "connect" });
  return null;
}

/** A run that stopped short, or was cut, goes on from its record. */
export function resumeRun(state: AgentState, event: EventOf<"run.resumed">, out: Action[]): Next {
  const strategy = resumeStrategy(state);
  abandonTurn(state, out);
  takeTerms(state, event);
  state.cancel = null;
  state.startedAt = event.at;
  state.last = null;
  state.turn = null;
  if (event.forked !== true) {
    countAnew(state);
    noteOnLast(state.transcript, resumeNote(strategy));
  }
  state.phase = { tag: "starting", resumed: true };
  loseChildren(state);
  out.push({ do: "connect" });
  return null;
}

/** Limits and model as they are now; what an endpoint said of its window still holds. */
function takeTerms(state: AgentState, event: EventOf<"run.resumed">): void {
  // The instruction and what came with it stand in the first message; the rest is read anew.
  if (event.task !== undefined) state.task = event.task;
  state.notes = event.notes ?? state.notes;
  state.stopHooks = event.stop_hooks ?? state.stopHooks;
  state.selfTools = event.self_tools ?? state.selfTools;
  const learned = state.markTokens < compactionMark(state) ? state.markTokens : Infinity;
  state.limits = event.limits;
  if (event.model !== undefined) {
    state.model = event.model;
    const { prices } = event.model;
    if (prices === null) state.counters.cost = null;
    else state.counters.cost ??= callCost(state.counters, prices);
    if (event.model.tool_mode === "json" && state.toolMode === "native") useJsonMode(state);
  }
  state.markTokens = Math.min(learned, compactionMark(state));
}

/** What the model is told to change, after the reason of the end. */
function resumeStrategy(state: AgentState): string {
  if (state.phase.tag !== "stopped") {
    return "Calls that were on their way are marked unknown: read the state before repeating one.";
  }
  const { result } = state.phase;
  switch (result.status) {
    case "exhausted_tokens":
      return "The token budget was used up: change your strategy and spend less per turn, do not just go on.";
    case "exhausted_steps":
      return "The turns were used up while you were working: go on, more directly.";
    case "deadline":
      return `The time was used up. The slow part was: ${
        slowestCalls(state)
      }. Avoid it or use it sparingly.`;
    case "stalled":
    case "loop_detected":
      return "You were going in circles: take another way than before.";
    default:
      return "Calls that were on their way are marked unknown: read the state before repeating one.";
  }
}

function slowestCalls(state: AgentState): string {
  const slow = [...state.slowest].map(({ name, ms }) => `${name} ${Math.round(ms)} ms`);
  return slow.length === 0 ? "the model's own replies" : slow.join(", ");
}

/** What is counted in a row is counted anew; evidence stays. */
function countAnew(state: AgentState): void {
  state.progress.idle = 0;
  state.progress.failing = 0;
  state.progress.attempts.clear();
  state.progress.attemptsHigh = 0;
  state.compactions = 0;
  state.tooLong = null;
}

/** A warm session takes the next delivery: same transcript and evidence, its limits anew. */
export function continueSession(
  state: AgentState,
  event: EventOf<"delivered">,
  out: Action[],
): Next {
  const { counters } = state;
  // Only a process that died in the middle of a turn leaves one open.
  abandonTurn(state, out);
  state.evidence = 0;
  state.base = {
    steps: counters.steps,
    tokens: counters.tokensIn + counters.tokensOut,
    calls: counters.toolCalls,
    cost: counters.cost ?? 0,
  };
  state.startedAt = event.at;
  state.cancel = null;
  countAnew(state);
  state.last = null;
  state.verification = null;
  state.lastText = "";
  // What was to be continued belongs to the delivery before.
  state.carried = null;
  const { instruction, uris } = event.delivery;
  pushMessage(
    state.transcript,
    { role: "user", parts: [{ type: "text", text: deliveryText(instruction, uris) }] },
    counters.steps,
    null,
    true,
  );
  if (!event.reconnect) return "assemble";
  state.phase = { tag: "starting", resumed: true };
  loseChildren(state);
  out.push({ do: "connect" });
  return null;
}
