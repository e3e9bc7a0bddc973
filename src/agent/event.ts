/**
 * The agent machine's whole vocabulary. Events are what happened, in the past tense: they are
 * appended to the record verbatim and are the only input of the fold. Decisions are what the
 * machine made of them: appended too, and compared by replay. Field names are those of the record.
 */

import type { Json, JsonObject } from "../core/json.ts";
import type { Limits } from "../core/limits.ts";
import type { CancelReason, ChildEnd, Delivery } from "../wire/control.ts";
import type { AgentIdentity, Prices, TaskContract } from "../wire/payload.ts";
import type { AgentResult, VerificationItem } from "../wire/result.ts";
import type { FinishReason, ModelFailure, ToolCall, Usage } from "../ports/model.ts";
import type { Resource, ServerFailure, Tool } from "../ports/tools.ts";
import type { Observation } from "./observation.ts";

/** What the machine must know of the model; the rest is the model client's. */
export interface ModelFacts {
  name: string | null;
  tool_mode: "auto" | "native" | "json";
  max_output_tokens: number;
  context_window: number;
  prices: Prices | null;
}

/** One declared check or artifact, as it was found. `digest` is of its masked content. */
export interface CheckOutcome {
  kind: "require" | "check" | "hook";
  name: string;
  passed: boolean;
  /** What the model is shown of it: the failing part. */
  detail: string;
  digest: string;
  /** From a last line `PROGRESS x/y`. */
  progress: { done: number; total: number } | null;
  ms: number;
}

/** `stop`: the `on_stop` hooks, asked when everything else passed. */
export type CheckPhase = "before" | "turn" | "final" | "stop";

/** Events. `at`: monotonic milliseconds since the run started. */
export type AgentEvent =
  & { at: number }
  & (
    | {
      type: "run.started";
      identity: AgentIdentity;
      task: TaskContract;
      limits: Limits;
      model: ModelFacts;
      notes: boolean;
      /** `on_stop` hooks that are asked before a final is accepted. */
      stop_hooks: number;
      self_tools: { subagents: boolean; subscribe: boolean };
      warm: boolean;
      configuration: JsonObject;
      /** Where relative paths and commands start; absolute. */
      working_directory?: string;
      /** The version of the program that recorded it. */
      program?: string;
    }
    | { type: "tools.listed"; tools: Tool[]; resources: Resource[] }
    | { type: "checks.ran"; phase: CheckPhase; outcomes: CheckOutcome[] }
    | {
      type: "model.answered";
      text: string;
      calls: readonly ToolCall[];
      finish: FinishReason;
      refusal: string | null;
      opaque: { dialect: string; blocks: Json } | null;
      usage: Usage;
      model: string;
      endpoint: string;
      attempts: number;
      ms: number;
      /** SHA-256 of the masked text. */
      digest: string;
    }
    | { type: "model.failed"; failure: ModelFailure; ms: number }
    | {
      type: "call.observed";
      call: string;
      observation: Observation;
      /** SHA-256 of the whole masked content. */
      digest: string;
      /** Bytes of the whole content. */
      bytes: number;
      ms: number;
      /** Set when the call started a subagent that its parent owns and has not awaited. */
      child: { id: string; path: string } | null;
    }
    | { type: "summary.made"; text: string; usage: Usage; ms: number }
    | { type: "summary.failed"; failure: ModelFailure; ms: number }
    | { type: "server.down"; failure: ServerFailure }
    | { type: "cancel.requested"; reason: CancelReason }
    | { type: "deadline.passed" }
    | { type: "child.ended"; end: ChildEnd }
    /** `reconnect`: the process is new, its servers are not connected yet. */
    | { type: "delivered"; delivery: Delivery; reconnect: boolean }
    /** `forked`: not a stop in time but another run's line of thought; the model is told nothing. */
    | {
      type: "run.resumed";
      limits: Limits;
      /** These are as they are from now on; where the line has none, as they were. */
      model?: ModelFacts;
      task?: TaskContract;
      notes?: boolean;
      stop_hooks?: number;
      self_tools?: { subagents: boolean; subscribe: boolean };
      configuration?: JsonObject;
      working_directory?: string;
      changes: Json;
      program?: string;
      forked?: boolean;
    }
  );

/** Names of events: the columns of the table. */
export type AgentEventType = AgentEvent["type"];

/** The event of a name. */
export type EventOf<Type extends AgentEventType> = Extract<AgentEvent, { type: Type }>;

/** An event before its moment is known. */
export type EventBody = AgentEvent extends infer Event
  ? Event extends { at: number } ? Omit<Event, "at"> : never
  : never;

/** What a turn came to; where several hold, the order in `judgeTurn` decides. */
export type Verdict =
  | "advanced"
  | "repeated"
  | "failed"
  | "invalid"
  | "refused"
  | "unknown"
  | "answered";

/** One action of a turn, in short. */
export interface ActionLine {
  call: string;
  tool: string;
  class: Observation["class"];
  /** Whether its content was new evidence. */
  fresh: boolean;
  /** Attempts of this call since it last brought something new. */
  attempts: number;
}

/** Decisions. The driver adds `key` to `call.intended` when it appends it. */
export type Decision =
  | {
    type: "model.requested";
    step: number;
    purpose: "turn" | "summary";
    context_hash: string;
    /** Tokens of the request, as estimated before it. */
    estimate: number;
    messages: number;
    /** The model may only answer: why, else null. */
    last: string | null;
  }
  | {
    type: "call.intended";
    step: number;
    call: string;
    tool: string;
    arguments: JsonObject;
    effect: "read_only" | "side_effect";
  }
  /** The harness's own answer to a call: it was not executed. */
  | {
    type: "call.refused";
    step: number;
    call: string;
    tool: string;
    class: "refused" | "invalid";
    why: string;
  }
  /** A call that was on its way when the run stopped, or whose answer a crash swallowed. */
  | { type: "call.abandoned"; call: string; class: "unknown" | "refused"; why: string }
  | { type: "action.invalid"; step: number; why: string; echo: string }
  | { type: "checks.requested"; phase: CheckPhase }
  | { type: "verify.judged"; step: number; passed: boolean; items: VerificationItem[] }
  | {
    type: "turn.judged";
    step: number;
    verdict: Verdict;
    delta: number;
    idle: number;
    /** Consecutive turns without a success. */
    failing: number;
    context_hash: string;
    signature: string;
    actions: ActionLine[];
    tokens_in: number;
    tokens_out: number;
    tokens_cached: number;
    cost: number | null;
    model_ms: number;
    tools_ms: number;
    /** What the model is told at the end of the turn, if anything. */
    note: string | null;
  }
  | { type: "context.stubbed"; step: number; calls: string[] }
  | {
    type: "context.compacted";
    step: number;
    attempt: number;
    summarised: boolean;
    /** Estimated tokens before and after. */
    before: number;
    after: number;
    turns_dropped: number;
    ledger_bytes: number;
  }
  | ({ type: "run.ended" } & AgentResult);

/** Names of decisions. */
export type DecisionType = Decision["type"];
