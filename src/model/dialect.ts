/** What a wire dialect must be able to do; the rest of the client knows no dialect. */

import type { Json, JsonObject } from "../core/json.ts";
import type { FinishReason, ModelRequest, ToolCall } from "../ports/model.ts";
import type { ModelSettings } from "../wire/payload.ts";

/** Tokens as an endpoint reported them, cached ones inside `tokensIn`. */
export interface WireUsage {
  tokensIn: number;
  tokensOut: number;
  tokensCached: number;
}

/** A reply as read from the wire, before ids are made unique and usage is completed. */
export interface Draft {
  text: string;
  calls: ToolCall[];
  finish: FinishReason;
  refusal: string | null;
  opaque: { dialect: string; blocks: Json } | null;
  usage: WireUsage | null;
  model: string | null;
  /** Characters received, reasoning and arguments included: for the estimate of tokens. */
  chars: number;
}

/** An error that an endpoint reports inside a body that began well. */
export interface ReportedError {
  status: number;
  body: string;
}

/**
 * Reads one reply, event by event. `finished` is true once the wire said why the model stopped:
 * without it, what was read is half a reply. `ended` is true once nothing more will come.
 */
export interface ReplyReader {
  /** Takes one event's JSON, or the whole body; an error that it reports, else null. */
  take(value: JsonObject): ReportedError | null;
  /** The text of an event that is no JSON but an end mark. */
  isEndMark(data: string): boolean;
  readonly finished: boolean;
  readonly ended: boolean;
  /** Set when the reply must be cut off here: it repeats itself, or is over its bound. */
  readonly cut: "repetition" | "length" | null;
  draft(): Draft;
}

/** What is learned of an endpoint from what it rejects; each entry changes at most once. */
export interface Quirks {
  maxTokensField: "max_tokens" | "max_completion_tokens";
  streamOptions: boolean;
  responseFormat: boolean;
  images: boolean;
  /** Reasoning, or thinking, is carried back. */
  reasoning: boolean;
  thinking: "budget" | "adaptive" | "off";
  /** An answer may be asked for as the call of a tool. */
  answerTool: boolean;
}

/** Every endpoint is taken to speak its dialect in full until it says otherwise. */
export const FULL_QUIRKS: Readonly<Quirks> = {
  maxTokensField: "max_tokens",
  streamOptions: true,
  responseFormat: true,
  images: true,
  reasoning: true,
  thinking: "budget",
  answerTool: true,
};

/** One wire dialect, with its caches of rendered messages; one instance per endpoint. */
export interface Dialect {
  readonly name: "openai" | "anthropic";
  /** Path of a completion under the base URL. */
  readonly path: string;
  /** Headers of every request; `token` in the clear. */
  headers(token: string | null): Record<string, string>;
  /**
   * The body of a request, as JSON in pieces: those before the last are mostly those of the request
   * before. Old messages are not rendered again.
   */
  render(request: ModelRequest, model: string, quirks: Quirks): string[];
  startReply(): ReplyReader;
  /** The quirks to go on with after a rejection that names what it did not like, else null. */
  learn(status: number, message: string, body: string, quirks: Quirks): Quirks | null;
}

/** What a dialect is made from. */
export type DialectSettings = Pick<
  ModelSettings,
  "maxOutputTokens" | "temperature" | "reasoningEffort" | "options"
>;

/** The conversation and its tools belong to the runtime: `options` cannot replace them. */
const RESERVED = new Set(["model", "messages", "system", "tools", "tool_choice"]);

/**
 * Members of an object, without braces and with a leading comma, for the end of a body. `options`
 * win over our own parameters; null takes one away.
 */
export function renderParameters(ours: JsonObject, options: JsonObject): string {
  const merged: JsonObject = { ...ours };
  for (const [key, value] of Object.entries(options)) {
    if (RESERVED.has(key)) continue;
    if (value === null) delete merged[key];
    else merged[key] = value;
  }
  const text = JSON.stringify(merged);
  return text === "{}" ? "" : "," + text.slice(1, -1);
}

/** Whether the settings ask for a whole reply. */
export function wantsStream(options: JsonObject): boolean {
  return options["stream"] !== false;
}

/** Whether the reply can only be the final answer, and must satisfy a schema. */
export function asksForAnswer(request: ModelRequest): boolean {
  return request.outputSchema !== null && request.purpose === "turn" &&
    (request.tools.length === 0 || request.toolChoice === "none");
}
