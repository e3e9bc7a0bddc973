/**
 * `agentd replay RUN`: the machine driven again from what is recorded, without model, tools, network
 * or clock, and its decisions held against the recorded ones.
 */

import { canonicalJson, type Json, type JsonObject } from "../core/json.ts";
import { EVENT_TYPES, foldLine } from "../agent/fold.ts";
import type { Decision, DecisionType } from "../agent/event.ts";
import { type AgentState, initialState } from "../agent/state.ts";
import type { Action, PlannedRequest } from "../agent/plan.ts";
import { VERSION } from "../core/version.ts";
import type { FilesPort } from "../ports/files.ts";
import type { RecordLine } from "../wire/record.ts";
import { type CommandOutput, countOf, usageError } from "./output.ts";
import { describeFault, isForeignVersion, readRecord, type RecordFault, refusal } from "./read.ts";
import { partText } from "./artifacts.ts";
import type { RunPlace } from "./runs.ts";
import { TERMINAL_TYPE } from "./terminal.ts";

/** A new decision without its line here does not compile. */
const DECISIONS: Record<DecisionType, true> = {
  "model.requested": true,
  "call.intended": true,
  "call.refused": true,
  "call.abandoned": true,
  "action.invalid": true,
  "checks.requested": true,
  "verify.judged": true,
  "turn.judged": true,
  "context.stubbed": true,
  "context.compacted": true,
  "run.ended": true,
};

/** Every line type that is a decision; what is neither event nor decision is an annotation. */
const DECISION_TYPES: ReadonlySet<string> = new Set(Object.keys(DECISIONS));

/** The first place where the machine decides otherwise than the record says. */
export interface Divergence {
  /** Line of the record. */
  line: number;
  why: string;
  /** What the record says; null where it says nothing. */
  recorded: JsonObject | null;
  /** What the machine decides; null where it decides nothing. */
  replayed: JsonObject | null;
}

/** What a replay came to. */
export interface ReplayResult {
  lines: number;
  events: number;
  decisions: number;
  steps: number;
  tornBytes: number;
  divergence: Divergence | null;
  /** A line in a format that this program does not read; nothing is said of what it decides. */
  unreadable: RecordFault | null;
  /** How often the run was resumed. */
  resumed: number;
  /** Versions of the programs that recorded it, each once. */
  programs: string[];
  /** The request of the step asked for, as the model saw it. */
  request: PlannedRequest | null;
  contextHash: string;
  state: AgentState;
}

/** One record, replayed line by line. */
export class Replay {
  readonly result: ReplayResult;
  readonly #until: number;
  #expected: Decision[] = [];
  #done = false;

  /** `until`: the step whose request is the last thing replayed; Infinity for everything. */
  constructor(until = Infinity) {
    this.#until = until;
    this.result = {
      lines: 0,
      events: 0,
      decisions: 0,
      steps: 0,
      tornBytes: 0,
      divergence: null,
      unreadable: null,
      resumed: 0,
      programs: [],
      request: null,
      contextHash: "",
      state: initialState(),
    };
  }

  /** Whether there is nothing more to learn from further lines. */
  get done(): boolean {
    return this.#done || this.result.divergence !== null || this.result.unreadable !== null;
  }

  /** Takes the next line. */
  push(line: RecordLine): void {
    const { result } = this;
    result.lines++;
    if (EVENT_TYPES.has(line.type)) this.#takeEvent(line);
    else if (DECISION_TYPES.has(line.type)) this.#takeDecision(line);
  }

  #takeEvent(line: RecordLine): void {
    const { result } = this;
    const missing = this.#expected.shift();
    if (line.type === "run.resumed") {
      // What was decided when the process was cut off never reached the disk.
      this.#expected = [];
      result.resumed++;
    } else if (missing !== undefined) {
      result.divergence = {
        line: line.seq,
        why: `the machine decides ${missing.type} here, the record goes on without it`,
        recorded: payloadOf(line),
        replayed: plain(missing),
      };
      return;
    }
    if (this.#isPast(line)) {
      this.#done = true;
      return;
    }
    result.events++;
    if (typeof line.program === "string" && !result.programs.includes(line.program)) {
      result.programs.push(line.program);
    }
    let actions: Action[];
    try {
      actions = foldLine(result.state, line);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      result.divergence = { line: line.seq, why, recorded: payloadOf(line), replayed: null };
      return;
    }
    for (const action of actions) this.#takeAction(action);
    result.steps = result.state.counters.steps;
  }

  /** The answer to the request asked for: that was what it was about. */
  #isPast(line: RecordLine): boolean {
    return line.type === "model.answered" && this.result.state.counters.steps + 1 >= this.#until;
  }

  #takeAction(action: Action): void {
    if (action.do === "append") this.#expected.push(action.decision);
    if (action.do === "callModel" && action.request.step <= this.#until) {
      this.result.request = action.request;
      this.result.contextHash = this.result.state.contextHash;
    }
  }

  #takeDecision(line: RecordLine): void {
    const { result } = this;
    if (isForeignEnd(line)) {
      this.#expected = [];
      return;
    }
    const expected = this.#expected.shift();
    const recorded = payloadOf(line);
    if (expected === undefined) {
      const why = `the record decides ${line.type} here, the machine decides nothing`;
      result.divergence = { line: line.seq, why, recorded, replayed: null };
      return;
    }
    result.decisions++;
    const replayed = plain(expected);
    if (!same(recorded, replayed)) {
      const why = expected.type === line.type
        ? `${line.type} differs in ${differing(recorded, replayed).join(", ")}`
        : `the record decides ${line.type} here, the machine ${expected.type}`;
      result.divergence = { line: line.seq, why, recorded, replayed };
    }
  }
}

/** An end that the machine did not decide: its process was killed, or could not go on. */
function isForeignEnd(line: RecordLine): boolean {
  return line.type === TERMINAL_TYPE && (line.by === "supervisor" || line.status === "crashed");
}

/** The line without what every line has, and without what the driver adds. */
function payloadOf(line: RecordLine): JsonObject {
  const { v: _v, seq: _seq, ts: _ts, at: _at, prev: _prev, key: _key, ...payload } = line;
  return payload;
}

function plain(decision: Decision): JsonObject {
  return JSON.parse(JSON.stringify(decision)) as JsonObject;
}

function same(recorded: JsonObject, replayed: JsonObject): boolean {
  return JSON.stringify(recorded) === JSON.stringify(replayed) ||
    canonicalJson(recorded) === canonicalJson(replayed);
}

/** Names of the fields that differ. */
function differing(recorded: JsonObject, replayed: JsonObject): string[] {
  const names = new Set([...Object.keys(recorded), ...Object.keys(replayed)]);
  return [...names].filter((name) =>
    canonicalJson(recorded[name] ?? null) !== canonicalJson(replayed[name] ?? null)
  );
}

/** Replays a record as far as it holds. Damage is a divergence at its line. */
export function replayRecord(files: FilesPort, path: string, until = Infinity): ReplayResult {
  const replay = new Replay(until);
  for (const item of readRecord(files, path)) {
    if (item.kind === "torn") replay.result.tornBytes = item.bytes;
    else if (item.kind === "fault" && isForeignVersion(item.fault)) {
      replay.result.unreadable = item.fault;
    } else if (item.kind === "fault") {
      const why = describeFault(item.fault);
      replay.result.divergence = { line: item.fault.line, why, recorded: null, replayed: null };
    } else replay.push(item.line);
    if (replay.done) break;
  }
  return replay.result;
}

/** Options of `agentd replay`. */
export interface ReplayOptions {
  output: "text" | "json";
  until: number | null;
  showContext: boolean;
}

/** `agentd replay RUN`: 0 if every decision is the same, 1 with the first that is not. */
export function replayCommand(
  files: FilesPort,
  place: RunPlace,
  options: ReplayOptions,
): CommandOutput {
  const result = replayRecord(files, place.record, options.until ?? Infinity);
  const torn = result.tornBytes > 0
    ? `agentd: ${place.record}: a torn last line of ${result.tornBytes} bytes was dropped\n`
    : "";
  const stderr = torn + otherProgram(result);
  if (result.unreadable !== null) return usageError(refusal("replay", place, result.unreadable));
  if (options.showContext && options.until !== null && result.divergence === null) {
    if (result.request === null || result.request.step !== options.until) {
      return usageError(
        `Cannot show the context of iteration ${options.until}: the run made ${result.steps}`,
      );
    }
    return { exitCode: 0, stdout: renderRequest(result, options.output), stderr };
  }
  const stdout = options.output === "json" ? renderJson(place, result) : renderText(place, result);
  return { exitCode: result.divergence === null ? 0 : 1, stdout, stderr };
}

/** What may explain a divergence: another program decided then. */
function otherProgram({ programs }: ReplayResult): string {
  return programs.length === 0 || (programs.length === 1 && programs[0] === VERSION)
    ? ""
    : `agentd: recorded by agentd ${programs.join(" and ")}, replayed by ${VERSION}\n`;
}

function renderJson(place: RunPlace, result: ReplayResult): string {
  const { lines, events, decisions, steps, divergence } = result;
  return JSON.stringify(
    {
      run_id: place.id,
      identical: divergence === null,
      lines,
      events,
      decisions,
      steps,
      recorded_by: result.programs,
      replayed_by: VERSION,
      model_calls: 0,
      tool_calls: 0,
      divergence,
    },
    null,
    2,
  ) + "\n";
}

function renderText(place: RunPlace, result: ReplayResult): string {
  const { divergence } = result;
  const did = `${countOf(result.lines, "line")}, ${countOf(result.events, "event")}, ` +
    `${countOf(result.decisions, "decision")}, ${countOf(result.steps, "step")}; ` +
    "no model call, no tool call";
  if (divergence === null) return `${place.id}: replayed identically: ${did}\n`;
  return `${place.id}: first divergence at line ${divergence.line}: ${divergence.why}\n` +
    sideBySide(divergence) + `Replayed up to there: ${did}\n`;
}

/** The two decisions, field by field; those that are the same are left out. */
function sideBySide({ recorded, replayed }: Divergence): string {
  if (recorded === null && replayed === null) return "";
  const names = recorded && replayed
    ? differing(recorded, replayed)
    : Object.keys(recorded ?? replayed ?? {});
  const show = (value: JsonObject | null, name: string): string =>
    value === null ? "(nothing)" : JSON.stringify(value[name]) ?? "(nothing)";
  return names.map((name) =>
    `  ${name}\n    recorded: ${show(recorded, name)}\n    replayed: ${show(replayed, name)}\n`
  ).join("");
}

/** Exactly what the model saw: as JSON, or as text with a heading before each part. */
function renderRequest(result: ReplayResult, output: "text" | "json"): string {
  const request = result.request!;
  if (output === "json") {
    const { step, system, tools, toolChoice, outputSchema, messages } = request;
    return JSON.stringify(
      {
        step,
        context_hash: result.contextHash,
        system,
        tools,
        tool_choice: toolChoice,
        output_schema: outputSchema,
        messages,
      } as unknown as Json,
      null,
      2,
    ) + "\n";
  }
  const parts = [`=== system\n${request.system}`];
  for (const tool of request.tools) {
    parts.push(`=== tool ${tool.name}\n${tool.description}\n${JSON.stringify(tool.inputSchema)}`);
  }
  for (const message of request.messages) {
    if (message.role === "assistant") {
      const calls = message.calls.map((call) => `\n-> ${call.name} ${call.arguments} (${call.id})`);
      parts.push(`=== assistant\n${message.text}${calls.join("")}`);
    } else {
      const head = message.role === "tool" ? `tool ${message.name} (${message.callId})` : "user";
      const note = message.role === "tool" && message.note ? `\n${message.note}` : "";
      parts.push(`=== ${head}\n${message.parts.map(partText).join("\n")}${note}`);
    }
  }
  return `context ${result.contextHash} of iteration ${request.step}\n${parts.join("\n")}\n`;
}
