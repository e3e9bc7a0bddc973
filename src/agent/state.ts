/**
 * The agent machine's state: plain data, owned by the fold. `step` changes it in place, since a copy
 * a turn would make the cost of a turn grow with the run; nobody else may.
 */

import type { Json, JsonObject } from "../core/json.ts";
import { DEFAULT_LIMITS, type Limits, SHOWN_NAME_CHARS_MAX } from "../core/limits.ts";
import { clip } from "../core/text.ts";
import type { ToolSpec, Usage } from "../ports/model.ts";
import type { Resource, Tool } from "../ports/tools.ts";
import type { CancelReason, ChildEnd } from "../wire/control.ts";
import type { AgentIdentity, TaskContract } from "../wire/payload.ts";
import type { AgentResult, VerificationItem } from "../wire/result.ts";
import { type Counters, emptyCounters, type PromptSize } from "./budget.ts";
import { startTranscript, type Transcript } from "./context.ts";
import type { CheckOutcome, CheckPhase, ModelFacts } from "./event.ts";
import { emptyLedger, type Ledger } from "./ledger.ts";
import type { Observation } from "./observation.ts";
import { emptyProgress, type Progress } from "./progress.ts";

/** Where the machine is. A tag and its data; no flags beside it. */
export type Phase =
  /** Nothing has happened yet. */
  | { tag: "new" }
  /** Servers are being connected. */
  | { tag: "starting"; resumed: boolean }
  /** A model call is on its way. */
  | { tag: "calling" }
  /** Calls of a turn are on their way. */
  | { tag: "acting" }
  /** Declared checks, or `on_stop` hooks, are running. */
  | { tag: "checking"; phase: CheckPhase }
  /** A summarising call is on its way. */
  | { tag: "compacting" }
  /** A final was given while owned subagents run: they are awaited. */
  | { tag: "waiting" }
  | { tag: "stopped"; result: AgentResult };

/** Names of phases: the rows of the table. */
export type PhaseTag = Phase["tag"];

/** One call of the open turn. */
export interface TurnCall {
  /** The run's own id of it, `c<step>-<n>`: the id of its record lines and of its artifact. */
  call: string;
  wireId: string;
  wireName: string;
  /** Null if no such tool is in scope. */
  tool: Tool | null;
  arguments: JsonObject;
  fingerprint: string;
  attempts: number;
  /** `planned`: legal, not sent. `sent`: on its way. `done`: has its observation. */
  state: "planned" | "sent" | "done";
  observation: Observation | null;
  digest: string;
  bytes: number;
  fresh: boolean;
}

/** What a call is named to people: its tool, or the model's own word where there is no such tool. */
export function calledName(call: Pick<TurnCall, "tool" | "wireName">): string {
  return call.tool?.name ?? clip(call.wireName, SHOWN_NAME_CHARS_MAX);
}

/** An announced last turn: which budget allows no other after it, and the sentence that says so. */
export interface LastTurn {
  budget: "steps" | "tokens" | "cost";
  why: string;
}

/** A final answer that is being verified. */
export interface Claim {
  value: Json;
  items: VerificationItem[];
}

/** The turn that is open: from a reply to its verdict. */
export interface Turn {
  step: number;
  text: string;
  textDigest: string;
  /** As the dialect wants it back. */
  opaque: { dialect: string; blocks: Json } | null;
  usage: Usage;
  cost: number | null;
  modelMs: number;
  /** `at` when acting began. */
  actedAt: number;
  toolsMs: number;
  contextHash: string;
  calls: TurnCall[];
  parallel: boolean;
  /** Calls that are executed. */
  executed: number;
  /** Bytes that their results may show together, for the budget's sake. */
  roomBytes: number;
  /** The reply was a JSON action. */
  viaJson: boolean;
  /** Further actions of the same text, which were not taken. */
  leftOut: number;
  invalid: string | null;
  claim: Claim | null;
  /** The claim passed everything that was declared. */
  verified: boolean;
  refusal: string | null;
  /** Outcomes of checks that ran in this turn. */
  checks: CheckOutcome[];
  freshChecks: { passed: number; failed: number };
  rose: boolean;
  freshChildren: number;
}

/** A subagent that this agent owns. */
export interface Child {
  id: string;
  path: string;
  end: ChildEnd | null;
}

/** Everything that the machine knows. */
export interface AgentState {
  phase: Phase;
  /** `at` of the last event. */
  at: number;
  /** `at` when this stretch began: the start, a resume, a delivery. */
  startedAt: number;
  /** Counters when this stretch began, for limits that hold per delivery. */
  base: { steps: number; tokens: number; calls: number; cost: number };
  identity: AgentIdentity | null;
  task: TaskContract;
  limits: Limits;
  model: ModelFacts;
  notes: boolean;
  warm: boolean;
  stopHooks: number;
  selfTools: { subagents: boolean; subscribe: boolean };
  /** In force; `auto` starts native. */
  toolMode: "native" | "json";
  listed: Tool[];
  resources: Resource[];
  /** Everything in scope by wire name, self tools included. */
  tools: Map<string, Tool>;
  /** Wire names that were in scope once and are not now. */
  withdrawn: Set<string>;
  /** As offered; the same array until the tools change. */
  specs: ToolSpec[];
  system: string;
  /** Bytes of system prompt and offered tools. */
  prefixBytes: number;
  prefixHash: string;
  counters: Counters;
  lastPrompt: PromptSize | null;
  progress: Progress;
  ledger: Ledger;
  transcript: Transcript;
  /** The last non-empty text of the model: the usable partial. */
  lastText: string;
  /** Text of a reply that was cut and is being continued. */
  carried: string | null;
  cancel: CancelReason | null;
  /** Names of declared checks that passed before the first turn. */
  passedBefore: Set<string>;
  /** The compaction mark, in tokens; falls when an endpoint says its window is smaller. */
  markTokens: number;
  /** What the model said of the turns that were left out; null if there is no such word. */
  summary: string | null;
  /** The summary of the compaction under way. */
  made: string | null;
  /** Compactions since the last answered turn. */
  compactions: number;
  /** The endpoint's words, when it found the request too long and it was compacted for that. */
  tooLong: string | null;
  /** Why the coming call may only answer; null if it may act. */
  last: LastTurn | null;
  /** The step that was announced as the last. */
  lastStep: number;
  /** Tokens of the longest reply so far. */
  replyTokensMax: number;
  contextHash: string;
  children: Map<string, Child>;
  /** Subagents that ended since the last turn. */
  ended: ChildEnd[];
  turn: Turn | null;
  /** Observations of tools in this stretch that were new evidence. */
  evidence: number;
  /** The slowest calls so far, slowest first. */
  slowest: { name: string; ms: number }[];
  /** How the last final was verified, for the result. */
  verification: VerificationItem[] | null;
}

/** The state before the first event. */
export function initialState(): AgentState {
  return {
    phase: { tag: "new" },
    at: 0,
    startedAt: 0,
    base: { steps: 0, tokens: 0, calls: 0, cost: 0 },
    identity: null,
    task: {
      instruction: "",
      system: null,
      seeds: [],
      outputSchema: null,
      require: [],
      checks: [],
    },
    limits: { ...DEFAULT_LIMITS },
    model: {
      name: null,
      tool_mode: "auto",
      max_output_tokens: 0,
      context_window: 0,
      prices: null,
    },
    notes: false,
    warm: false,
    stopHooks: 0,
    selfTools: { subagents: false, subscribe: false },
    toolMode: "native",
    listed: [],
    resources: [],
    tools: new Map(),
    withdrawn: new Set(),
    specs: [],
    system: "",
    prefixBytes: 0,
    prefixHash: "",
    counters: emptyCounters(false),
    lastPrompt: null,
    progress: emptyProgress(),
    ledger: emptyLedger(),
    transcript: startTranscript([]),
    lastText: "",
    carried: null,
    cancel: null,
    passedBefore: new Set(),
    markTokens: 0,
    summary: null,
    made: null,
    compactions: 0,
    tooLong: null,
    last: null,
    lastStep: 0,
    replyTokensMax: 0,
    contextHash: "",
    children: new Map(),
    ended: [],
    turn: null,
    evidence: 0,
    slowest: [],
    verification: null,
  };
}

/** Milliseconds (`at`) at which the run's wall clock is used up. */
export function deadlineAt(state: AgentState): number {
  return state.startedAt + state.limits.deadlineMs;
}

/** What this stretch has spent. */
export function spent(
  state: AgentState,
): { steps: number; tokens: number; calls: number; cost: number | null; elapsedMs: number } {
  const { counters, base } = state;
  return {
    steps: counters.steps - base.steps,
    tokens: counters.tokensIn + counters.tokensOut - base.tokens,
    calls: counters.toolCalls - base.calls,
    cost: counters.cost === null ? null : counters.cost - base.cost,
    elapsedMs: state.at - state.startedAt,
  };
}
