/** The end of a turn: its verdict, its messages, its line in the record, and whether to go on. */

import { INVALID_ECHO_CHARS_MAX, WIRE_TOOL_NAME_CHARS_MAX } from "../core/limits.ts";
import { clip, toWellFormed } from "../core/text.ts";
import type { Message } from "../ports/model.ts";
import { noteOnLast, pushMessage } from "./context.ts";
import { stopRun } from "./ending.ts";
import type { ActionLine } from "./event.ts";
import { toJsonMode } from "./json_mode.ts";
import { enter } from "./ledger.ts";
import type { Action, Next } from "./plan.ts";
import { countTurn, judgeTurn, turnSignature } from "./progress.ts";
import {
  CONTINUE_NOTE,
  failingNote,
  idleNote,
  type Left,
  leftOutNote,
  repeatPhrase,
} from "./prompt.ts";
import { observationDetail, resultMessage } from "./render.ts";
import { type AgentState, calledName, spent, type Turn, type TurnCall } from "./state.ts";
import { stopAfterTurn } from "./stops.ts";
import { failedClaimText, turnCheckText } from "./verify.ts";

/** Of a call's arguments, in the ledger and in the stub of its result. */
const ARGUMENTS_CHARS_MAX = 400;
/** Of what a side effect returned, in the ledger. */
const GIST_CHARS_MAX = 120;
/** Repeated calls that a note names. */
const REPEATS_TOLD_MAX = 4;

/** Judges the turn, tells the model what it must know, and goes on or stops. */
export function finishTurn(state: AgentState, out: Action[]): Next {
  const turn = state.turn!;
  closeTurn(state, turn, out);
  if (turn.refusal !== null) {
    return stopRun(state, { status: "refused", reason: turn.refusal }, out);
  }
  if (turn.claim !== null && turn.verified) {
    return stopRun(
      state,
      {
        status: "completed",
        reason: turn.claim.items.length === 0
          ? "the model gave a final answer; nothing was declared to verify it"
          : "the final answer passed everything that was declared",
      },
      out,
      turn.claim.value,
    );
  }
  const stop = stopAfterTurn(state.limits, spent(state), state.progress, state.cancel);
  if (stop !== null) return stopRun(state, stop, out);
  return "assemble";
}

/** The verdict, the transcript's new messages, and the record's line of the turn. */
export function closeTurn(state: AgentState, turn: Turn, out: Action[]): void {
  state.turn = null;
  const actions = turn.calls.map(actionLine);
  const summary = {
    actions,
    freshChecks: turn.freshChecks,
    rose: turn.rose,
    accepted: turn.refusal !== null || turn.verified,
    invalid: turn.invalid !== null,
    polled: turn.calls.length > 0 && turn.calls.every((call) => call.tool?.poll === true) &&
      actions.every((action) => action.class !== "refused" && action.class !== "invalid"),
    freshChildren: turn.freshChildren,
  };
  const { verdict, delta } = judgeTurn(summary);
  countTurn(state.progress, summary, delta);
  for (const call of turn.calls) enterLedger(state, turn.step, call);
  pushTurn(state, turn);
  const note = turn.verified || turn.refusal !== null ? null : turnNote(state, turn, delta);
  if (note !== null) noteOnLast(state.transcript, note);
  out.push({
    do: "append",
    decision: {
      type: "turn.judged",
      step: turn.step,
      verdict,
      delta,
      idle: state.progress.idle,
      failing: state.progress.failing,
      context_hash: turn.contextHash,
      signature: turnSignature(turn.calls.map((call) => call.digest), turn.textDigest),
      actions,
      tokens_in: turn.usage.tokensIn,
      tokens_out: turn.usage.tokensOut,
      tokens_cached: turn.usage.tokensCached,
      cost: turn.cost,
      model_ms: turn.modelMs,
      tools_ms: turn.toolsMs,
      note,
    },
  });
}

function actionLine(call: TurnCall): ActionLine {
  return {
    call: call.call,
    tool: calledName(call),
    class: call.observation!.class,
    fresh: call.fresh,
    attempts: call.attempts,
  };
}

function enterLedger(state: AgentState, step: number, call: TurnCall): void {
  const observation = call.observation!;
  const gist = observation.class === "ok" && call.tool !== null && !call.tool.readOnly
    ? observation.parts.map((part) => part.type === "text" ? part.text : `[${part.type}]`).join(" ")
    : observationDetail(observation);
  enter(state.ledger, step, {
    call: call.call,
    tool: calledName(call),
    args: clip(JSON.stringify(call.arguments), ARGUMENTS_CHARS_MAX),
    class: observation.class,
    detail: observation.class === "ok" ? clip(gist, GIST_CHARS_MAX) : gist,
  });
}

/** The turn's messages: what the model said, then one result for each call it emitted. */
function pushTurn(state: AgentState, turn: Turn): void {
  const { transcript, toolMode } = state;
  const native = toolMode === "native" && !turn.viaJson;
  const text = turn.invalid !== null && turn.invalid !== CONTINUE_NOTE
    ? clip(turn.text, INVALID_ECHO_CHARS_MAX)
    : turn.text;
  const reply: Message = {
    role: "assistant",
    text: text === "" && turn.calls.length === 0 ? "(empty reply)" : toWellFormed(text),
    calls: turn.viaJson ? [] : turn.calls.map((call) => ({
      id: call.wireId,
      name: wireNameOf(call),
      arguments: JSON.stringify(call.arguments),
    })),
    ...(turn.opaque === null ? {} : { opaque: turn.opaque }),
  };
  // A model may call natively where it was asked for JSON: it must still read what it called.
  pushMessage(transcript, native ? reply : toJsonMode(reply), turn.step, null);
  for (const call of turn.calls) {
    const observation = call.observation!;
    const mode = native ? "native" : "json";
    pushMessage(
      transcript,
      resultMessage(mode, call.wireId, wireNameOf(call), observation),
      turn.step,
      call.bytes > 0
        ? {
          call: call.call,
          tool: calledName(call),
          args: clip(JSON.stringify(call.arguments), ARGUMENTS_CHARS_MAX),
          class: observation.class,
          bytes: call.bytes,
        }
        : null,
    );
  }
  if (turn.calls.length > 0) return;
  const words = turn.invalid ?? failedClaimText(turn) ?? null;
  if (words === null) return;
  pushMessage(
    transcript,
    { role: "user", parts: [{ type: "text", text: words }] },
    turn.step,
    null,
  );
}

/** A name that any endpoint accepts back, whatever the model called. */
function wireNameOf(call: TurnCall): string {
  const name = call.wireName.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, WIRE_TOOL_NAME_CHARS_MAX);
  return name === "" ? "unnamed" : name;
}

/** What the model reads at the end of the turn; null if it has nothing to be told. */
function turnNote(state: AgentState, turn: Turn, delta: number): string | null {
  const { limits, progress } = state;
  const used = spent(state);
  const left: Left = {
    steps: Math.max(0, limits.maxSteps - used.steps),
    tokens: Math.max(0, limits.maxTokens - used.tokens),
    idle: progress.idle,
    failing: progress.failing,
  };
  const notes: string[] = [];
  const checks = turnCheckText(turn);
  if (checks !== null) notes.push(checks);
  if (turn.leftOut > 0) notes.push(leftOutNote(turn.leftOut));
  // What is being continued is not to be told to try another way.
  if (turn.invalid === CONTINUE_NOTE) return null;
  const isIdle = delta === 0 && progress.idle > 0;
  if (isIdle) {
    const repeats = turn.calls.filter((call) => call.attempts > 1 && !call.fresh).map((call) =>
      repeatPhrase(
        call.tool!.name,
        JSON.stringify(call.arguments),
        call.attempts,
        call.observation!.class,
      )
    );
    notes.push(idleNote(repeats.slice(0, REPEATS_TOLD_MAX), left, limits));
  }
  // Where idleness ends the run first, its note is warning enough.
  const isWarned = isIdle && limits.idleLimit < limits.failLimit;
  if (!isWarned && progress.failing * 2 >= limits.failLimit) {
    notes.push(failingNote(left, limits));
  }
  return notes.length === 0 ? null : notes.join("\n");
}
