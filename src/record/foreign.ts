/**
 * Trajectories of other programs, for work on detectors: ATIF documents and message lists of the
 * chat-completions kind, read into plain turns.
 */

import { MARK } from "../agent/prompt.ts";
import { isObject, type Json, type JsonObject, parseJson } from "../core/json.ts";
import { failed, type Outcome, success } from "../core/outcome.ts";
import { parseIso } from "../core/time.ts";

/** What came of a call, as far as the format tells; without a result it is `unknown`. */
export type ForeignClass = "ok" | "error" | "refused" | "invalid" | "unknown";

/** One call of a foreign turn. */
export interface ForeignCall {
  id: string;
  name: string;
  arguments: JsonObject;
  /** They were no JSON object. */
  broken: boolean;
  /** What came back; null where nothing did. */
  result: string | null;
  class: ForeignClass;
}

/** One reply of the model and what came of it. */
export interface ForeignTurn {
  text: string;
  calls: ForeignCall[];
  tokens: number;
  cost: number | null;
  /** Milliseconds since the Unix epoch, where it is known. */
  wallMs: number | null;
}

/** What a file held. */
export interface ForeignTrajectory {
  format: "atif" | "openai";
  turns: ForeignTurn[];
}

/** Reads a file's text. A failure is one sentence. */
export function readForeign(text: string): Outcome<ForeignTrajectory, string> {
  const whole = parseJson(text);
  if (whole.ok) return readValue(whole.value);
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const values: Json[] = [];
  for (const line of lines) {
    const value = parseJson(line);
    // The fault of the whole says more to a person whose file is meant to be one document.
    if (!value.ok) return failed(notJson(whole.failure));
    values.push(value.value);
  }
  return readValue(values.length === 1 ? values[0]! : values);
}

function notJson(fault: { message: string; line: number; column: number }): string {
  return `it is not JSON (line ${fault.line}, column ${fault.column}: ${fault.message})`;
}

function readValue(value: Json): Outcome<ForeignTrajectory, string> {
  if (isObject(value) && typeof value.schema_version === "string") {
    if (!/^ATIF-v1\.\d+$/.test(value.schema_version)) {
      return failed(`its version is ${value.schema_version}; ATIF-v1.x is read`);
    }
    if (!Array.isArray(value.steps)) return failed("it is an ATIF document without steps");
    return success({ format: "atif", turns: atifTurns(value.steps.filter(isObject)) });
  }
  const messages = Array.isArray(value) ? value : isObject(value) ? value.messages : undefined;
  if (Array.isArray(messages) && messages.length > 0 && messages.every(isMessage)) {
    return success({ format: "openai", turns: openaiTurns(messages as JsonObject[]) });
  }
  return failed("it is neither an ATIF document nor a list of messages");
}

function isMessage(value: Json): boolean {
  return isObject(value) && typeof value.role === "string";
}

function atifTurns(steps: readonly JsonObject[]): ForeignTurn[] {
  return steps.filter((step) => step.source === "agent").map((step) => {
    const observation = isObject(step.observation) ? step.observation : {};
    const results = listOf(observation.results);
    const metrics = isObject(step.metrics) ? step.metrics : {};
    return {
      text: contentText(step.message),
      calls: listOf(step.tool_calls).map((call) => {
        const id = String(call.tool_call_id ?? "");
        const result = results.find((candidate) => candidate.source_call_id === id);
        const extra = isObject(result?.extra) ? result.extra : {};
        const content = result === undefined ? null : contentText(result.content);
        return {
          id,
          name: String(call.function_name ?? ""),
          arguments: isObject(call.arguments) ? call.arguments : {},
          broken: !isObject(call.arguments),
          result: content,
          class: content === null ? "unknown" : classOf(extra.class) ?? classOfText(content),
        };
      }),
      tokens: count(metrics.prompt_tokens) + count(metrics.completion_tokens),
      cost: typeof metrics.cost_usd === "number" ? metrics.cost_usd : null,
      wallMs: typeof step.timestamp === "string" ? parseIso(step.timestamp) ?? null : null,
    };
  });
}

function openaiTurns(messages: readonly JsonObject[]): ForeignTurn[] {
  const turns: ForeignTurn[] = [];
  for (const message of messages) {
    if (message.role === "assistant") {
      turns.push({
        text: contentText(message.content),
        calls: openaiCalls(message),
        tokens: 0,
        cost: null,
        wallMs: null,
      });
      continue;
    }
    if (message.role !== "tool" && message.role !== "function") continue;
    const open = turns.at(-1)?.calls ?? [];
    const call = open.find((candidate) =>
      candidate.result === null &&
      (message.tool_call_id === undefined || candidate.id === message.tool_call_id)
    );
    if (call === undefined) continue;
    call.result = withoutNotes(contentText(message.content));
    call.class = message.is_error === true ? "error" : classOfText(call.result);
  }
  return turns;
}

function openaiCalls(message: JsonObject): ForeignCall[] {
  const legacy = isObject(message.function_call) ? [{ function: message.function_call }] : [];
  const calls: JsonObject[] = [...listOf(message.tool_calls), ...legacy];
  return calls.map((call) => {
    const target = isObject(call.function) ? call.function : call;
    const raw = target.arguments;
    const parsed = typeof raw === "string"
      ? parseJson(raw.trim() === "" ? "{}" : raw)
      : { ok: true as const, value: raw ?? {} };
    const value = parsed.ok && isObject(parsed.value) ? parsed.value : null;
    return {
      id: String(call.id ?? ""),
      name: String(target.name ?? ""),
      arguments: value ?? {},
      broken: value === null,
      result: null,
      class: "unknown",
    };
  });
}

/** Without agentd's own notes, which ride at the end of a turn's last result and are no content. */
function withoutNotes(content: string): string {
  const start = content.indexOf(`\n${MARK} `);
  return start === -1 ? content : content.slice(0, start);
}

/** A class as agentd writes it into its exports; null for anything else. */
function classOf(name: Json | undefined): ForeignClass | null {
  switch (name) {
    case "ok":
    case "truncated":
    case "partial":
      return "ok";
    case "error":
    case "refused":
    case "invalid":
    case "unknown":
      return name;
    default:
      return null;
  }
}

/** The class by what is there to read: agentd's own words come first, in brackets. */
function classOfText(content: string): ForeignClass {
  const own = /^\[(refused|invalid|unknown)\] /.exec(content)?.[1];
  return classOf(own) ?? (looksWrong(content) ? "error" : "ok");
}

/**
 * Neither format says whether a result is an error. It is taken for one where it begins as tools
 * and interpreters begin theirs, or is a JSON object that says so.
 */
function looksWrong(content: string): boolean {
  const head = content.slice(0, 400).trimStart();
  if (/^(?:\[error\b|error\b\s*:|fatal:|Traceback \(most recent call last\))/i.test(head)) {
    return true;
  }
  if (!head.startsWith("{")) return false;
  const parsed = parseJson(content);
  return parsed.ok && isObject(parsed.value) &&
    (parsed.value.isError === true || parsed.value.is_error === true ||
      (parsed.value.error !== undefined && parsed.value.error !== null &&
        parsed.value.error !== false));
}

/** A text, or the texts of parts; other parts stand as they are, so that they count as content. */
function contentText(content: Json | undefined): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((part) =>
    isObject(part) && typeof part.text === "string" ? part.text : JSON.stringify(part)
  ).join("\n");
}

function listOf(value: Json | undefined): JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

function count(value: Json | undefined): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}
