/**
 * Lever 2: one summarising call that replaces prose only. The rebuilt context is the
 * task, the evidence ledger word for word, the summary, and the last results as they were. At most
 * two tries; what does not fit then ends the run as `exhausted_tokens`, reason `context`.
 */

import { byteLength } from "../core/text.ts";
import { compactionMark, estimateCost, estimateNext, planRequest } from "./assemble.ts";
import {
  contextHash,
  dropOld,
  noteOnLast,
  projectMessages,
  setFirst,
  transcriptBytes,
  turnSteps,
} from "./context.ts";
import { firstParts } from "./opening.ts";
import { BYTES_PER_TOKEN, recordUsage } from "./budget.ts";
import { stopRun } from "./ending.ts";
import type { EventOf } from "./event.ts";
import { findAction } from "./json_action.ts";
import { renderLedger } from "./ledger.ts";
import { compactedPreface, lastNote, SUMMARY_REQUEST } from "./prompt.ts";
import { type AgentState, spent } from "./state.ts";
import type { Action, Next } from "./plan.ts";
import { stopBeforeCall } from "./stops.ts";

const COMPACTIONS_MAX = 2;
/** What the ledger may take of the window. */
const LEDGER_SHARE = 1 / 8;

/** Decides how to get under the mark: summarise, drop without a summary, or end the run. */
export function planCompaction(state: AgentState, out: Action[]): Next {
  if (state.compactions >= COMPACTIONS_MAX) return endForContext(state, out);
  state.compactions++;
  // With one turn or none there is no prose that could be replaced: only pinned content is left.
  const isPinned = turnSteps(state.transcript).size < 2;
  if (isPinned && state.summary === null) return endForContext(state, out);
  if (state.compactions === 1) state.made = null;
  if (isPinned || state.compactions > 1) return rebuild(state, out);
  const estimate = estimateNext(state);
  const stop = stopBeforeCall(
    state.limits,
    spent(state),
    state.cancel,
    2 * estimate,
    2 * estimateCost(state, estimate),
  );
  // A summary that leaves no budget for the turn itself is not worth its price.
  if (stop?.status === "exhausted_tokens") return rebuild(state, out);
  if (stop !== null) return stopRun(state, stop, out);
  const request = planRequest(state, "summary");
  out.push({
    do: "append",
    decision: {
      type: "model.requested",
      step: state.counters.steps + 1,
      purpose: "summary",
      context_hash: contextHash(state.prefixHash, state.transcript),
      estimate,
      messages: request.messages.length + 1,
      last: null,
    },
  });
  const ask = { role: "user" as const, parts: [{ type: "text" as const, text: SUMMARY_REQUEST }] };
  out.push({
    do: "summarise",
    request: { ...request, messages: [...projectMessages(state.transcript), ask] },
  });
  state.phase = { tag: "compacting" };
  return null;
}

/** The summary came: it is used if it is shorter than what it replaces. */
export function compactWithSummary(
  state: AgentState,
  event: EventOf<"summary.made">,
  out: Action[],
): Next {
  recordUsage(state.counters, event.usage, state.model.prices);
  const summary = summaryOf(event.text);
  state.made = summary === "" ? null : summary;
  return rebuild(state, out);
}

/** The summary itself, also where a model in JSON mode wrapped it into an action. */
function summaryOf(text: string): string {
  const found = findAction(text);
  if (found === null || found.action.kind !== "final") return text.trim();
  const { result } = found.action;
  return typeof result === "string" ? result.trim() : JSON.stringify(result);
}

/** No summary is to be had: the ledger and the last results alone must do. */
export function compactWithout(
  state: AgentState,
  event: EventOf<"summary.failed">,
  out: Action[],
): Next {
  // A hook that forbids it costs no call.
  if (event.failure.attempts > 0) state.counters.modelCalls++;
  return rebuild(state, out);
}

/** A summary that is of no use yet is held for the second try; the last that was used still holds. */
function rebuild(state: AgentState, out: Action[]): Next {
  const { transcript, limits } = state;
  const before = estimateNext(state);
  const keep = state.compactions > 1 ? 0 : limits.keepVerbatim;
  const dropped = dropOld(transcript, keep);
  const isUseful = state.made !== null && byteLength(state.made) < dropped.bytes;
  if (isUseful) state.summary = state.made;
  const ledger = renderLedger(
    state.ledger,
    Math.floor(state.model.context_window * LEDGER_SHARE * BYTES_PER_TOKEN),
  );
  openWith(state, ledger);
  const mayGo = state.summary !== null && (!isUseful || state.compactions > 1);
  if (mayGo && estimateNext(state) >= state.markTokens) {
    state.summary = null;
    openWith(state, ledger);
  }
  // The newest turn stays, with the note on it; only a first message that was made anew lost it.
  if (state.last !== null && transcript.entries.length === 0) {
    noteOnLast(transcript, lastNote(state.last.why));
  }
  const after = estimateNext(state);
  out.push({
    do: "append",
    decision: {
      type: "context.compacted",
      step: state.counters.steps + 1,
      attempt: state.compactions,
      summarised: state.summary !== null,
      before,
      after,
      turns_dropped: dropped.turns,
      ledger_bytes: byteLength(ledger),
    },
  });
  return after < state.markTokens ? "call" : "compact";
}

/** The first message: the task, the ledger word for word, the summary if there is one. */
function openWith(state: AgentState, ledger: string): void {
  setFirst(state.transcript, [
    ...firstParts(state),
    { type: "text", text: compactedPreface(ledger, state.summary) },
  ]);
}

function endForContext(state: AgentState, out: Action[]): null {
  const size = `about ${estimateNext(state)} tokens (${
    transcriptBytes(state.transcript)
  } bytes of conversation)`;
  return stopRun(state, {
    status: "exhausted_tokens",
    reason: state.tooLong === null
      ? `context: ${size} do not fit under the mark of ${state.markTokens} of ${
        compactionMark(state)
      }`
      : `context: the endpoint finds the request too long, and there is nothing more to leave out of ${size} (${state.tooLong})`,
  }, out);
}
