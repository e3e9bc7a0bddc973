/**
 * The agent machine: `step(state, event)` changes the state and says what to do. A total table: each
 * phase and each event have a cell, and a missing one does not compile. It decides; it never calls a
 * model or a tool, reads no clock and draws no chance, so a record replays to the same decisions.
 */

import { Bug } from "../core/assert.ts";
import {
  assemble,
  callModel,
  forceCompaction,
  noteWithdrawn,
  refreshScope,
  useJsonMode,
} from "./assemble.ts";
import { beginRun, continueSession, resumeRun } from "./begin.ts";
import { abandonTurn, answerCall } from "./calls.ts";
import { endChild } from "./children.ts";
import { finishTurn } from "./close.ts";
import { compactWithout, compactWithSummary, planCompaction } from "./compaction.ts";
import { abortRun, stopRun } from "./ending.ts";
import type { AgentEvent, AgentEventType, EventOf } from "./event.ts";
import type { Action, Next } from "./plan.ts";
import type { AgentState, PhaseTag } from "./state.ts";
import { cancelStop } from "./stops.ts";
import { takeReply } from "./turn.ts";
import { takeChecks } from "./verify.ts";

type Handler<Type extends AgentEventType> = (
  state: AgentState,
  event: EventOf<Type>,
  out: Action[],
) => Next;

/** `ignore`: may come and means nothing here. `impossible`: the driver has a bug. */
type Cell<Type extends AgentEventType> = Handler<Type> | "ignore" | "impossible";

type Row = { [Type in AgentEventType]: Cell<Type> };

const cancel: Handler<"cancel.requested"> = (state, event, out) => {
  state.cancel = event.reason;
  out.push({ do: "abandon" });
  abandonTurn(state, out);
  return stopRun(state, cancelStop(event.reason), out);
};

const deadline: Handler<"deadline.passed"> = (state, _event, out) => {
  out.push({ do: "abandon" });
  abandonTurn(state, out);
  return stopRun(state, {
    status: "deadline",
    reason: `deadline: the ${state.limits.deadlineMs / 1000} s of the run are used up`,
  }, out);
};

const serverDown: Handler<"server.down"> = (state, event, out) => {
  out.push({ do: "abandon" });
  abandonTurn(state, out);
  const tail = event.failure.stderr.trim();
  return abortRun(
    state,
    "mcp",
    `tool server ${event.failure.server}: ${event.failure.message}${
      tail === "" ? "" : `; its last words: ${tail}`
    }`,
    true,
    out,
  );
};

const relist: Handler<"tools.listed"> = (state, event) => {
  const before = state.tools;
  state.listed = event.tools;
  state.resources = event.resources;
  refreshScope(state);
  noteWithdrawn(state, before);
  return null;
};

const resume: Handler<"run.resumed"> = (state, event, out) => resumeRun(state, event, out);

/** What holds in every phase in which the run is going on. */
const RUNNING: Pick<
  Row,
  | "run.started"
  | "tools.listed"
  | "server.down"
  | "cancel.requested"
  | "deadline.passed"
  | "child.ended"
  | "delivered"
  | "run.resumed"
> = {
  "run.started": "impossible",
  "tools.listed": relist,
  "server.down": serverDown,
  "cancel.requested": cancel,
  "deadline.passed": deadline,
  "child.ended": (state, event) => endChild(state, event.end),
  "delivered": (state, event, out) => {
    if (!event.reconnect) throw new Bug("a delivery while another is worked on");
    return continueSession(state, event, out);
  },
  "run.resumed": resume,
};

const NO_MODEL = {
  "model.answered": "impossible",
  "model.failed": "impossible",
  "summary.made": "impossible",
  "summary.failed": "impossible",
} as const;

/** Phase by event. */
export const TABLE: { [Phase in PhaseTag]: Row } = {
  new: {
    ...RUNNING,
    ...NO_MODEL,
    "run.started": (state, event, out) => beginRun(state, event, out),
    "tools.listed": "impossible",
    "server.down": "impossible",
    "child.ended": "impossible",
    "cancel.requested": "impossible",
    "deadline.passed": "impossible",
    "delivered": "impossible",
    "run.resumed": "impossible",
    "checks.ran": "impossible",
    "call.observed": "impossible",
  },
  starting: {
    ...RUNNING,
    ...NO_MODEL,
    "tools.listed": (state, event, out) => {
      relist(state, event, out);
      const { task } = state;
      const resumed = state.phase.tag === "starting" && state.phase.resumed;
      if (resumed || task.require.length + task.checks.length === 0) return "assemble";
      state.phase = { tag: "checking", phase: "before" };
      out.push({ do: "append", decision: { type: "checks.requested", phase: "before" } });
      out.push({ do: "runChecks", phase: "before" });
      return null;
    },
    "checks.ran": "impossible",
    "call.observed": "impossible",
  },
  calling: {
    ...RUNNING,
    "model.answered": (state, event, out) => takeReply(state, event, out),
    "model.failed": (state, event, out) => {
      const { failure } = event;
      state.counters.modelCalls++;
      if (failure.class === "context_length" && state.tooLong === null) {
        state.tooLong = failure.message;
        return forceCompaction(state);
      }
      if (failure.class === "context_length") {
        return stopRun(state, {
          status: "exhausted_tokens",
          reason:
            `context: the endpoint finds the request too long even after compaction (${failure.message})`,
        }, out);
      }
      if (
        failure.class === "tools_unsupported" && state.model.tool_mode === "auto" &&
        state.toolMode === "native"
      ) {
        useJsonMode(state);
        return "assemble";
      }
      const reason = `${failure.class}: ${failure.message}`;
      return abortRun(state, "intelligence", reason, failure.retryable, out);
    },
    "summary.made": "impossible",
    "summary.failed": "impossible",
    "checks.ran": "impossible",
    "call.observed": "impossible",
  },
  acting: {
    ...RUNNING,
    ...NO_MODEL,
    "call.observed": (state, event, out) => answerCall(state, event, out),
    "checks.ran": "impossible",
  },
  checking: {
    ...RUNNING,
    ...NO_MODEL,
    "checks.ran": (state, event, out) => takeChecks(state, event, out),
    "call.observed": "impossible",
  },
  compacting: {
    ...RUNNING,
    ...NO_MODEL,
    "summary.made": (state, event, out) => compactWithSummary(state, event, out),
    "summary.failed": (state, event, out) => compactWithout(state, event, out),
    "checks.ran": "impossible",
    "call.observed": "impossible",
  },
  waiting: {
    ...RUNNING,
    ...NO_MODEL,
    "checks.ran": "impossible",
    "call.observed": "impossible",
  },
  stopped: {
    "run.started": "impossible",
    "tools.listed": relist,
    "checks.ran": "ignore",
    "model.answered": "ignore",
    "model.failed": "ignore",
    "call.observed": "ignore",
    "summary.made": "ignore",
    "summary.failed": "ignore",
    "server.down": "ignore",
    "cancel.requested": "ignore",
    "deadline.passed": "ignore",
    "child.ended": (state, event) => endChild(state, event.end),
    "delivered": (state, event, out) => continueSession(state, event, out),
    "run.resumed": resume,
  },
};

const TRANSITIONS: Record<Exclude<Next, null>, (state: AgentState, out: Action[]) => Next> = {
  finish: finishTurn,
  assemble,
  compact: planCompaction,
  call: callModel,
};

/** One event, run to completion. Throws a Bug where the table says `impossible`. */
export function step(state: AgentState, event: AgentEvent): Action[] {
  const out: Action[] = [];
  const { tag } = state.phase;
  const cell = TABLE[tag][event.type] as Cell<AgentEventType>;
  if (cell === "impossible") throw new Bug(`${event.type} cannot happen while ${tag}`);
  state.at = event.at;
  if (cell === "ignore") return out;
  // The cell of a type takes events of that type: the table says so, which the compiler cannot follow.
  let next = (cell as Handler<AgentEventType>)(state, event as never, out);
  while (next !== null) next = TRANSITIONS[next](state, out);
  return out;
}
