/** A reply is there: what it cost, what it proposes, and what follows from that. */

import type { EventOf } from "./event.ts";
import { readProposal } from "./action.ts";
import { promptBytes } from "./assemble.ts";
import { callCost, recordUsage } from "./budget.ts";
import { planCalls } from "./calls.ts";
import type { Action, Next } from "./plan.ts";
import { CONTINUE_NOTE, invalidNote } from "./prompt.ts";
import type { AgentState, Turn } from "./state.ts";
import { verifyClaim } from "./verify.ts";

/** A reply is there: usage first, then what it proposes. */
export function takeReply(
  state: AgentState,
  event: EventOf<"model.answered">,
  out: Action[],
): Next {
  const { counters, model } = state;
  recordUsage(counters, event.usage, model.prices);
  counters.steps++;
  // An endpoint that reports no prompt has measured none.
  state.lastPrompt = event.usage.tokensIn > 0
    ? { tokens: event.usage.tokensIn, bytes: promptBytes(state) }
    : null;
  state.replyTokensMax = Math.max(state.replyTokensMax, event.usage.tokensOut);
  state.compactions = 0;
  state.tooLong = null;
  const turn = openTurn(state, event);
  state.turn = turn;
  const { carried } = state;
  state.carried = null;
  // A reply that was cut is read together with its continuation.
  const text = (carried ?? "") + event.text;
  const proposal = readProposal({ ...event, text }, {
    tools: state.tools,
    withdrawn: state.withdrawn,
    configured: model.tool_mode,
    mode: state.toolMode,
    hasSchema: state.task.outputSchema !== null,
    step: turn.step,
  });
  const said = proposal.said ?? text;
  if (said.trim() !== "") state.lastText = said;
  switch (proposal.kind) {
    case "calls":
      turn.viaJson = proposal.viaJson;
      turn.leftOut = proposal.leftOut;
      return planCalls(state, turn, proposal.calls, out);
    case "final":
      return verifyClaim(state, turn, proposal.text, proposal.value, out);
    case "refused":
      turn.refusal = proposal.reason;
      return "finish";
    case "cut":
      return cutReply(state, turn, carried, proposal.calls, out);
    case "invalid":
      return invalidTurn(turn, proposal.why, proposal.echo, out);
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
    roomBytes: 0,
    viaJson: false,
    leftOut: 0,
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
): Next {
  if (calls > 0) {
    const why =
      `your output was cut off at ${state.model.max_output_tokens} tokens in the middle of a tool call; write less at a time`;
    return invalidTurn(turn, why, "", out);
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
    return "finish";
  }
  const why = `your output was cut off at ${state.model.max_output_tokens} tokens${
    carried === null ? "" : " again"
  }; answer shorter, or write the result in parts through a tool`;
  return invalidTurn(turn, why, "", out);
}

function invalidTurn(turn: Turn, why: string, echo: string, out: Action[]): Next {
  turn.invalid = invalidNote(why, echo);
  out.push({ do: "append", decision: { type: "action.invalid", step: turn.step, why, echo } });
  return "finish";
}
