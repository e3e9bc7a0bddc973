/** Records of runs as tests need them, written through the real writer. */

import type { AgentEvent, Decision, Verdict } from "../../src/agent/event.ts";
import type { Observation } from "../../src/agent/observation.ts";
import { DEFAULT_LIMITS } from "../../src/core/limits.ts";
import { openRecord, type RecordWriter } from "../../src/record/append.ts";
import { systemFiles } from "../../src/sys/files.ts";
import type { AgentResult } from "../../src/wire/result.ts";

/** A wall clock that stands still until it is told otherwise. */
export interface SampleClock {
  wallMs(): number;
  monotonicMs(): number;
  after(): () => void;
  now: number;
}

/** A clock that starts at the given moment. */
export function sampleClock(now = Date.UTC(2026, 0, 31, 12)): SampleClock {
  const clock: SampleClock = {
    now,
    wallMs: () => clock.now,
    monotonicMs: () => clock.now,
    after: () => () => {},
  };
  return clock;
}

/** One turn of a sample: a call and what came back, or a final. */
export interface SampleTurn {
  verdict: Verdict;
  delta: number;
  idle?: number;
  tool?: string;
  arguments?: Record<string, string | number>;
  text?: string;
  observation?: Observation;
  cost?: number | null;
}

export interface SampleRun {
  directory: string;
  runId?: string;
  path?: string;
  instruction?: string;
  turns: readonly SampleTurn[];
  /** Null: the run has no terminal line. */
  end: Partial<AgentResult> | null;
  clock?: SampleClock;
}

/** An end with every field, completed unless told otherwise. */
export function sampleEnd(more: Partial<AgentResult> = {}): AgentResult {
  return {
    status: "completed",
    abort: null,
    reason: "completed: the answer was accepted",
    retryable: false,
    resumable: false,
    partial: false,
    result: "done",
    artifact: null,
    verification: "none declared",
    usage: {
      steps: 0,
      model_calls: 0,
      tool_calls: 0,
      tokens_in: 0,
      tokens_out: 0,
      tokens_cached: 0,
      tokens_estimated: false,
      cost: null,
    },
    ...more,
  };
}

/** Writes the record of a run and gives its path. */
export function writeSampleRun(run: SampleRun): string {
  const clock = run.clock ?? sampleClock();
  const opened = openRecord({
    files: systemFiles,
    clock,
    directory: run.directory,
    durability: "none",
    mask: (text) => text,
  }, "new");
  if (!opened.ok) throw new Error(opened.failure.message);
  const writer = opened.value;
  const append = (line: AgentEvent | Decision, at: number): void => {
    writer.append(line.type, line, at);
  };
  append(started(run), 0);
  append({ at: 1, type: "tools.listed", tools: [], resources: [] }, 1);
  let at = 1;
  run.turns.forEach((turn, i) => {
    clock.now += 1000;
    at += 1000;
    writeTurn(append, turn, i + 1, at);
  });
  if (run.end) {
    const usage = {
      ...sampleEnd().usage,
      steps: run.turns.length,
      model_calls: run.turns.length,
      tool_calls: run.turns.filter((turn) => turn.tool).length,
      tokens_in: run.turns.length * 1000,
      tokens_out: run.turns.length * 10,
      tokens_cached: run.turns.length * 500,
      cost: run.turns.some((turn) => turn.cost === null) ? null : 0.25,
    };
    append({ type: "run.ended", ...sampleEnd({ usage, ...run.end }) }, at + 1);
  }
  close(writer);
  return writer.path;
}

function close(writer: RecordWriter): void {
  const closed = writer.close();
  if (!closed.ok) throw new Error(closed.failure.message);
}

function started(run: SampleRun): AgentEvent {
  const path = run.path ?? "0";
  return {
    at: 0,
    type: "run.started",
    identity: {
      runId: run.runId ?? "sample",
      agentId: `agent-${path}`,
      path,
      depth: path.split(".").length - 1,
      directory: run.directory,
      traceId: "0af7651916cd43dd8448eb211c80319c",
      parentSpanId: null,
    },
    task: {
      instruction: run.instruction ?? "Summarise ./docs",
      system: null,
      seeds: [],
      outputSchema: null,
      require: [],
      checks: [],
    },
    limits: { ...DEFAULT_LIMITS },
    model: {
      name: "some-model",
      tool_mode: "auto",
      max_output_tokens: 8192,
      context_window: 128_000,
      prices: null,
    },
    notes: false,
    stop_hooks: 0,
    self_tools: { subagents: false, subscribe: false },
    warm: false,
    configuration: {},
  };
}

function writeTurn(
  append: (line: AgentEvent | Decision, at: number) => void,
  turn: SampleTurn,
  step: number,
  at: number,
): void {
  const call = `call-${step}`;
  const wire = turn.tool?.replace("/", "__");
  const hash = step.toString(16).padStart(16, "0");
  append({
    type: "model.requested",
    step,
    purpose: "turn",
    context_hash: hash,
    estimate: 1000,
    messages: step * 2,
    last: null,
  }, at);
  append({
    at: at + 300,
    type: "model.answered",
    text: turn.text ?? "",
    calls: wire ? [{ id: call, name: wire, arguments: JSON.stringify(turn.arguments ?? {}) }] : [],
    finish: wire ? "tool_calls" : "stop",
    refusal: null,
    opaque: null,
    usage: { tokensIn: 1000, tokensOut: 10, tokensCached: 500, estimated: false },
    model: "some-model",
    endpoint: "http://127.0.0.1:1/v1",
    attempts: 1,
    ms: 300,
    digest: "00",
  }, at + 300);
  const observation = turn.observation ??
    { class: "ok", parts: [{ type: "text", text: `result ${step}` }], structured: null } as const;
  if (turn.tool) {
    append({
      type: "call.intended",
      step,
      call,
      tool: turn.tool,
      arguments: turn.arguments ?? {},
      effect: "read_only",
    }, at + 301);
    append({
      at: at + 400,
      type: "call.observed",
      call,
      observation: observation as Observation,
      digest: "00",
      bytes: 120,
      child: null,
      ms: 99,
    }, at + 400);
  }
  append({
    type: "turn.judged",
    step,
    verdict: turn.verdict,
    delta: turn.delta,
    idle: turn.idle ?? 0,
    failing: 0,
    context_hash: hash,
    signature: hash,
    actions: turn.tool
      ? [{ call, tool: turn.tool, class: observation.class, fresh: turn.delta > 0, attempts: 1 }]
      : [],
    tokens_in: 1000,
    tokens_out: 10,
    tokens_cached: 500,
    cost: turn.cost === undefined ? 0.01 : turn.cost,
    model_ms: 300,
    tools_ms: turn.tool ? 99 : 0,
    note: null,
  }, at + 401);
}
