/**
 * A run as a conversation: what each agent was told, what its model said, what came of every call.
 * Nothing is left out that compaction took from the context: the record is the archive. Exports are
 * made of this.
 */

import { isObject, type Json, type JsonObject, parseJson } from "../core/json.ts";
import type { Observation } from "../agent/observation.ts";
import type { FilesPort } from "../ports/files.ts";
import type { Part, ToolSpec } from "../ports/model.ts";
import type { RecordLine } from "../wire/record.ts";
import type { AgentResult } from "../wire/result.ts";
import { partText } from "./artifacts.ts";
import type { RecordFault } from "./read.ts";
import { replayRecord } from "./replay.ts";
import { runRecords, TraceBuilder } from "./trace.ts";

/** One call of a turn, and what came of it. */
export interface TranscriptCall {
  /** The run's own id, `c<step>-<n>`. */
  call: string;
  /** As the model named it. */
  wireName: string;
  /** `server/tool`; what the model named where there is no such tool. */
  tool: string;
  /** As the model wrote them. */
  rawArguments: string;
  /** Null where they are no JSON object. */
  arguments: JsonObject | null;
  /** Null where the run was cut off before there was any. */
  observation: Observation | null;
  bytes: number | null;
  ms: number | null;
  /** ISO 8601, of the observation. */
  ts: string | null;
  /** Path of the subagent that the call started. */
  child: string | null;
}

/** What was counted of one model call. */
export interface TranscriptUsage {
  tokensIn: number;
  tokensOut: number;
  tokensCached: number;
}

/** One entry of a conversation, in order. */
export type TranscriptEntry =
  | { kind: "user"; ts: string; text: string }
  | { kind: "summary"; ts: string; text: string; usage: TranscriptUsage; ms: number }
  | { kind: "failed"; ts: string; failure: string; message: string; endpoint: string; ms: number }
  | {
    kind: "turn";
    step: number;
    /** ISO 8601, of the reply. */
    ts: string;
    text: string;
    model: string;
    endpoint: string;
    finish: string;
    usage: TranscriptUsage;
    ms: number;
    cost: number | null;
    calls: TranscriptCall[];
    /** Null where the turn was never judged. */
    verdict: string | null;
    delta: number;
    idle: number;
    contextHash: string;
    signature: string;
    note: string | null;
  };

/** A turn of a conversation. */
export type TranscriptTurn = Extract<TranscriptEntry, { kind: "turn" }>;

/** One agent's conversation. */
export interface AgentTranscript {
  path: string;
  agentId: string;
  runId: string;
  traceId: string;
  startedAt: string;
  lastAt: string;
  model: string | null;
  system: string;
  tools: readonly ToolSpec[];
  /** The first user message: instruction and seeds. */
  first: string;
  entries: TranscriptEntry[];
  end: AgentResult | null;
  usage: TraceBuilder["trace"]["usage"];
  fault: RecordFault | null;
}

/** The conversations of a run's agents, the root's first. Records without a start are left out. */
export function readTranscripts(files: FilesPort, directory: string): AgentTranscript[] {
  const found: AgentTranscript[] = [];
  for (const { path, record } of runRecords(files, directory)) {
    const reader = new TranscriptReader(path, record, true);
    reader.read(files);
    const transcript = reader.finish(files);
    if (transcript !== null) found.push(transcript);
  }
  return found;
}

/** Reads one record into a conversation, as far as it is written; also again, as it grows. */
export class TranscriptReader {
  readonly #trace: TraceBuilder;
  readonly #builder: TranscriptBuilder;
  #start: RecordLine | null = null;

  /** `content`: texts and results are kept; without, only what spans are made of. */
  constructor(path: string, record: string, content: boolean) {
    this.#trace = new TraceBuilder(path, record);
    this.#builder = new TranscriptBuilder(content);
  }

  /** Reads what is new. */
  read(files: FilesPort): void {
    if (this.#trace.trace.fault !== null) return;
    this.#trace.read(files, (line) => {
      if (line.type === "run.started") this.#start = line;
      this.#builder.push(line);
    });
  }

  /** The conversation so far, without what stood before it. Null while it has not begun. */
  snapshot(): AgentTranscript | null {
    const start = this.#start;
    if (start === null) return null;
    const { trace } = this.#trace;
    const identity = isObject(start.identity) ? start.identity : {};
    return {
      path: trace.path,
      agentId: String(identity.agentId ?? ""),
      runId: String(identity.runId ?? ""),
      traceId: String(identity.traceId ?? ""),
      startedAt: start.ts,
      lastAt: trace.last_at ?? start.ts,
      model: trace.model,
      system: "",
      tools: [],
      first: trace.instruction,
      entries: this.#builder.entries,
      end: trace.end,
      usage: trace.usage,
      fault: trace.fault,
    };
  }

  /** The whole conversation. What stood before it is not recorded: the machine makes it again. */
  finish(files: FilesPort): AgentTranscript | null {
    this.#builder.finish();
    const transcript = this.snapshot();
    if (transcript === null) return null;
    const { request } = replayRecord(files, this.#trace.trace.record, 1);
    if (request === null) return transcript;
    const [first] = request.messages;
    return {
      ...transcript,
      system: request.system,
      tools: request.tools,
      first: first?.role === "user" ? partsText(first.parts) : transcript.first,
    };
  }
}

/** The text of parts, others described. */
export function partsText(parts: readonly Part[]): string {
  return parts.map(partText).join("\n");
}

/** Makes entries of lines. */
class TranscriptBuilder {
  readonly entries: TranscriptEntry[] = [];
  readonly #content: boolean;
  #turn: TranscriptTurn | null = null;
  #native: JsonObject[] = [];
  #step = 0;

  constructor(content: boolean) {
    this.#content = content;
  }

  push(line: RecordLine): void {
    switch (line.type) {
      case "model.requested":
        this.#step = Number(line.step);
        break;
      case "model.answered":
        this.#open(line);
        break;
      case "model.failed":
        this.#fail(line);
        break;
      case "summary.made":
        this.entries.push({
          kind: "summary",
          ts: line.ts,
          text: this.#content ? text(line.text) : "",
          usage: usageOf(line),
          ms: Number(line.ms),
        });
        break;
      case "delivered":
        this.finish();
        if (isObject(line.delivery)) {
          this.entries.push({ kind: "user", ts: line.ts, text: text(line.delivery.instruction) });
        }
        break;
      case "call.intended":
      case "call.refused":
      case "call.abandoned":
      case "call.observed":
        this.#takeCall(line);
        break;
      case "turn.judged":
        this.#judge(line);
        break;
    }
  }

  /** A turn that was never judged is handed over as it is. */
  finish(): void {
    if (this.#turn) this.entries.push(this.#turn);
    this.#turn = null;
  }

  #open(line: RecordLine): void {
    this.finish();
    this.#native = Array.isArray(line.calls) ? line.calls.filter(isObject) : [];
    this.#turn = {
      kind: "turn",
      step: this.#step,
      ts: line.ts,
      text: this.#content ? text(line.text) : "",
      model: text(line.model),
      endpoint: text(line.endpoint),
      finish: text(line.finish),
      usage: usageOf(line),
      ms: Number(line.ms),
      cost: null,
      calls: [],
      verdict: null,
      delta: 0,
      idle: 0,
      contextHash: "",
      signature: "",
      note: null,
    };
  }

  #fail(line: RecordLine): void {
    const failure = isObject(line.failure) ? line.failure : {};
    this.entries.push({
      kind: "failed",
      ts: line.ts,
      failure: text(failure.class),
      message: text(failure.message),
      endpoint: text(failure.endpoint),
      ms: Number(line.ms),
    });
  }

  #takeCall(line: RecordLine): void {
    const turn = this.#turn;
    if (turn === null) return;
    const id = text(line.call);
    let call = turn.calls.find((known) => known.call === id);
    if (call === undefined) {
      call = this.#newCall(id, text(line.tool));
      turn.calls.push(call);
      // Refusals are written before the intents of the same turn.
      turn.calls.sort((a, b) => orderOf(a.call) - orderOf(b.call));
    }
    if (line.type === "call.intended") {
      call.tool = text(line.tool);
      if (isObject(line.arguments)) call.arguments = line.arguments;
    } else if (line.type === "call.observed") {
      call.observation = this.#observation(line.observation);
      call.bytes = Number(line.bytes);
      call.ms = Number(line.ms);
      call.ts = line.ts;
      if (isObject(line.child)) call.child = text(line.child.path);
    } else {
      call.observation = { class: line.class, why: text(line.why) } as Observation;
      call.ts = line.ts;
    }
  }

  #observation(value: Json | undefined): Observation {
    const observation = value as unknown as Observation;
    if (this.#content || observation.class !== "ok") return observation;
    return { class: "ok", parts: [], structured: null };
  }

  #newCall(id: string, tool: string): TranscriptCall {
    const native = this.#native[orderOf(id) - 1];
    const rawArguments = native ? text(native.arguments) : "";
    const parsed = parseJson(rawArguments.trim() === "" ? "{}" : rawArguments);
    return {
      call: id,
      wireName: native ? text(native.name) : tool.replace("/", "__"),
      tool,
      rawArguments,
      arguments: parsed.ok && isObject(parsed.value) ? parsed.value : null,
      observation: null,
      bytes: null,
      ms: null,
      ts: null,
      child: null,
    };
  }

  #judge(line: RecordLine): void {
    const turn = this.#turn;
    if (turn === null) return;
    turn.step = Number(line.step);
    turn.verdict = text(line.verdict);
    turn.delta = Number(line.delta);
    turn.idle = Number(line.idle);
    turn.cost = typeof line.cost === "number" ? line.cost : null;
    turn.contextHash = text(line.context_hash);
    turn.signature = text(line.signature);
    turn.note = typeof line.note === "string" ? line.note : null;
    this.finish();
  }
}

/** The n of `c<step>-<n>`. */
function orderOf(call: string): number {
  return Number(call.slice(call.lastIndexOf("-") + 1)) || 0;
}

function usageOf(line: RecordLine): TranscriptUsage {
  const usage = isObject(line.usage) ? line.usage : {};
  return {
    tokensIn: Number(usage.tokensIn ?? 0),
    tokensOut: Number(usage.tokensOut ?? 0),
    tokensCached: Number(usage.tokensCached ?? 0),
  };
}

function text(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}
