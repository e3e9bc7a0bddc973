/** Reads replies of the chat/completions dialect: chunks of a stream, or a whole completion. */

import { isObject, type Json, type JsonObject } from "../core/json.ts";
import { REPLY_TOKENS_MAX } from "../core/limits.ts";
import type { FinishReason } from "../ports/model.ts";
import type { Draft, ReplyReader, ReportedError, WireUsage } from "./dialect.ts";
import type { OpenAiOpaque } from "./openai_messages.ts";
import { ReplyBuilder } from "./reply.ts";

const FINISH: Readonly<Record<string, FinishReason>> = {
  stop: "stop",
  eos: "stop",
  end_turn: "stop",
  tool_calls: "tool_calls",
  function_call: "tool_calls",
  length: "length",
  max_tokens: "length",
  content_filter: "refusal",
  refusal: "refusal",
};

const FILTERED = "the endpoint's content filter stopped the reply";

/** One reply as it comes. */
export class OpenAiReply implements ReplyReader {
  readonly #builder = new ReplyBuilder();
  /** Wire index of a call to its place; servers differ in how they count. */
  readonly #places = new Map<number, number>();
  #lastPlace = -1;
  #finish: string | null = null;
  #refusal = "";
  #usage: WireUsage | null = null;
  #model: string | null = null;
  #details: Json[] = [];
  #reasoningKey: "reasoning_content" | "reasoning" = "reasoning_content";
  #extra: { [index: string]: Json } = {};
  #ended = false;
  #whole = false;

  get finished(): boolean {
    return this.#whole || this.#finish !== null || this.#ended;
  }

  get ended(): boolean {
    return this.#ended;
  }

  get cut(): "repetition" | "length" | null {
    return this.#builder.cut;
  }

  isEndMark(data: string): boolean {
    if (data.trim() !== "[DONE]") return false;
    this.#ended = true;
    return true;
  }

  take(value: JsonObject): ReportedError | null {
    const error = value["error"];
    if (error !== undefined && error !== null) return reportedError(error);
    if (typeof value["model"] === "string" && value["model"] !== "") this.#model = value["model"];
    if (isObject(value["usage"])) this.#usage = readUsage(value["usage"]) ?? this.#usage;
    const choices = value["choices"];
    const choice = Array.isArray(choices) ? choices[0] : undefined;
    if (!isObject(choice)) return null;
    if (isObject(choice["message"])) {
      this.#whole = true;
      this.#takeDelta(choice["message"]);
    } else if (isObject(choice["delta"])) this.#takeDelta(choice["delta"]);
    const finish = choice["finish_reason"];
    if (typeof finish === "string" && finish !== "") this.#finish = finish;
    return null;
  }

  draft(): Draft {
    const builder = this.#builder;
    const calls = builder.calls;
    let refusal = this.#refusal === "" ? null : this.#refusal;
    let finish = this.#finish === null ? "stop" : FINISH[this.#finish] ?? "other";
    if (finish === "refusal" && refusal === null) refusal = FILTERED;
    else if (refusal !== null) finish = "refusal";
    if (calls.length > 0 && (finish === "stop" || finish === "other")) finish = "tool_calls";
    if (calls.length === 0 && finish === "tool_calls") finish = "stop";
    if (builder.cut !== null) finish = builder.cut;
    return {
      text: withoutThinking(builder.text),
      calls,
      finish,
      refusal,
      opaque: this.#opaque(calls.length),
      usage: this.#usage,
      model: this.#model,
      chars: builder.chars,
    };
  }

  /** Reasoning is carried back only within a turn of calls, where endpoints want it. */
  #opaque(calls: number): { dialect: string; blocks: Json } | null {
    if (calls === 0) return null;
    const blocks: OpenAiOpaque = {};
    if (this.#details.length > 0) blocks.reasoning_details = this.#details;
    if (this.#builder.reasoning !== "") {
      if (this.#reasoningKey === "reasoning_content") {
        blocks.reasoning_content = this.#builder.reasoning;
      } else if (this.#details.length === 0) blocks.reasoning = this.#builder.reasoning;
    }
    if (Object.keys(this.#extra).length > 0) blocks.extra = this.#extra;
    return Object.keys(blocks).length === 0
      ? null
      : { dialect: "openai", blocks: blocks as JsonObject };
  }

  #takeDelta(delta: JsonObject): void {
    this.#takeContent(delta["content"]);
    if (typeof delta["refusal"] === "string" && this.#builder.cut === null) {
      this.#refusal += delta["refusal"];
      this.#builder.addOpaque(delta["refusal"].length);
    }
    // Servers name it either way, and some send both.
    const key = typeof delta["reasoning_content"] === "string" ? "reasoning_content" : "reasoning";
    const reasoning = delta[key];
    if (typeof reasoning === "string" && reasoning !== "") {
      this.#reasoningKey = key;
      this.#builder.addReasoning(reasoning);
    }
    if (Array.isArray(delta["reasoning_details"])) {
      for (const detail of delta["reasoning_details"]) this.#takeDetail(detail);
    }
    if (Array.isArray(delta["tool_calls"])) {
      delta["tool_calls"].forEach((call, position) => {
        if (isObject(call)) this.#takeCall(call, position);
      });
    }
  }

  #takeContent(content: Json | undefined): void {
    if (typeof content === "string") {
      if (content !== "") this.#builder.addText(content);
    } else if (Array.isArray(content)) {
      for (const part of content) {
        if (isObject(part) && typeof part["text"] === "string") this.#builder.addText(part["text"]);
      }
    }
  }

  /** Pieces of one reasoning detail are put together as they came: by type and index. */
  #takeDetail(detail: Json): void {
    if (this.#builder.cut !== null) return;
    this.#builder.addOpaque(JSON.stringify(detail).length);
    const last = this.#details.at(-1);
    if (
      !isObject(detail) || !isObject(last) || last["type"] !== detail["type"] ||
      last["index"] !== detail["index"] || detail["index"] === undefined
    ) {
      this.#details.push(detail);
      return;
    }
    for (const [key, value] of Object.entries(detail)) {
      const before = last[key];
      const grows = key === "text" || key === "summary" || key === "data";
      if (grows && typeof before === "string" && typeof value === "string") {
        last[key] = before + value;
      } else if (value !== null && value !== undefined) last[key] = value;
    }
  }

  #takeCall(call: JsonObject, position: number): void {
    const fn = isObject(call["function"]) ? call["function"] : {};
    const id = typeof call["id"] === "string" ? call["id"] : "";
    const name = typeof fn["name"] === "string" ? fn["name"] : "";
    const place = this.#placeOf(call, id, name, position);
    const open = this.#builder.callAt(place);
    if (open === undefined) return;
    if (name !== "" && open.name !== name && open.arguments === "") {
      this.#builder.addName(place, name);
    }
    const text = fn["arguments"];
    if (typeof text === "string") this.#builder.addArguments(place, text);
    else if (text !== undefined && text !== null) {
      this.#builder.addArguments(place, JSON.stringify(text));
    }
    if (call["extra_content"] !== undefined && this.#builder.cut === null) {
      this.#builder.addOpaque(JSON.stringify(call["extra_content"]).length);
      this.#extra[String(place)] = call["extra_content"];
    }
  }

  /**
   * Where a piece belongs. Some servers send no index, and some send 0 for every call; a new id with
   * a name is a new call whatever its index says.
   */
  #placeOf(call: JsonObject, id: string, name: string, position: number): number {
    const index = typeof call["index"] === "number" ? call["index"] : null;
    const known = index === null
      ? (id === "" || name === "" ? this.#lastPlace : -1)
      : this.#places.get(index) ?? -1;
    const open = known === -1 ? undefined : this.#builder.callAt(known);
    const isOther = open !== undefined && id !== "" && open.id !== "" && open.id !== id &&
      name !== "";
    if (open !== undefined && !isOther && !(this.#whole && index === null)) {
      this.#lastPlace = known;
      return known;
    }
    if (this.#builder.cut !== null) return -1;
    const place = this.#builder.openCall(id, name);
    this.#places.set(index ?? position, place);
    this.#lastPlace = place;
    return place;
  }
}

/** Usage of this dialect; undefined where it is none. */
export function readUsage(usage: JsonObject): WireUsage | null {
  const tokensIn = count(usage["prompt_tokens"]);
  const tokensOut = count(usage["completion_tokens"]);
  if (tokensIn === null || tokensOut === null) return null;
  const details = usage["prompt_tokens_details"];
  const cached = isObject(details) ? count(details["cached_tokens"]) : null;
  const tokensCached = cached ?? count(usage["prompt_cache_hit_tokens"]) ?? 0;
  return { tokensIn, tokensOut, tokensCached: Math.min(tokensIn, tokensCached) };
}

/** A count of tokens that a reply can have, or null. */
export function count(value: Json | undefined): number | null {
  return typeof value === "number" && value >= 0 && value <= REPLY_TOKENS_MAX
    ? Math.round(value)
    : null;
}

function reportedError(error: Json): ReportedError {
  const code = isObject(error) ? error["code"] ?? error["status"] : undefined;
  const number = typeof code === "number" ? code : Number(code);
  const status = Number.isInteger(number) && number >= 400 && number < 600 ? number : 500;
  return { status, body: JSON.stringify({ error }) };
}

/** Open models' thinking in the text itself: not part of the answer. */
function withoutThinking(text: string): string {
  if (!text.startsWith("<think>")) return text;
  const end = text.indexOf("</think>");
  return end === -1 ? text : text.slice(end + "</think>".length).trimStart();
}
