/**
 * A run as people look at it: iterations with what they did, what came back, what it cost. Made from
 * the lines of the records in one pass; what a line does not say is null, never guessed.
 */

import { isObject, type Json, type JsonObject } from "../core/json.ts";
import { parseIso } from "../core/time.ts";
import type { FilesPort } from "../ports/files.ts";
import type { RecordLine } from "../wire/record.ts";
import { type AgentResult, NO_USAGE, type UsageTotals } from "../wire/result.ts";
import type { RunState } from "./runs.ts";
import { RECORD_FILE } from "./append.ts";
import {
  cursorAfter,
  readRecord,
  RECORD_START,
  type RecordCursor,
  type RecordFault,
} from "./read.ts";

/** One action of an iteration. Sizes in bytes, times in milliseconds. */
export interface TraceAction {
  call: string;
  tool: string;
  class: string;
  /** Bytes of the whole content that came back; null where the harness answered. */
  bytes: number | null;
  fresh: boolean;
  attempts: number;
  ms: number | null;
}

/** A stretch of time on the timeline, in milliseconds since the Unix epoch. */
export interface TraceSpan {
  kind: "model" | "tool" | "summary";
  name: string;
  start: number;
  end: number;
}

/** One iteration of an agent's loop. */
export interface Iteration {
  step: number;
  /** When its model call began, or it was judged: ISO 8601. */
  ts: string;
  /** The line of the record with its verdict. */
  seq: number;
  actions: TraceAction[];
  verdict: string;
  delta: number;
  idle: number;
  tokens_in: number;
  tokens_out: number;
  tokens_cached: number;
  cost: number | null;
  model_ms: number;
  tools_ms: number;
  context_hash: string;
  signature: string;
  note: string | null;
}

/** One agent of the run. */
export interface AgentTrace {
  path: string;
  agent_id: string | null;
  record: string;
  started_at: string | null;
  last_at: string | null;
  instruction: string;
  model: string | null;
  iterations: Iteration[];
  spans: TraceSpan[];
  /** Step of the first iteration with delta 0; null if every one advanced. */
  first_non_advancing: number | null;
  usage: UsageTotals;
  /** The terminal line of the last stretch; null while there is none. */
  end: AgentResult | null;
  resumed: number;
  compactions: number;
  torn_bytes: number;
  fault: RecordFault | null;
}

/** The whole of `--json`. `first_non_advancing` is the root agent's. */
export interface RunTrace {
  run_id: string;
  state: RunState;
  status: string | null;
  abort: string | null;
  reason: string;
  advice: string;
  first_non_advancing: number | null;
  started_at: string | null;
  last_at: string | null;
  elapsed_ms: number;
  agents: AgentTrace[];
}

/** Builds one agent's trace, line by line; `trace` is valid after each. */
export class TraceBuilder {
  readonly trace: AgentTrace;
  /** Where the lines read so far end. */
  cursor: RecordCursor = RECORD_START;
  #requestedAt: string | null = null;
  #observed = new Map<string, { bytes: number; ms: number }>();
  #intended = new Map<string, { tool: string; start: number }>();

  constructor(path: string, record: string) {
    this.trace = {
      path,
      agent_id: null,
      record,
      started_at: null,
      last_at: null,
      instruction: "",
      model: null,
      iterations: [],
      spans: [],
      first_non_advancing: null,
      usage: { ...NO_USAGE },
      end: null,
      resumed: 0,
      compactions: 0,
      torn_bytes: 0,
      fault: null,
    };
  }

  /** Reads what is new in the record since the last call. Says whether there was anything. */
  read(files: FilesPort, each?: (line: RecordLine) => void): boolean {
    let any = false;
    this.trace.torn_bytes = 0;
    for (const item of readRecord(files, this.trace.record, this.cursor)) {
      if (item.kind === "fault") this.trace.fault = item.fault;
      else if (item.kind === "torn") this.trace.torn_bytes = item.bytes;
      else {
        any = true;
        this.cursor = cursorAfter(item);
        this.push(item.line);
        each?.(item.line);
      }
    }
    return any;
  }

  /** Takes the next line. */
  push(line: RecordLine): void {
    const { trace } = this;
    trace.last_at = line.ts;
    switch (line.type) {
      case "run.started":
        this.#start(line);
        break;
      case "run.resumed":
        trace.resumed++;
        trace.end = null;
        break;
      case "model.requested":
        if (line.purpose === "turn") this.#requestedAt = line.ts;
        break;
      case "model.answered":
        trace.model = text(line.model) || trace.model;
        this.#spend(line);
        this.#span("model", trace.model ?? "model", line);
        break;
      case "summary.made":
        this.#spend(line);
        this.#span("summary", "summary", line);
        break;
      case "model.failed":
        this.#span("model", "model (failed)", line);
        break;
      case "call.intended":
        this.#intended.set(text(line.call), { tool: text(line.tool), start: wallMs(line) });
        break;
      case "call.observed":
        this.#observe(line);
        break;
      case "context.compacted":
        trace.compactions++;
        break;
      case "turn.judged":
        this.#judge(line);
        break;
      case "run.ended":
        this.#end(line);
        break;
    }
  }

  #start(line: RecordLine): void {
    const { trace } = this;
    trace.started_at = line.ts;
    if (isObject(line.identity)) trace.agent_id = text(line.identity.agentId);
    if (isObject(line.task)) trace.instruction = text(line.task.instruction);
    if (isObject(line.model)) trace.model = text(line.model.name) || null;
  }

  #end(line: RecordLine): void {
    const { v: _v, seq: _seq, ts: _ts, at: _at, type: _type, prev: _prev, ...result } = line;
    this.trace.end = result as unknown as AgentResult;
    // A line that the supervisor wrote for a killed agent may know less than the turns say.
    const usage = isObject(line.usage) ? line.usage as unknown as UsageTotals : null;
    if (usage && usage.steps >= this.trace.usage.steps) this.trace.usage = usage;
  }

  #spend(line: RecordLine): void {
    const usage: JsonObject = isObject(line.usage) ? line.usage : {};
    const sums = this.trace.usage;
    sums.model_calls++;
    sums.tokens_in += number(usage.tokensIn);
    sums.tokens_out += number(usage.tokensOut);
    sums.tokens_cached += number(usage.tokensCached);
    if (usage.estimated === true) sums.tokens_estimated = true;
  }

  #span(kind: TraceSpan["kind"], name: string, line: RecordLine): void {
    const end = wallMs(line);
    this.trace.spans.push({ kind, name, start: end - number(line.ms), end });
  }

  #observe(line: RecordLine): void {
    const call = text(line.call);
    const ms = number(line.ms);
    const end = wallMs(line);
    this.#observed.set(call, { bytes: number(line.bytes), ms });
    const intended = this.#intended.get(call);
    if (intended) this.trace.usage.tool_calls++;
    this.trace.spans.push({ kind: "tool", name: intended?.tool ?? call, start: end - ms, end });
  }

  #judge(line: RecordLine): void {
    const { trace } = this;
    const iteration: Iteration = {
      step: number(line.step),
      ts: this.#requestedAt ?? line.ts,
      seq: line.seq,
      actions: this.#actions(line.actions),
      verdict: text(line.verdict),
      delta: number(line.delta),
      idle: number(line.idle),
      tokens_in: number(line.tokens_in),
      tokens_out: number(line.tokens_out),
      tokens_cached: number(line.tokens_cached),
      cost: typeof line.cost === "number" ? line.cost : null,
      model_ms: number(line.model_ms),
      tools_ms: number(line.tools_ms),
      context_hash: text(line.context_hash),
      signature: text(line.signature),
      note: typeof line.note === "string" ? line.note : null,
    };
    trace.iterations.push(iteration);
    trace.usage.steps = iteration.step;
    if (iteration.cost !== null) trace.usage.cost = (trace.usage.cost ?? 0) + iteration.cost;
    if (iteration.delta === 0) trace.first_non_advancing ??= iteration.step;
    this.#requestedAt = null;
    this.#observed.clear();
    this.#intended.clear();
  }

  #actions(actions: Json | undefined): TraceAction[] {
    if (!Array.isArray(actions)) return [];
    return actions.filter(isObject).map((action) => {
      const observed = this.#observed.get(text(action.call));
      return {
        call: text(action.call),
        tool: text(action.tool),
        class: text(action.class),
        bytes: observed?.bytes ?? null,
        fresh: action.fresh === true,
        attempts: number(action.attempts),
        ms: observed?.ms ?? null,
      };
    });
  }
}

/** The records of a run's subagents, by dotted path, parents before children. */
export function subagentRecords(
  files: FilesPort,
  runDirectory: string,
): { path: string; record: string }[] {
  const names = files.list(`${runDirectory}/agents`);
  if (!names.ok) return [];
  return names.value.filter((name) => /^\d+(?:\.\d+)*$/.test(name))
    .map((path) => ({ path, record: `${runDirectory}/agents/${path}/${RECORD_FILE}` }))
    .filter(({ record }) => files.stat(record).ok)
    .sort((a, b) => comparePaths(a.path, b.path));
}

/** Orders dotted paths as a tree is read: `0.2` before `0.2.1` before `0.10`. */
export function comparePaths(a: string, b: string): number {
  const left = a.split(".").map(Number);
  const right = b.split(".").map(Number);
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    if (left[i] !== right[i]) return left[i]! - right[i]!;
  }
  return left.length - right.length;
}

/** The records of a run, the root's first. */
export function runRecords(
  files: FilesPort,
  directory: string,
): { path: string; record: string }[] {
  const root = { path: "0", record: `${directory}/${RECORD_FILE}` };
  return [root, ...subagentRecords(files, directory)];
}

/** Every agent of a run, the root first. */
export function traceRun(files: FilesPort, directory: string): AgentTrace[] {
  return runRecords(files, directory).map(({ path, record }) => {
    const builder = new TraceBuilder(path, record);
    builder.read(files);
    return builder.trace;
  });
}

function wallMs(line: RecordLine): number {
  return parseIso(line.ts) ?? 0;
}

function text(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}

function number(value: Json | undefined): number {
  return typeof value === "number" ? value : 0;
}
