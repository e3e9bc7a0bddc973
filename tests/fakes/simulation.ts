/**
 * The agent machine driven in memory: a script for the model, a function for the tools, a clock that
 * is a number. No effect is mocked here: the machine has none, and this is its whole outside.
 */

import { fnv64 } from "../../src/core/hash.ts";
import { canonicalJson, type JsonObject } from "../../src/core/json.ts";
import { DEFAULT_LIMITS, type Limits } from "../../src/core/limits.ts";
import { failed, type Outcome, success } from "../../src/core/outcome.ts";
import type { ModelFailure, ModelReply } from "../../src/ports/model.ts";
import type { Tool } from "../../src/ports/tools.ts";
import type { CancelReason } from "../../src/wire/control.ts";
import type { TaskContract } from "../../src/wire/payload.ts";
import { type AgentResult, failedResult } from "../../src/wire/result.ts";
import type {
  AgentEvent,
  CheckOutcome,
  CheckPhase,
  Decision,
  EventBody,
} from "../../src/agent/event.ts";
import { maskTime } from "../../src/agent/mask.ts";
import type { Observation } from "../../src/agent/observation.ts";
import { renderObservation } from "../../src/agent/render.ts";
import { type AgentState, initialState } from "../../src/agent/state.ts";
import type { Action, PlannedCall, PlannedRequest } from "../../src/agent/plan.ts";
import { step } from "../../src/agent/step.ts";

/** What the scripted model says in a turn. */
export interface Say {
  text?: string;
  calls?: { name: string; arguments: JsonObject | string; id?: string }[];
  finish?: ModelReply["finish"];
  refusal?: string;
  tokensIn?: number;
  tokensOut?: number;
  fail?: Pick<ModelFailure, "class"> & Partial<ModelFailure>;
}

/** What the script says, as a model port answers it. */
export function replyOf(say: Say, turn: number): Outcome<ModelReply, ModelFailure> {
  const endpoint = "script";
  if (say.fail !== undefined) {
    const message = say.fail.class;
    return failed({ message, retryable: false, endpoint, attempts: 1, ...say.fail });
  }
  const { tokensIn = 100, tokensOut = 10 } = say;
  return success({
    text: say.text ?? "",
    calls: (say.calls ?? []).map((call, index) => ({
      id: call.id ?? `t${turn}_${index}`,
      name: call.name,
      arguments: typeof call.arguments === "string"
        ? call.arguments
        : JSON.stringify(call.arguments),
    })),
    finish: say.finish ?? (say.calls === undefined ? "stop" : "tool_calls"),
    refusal: say.refusal ?? null,
    opaque: null,
    usage: { tokensIn, tokensOut, tokensCached: 0, estimated: false },
    model: "scripted",
    endpoint,
    attempts: 1,
  });
}

/** A tool's answer: text for `ok`, or an observation. */
export type Told = string | Observation;

export interface Scenario {
  model: (turn: number, request: PlannedRequest) => Say;
  tool?: (call: PlannedCall, nth: number) => Told;
  check?: (phase: CheckPhase, nth: number) => CheckOutcome[];
  /** Path of the subagent that a call starts; it ends when the run waits for it. */
  child?: (call: PlannedCall) => string | null;
  /** Calls are answered in the reverse of their order. */
  reversed?: boolean;
  summary?: (nth: number, request: PlannedRequest) => string | null;
  tools?: Tool[];
  task?: Partial<TaskContract>;
  limits?: Partial<Limits>;
  contextWindow?: number;
  toolMode?: "auto" | "native" | "json";
  notes?: boolean;
  stopHooks?: number;
  prices?: { input: number; cachedInput: number; output: number };
  /** Milliseconds that pass with each event. */
  tickMs?: (nth: number) => number;
  /** Cancels before the nth event, counted from 1. */
  cancelAt?: { nth: number; reason: CancelReason };
  /** Steps after which a run that has not ended is a failure of the test. */
  eventsMax?: number;
}

export interface Played {
  result: AgentResult;
  events: AgentEvent[];
  decisions: Decision[];
  /** Events and decisions in the order of a record. */
  lines: (AgentEvent | Decision)[];
  requests: PlannedRequest[];
  calls: PlannedCall[];
  state: AgentState;
}

/** A tool as a server would list it. */
export function tool(name: string, more: Partial<Tool> = {}): Tool {
  const [server, remote] = name.split("/") as [string, string];
  return {
    name,
    server,
    remoteName: remote,
    wireName: `${server}__${remote}`,
    description: `${remote} of ${server}`,
    inputSchema: { type: "object" },
    readOnly: false,
    idempotent: false,
    poll: false,
    ...more,
  };
}

/** Plays a scenario to its end. */
export function play(scenario: Scenario): Played {
  const player = new Player(scenario);
  return player.run();
}

/** The same events through a fresh machine: what it decides now. */
export function replay(
  events: readonly AgentEvent[],
): { decisions: Decision[]; state: AgentState } {
  const state = initialState();
  const decisions: Decision[] = [];
  for (const event of events) {
    for (const action of step(state, event)) {
      if (action.do === "append") decisions.push(action.decision);
    }
  }
  return { decisions, state };
}

class Player {
  readonly #scenario: Scenario;
  readonly #state = initialState();
  readonly #queue: EventBody[] = [];
  readonly #played: Omit<Played, "result" | "state"> = {
    events: [],
    decisions: [],
    lines: [],
    requests: [],
    calls: [],
  };
  #result: AgentResult | null = null;
  #at = 0;
  #turn = 0;
  #summaries = 0;
  #checks = 0;

  constructor(scenario: Scenario) {
    this.#scenario = scenario;
  }

  run(): Played {
    const { eventsMax = 20_000, cancelAt } = this.#scenario;
    this.#queue.push(started(this.#scenario));
    for (let nth = 1; this.#result === null; nth++) {
      if (nth > eventsMax) throw new Error(`no end after ${eventsMax} events`);
      this.#at += this.#scenario.tickMs?.(nth) ?? 1;
      let body = this.#scenario.reversed ? this.#queue.pop() : this.#queue.shift();
      if (body === undefined && this.#state.phase.tag === "waiting") body = this.#endChild();
      const late = this.#at - this.#state.startedAt >= this.#state.limits.deadlineMs;
      if (this.#state.phase.tag !== "new") {
        if (cancelAt !== undefined && nth === cancelAt.nth) {
          body = { type: "cancel.requested", reason: cancelAt.reason };
        } else if (late) body = { type: "deadline.passed" };
      }
      if (body === undefined) {
        throw new Error(`nothing more happens in phase ${this.#state.phase.tag}`);
      }
      this.#take({ ...body, at: this.#at } as AgentEvent);
    }
    return { ...this.#played, result: this.#result, state: this.#state };
  }

  #take(event: AgentEvent): void {
    const copy = structuredClone(event);
    this.#played.events.push(copy);
    this.#played.lines.push(copy);
    for (const action of step(this.#state, event)) this.#perform(action);
  }

  #perform(action: Action): void {
    switch (action.do) {
      case "append":
        this.#note(structuredClone(action.decision));
        return;
      case "connect":
        this.#queue.push({
          type: "tools.listed",
          tools: this.#scenario.tools ?? [],
          resources: [],
        });
        return;
      case "callModel":
        this.#played.requests.push(action.request);
        this.#queue.push(this.#answer(action.request));
        return;
      case "summarise":
        this.#queue.push(this.#summarise(action.request));
        return;
      case "callTool":
        this.#played.calls.push(action.call);
        this.#queue.push(this.#observe(action.call));
        return;
      case "runChecks":
        this.#queue.push({
          type: "checks.ran",
          phase: action.phase,
          outcomes: this.#scenario.check?.(action.phase, ++this.#checks) ?? [],
        });
        return;
      case "abandon":
        this.#queue.length = 0;
        return;
      case "stop":
        this.#result = action.result;
    }
  }

  #note(decision: Decision): void {
    this.#played.decisions.push(decision);
    this.#played.lines.push(decision);
  }

  #endChild(): EventBody {
    const child = [...this.#state.children.values()].find(({ end }) => end === null)!;
    const result = { ...failedResult("completed", "done"), result: `answer of ${child.path}` };
    return {
      type: "child.ended",
      end: { childId: child.id, path: child.path, status: result.status, result },
    };
  }

  #answer(request: PlannedRequest): EventBody {
    const said = replyOf(this.#scenario.model(++this.#turn, request), this.#turn);
    if (!said.ok) return { type: "model.failed", failure: said.failure, ms: 1 };
    const digest = fnv64(maskTime(said.value.text));
    return { type: "model.answered", ...said.value, ms: 1, digest };
  }

  #summarise(request: PlannedRequest): EventBody {
    const text = this.#scenario.summary?.(++this.#summaries, request);
    if (text === null) {
      return {
        type: "summary.failed",
        failure: {
          class: "unreachable",
          message: "down",
          retryable: true,
          endpoint: "test",
          attempts: 4,
        },
        ms: 1,
      };
    }
    return {
      type: "summary.made",
      text: text ?? "what happened so far",
      usage: { tokensIn: 100, tokensOut: 10, tokensCached: 0, estimated: false },
      ms: 1,
    };
  }

  #observe(call: PlannedCall): EventBody {
    const told = this.#scenario.tool?.(call, this.#played.calls.length) ?? "ok";
    const path = this.#scenario.child?.(call) ?? null;
    const observation: Observation = typeof told === "string"
      ? { class: "ok", parts: [{ type: "text", text: told }], structured: null }
      : told;
    const text = renderObservation(observation).map((part) => part.type === "text" ? part.text : "")
      .join("\n");
    return {
      type: "call.observed",
      call: call.call,
      observation,
      digest: fnv64(maskTime(text)) + fnv64(`second ${maskTime(text)}`),
      bytes: text.length,
      ms: 1,
      child: path === null ? null : { id: `child-${path}`, path },
    };
  }
}

function started(scenario: Scenario): EventBody {
  return {
    type: "run.started",
    identity: {
      runId: "TEST",
      agentId: "A",
      path: "0",
      depth: 0,
      directory: "/run",
      traceId: "0".repeat(32),
      parentSpanId: null,
    },
    task: {
      instruction: "do it",
      system: null,
      seeds: [],
      outputSchema: null,
      require: [],
      checks: [],
      ...scenario.task,
    },
    limits: { ...DEFAULT_LIMITS, ...scenario.limits },
    model: {
      name: "scripted",
      tool_mode: scenario.toolMode ?? "auto",
      max_output_tokens: 1_000,
      context_window: scenario.contextWindow ?? 128_000,
      prices: scenario.prices ?? null,
    },
    notes: scenario.notes ?? false,
    stop_hooks: scenario.stopHooks ?? 0,
    self_tools: { subagents: scenario.child !== undefined, subscribe: false },
    warm: false,
    configuration: {},
  };
}

/** An error as a tool reports it. */
export function toolError(message: string): Observation {
  return { class: "error", error: "tool", message, retryable: false, excerpt: null };
}

/** A run's turns, a line each: what scenario files compare. */
export function traceOf(played: Played): string[] {
  const lines: string[] = [];
  for (const decision of played.decisions) {
    if (decision.type === "turn.judged") {
      const actions = decision.actions.map((action) =>
        `${action.tool}:${action.class}${action.fresh ? "+" : ""}`
      );
      lines.push(
        [`${decision.step} ${decision.verdict} ${decision.delta} idle ${decision.idle}`, ...actions]
          .join(" "),
      );
    }
  }
  const { status, abort, reason } = played.result;
  lines.push(`${status ?? `abort ${abort}`} (${reason.split(":")[0]})`);
  return lines;
}

/** Every call of a request has exactly one result, and every result a call. */
export function assertAnswered(request: PlannedRequest): void {
  const open: string[] = [];
  for (const message of request.messages) {
    if (message.role === "assistant") {
      if (open.length > 0) throw new Error(`unanswered: ${open.join(", ")}`);
      open.push(...message.calls.map((call) => call.id));
      if (new Set(open).size !== open.length) {
        throw new Error(`a call id twice: ${canonicalJson(open)}`);
      }
    } else if (message.role === "tool") {
      const place = open.indexOf(message.callId);
      if (place === -1) throw new Error(`a result without a call: ${message.callId}`);
      open.splice(place, 1);
    } else if (open.length > 0) throw new Error(`unanswered: ${open.join(", ")}`);
  }
  if (open.length > 0) throw new Error(`unanswered: ${open.join(", ")}`);
}
