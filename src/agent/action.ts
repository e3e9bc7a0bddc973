/**
 * From a model's reply to a proposal: calls, a final, a refusal, or nothing legal. The
 * model proposes; what is legal is decided here, before anything is executed.
 */

import { isObject, type Json, type JsonObject, mapStrings, parseJson } from "../core/json.ts";
import {
  INVALID_ARGUMENTS_CHARS_MAX,
  INVALID_ECHO_CHARS_MAX,
  SHOWN_NAME_CHARS_MAX,
} from "../core/limits.ts";
import { clip, toWellFormed } from "../core/text.ts";
import type { FinishReason, ToolCall } from "../ports/model.ts";
import type { Tool } from "../ports/tools.ts";
import { findAction } from "./json_action.ts";
import { schemaFaults } from "./schema.ts";

/** One call as proposed; `fault` says why it is not legal, null if it is. */
export interface ProposedCall {
  /** The id on the wire: the model's own, or ours where it gave none or gave one twice. */
  wireId: string;
  wireName: string;
  tool: Tool | null;
  /** Empty where they do not parse as an object. */
  arguments: JsonObject;
  fault: string | null;
}

/** What a reply comes to; `said`: its words, where they are not all of its text. */
export type Proposal =
  & { said?: string }
  & (
    /** `leftOut`: further actions in the text, of which only the first is taken. */
    | { kind: "calls"; text: string; calls: ProposedCall[]; viaJson: boolean; leftOut: number }
    | { kind: "final"; text: string; value: { json: Json } | null }
    | { kind: "refused"; text: string; reason: string }
    /** The reply was cut off at the output limit. */
    | { kind: "cut"; text: string; calls: number }
    | { kind: "invalid"; text: string; why: string; echo: string }
  );

/** What is read of a reply. */
export interface Reply {
  text: string;
  calls: readonly ToolCall[];
  finish: FinishReason;
  refusal: string | null;
}

/** What a reply is read against. */
export interface Scope {
  /** By wire name. */
  tools: ReadonlyMap<string, Tool>;
  /** Wire names that were in it once. */
  withdrawn: ReadonlySet<string>;
  /** What the configuration asks for, and what is in force. */
  configured: "auto" | "native" | "json";
  mode: "native" | "json";
  /** Whether a schema says what an answer may be, an empty one included. */
  hasSchema: boolean;
  step: number;
}

/** Prose around an action object in native mode; with more, the reply quotes it. */
const QUOTING_CHARS_MAX = 400;

/** Reads a reply. */
export function readProposal(reply: Reply, scope: Scope): Proposal {
  const { text } = reply;
  if (reply.refusal !== null || reply.finish === "refusal") {
    return { kind: "refused", text, reason: reply.refusal ?? (text || "the model refused") };
  }
  if (reply.finish === "repetition") {
    return invalid(text, "the reply only repeated itself and was cut off");
  }
  if (reply.finish === "length") return { kind: "cut", text, calls: reply.calls.length };
  if (reply.calls.length > 0) {
    const calls = readCalls(reply.calls, scope);
    return { kind: "calls", text, calls, viaJson: false, leftOut: 0 };
  }
  if (text.trim() === "") return invalid("", "the reply was empty");
  return readText(text, scope);
}

function readText(text: string, scope: Scope): Proposal {
  const found = scope.mode === "json" || scope.configured === "auto" ? findAction(text) : null;
  if (found === null) {
    return scope.mode === "json"
      ? invalid(text, "the reply held no action; reply with exactly one JSON object as described")
      : { kind: "final", text, value: null };
  }
  const { action } = found;
  if (scope.mode === "native" && !isWholeReply(text, found.start, found.end, action, scope)) {
    return { kind: "final", text, value: null };
  }
  if (action.kind === "refused") return { kind: "refused", text, reason: action.reason };
  if (action.kind === "final") {
    const { result } = action;
    // In whatever wrapping: what is empty is no answer.
    const isEmpty = result === null || (typeof result === "string" && result.trim() === "");
    if (isEmpty && !scope.hasSchema) {
      return { ...invalid(text, "the final answer was empty"), said: "" };
    }
    const said = typeof result === "string" ? result : JSON.stringify(result);
    return { kind: "final", text, value: { json: result }, said };
  }
  const call = { id: "", name: action.tool, arguments: JSON.stringify(action.arguments) };
  const calls = readCalls([call], scope);
  // A fence that opens for the action is no word either.
  const said = text.slice(0, found.start).replace(/```[\w-]*\s*$/, "").trim();
  return { kind: "calls", text, calls, viaJson: true, leftOut: found.more, said };
}

/**
 * In native mode an action object counts only if it is what the reply is about: a prose answer that
 * quotes one is an answer.
 */
function isWholeReply(
  text: string,
  start: number,
  end: number,
  action: { kind: string; tool?: string },
  scope: Scope,
): boolean {
  const around = text.slice(0, start).trim().length + text.slice(end).trim().length;
  if (around > QUOTING_CHARS_MAX) return false;
  return action.kind !== "tool" || scope.tools.has(action.tool ?? "");
}

/** Gives every call an id of its own and says which calls are legal. */
function readCalls(calls: readonly ToolCall[], scope: Scope): ProposedCall[] {
  const seen = new Set<string>();
  return calls.map((call, index) => {
    const usable = /^[A-Za-z0-9_-]{1,64}$/.test(call.id) && !seen.has(call.id);
    let wireId = usable ? call.id : `call_${scope.step}_${index + 1}`;
    while (seen.has(wireId)) wireId += "_";
    seen.add(wireId);
    return { wireId, wireName: call.name, ...judgeCall(call, scope) };
  });
}

function judgeCall(
  call: ToolCall,
  scope: Scope,
): Pick<ProposedCall, "tool" | "arguments" | "fault"> {
  const tool = scope.tools.get(call.name) ?? null;
  if (tool === null) {
    const why = scope.withdrawn.has(call.name)
      ? " any more: its server withdrew it, or what that says of it has changed"
      : "";
    const name = JSON.stringify(clip(call.name, SHOWN_NAME_CHARS_MAX));
    return { tool, arguments: {}, fault: `no tool named ${name} is in scope${why}` };
  }
  const parsed = parseArguments(call.arguments);
  if (!parsed.ok) {
    return {
      tool,
      arguments: {},
      fault: `the arguments are not JSON (${clip(parsed.failure.message, 120)}): ${
        echo(call.arguments)
      }`,
    };
  }
  if (!isObject(parsed.value)) {
    return {
      tool,
      arguments: {},
      fault: `the arguments are not an object: ${echo(call.arguments)}`,
    };
  }
  const faults = schemaFaults(tool.inputSchema, parsed.value);
  if (faults.length === 0) return { tool, arguments: parsed.value, fault: null };
  // What is not executed and fills the window is no use in the conversation.
  const isLarge = call.arguments.length > INVALID_ARGUMENTS_CHARS_MAX;
  return {
    tool,
    arguments: isLarge ? {} : parsed.value,
    fault: `the arguments do not fit the tool's schema: ${
      clip(faults.join("; "), INVALID_ECHO_CHARS_MAX)
    }${isLarge ? `; all ${call.arguments.length} characters of them are left out above` : ""}`,
  };
}

/** Escapes can hide in arguments what no wire and no tool could take: it is replaced at once. */
function parseArguments(text: string): ReturnType<typeof parseJson> {
  const parsed = parseJson(text.trim() === "" ? "{}" : text);
  if (!parsed.ok || !UNSOUND.test(text)) return parsed;
  return { ok: true, value: mapStrings(parsed.value, toWellFormed) };
}

/** An escaped surrogate or NUL, or a raw one. */
const UNSOUND = /\\u(?:[dD][89a-fA-F]|0000)|[\ud800-\udfff]/;

function invalid(text: string, why: string): Proposal {
  return { kind: "invalid", text, why, echo: echo(text) };
}

/** A piece of what the model wrote, short enough to be shown back. */
function echo(text: string): string {
  return clip(text, INVALID_ECHO_CHARS_MAX);
}
