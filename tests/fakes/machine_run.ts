/** Records made by the real machine from a script, in process and without a clock. */

import type { AgentEvent, CheckOutcome } from "../../src/agent/event.ts";
import type { Observation } from "../../src/agent/observation.ts";
import { type AgentState, initialState } from "../../src/agent/state.ts";
import type { PlannedCall, PlannedRequest } from "../../src/agent/plan.ts";
import { step } from "../../src/agent/step.ts";
import { fnv64 } from "../../src/core/hash.ts";
import { DEFAULT_LIMITS, type Limits } from "../../src/core/limits.ts";
import type { ToolCall } from "../../src/ports/model.ts";
import type { Tool } from "../../src/ports/tools.ts";
import { openRecord, type RecordWriter } from "../../src/record/append.ts";
import { foldLine } from "../../src/agent/fold.ts";
import { systemFiles } from "../../src/sys/files.ts";
import { type SampleClock, sampleClock } from "./sample_run.ts";

/** An event before its moment. */
type Body = AgentEvent extends infer Event
  ? Event extends { at: number } ? Omit<Event, "at"> : never
  : never;

/** What the scripted world answers. */
export interface Script {
  reply(step: number): { text: string; calls: { tool: string; arguments: object }[] };
  observe(call: PlannedCall): Observation;
  checks?(): CheckOutcome[];
  /** Path of the subagent that a call starts. */
  child?(call: PlannedCall): string | null;
}

export interface MachineRun {
  directory: string;
  script: Script;
  runId?: string;
  path?: string;
  limits?: Partial<Limits>;
  instruction?: string;
  contextWindow?: number;
  checks?: number;
  /** What each prompt is said to cost; unset: by its length. */
  promptTokens?: number;
  clock?: SampleClock;
  /** Goes on from the record there. */
  resume?: boolean;
  /** Called before each event; true ends the run there, as a SIGKILL would. */
  kill?: (event: Body) => boolean;
}

/** A tool of the scripted server. */
export function scriptTool(name: string, readOnly = true): Tool {
  const [server, remoteName] = name.split("/") as [string, string];
  return {
    name,
    server,
    remoteName,
    wireName: `${server}__${remoteName}`,
    description: `The tool ${name}.`,
    inputSchema: { type: "object" },
    readOnly,
    idempotent: false,
    poll: false,
  };
}

/** Text that came back whole. */
export function okText(text: string): Observation {
  return { class: "ok", parts: [{ type: "text", text }], structured: null };
}

const TOOLS: readonly Tool[] = [
  scriptTool("fs/read"),
  scriptTool("fs/list"),
  scriptTool("fs/write", false),
];

/** Runs the machine until it stops or is killed; gives its last state. */
export function runMachine(run: MachineRun): AgentState {
  const clock = run.clock ?? sampleClock();
  const state = initialState();
  const opened = openRecord({
    files: systemFiles,
    clock,
    directory: run.directory,
    durability: "none",
    mask: (text) => text,
    onLine: (line) => foldLine(state, line),
  }, run.resume ? "append" : "new");
  if (!opened.ok) throw new Error(opened.failure.message);
  const limits = { ...DEFAULT_LIMITS, ...run.limits };
  const first: Body = run.resume
    ? { type: "run.resumed", limits, changes: [] }
    : started(run, limits);
  drive(run, state, opened.value, clock, first);
  opened.value.close();
  return state;
}

function started(run: MachineRun, limits: Limits): Body {
  const path = run.path ?? "0";
  return {
    type: "run.started",
    identity: {
      runId: run.runId ?? "machine",
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
      checks: Array.from({ length: run.checks ?? 0 }, (_, i) => ({
        command: ["check", String(i)],
        when: "final" as const,
        timeoutMs: 1000,
      })),
    },
    limits,
    model: {
      name: "some-model",
      tool_mode: "native",
      max_output_tokens: 1000,
      context_window: run.contextWindow ?? 128_000,
      prices: { input: 3, cachedInput: 0.3, output: 15 },
    },
    notes: false,
    stop_hooks: 0,
    self_tools: { subagents: false, subscribe: false },
    warm: false,
    configuration: { mode: "once" },
  };
}

function drive(
  run: MachineRun,
  state: AgentState,
  writer: RecordWriter,
  clock: SampleClock,
  first: Body,
): void {
  const queue: Body[] = [first];
  for (let body = queue.shift(); body !== undefined; body = queue.shift()) {
    if (run.kill?.(body)) return;
    clock.now += 10;
    const event = { ...body, at: state.at + 10 } as AgentEvent;
    writer.append(event.type, event, event.at);
    for (const action of step(state, event)) {
      switch (action.do) {
        case "append":
          writer.append(action.decision.type, action.decision, state.at);
          break;
        case "connect":
          queue.push({ type: "tools.listed", tools: [...TOOLS], resources: [] });
          break;
        case "callModel":
          queue.push(answer(run, action.request));
          break;
        case "summarise":
          queue.push({ type: "summary.made", text: "A summary.", usage: usage(100, 20), ms: 5 });
          break;
        case "callTool":
          queue.push(observed(run, action.call));
          break;
        case "runChecks":
          queue.push({
            type: "checks.ran",
            phase: action.phase,
            outcomes: run.script.checks?.() ?? [],
          });
          break;
        case "abandon":
          queue.length = 0;
          break;
        case "stop":
          writer.flush();
          return;
      }
    }
    writer.flush();
  }
}

function usage(tokensIn: number, tokensOut: number) {
  return { tokensIn, tokensOut, tokensCached: Math.floor(tokensIn / 2), estimated: false };
}

function answer(run: MachineRun, request: PlannedRequest): Body {
  const at = request.step;
  const reply = run.script.reply(at);
  const calls: ToolCall[] = reply.calls.map((call, i) => ({
    id: `call_${at}_${i}`,
    name: call.tool.replace("/", "__"),
    arguments: JSON.stringify(call.arguments),
  }));
  return {
    type: "model.answered",
    text: reply.text,
    calls,
    finish: calls.length > 0 ? "tool_calls" : "stop",
    refusal: null,
    opaque: null,
    usage: usage(
      run.promptTokens ?? Math.ceil(JSON.stringify(request.messages).length / 4) + 600,
      20,
    ),
    model: "some-model",
    endpoint: "http://127.0.0.1:1/v1",
    attempts: 1,
    ms: 7,
    digest: fnv64(reply.text).repeat(4),
  };
}

function observed(run: MachineRun, call: PlannedCall): Body {
  const observation = run.script.observe(call);
  const content = JSON.stringify(observation);
  const child = run.script.child?.(call);
  return {
    type: "call.observed",
    call: call.call,
    observation,
    digest: fnv64(content).repeat(4),
    bytes: content.length,
    ms: 3,
    child: child ? { id: `agent-${child}`, path: child } : null,
  };
}
