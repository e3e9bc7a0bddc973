/**
 * The conversation as messages of the Anthropic dialect: roles alternate, results ride in user
 * messages, and marks tell the endpoint up to where its cache may reach. Each message is rendered
 * once.
 */

import { isObject, type Json, type JsonObject } from "../core/json.ts";
import { toWellFormed } from "../core/text.ts";
import type { Message, Part } from "../ports/model.ts";
import { type Pieces, type RangePlace, SettledPrefix, toPieces } from "./settled.ts";
import { ToolList } from "./tool_list.ts";
import {
  describePart,
  EMPTY_TEXT,
  isImage,
  resultText,
  wireArguments,
  wireId,
  wireName,
  withinToolMessages,
} from "./wire_form.ts";

type AssistantMessage = Extract<Message, { role: "assistant" }>;

/** What the endpoint may cache up to the block that carries it. */
export const CACHE_MARK = '"cache_control":{"type":"ephemeral"}';

/** Blocks of one message as JSON, joined by commas; `marked` has the cache mark on the last one. */
interface Blocks {
  plain: string;
  marked: string;
}

interface Group {
  role: "user" | "assistant";
  blocks: Blocks[];
}

/** Renders conversations for one endpoint, as far as it is known to take images and thinking. */
export class AnthropicMessages {
  readonly #images: boolean;
  readonly #reasoning: boolean;
  readonly #cache = new WeakMap<Message, Blocks>();
  readonly #settled = new SettledPrefix();

  constructor(images: boolean, reasoning: boolean) {
    this.#images = images;
    this.#reasoning = reasoning;
  }

  /** The members of the array `messages`, with their commas: those that change no more, the rest. */
  render(conversation: readonly Message[]): Pieces {
    const { settled, rest } = this.#settled.render(
      conversation,
      (messages, place) => this.#renderRange(messages, place),
    );
    return toPieces("", settled, rest);
  }

  #renderRange(conversation: readonly Message[], place: RangePlace): string {
    const groups: Group[] = [];
    for (const message of withinToolMessages(conversation)) {
      const role = message.role === "assistant" ? "assistant" : "user";
      if (groups.at(-1)?.role !== role) groups.push({ role, blocks: [] });
      groups.at(-1)!.blocks.push(this.#render(message));
    }
    if (groups[0]?.role === "assistant" && place.isStart) {
      groups.unshift({ role: "user", blocks: [textBlocks(EMPTY_TEXT)] });
    }
    // The end of this request is where the next one's new part begins; the mark before it is the
    // one that the request before this wrote.
    const marks = new Set<Group>(
      place.isEnd ? groups.filter((group) => group.role === "user").slice(-2) : [],
    );
    return groups.map((group) => {
      const last = group.blocks.length - 1;
      const blocks = group.blocks.map((block, index) =>
        index === last && marks.has(group) ? block.marked : block.plain
      );
      return `{"role":"${group.role}","content":[${blocks.join(",")}]}`;
    }).join(",");
  }

  #render(message: Message): Blocks {
    let blocks = this.#cache.get(message);
    if (blocks !== undefined) return blocks;
    if (message.role === "assistant") {
      const plain = assistantBlocks(message, this.#reasoning).map((block) => JSON.stringify(block))
        .join(",");
      blocks = { plain, marked: plain };
    } else if (message.role === "user") {
      const content = message.parts.map((part) => this.#block(part)).filter((block) =>
        block !== null
      );
      blocks = content.length === 0 ? textBlocks(EMPTY_TEXT) : joinBlocks(content);
    } else {
      blocks = joinBlocks([this.#result(message)]);
    }
    this.#cache.set(message, blocks);
    return blocks;
  }

  #block(part: Part): JsonObject | null {
    if (this.#images && isImage(part)) {
      const source = { type: "base64", media_type: part.mimeType, data: part.data };
      return { type: "image", source };
    }
    const text = describePart(part);
    return text.trim() === "" ? null : { type: "text", text };
  }

  #result(message: Extract<Message, { role: "tool" }>): JsonObject {
    const result: JsonObject = { type: "tool_result", tool_use_id: wireId(message.callId) };
    if (message.parts.some((part) => this.#images && isImage(part))) {
      const content = message.parts.map((part) => this.#block(part)).filter((block) =>
        block !== null
      );
      if (message.note) content.push({ type: "text", text: toWellFormed(message.note) });
      result["content"] = content;
    } else {
      const texts = message.parts.map(describePart).filter((text) => text !== "");
      result["content"] = resultText(message, texts.join("\n\n"));
    }
    if (message.isError) result["is_error"] = true;
    return result;
  }
}

/** Renders the tools that a request offers, with the cache mark on the last one. */
export function anthropicTools(): ToolList<Blocks> {
  return new ToolList(
    ({ name, description, inputSchema }) =>
      joinBlocks([{ name, description: toWellFormed(description), input_schema: inputSchema }]),
    (rendered) =>
      rendered.map((tool, i) => i === rendered.length - 1 ? tool.marked : tool.plain).join(","),
  );
}

/** Names of all calls in a conversation: a history with calls needs tools that are defined. */
export function calledNames(messages: readonly Message[]): string[] {
  const names = new Set<string>();
  for (const message of messages) {
    if (message.role === "assistant") {
      for (const call of message.calls) names.add(wireName(call.name));
    }
  }
  return [...names].sort();
}

function textBlocks(text: string): Blocks {
  return joinBlocks([{ type: "text", text }]);
}

function joinBlocks(blocks: readonly JsonObject[]): Blocks {
  const plain = blocks.map((block) => JSON.stringify(block)).join(",");
  return { plain, marked: `${plain.slice(0, -1)},${CACHE_MARK}}` };
}

/**
 * A reply's blocks. With thinking, in the order in which the model made them: `opaque` holds thinking
 * blocks as they came, and of texts and calls only the place (a text's length, a call's index).
 */
function assistantBlocks(message: AssistantMessage, reasoning: boolean): JsonObject[] {
  const order = message.opaque?.dialect === "anthropic" && Array.isArray(message.opaque.blocks)
    ? message.opaque.blocks
    : null;
  const blocks: JsonObject[] = [];
  const placed = new Set<number>();
  let at = 0;
  const addText = (text: string) => {
    if (text.trim() !== "") blocks.push({ type: "text", text: toWellFormed(text) });
  };
  for (const block of order ?? []) {
    if (!isObject(block)) continue;
    if (block["type"] === "text_place") {
      const end = at + (typeof block["length"] === "number" ? block["length"] : 0);
      addText(message.text.slice(at, end));
      at = end;
    } else if (block["type"] === "call_place") {
      const index = typeof block["index"] === "number" ? block["index"] : -1;
      if (message.calls[index] === undefined) continue;
      placed.add(index);
      blocks.push(callBlock(message, index));
    } else if (reasoning || !isThinking(block)) blocks.push(block);
  }
  if (at < message.text.length) addText(message.text.slice(at));
  message.calls.forEach((_call, index) => {
    if (!placed.has(index)) blocks.push(callBlock(message, index));
  });
  // Thinking alone is no message: something must follow it.
  const last = blocks.at(-1);
  if (last === undefined || isThinking(last)) blocks.push({ type: "text", text: EMPTY_TEXT });
  return blocks;
}

function isThinking(block: JsonObject): boolean {
  return block["type"] === "thinking" || block["type"] === "redacted_thinking";
}

function callBlock(message: AssistantMessage, index: number): JsonObject {
  const call = message.calls[index]!;
  const input = JSON.parse(wireArguments(call.arguments)) as Json;
  return { type: "tool_use", id: wireId(call.id), name: wireName(call.name), input };
}
