/**
 * The agent machine: `step(state, event)` changes the state and says what to do. A total table: each
 * phase and each event have a cell, and a missing one does not compile. It decides; it never calls a
 * model or a tool, reads no clock and draws no chance, so a record replays to the same decisions.
 */

import { Bug } from "../core/assert.ts";
import type { JsonObject } from "../core/json.ts";
import type { Message, ToolSpec } from "../ports/model.ts";
import type { Tool } from "../ports/tools.ts";
import type { AgentResult } from "../wire/result.ts";
import { assemble, forceCompaction, refreshScope, useJsonMode } from "./assemble.ts";
import { compactWithout, compactWithSummary } from "./compaction.ts";
import { abortRun, stopRun } from "./ending.ts";
import type { AgentEvent, AgentEventType, CheckPhase, Decision } from "./event.ts";
import { beginRun, continueSession, resumeRun } from "./begin.ts";
import type { AgentState, PhaseTag } from "./state.ts";
import { cancelStop } from "./stops.ts";
import { abandonTurn, answerCall, endChild, takeReply } from "./turn.ts";
import { takeChecks } from "./verify.ts";

/** What the driver must do, in order. Everything before an effect is on disk before the effect. */
export type Action =
  | { do: "append"; decision: Decision }
  /** Connect the tool servers; answered by `tools.listed` or `server.down`. */
  | { do: "connect" }
  /** Answered by `model.answered` or `model.failed`. */
  | { do: "callModel"; request: PlannedRequest }
  /** Answered by `summary.made` or `summary.failed`. */
  | { do: "summarise"; request: PlannedRequest }
  /** Answered by `call.observed`. */
  | { do: "callTool"; call: PlannedCall }
  /** Answered by `checks.ran`. */
  | { do: "runChecks"; phase: CheckPhase }
  /** Withdraw whatever is on its way; nothing answers any more. */
  | { do: "abandon" }
  | { do: "stop"; result: AgentResult };

export interface PlannedRequest {
  purpose: "turn" | "summary";
  step: number;
  system: string;
  messages: readonly Message[];
  tools: readonly ToolSpec[];
  toolChoice: "auto" | "none";
  outputSchema: JsonObject | null;
}

export interface PlannedCall {
  call: string;
  tool: Tool;
  arguments: JsonObject;
  effect: "read_only" | "side_effect";
  /** Bytes of the result that the model is shown. */
  showBytesMax: number;
}

type Handler<Type extends AgentEventType> = (
  state: AgentState,
  event: Extract<AgentEvent, { type: Type }>,
  out: Action[],
) => void;

/** `ignore`: may come and means nothing here. `impossible`: the driver has a bug. */
type Cell<Type extends AgentEventType> = Handler<Type> | "ignore" | "impossible";

type Row = { [Type in AgentEventType]: Cell<Type> };

const cancel: Handler<"cancel.requested"> = (state, event, out) => {
  state.cancel = event.reason;
  out.push({ do: "abandon" });
  abandonTurn(state, out);
  stopRun(state, cancelStop(event.reason), out);
};

const deadline: Handler<"deadline.passed"> = (state, _event, out) => {
  out.push({ do: "abandon" });
  abandonTurn(state, out);
  stopRun(state, {
    status: "deadline",
    reason: `deadline: the ${state.limits.deadlineMs / 1000} s of the run are used up`,
  }, out);
};

const serverDown: Handler<"server.down"> = (state, event, out) => {
  out.push({ do: "abandon" });
  abandonTurn(state, out);
  const tail = event.failure.stderr.trim();
  abortRun(
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
  state.listed = event.tools;
  state.resources = event.resources;
  refreshScope(state);
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
  "child.ended": (state, event, out) => endChild(state, event.end, out),
  "delivered": (state, event, out) => {
    if (!event.reconnect) throw new Bug("a delivery while another is worked on");
    continueSession(state, event, out);
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
      if (!resumed && task.require.length + task.checks.length > 0) {
        state.phase = { tag: "checking", phase: "before" };
        out.push({ do: "append", decision: { type: "checks.requested", phase: "before" } });
        out.push({ do: "runChecks", phase: "before" });
      } else assemble(state, out);
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
      if (failure.class === "context_length" && !state.shortened) {
        state.shortened = true;
        forceCompaction(state, out);
      } else if (failure.class === "context_length") {
        stopRun(state, {
          status: "exhausted_tokens",
          reason:
            `context: the endpoint finds the request too long even after compaction (${failure.message})`,
        }, out);
      } else if (
        failure.class === "tools_unsupported" && state.model.tool_mode === "auto" &&
        state.toolMode === "native"
      ) {
        useJsonMode(state);
        assemble(state, out);
      } else {
        // The class comes first: a daemon ends when its credentials are refused, and only then.
        const reason = `${failure.class}: ${failure.message}`;
        abortRun(state, "intelligence", reason, failure.retryable, out);
      }
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
    "child.ended": (state, event, out) => endChild(state, event.end, out),
    "delivered": (state, event, out) => continueSession(state, event, out),
    "run.resumed": resume,
  },
};

/** One event, run to completion. Throws a Bug where the table says `impossible`. */
export function step(state: AgentState, event: AgentEvent): Action[] {
  const out: Action[] = [];
  const { tag } = state.phase;
  const cell = TABLE[tag][event.type] as Cell<AgentEventType>;
  if (cell === "impossible") throw new Bug(`${event.type} cannot happen while ${tag}`);
  state.at = event.at;
  if (cell !== "ignore") (cell as Handler<AgentEventType>)(state, event as never, out);
  return out;
}
