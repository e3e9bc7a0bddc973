/** The calls of a turn: which are legal, which are sent, and what their answers are worth. */

import { fnv64 } from "../core/hash.ts";
import {
  IMAGE_BYTES_EQUIVALENT,
  TURN_MEDIA_BYTES_MAX,
  TURN_OBSERVATION_BYTES_MAX,
} from "../core/limits.ts";
import type { ProposedCall } from "./action.ts";
import { roomTokens } from "./assemble.ts";
import { forgetShown } from "./children.ts";
import { BYTES_PER_TOKEN } from "./budget.ts";
import { closeTurn } from "./close.ts";
import type { EventOf } from "./event.ts";
import type { Observation } from "./observation.ts";
import type { Action, Next } from "./plan.ts";
import { callFingerprint, countAttempt, isEvidence, noteEvidence } from "./progress.ts";
import { perTurnRefusal, REFUSED_LAST_TURN, repeatRefusal, totalRefusal } from "./prompt.ts";
import { type AgentState, calledName, spent, type Turn, type TurnCall } from "./state.ts";
import { checkAfterTurn } from "./verify.ts";

const SLOWEST_MAX = 3;
/** Of each result something is shown, however little room there is. */
const SHOW_BYTES_MIN = 256;

/** Self tools whose answers are the harness's own words, and so no evidence. */
const NO_EVIDENCE: ReadonlySet<string> = new Set([
  "self/note_write",
  "self/note_read",
  "self/subagent_status",
  "self/subagent_cancel",
  "self/subscribe",
  "self/unsubscribe",
]);

/** Judges every proposed call, then sends what may be sent. */
export function planCalls(
  state: AgentState,
  turn: Turn,
  proposed: ProposedCall[],
  out: Action[],
): Next {
  const refusal = proposed.find((call) =>
    call.tool?.name === "self/task_refuse" && call.fault === null
  );
  if (refusal !== undefined) turn.refusal = String(refusal.arguments.reason);
  const legal: TurnCall[] = [];
  turn.calls = proposed.map((call, index) => {
    const planned = openCall(call, `c${turn.step}-${index + 1}`);
    const verdict = judgeLegality(state, turn, planned, call.fault, legal);
    if (verdict === null) legal.push(planned);
    else settle(planned, verdict);
    return planned;
  });
  for (const call of turn.calls) tellRefusal(turn, call, out);
  turn.parallel = legal.every((call) => call.tool!.readOnly);
  if (legal.length === 0) return "finish";
  state.phase = { tag: "acting" };
  turn.executed = legal.length;
  turn.roomBytes = Math.floor(roomTokens(state, turn) * BYTES_PER_TOKEN);
  for (const call of turn.parallel ? legal : legal.slice(0, 1)) {
    if (!isHeld(call)) send(state, turn, call, out);
  }
  return null;
}

/** The record's line of a call that is not executed. */
function tellRefusal(turn: Turn, call: TurnCall, out: Action[]): void {
  const { observation } = call;
  if (observation?.class !== "refused" && observation?.class !== "invalid") return;
  out.push({
    do: "append",
    decision: {
      type: "call.refused",
      step: turn.step,
      call: call.call,
      tool: calledName(call),
      class: observation.class,
      why: observation.why,
    },
  });
}

function openCall(call: ProposedCall, id: string): TurnCall {
  return {
    call: id,
    wireId: call.wireId,
    wireName: call.wireName,
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
  legal: readonly TurnCall[],
): Observation | null {
  const { limits } = state;
  if (call.tool?.name === "self/task_refuse" && fault === null) {
    return { class: "ok", parts: [{ type: "text", text: "recorded" }], structured: null };
  }
  if (turn.refusal !== null) return { class: "refused", why: "not executed: the task was refused" };
  if (fault !== null) return { class: "invalid", why: fault };
  if (state.last !== null) return { class: "refused", why: REFUSED_LAST_TURN };
  if (legal.length >= limits.maxCallsPerTurn) {
    return { class: "refused", why: perTurnRefusal(limits.maxCallsPerTurn) };
  }
  if (spent(state).calls + legal.length >= limits.maxCalls) {
    return { class: "refused", why: totalRefusal(limits.maxCalls) };
  }
  // Whether one over the cap brings something new is told by its likes of the same reply.
  const isOver = !call.tool!.poll &&
    state.progress.attempts.get(call.fingerprint) >= limits.repeatCap;
  if (isOver && legal.some((other) => other.fingerprint === call.fingerprint)) return null;
  return judgeRepeat(state, call);
}

/** Counts the attempt, and says why it is one too many; null if it is not. */
function judgeRepeat(state: AgentState, call: TurnCall): Observation | null {
  const { repeatCap } = state.limits;
  call.attempts = countAttempt(state.progress, call.fingerprint, call.tool!.poll);
  return call.attempts > repeatCap
    ? { class: "refused", why: repeatRefusal(call.attempts, repeatCap) }
    : null;
}

/** Whether a call waits for the answers of its likes: its attempt is not counted yet. */
function isHeld(call: TurnCall): boolean {
  return call.state === "planned" && call.attempts === 0;
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
  const share = Math.floor(
    Math.min(TURN_OBSERVATION_BYTES_MAX, turn.roomBytes) / turn.executed,
  );
  out.push({
    do: "callTool",
    call: {
      call: call.call,
      tool,
      arguments: call.arguments,
      effect,
      showBytesMax: Math.min(state.limits.observationBytesMax, Math.max(share, SHOW_BYTES_MIN)),
      mediaBytesMax: Math.floor(TURN_MEDIA_BYTES_MAX / turn.executed),
      mediaMax: Math.floor(turn.roomBytes / turn.executed / IMAGE_BYTES_EQUIVALENT),
    },
  });
}

/** A call's answer is there: evidence or not, then the next call or the verdict. */
export function answerCall(
  state: AgentState,
  event: EventOf<"call.observed">,
  out: Action[],
): Next {
  const turn = state.turn!;
  const call = turn.calls.find((candidate) => candidate.call === event.call);
  if (call === undefined || call.state !== "sent") return null;
  call.state = "done";
  call.observation = event.observation;
  call.digest = event.digest;
  call.bytes = event.bytes;
  if (isEvidence(event.observation) && !NO_EVIDENCE.has(call.tool!.name)) {
    call.fresh = noteEvidence(
      state.progress,
      call.fingerprint,
      event.digest,
      openAttempts(turn, call.fingerprint),
    );
    if (call.fresh) state.evidence++;
  }
  if (call.tool!.name === "self/subagent_await") forgetShown(state, event.observation);
  if (event.child !== null) {
    state.children.set(event.child.id, { ...event.child, end: null });
  }
  noteSlow(state, call.tool!.name, event.ms);
  if (sendNext(state, turn, call, out)) return null;
  if (turn.calls.some((candidate) => candidate.state === "sent")) return null;
  turn.toolsMs = event.at - turn.actedAt;
  return checkAfterTurn(state, out) ? null : "finish";
}

/**
 * Sends what waited for this answer: the next call where they go in order, else the next of the
 * answered call's likes. Those that are over the cap now are refused. False if nothing was sent.
 */
function sendNext(state: AgentState, turn: Turn, answered: TurnCall, out: Action[]): boolean {
  const { fingerprint } = answered;
  const waits = (call: TurnCall) =>
    call.state === "planned" && (!turn.parallel || call.fingerprint === fingerprint);
  const isAsked = (call: TurnCall) => call.state === "sent" && call.fingerprint === fingerprint;
  if (turn.calls.some(isAsked)) return false;
  for (const call of turn.calls.filter(waits)) {
    const verdict = isHeld(call) ? judgeRepeat(state, call) : null;
    if (verdict === null) {
      send(state, turn, call, out);
      return true;
    }
    settle(call, verdict);
    tellRefusal(turn, call, out);
  }
  return false;
}

/** Attempts of the open turn that are counted already and have no answer yet. */
function openAttempts(turn: Turn, fingerprint: string): number {
  const isOpen = (call: TurnCall) =>
    call.fingerprint === fingerprint && call.state !== "done" && call.attempts > 0;
  return turn.calls.filter(isOpen).length;
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
