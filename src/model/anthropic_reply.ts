/** Reads replies of the messages dialect: events of a stream, or a whole message. */

import { isObject, type Json, type JsonObject } from "../core/json.ts";
import type { FinishReason } from "../ports/model.ts";
import type { Draft, ReplyReader, ReportedError, WireUsage } from "./dialect.ts";
import { count } from "./openai_reply.ts";
import { ReplyBuilder } from "./reply.ts";

const FINISH: Readonly<Record<string, FinishReason>> = {
  end_turn: "stop",
  stop_sequence: "stop",
  tool_use: "tool_calls",
  max_tokens: "length",
  model_context_window_exceeded: "length",
  // The endpoint stopped in the middle of its own work: the reply wants to be continued.
  pause_turn: "length",
  refusal: "refusal",
};

const ERROR_STATUS: Readonly<Record<string, number>> = {
  invalid_request_error: 400,
  authentication_error: 401,
  billing_error: 402,
  permission_error: 403,
  not_found_error: 404,
  request_too_large: 413,
  rate_limit_error: 429,
  timeout_error: 504,
  overloaded_error: 529,
};

const REFUSED = "the endpoint stopped the reply as a refusal";

/** One content block while it is open. */
interface OpenBlock {
  type: string;
  /** The call's place, for `tool_use`. */
  place: number;
  /** Characters of text so far, for `text`. */
  length: number;
  /** The block as it will be carried back, for all others. */
  block: JsonObject | null;
  /** Streamed JSON of the block's `input`, for those that are carried back. */
  input: string;
}

/** One reply as it comes. `answerTool`: the call of this tool is the answer itself. */
export class AnthropicReply implements ReplyReader {
  readonly #builder = new ReplyBuilder();
  readonly #answerTool: string;
  readonly #blocks = new Map<number, OpenBlock>();
  #usage: JsonObject | null = null;
  #model: string | null = null;
  #finish: string | null = null;
  #explanation = "";
  #ended = false;

  constructor(answerTool: string) {
    this.#answerTool = answerTool;
  }

  get finished(): boolean {
    return this.#finish !== null || this.#ended;
  }

  get ended(): boolean {
    return this.#ended;
  }

  get cut(): "repetition" | "length" | null {
    return this.#builder.cut;
  }

  isEndMark(data: string): boolean {
    return data.trim() === "[DONE]";
  }

  take(value: JsonObject): ReportedError | null {
    switch (value["type"]) {
      case "error":
        return reportedError(value);
      case "message":
        return this.#takeWhole(value);
      case "message_start":
        if (isObject(value["message"])) this.#takeHead(value["message"]);
        return null;
      case "content_block_start":
        if (isObject(value["content_block"])) this.#start(value["index"], value["content_block"]);
        return null;
      case "content_block_delta":
        if (isObject(value["delta"])) this.#delta(value["index"], value["delta"]);
        return null;
      case "message_delta":
        if (isObject(value["delta"])) this.#takeStop(value["delta"]);
        this.#addUsage(value["usage"]);
        return null;
      case "message_stop":
        this.#ended = true;
        return null;
      default:
        if (isObject(value["error"])) return reportedError(value);
        // A whole message of a gateway that leaves out what it is.
        return Array.isArray(value["content"]) ? this.#takeWhole(value) : null;
    }
  }

  draft(): Draft {
    const builder = this.#builder;
    const all = builder.calls;
    const answer = all.find((call) => call.name === this.#answerTool);
    const calls = all.filter((call) => call.name !== this.#answerTool);
    const text = answer === undefined ? builder.text : answer.arguments;
    let finish = this.#finish === null ? "stop" : FINISH[this.#finish] ?? "other";
    if (calls.length > 0 && finish === "stop") finish = "tool_calls";
    if (calls.length === 0 && finish === "tool_calls") finish = "stop";
    if (builder.cut !== null) finish = builder.cut;
    const refusal = finish === "refusal"
      ? this.#explanation || (text.trim() === "" ? REFUSED : text)
      : null;
    return {
      text,
      calls,
      finish,
      refusal,
      opaque: answer === undefined && builder.cut === null ? this.#opaque() : null,
      usage: readUsage(this.#usage),
      model: this.#model,
      chars: builder.chars,
    };
  }

  /** The order of blocks, kept only where there is something that must be carried back. */
  #opaque(): { dialect: string; blocks: Json } | null {
    const blocks = [...this.#blocks].sort(([a], [b]) => a - b).map(([, block]) => block);
    if (!blocks.some((block) => block.block !== null)) return null;
    return {
      dialect: "anthropic",
      blocks: blocks.map((block): JsonObject => {
        if (block.block !== null) return withInput(block.block, block.input);
        return block.type === "text"
          ? { type: "text_place", length: block.length }
          : { type: "call_place", index: block.place };
      }),
    };
  }

  #takeWhole(message: JsonObject): ReportedError | null {
    this.#takeHead(message);
    const content = Array.isArray(message["content"]) ? message["content"] : [];
    content.forEach((block, index) => {
      if (isObject(block)) this.#start(index, block);
    });
    this.#takeStop(message);
    this.#ended = true;
    return null;
  }

  #takeHead(message: JsonObject): void {
    if (typeof message["model"] === "string") this.#model = message["model"];
    this.#addUsage(message["usage"]);
  }

  #takeStop(holder: JsonObject): void {
    if (typeof holder["stop_reason"] === "string") this.#finish = holder["stop_reason"];
    const details = holder["stop_details"];
    if (isObject(details) && typeof details["explanation"] === "string") {
      this.#explanation = details["explanation"];
    }
  }

  /** Counts come in pieces, and later ones hold: they are cumulative. */
  #addUsage(usage: Json | undefined): void {
    if (!isObject(usage)) return;
    const merged: JsonObject = { ...this.#usage };
    for (const [key, value] of Object.entries(usage)) if (value !== null) merged[key] = value;
    this.#usage = merged;
  }

  #start(index: Json | undefined, block: JsonObject): void {
    const at = typeof index === "number" ? index : this.#blocks.size;
    const type = textOf(block["type"]) || (typeof block["text"] === "string" ? "text" : "");
    const open: OpenBlock = { type, place: -1, length: 0, block: null, input: "" };
    // What has no type could not be carried back.
    if (this.#builder.cut !== null || type === "") return;
    this.#blocks.set(at, open);
    if (type === "text") {
      if (typeof block["text"] === "string") this.#addText(open, block["text"]);
    } else if (type === "tool_use") {
      open.place = this.#builder.openCall(textOf(block["id"]), textOf(block["name"]));
      const input = block["input"];
      if (isObject(input) && Object.keys(input).length === 0) return;
      if (input !== undefined && input !== null) {
        this.#builder.addArguments(open.place, JSON.stringify(input));
      }
    } else {
      open.block = { ...block };
      this.#builder.addOpaque(JSON.stringify(block).length);
    }
  }

  #delta(index: Json | undefined, delta: JsonObject): void {
    const open = typeof index === "number" ? this.#blocks.get(index) : undefined;
    if (open === undefined) return;
    switch (delta["type"]) {
      case "text_delta":
        this.#addText(open, textOf(delta["text"]));
        return;
      case "input_json_delta":
        this.#addInput(open, textOf(delta["partial_json"]));
        return;
      case "thinking_delta":
        this.#grow(open, "thinking", textOf(delta["thinking"]), true);
        return;
      case "signature_delta":
        this.#grow(open, "signature", textOf(delta["signature"]), false);
    }
  }

  #addInput(open: OpenBlock, json: string): void {
    if (open.block === null) this.#builder.addArguments(open.place, json);
    else if (this.#builder.cut === null) {
      open.input += json;
      this.#builder.addOpaque(json.length);
    }
  }

  #addText(open: OpenBlock, text: string): void {
    if (this.#builder.cut !== null || text === "") return;
    open.length += text.length;
    this.#builder.addText(text);
  }

  #grow(open: OpenBlock, key: string, text: string, isProse: boolean): void {
    if (open.block === null || this.#builder.cut !== null) return;
    const before = open.block[key];
    open.block[key] = (typeof before === "string" ? before : "") + text;
    if (isProse) this.#builder.addReasoning(text);
    else this.#builder.addOpaque(text.length);
  }
}

/** A block whose `input` was streamed, with it. What is no JSON leaves the block as it began. */
function withInput(block: JsonObject, json: string): JsonObject {
  if (json === "") return block;
  try {
    return { ...block, input: JSON.parse(json) as Json };
  } catch {
    return block;
  }
}

/** Usage of this dialect: what was written to and read from the cache is input as well. */
export function readUsage(usage: JsonObject | null): WireUsage | null {
  if (usage === null) return null;
  const input = count(usage["input_tokens"]);
  const tokensOut = count(usage["output_tokens"]);
  if (input === null || tokensOut === null) return null;
  const written = count(usage["cache_creation_input_tokens"]) ?? 0;
  const tokensCached = count(usage["cache_read_input_tokens"]) ?? 0;
  return { tokensIn: input + written + tokensCached, tokensOut, tokensCached };
}

function reportedError(value: JsonObject): ReportedError {
  const error = value["error"];
  const type = isObject(error) ? textOf(error["type"]) : "";
  return { status: ERROR_STATUS[type] ?? 500, body: JSON.stringify(value) };
}

function textOf(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}
