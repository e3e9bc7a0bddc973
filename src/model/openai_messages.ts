/** The conversation as chat/completions messages. Each message is rendered once. */

import { isObject, type Json, type JsonObject } from "../core/json.ts";
import { toWellFormed } from "../core/text.ts";
import type { Message, Part } from "../ports/model.ts";
import { type Pieces, SettledPrefix, toPieces } from "./settled.ts";
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

type UserMessage = Extract<Message, { role: "user" }>;
type AssistantMessage = Extract<Message, { role: "assistant" }>;
type ToolMessage = Extract<Message, { role: "tool" }>;

const NO_IMAGES: string[] = [];

interface RenderedTool {
  json: string;
  /** Content parts that only a user message can carry, after the turn's tool messages. */
  images: string[];
}

/** What an assistant message of this dialect keeps for the endpoint that made it. */
export interface OpenAiOpaque {
  reasoning_content?: string;
  reasoning?: string;
  reasoning_details?: Json[];
  /** Extra content of calls, by their place. */
  extra?: { [index: string]: Json };
}

/** Renders conversations for one endpoint, as far as it is known to take images and reasoning. */
export class OpenAiMessages {
  readonly #images: boolean;
  readonly #reasoning: boolean;
  readonly #users = new WeakMap<UserMessage, string>();
  readonly #assistants = new WeakMap<AssistantMessage, string>();
  readonly #tools = new WeakMap<ToolMessage, RenderedTool>();
  readonly #settled = new SettledPrefix();
  #system = { text: "", json: "" };

  constructor(images: boolean, reasoning: boolean) {
    this.#images = images;
    this.#reasoning = reasoning;
  }

  /**
   * The members of the array `messages`, with their commas: the system's and those that change no
   * more, then the rest.
   */
  render(system: string, conversation: readonly Message[]): Pieces {
    const { settled, rest } = this.#settled.render(
      conversation,
      (messages) => this.#renderRange(messages),
    );
    return toPieces(system === "" ? "" : this.#renderSystem(system), settled, rest);
  }

  #renderRange(conversation: readonly Message[]): string {
    const out: string[] = [];
    const messages = withinToolMessages(conversation);
    let i = 0;
    while (i < messages.length) {
      const message = messages[i]!;
      if (message.role === "assistant") {
        const end = runEnd(messages, i, "assistant");
        const run = end === i + 1 ? message : joinAssistants(messages.slice(i, end));
        out.push(this.#renderAssistant(run));
        i = end;
        continue;
      }
      let images: string[] = NO_IMAGES;
      for (; messages[i]?.role === "tool"; i++) {
        const rendered = this.#renderTool(messages[i] as ToolMessage);
        out.push(rendered.json);
        if (rendered.images.length > 0) images = [...images, ...rendered.images];
      }
      const end = runEnd(messages, i, "user");
      if (images.length > 0 || end > i) {
        out.push(this.#renderUsers(images, messages.slice(i, end) as UserMessage[]));
      }
      i = end;
    }
    return out.join(",");
  }

  #renderSystem(text: string): string {
    if (this.#system.text !== text || this.#system.json === "") {
      const json = `{"role":"system","content":${JSON.stringify(toWellFormed(text))}}`;
      this.#system = { text, json };
    }
    return this.#system.json;
  }

  /** Consecutive user messages become one: templates of open models want roles to alternate. */
  #renderUsers(images: readonly string[], users: readonly UserMessage[]): string {
    if (images.length === 0 && users.length === 1) {
      const user = users[0]!;
      let json = this.#users.get(user);
      if (json === undefined) this.#users.set(user, json = this.#renderUser(user.parts));
      return json;
    }
    const parts = users.flatMap((user) => user.parts);
    if (images.length === 0) return this.#renderUser(parts);
    const content = [...images, ...parts.map((part) => this.#contentPart(part))];
    return `{"role":"user","content":[${content.join(",")}]}`;
  }

  #renderUser(parts: readonly Part[]): string {
    if (parts.some((part) => this.#showsImage(part))) {
      const content = parts.map((part) => this.#contentPart(part)).join(",");
      return `{"role":"user","content":[${content}]}`;
    }
    const text = parts.map(describePart).filter((part) => part !== "").join("\n\n");
    return `{"role":"user","content":${JSON.stringify(text === "" ? EMPTY_TEXT : text)}}`;
  }

  #showsImage(part: Part): boolean {
    return this.#images && isImage(part);
  }

  #contentPart(part: Part): string {
    if (this.#showsImage(part)) return imagePart(part as Extract<Part, { type: "image" }>);
    const text = describePart(part);
    return JSON.stringify({ type: "text", text: text === "" ? EMPTY_TEXT : text });
  }

  #renderAssistant(message: AssistantMessage): string {
    let json = this.#assistants.get(message);
    if (json !== undefined) return json;
    const text = toWellFormed(message.text);
    const wire: JsonObject = { role: "assistant" };
    if (message.calls.length === 0) wire["content"] = text.trim() === "" ? EMPTY_TEXT : text;
    else wire["content"] = text.trim() === "" ? null : text;
    const opaque = this.#reasoning && message.opaque?.dialect === "openai" &&
        isObject(message.opaque.blocks)
      ? message.opaque.blocks
      : {};
    if (message.calls.length > 0) {
      for (const key of ["reasoning_content", "reasoning", "reasoning_details"]) {
        if (opaque[key] !== undefined) wire[key] = opaque[key];
      }
      wire["tool_calls"] = message.calls.map((call, index) => {
        const extra = isObject(opaque["extra"]) ? opaque["extra"][String(index)] : undefined;
        return {
          id: wireId(call.id),
          type: "function",
          function: { name: wireName(call.name), arguments: wireArguments(call.arguments) },
          ...(extra === undefined ? {} : { extra_content: extra }),
        };
      });
    }
    this.#assistants.set(message, json = JSON.stringify(wire));
    return json;
  }

  /** Tool messages carry text only; their images follow in a user message. */
  #renderTool(message: ToolMessage): RenderedTool {
    let rendered = this.#tools.get(message);
    if (rendered !== undefined) return rendered;
    const images: string[] = [];
    const texts = message.parts.map((part) => {
      if (!this.#showsImage(part)) return describePart(part);
      const number = images.length / 2 + 1;
      const label = `Image ${number} of the result of ${message.name} (${message.callId}):`;
      images.push(JSON.stringify({ type: "text", text: toWellFormed(label) }));
      images.push(imagePart(part as Extract<Part, { type: "image" }>));
      return `[image ${number}: shown in the next message]`;
    });
    const text = resultText(message, texts.filter((part) => part !== "").join("\n\n"));
    const json = JSON.stringify({
      role: "tool",
      tool_call_id: wireId(message.callId),
      content: text,
    });
    this.#tools.set(message, rendered = { json, images });
    return rendered;
  }
}

/** Renders the tools that a request offers. */
export function openAiTools(): ToolList<string> {
  return new ToolList((tool) =>
    JSON.stringify({
      type: "function",
      function: {
        name: tool.name,
        description: toWellFormed(tool.description),
        parameters: tool.inputSchema,
      },
    }), (rendered) => rendered.join(","));
}

function runEnd(messages: readonly Message[], start: number, role: Message["role"]): number {
  let end = start;
  while (messages[end]?.role === role) end++;
  return end;
}

/** Replies in a row, as after a continuation, told as one. Calls can only be in the last. */
function joinAssistants(messages: readonly Message[]): AssistantMessage {
  const run = messages.filter((message) => message.role === "assistant");
  const last = run.at(-1)!;
  return {
    role: "assistant",
    text: run.map((message) => message.text).filter((text) => text !== "").join("\n\n"),
    calls: run.flatMap((message) => message.calls),
    ...(last.opaque === undefined ? {} : { opaque: last.opaque }),
  };
}

function imagePart(part: Extract<Part, { type: "image" }>): string {
  const url = `data:${part.mimeType};base64,${part.data}`;
  return JSON.stringify({ type: "image_url", image_url: { url } });
}
