/** One turn, from a reply to its verdict: what is legal, what is executed, what it came to. */

import { fnv64 } from "../core/hash.ts";
import { TURN_OBSERVATION_BYTES_MAX } from "../core/limits.ts";
import { clip, toWellFormed } from "../core/text.ts";
import type { ChildEnd } from "../wire/control.ts";
import { type ProposedCall, readProposal } from "./action.ts";
import { assemble, promptBytes } from "./assemble.ts";
import { callCost, recordUsage } from "./budget.ts";
import { pushMessage } from "./context.ts";
import { stopRun } from "./ending.ts";
import type { ActionLine, AgentEvent } from "./event.ts";
import { enter } from "./ledger.ts";
import type { Observation } from "./observation.ts";
import {
  callFingerprint,
  countAttempt,
  countTurn,
  isEvidence,
  judgeTurn,
  noteEvidence,
  turnSignature,
} from "./progress.ts";
import {
  CONTINUE_NOTE,
  failingNote,
  idleNote,
  invalidNote,
  type Left,
  perTurnRefusal,
  REFUSED_LAST_TURN,
  repeatPhrase,
  repeatRefusal,
  totalRefusal,
} from "./prompt.ts";
import { observationDetail, resultMessage } from "./render.ts";
import { type AgentState, spent, type Turn, type TurnCall } from "./state.ts";
import type { Action } from "./step.ts";
import { stopAfterTurn } from "./stops.ts";
import { checkAfterTurn, failedClaimText, turnCheckText, verifyClaim } from "./verify.ts";
import { noteOnLast } from "./context.ts";

type EventOf<Type extends AgentEvent["type"]> = Extract<AgentEvent, { type: Type }>;

const SLOWEST_MAX = 3;

/** Self tools whose answers are the harness's own words, and so no evidence. */
const NO_EVIDENCE: ReadonlySet<string> = new Set([
  "self/note_write",
  "self/note_read",
  "self/subagent_status",
  "self/subagent_cancel",
  "self/subscribe",
  "self/unsubscribe",
]);

/** A reply is there: usage first, then what it proposes. */
export function takeReply(
  state: AgentState,
  event: EventOf<"model.answered">,
  out: Action[],
): void {
  const { counters, model } = state;
  recordUsage(counters, event.usage, model.prices);
  counters.steps++;
  state.lastPrompt = { tokens: event.usage.tokensIn, bytes: promptBytes(state) };
  state.compactions = 0;
  state.shortened = false;
  const turn = openTurn(state, event);
  state.turn = turn;
  if (event.text.trim() !== "") state.lastText = event.text;
  const proposal = readProposal(event, {
    tools: state.tools,
    configured: model.tool_mode,
    mode: state.toolMode,
    step: turn.step,
  });
  const carried = state.carried;
  state.carried = null;
  switch (proposal.kind) {
    case "calls":
      turn.viaJson = proposal.viaJson;
      return planCalls(state, turn, proposal.calls, out);
    case "final": {
      const text = carried === null ? proposal.text : carried + proposal.text;
      if (carried !== null) state.lastText = text;
      return verifyClaim(state, turn, text, proposal.value, out);
    }
    case "refused":
      turn.refusal = proposal.reason;
      return finishTurn(state, out);
    case "cut":
      return cutReply(state, turn, carried, proposal.calls, out);
    case "invalid":
      return invalidTurn(state, turn, proposal.why, proposal.echo, out);
  }
}

function openTurn(state: AgentState, event: EventOf<"model.answered">): Turn {
  const { prices } = state.model;
  return {
    step: state.counters.steps,
    text: event.text,
    textDigest: event.digest,
    opaque: event.opaque,
    usage: event.usage,
    cost: prices === null ? null : callCost(event.usage, prices),
    modelMs: event.ms,
    actedAt: event.at,
    toolsMs: 0,
    contextHash: state.contextHash,
    calls: [],
    parallel: false,
    executed: 0,
    viaJson: false,
    invalid: null,
    claim: null,
    verified: false,
    refusal: null,
    checks: [],
    freshChecks: { passed: 0, failed: 0 },
    rose: false,
    freshChildren: 0,
  };
}

/** A reply that hit the output limit: continued once if it was text, else explained. */
function cutReply(
  state: AgentState,
  turn: Turn,
  carried: string | null,
  calls: number,
  out: Action[],
): void {
  if (calls > 0) {
    const why =
      `your output was cut off at ${state.model.max_output_tokens} tokens in the middle of a tool call; write less at a time`;
    return invalidTurn(state, turn, why, "", out);
  }
  if (carried === null && turn.text.trim() !== "" && state.last === null) {
    state.carried = turn.text;
    turn.invalid = CONTINUE_NOTE;
    out.push({
      do: "append",
      decision: {
        type: "action.invalid",
        step: turn.step,
        why: "cut off; continued once",
        echo: "",
      },
    });
    return finishTurn(state, out);
  }
  const why = `your output was cut off at ${state.model.max_output_tokens} tokens${
    carried === null ? "" : " again"
  }; answer shorter, or write the result in parts through a tool`;
  invalidTurn(state, turn, why, "", out);
}

function invalidTurn(
  state: AgentState,
  turn: Turn,
  why: string,
  echo: string,
  out: Action[],
): void {
  turn.invalid = invalidNote(why, echo);
  out.push({ do: "append", decision: { type: "action.invalid", step: turn.step, why, echo } });
  finishTurn(state, out);
}

/** Judges every proposed call, then sends what may be sent. */
function planCalls(state: AgentState, turn: Turn, proposed: ProposedCall[], out: Action[]): void {
  const refusal = proposed.find((call) =>
    call.tool?.name === "self/task_refuse" && call.fault === null
  );
  if (refusal !== undefined) turn.refusal = String(refusal.arguments.reason);
  let legal = 0;
  turn.calls = proposed.map((call, index) => {
    const planned = openCall(call, `c${turn.step}-${index + 1}`);
    const verdict = judgeLegality(state, turn, planned, call.fault, legal);
    if (verdict === null) legal++;
    else settle(planned, verdict);
    return planned;
  });
  for (const call of turn.calls) {
    const { observation } = call;
    if (observation?.class !== "refused" && observation?.class !== "invalid") continue;
    out.push({
      do: "append",
      decision: {
        type: "call.refused",
        step: turn.step,
        call: call.call,
        tool: call.tool?.name ?? clip(call.wireName, 80),
        class: observation.class,
        why: observation.why,
      },
    });
  }
  const planned = turn.calls.filter((call) => call.state === "planned");
  turn.parallel = planned.every((call) => call.tool!.readOnly);
  if (planned.length === 0) return finishTurn(state, out);
  state.phase = { tag: "acting" };
  turn.executed = planned.length;
  for (const call of turn.parallel ? planned : planned.slice(0, 1)) send(state, turn, call, out);
}

function openCall(call: ProposedCall, id: string): TurnCall {
  return {
    call: id,
    wireId: call.wireId,
    wireName: call.wireName,
    rawArguments: call.rawArguments,
    tool: call.tool,
    arguments: call.arguments,
    fingerprint: call.fault === null && call.tool !== null
      ? callFingerprint(call.tool.name, call.arguments)
      : "",
    attempts: 0,
    state: "planned",
    observation: null,
    digest: "",
    bytes: 0,
    fresh: false,
  };
}

/** Why a call is not executed; null if it is. Counts the attempt. */
function judgeLegality(
  state: AgentState,
  turn: Turn,
  call: TurnCall,
  fault: string | null,
  legal: number,
): Observation | null {
  const { limits } = state;
  if (call.tool?.name === "self/task_refuse" && fault === null) {
    return { class: "ok", parts: [{ type: "text", text: "recorded" }], structured: null };
  }
  if (turn.refusal !== null) return { class: "refused", why: "not executed: the task was refused" };
  if (fault !== null) return { class: "invalid", why: fault };
  if (state.last !== null) return { class: "refused", why: REFUSED_LAST_TURN };
  if (legal >= limits.maxCallsPerTurn) {
    return { class: "refused", why: perTurnRefusal(limits.maxCallsPerTurn) };
  }
  if (spent(state).calls + legal >= limits.maxCalls) {
    return { class: "refused", why: totalRefusal(limits.maxCalls) };
  }
  call.attempts = countAttempt(state.progress, call.fingerprint, call.tool!.poll);
  if (call.attempts > limits.repeatCap) {
    return { class: "refused", why: repeatRefusal(call.attempts, limits.repeatCap) };
  }
  return null;
}

function settle(call: TurnCall, observation: Observation): void {
  call.state = "done";
  call.observation = observation;
  call.digest = fnv64(JSON.stringify(observation));
}

function send(
  state: AgentState,
  turn: Turn,
  call: TurnCall,
  out: Action[],
): void {
  const tool = call.tool!;
  const effect = tool.readOnly ? "read_only" : "side_effect";
  call.state = "sent";
  state.counters.toolCalls++;
  out.push({
    do: "append",
    decision: {
      type: "call.intended",
      step: state.counters.steps,
      call: call.call,
      tool: tool.name,
      arguments: call.arguments,
      effect,
    },
  });
  const share = Math.floor(TURN_OBSERVATION_BYTES_MAX / turn.executed);
  out.push({
    do: "callTool",
    call: {
      call: call.call,
      tool,
      arguments: call.arguments,
      effect,
      showBytesMax: Math.min(state.limits.observationBytesMax, Math.max(share, 1024)),
    },
  });
}

/** A call's answer is there: evidence or not, then the next call or the verdict. */
export function answerCall(
  state: AgentState,
  event: EventOf<"call.observed">,
  out: Action[],
): void {
  const turn = state.turn!;
  const call = turn.calls.find((candidate) => candidate.call === event.call);
  if (call === undefined || call.state !== "sent") return;
  call.state = "done";
  call.observation = event.observation;
  call.digest = event.digest;
  call.bytes = event.bytes;
  if (isEvidence(event.observation) && !NO_EVIDENCE.has(call.tool!.name)) {
    call.fresh = noteEvidence(state.progress, call.fingerprint, event.digest);
    if (call.fresh) state.evidence++;
  }
  if (event.child !== null) {
    state.children.set(event.child.id, { ...event.child, end: null });
  }
  noteSlow(state, call.tool!.name, event.ms);
  const next = turn.calls.find((candidate) => candidate.state === "planned");
  if (next !== undefined) return send(state, turn, next, out);
  if (turn.calls.some((candidate) => candidate.state === "sent")) return;
  turn.toolsMs = event.at - turn.actedAt;
  if (!checkAfterTurn(state, out)) finishTurn(state, out);
}

function noteSlow(state: AgentState, name: string, ms: number): void {
  state.slowest.push({ name, ms });
  state.slowest.sort((a, b) => b.ms - a.ms);
  state.slowest.length = Math.min(state.slowest.length, SLOWEST_MAX);
}

/**
 * A stop falls into a turn: every call that the model emitted gets its one result. What was on its
 * way and may have had an effect is unknown; what was not sent, or only read, is refused.
 */
export function abandonTurn(state: AgentState, out: Action[]): void {
  const { turn } = state;
  if (turn === null) return;
  for (const call of turn.calls) {
    if (call.state === "done") continue;
    const unknown = call.state === "sent" && !call.tool!.readOnly;
    const observation: Observation = unknown
      ? {
        class: "unknown",
        why: "the run was stopped before the answer came; the call may have happened",
      }
      : { class: "refused", why: "not executed: the run was stopped" };
    settle(call, observation);
    out.push({
      do: "append",
      decision: {
        type: "call.abandoned",
        call: call.call,
        class: unknown ? "unknown" : "refused",
        why: unknown ? "stopped before the answer came" : "stopped",
      },
    });
  }
  closeTurn(state, turn, out);
}

/** Judges the turn, tells the model what it must know, and goes on or stops. */
export function finishTurn(state: AgentState, out: Action[]): void {
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
  assemble(state, out);
}

/** The verdict, the transcript's new messages, and the record's line of the turn. */
function closeTurn(state: AgentState, turn: Turn, out: Action[]): void {
  state.turn = null;
  const actions = turn.calls.map(actionLine);
  const summary = {
    actions,
    freshChecks: turn.freshChecks,
    rose: turn.rose,
    accepted: turn.refusal !== null || turn.verified,
    failedClaim: turn.claim !== null && !turn.verified,
    invalid: turn.invalid !== null,
    polled: turn.calls.length > 0 && turn.calls.every((call) => call.tool?.poll === true) &&
      actions.every((action) =>
        action.class === "ok" || action.class === "truncated" || action.class === "partial"
      ),
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
    tool: call.tool?.name ?? clip(call.wireName, 80),
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
    tool: call.tool?.name ?? clip(call.wireName, 80),
    args: clip(JSON.stringify(call.arguments), 400),
    class: observation.class,
    detail: observation.class === "ok" ? clip(gist, 120) : gist,
  });
}

/** The turn's messages: what the model said, then one result for each call it emitted. */
function pushTurn(state: AgentState, turn: Turn): void {
  const { transcript, toolMode } = state;
  const native = toolMode === "native" && !turn.viaJson;
  const text = turn.invalid !== null && turn.invalid !== CONTINUE_NOTE
    ? clip(turn.text, 800)
    : turn.text;
  pushMessage(
    transcript,
    {
      role: "assistant",
      text: text === "" && turn.calls.length === 0 ? "(empty reply)" : toWellFormed(text),
      calls: native
        ? turn.calls.map((call) => ({
          id: call.wireId,
          name: wireNameOf(call),
          arguments: JSON.stringify(call.arguments),
        }))
        : [],
      ...(turn.opaque === null ? {} : { opaque: turn.opaque }),
    },
    turn.step,
    null,
  );
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
          tool: call.tool?.name ?? call.wireName,
          args: JSON.stringify(call.arguments),
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
  const name = call.wireName.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, 64);
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
  if (delta === 0 && progress.idle > 0) {
    const repeats = turn.calls.filter((call) => call.attempts > 1 && !call.fresh).map((call) =>
      repeatPhrase(
        call.tool!.name,
        JSON.stringify(call.arguments),
        call.attempts,
        call.observation!.class,
      )
    );
    notes.push(idleNote(repeats.slice(0, 4), left, limits));
  } else if (progress.failing * 2 >= limits.failLimit) notes.push(failingNote(left, limits));
  return notes.length === 0 ? null : notes.join("\n");
}

/** A subagent ended. Its result is evidence; a waiting parent goes on when none is left. */
export function endChild(state: AgentState, end: ChildEnd, out: Action[]): void {
  const child = state.children.get(end.childId);
  if (child === undefined || child.end !== null) return;
  child.end = end;
  state.ended.push(end);
  if (state.phase.tag !== "waiting") return;
  if ([...state.children.values()].some((other) => other.end === null)) return;
  const turn = state.turn!;
  const digest = fnv64(JSON.stringify(state.ended.map((ended) => ended.result.result)));
  if (noteEvidence(state.progress, "children", digest)) turn.freshChildren = state.ended.length;
  turn.claim = null;
  finishTurn(state, out);
}

/** One line for each subagent that ended. */
export function childLines(ended: readonly ChildEnd[]): string[] {
  return ended.map(({ childId, path, result }) => {
    const how = result.status ?? `abort ${result.abort}`;
    const value = typeof result.result === "string" ? result.result : JSON.stringify(result.result);
    return `- ${childId} (${path}) ${how}: ${clip(value ?? result.reason, 2_000)}`;
  });
}
