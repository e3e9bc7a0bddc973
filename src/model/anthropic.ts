/** The messages dialect. */

import type { JsonObject } from "../core/json.ts";
import { toWellFormed } from "../core/text.ts";
import type { ModelRequest } from "../ports/model.ts";
import {
  AnthropicMessages,
  anthropicTools,
  CACHE_MARK,
  calledNames,
} from "./anthropic_messages.ts";
import { AnthropicReply } from "./anthropic_reply.ts";
import {
  asksForAnswer,
  type Dialect,
  type DialectSettings,
  type Quirks,
  renderParameters,
  type ReplyReader,
} from "./dialect.ts";

/** Revision of the wire. */
const VERSION = "2023-06-01";
/** The tool whose call is the final answer, where a schema binds it. */
export const ANSWER_TOOL = "final_answer";
const THINKING_TOKENS_MIN = 1024;
/** A rejection of blocks in the history, not of thinking itself. */
const HISTORY_OF_THINKING = /thinking`?,? blocks?\b|start with a thinking block|signature/i;
/** Share of the output that thinking may take, by effort. */
const THINKING_SHARE: Readonly<Record<string, number>> = {
  low: 0.25,
  medium: 0.5,
  high: 0.75,
  xhigh: 0.8,
  max: 0.85,
};

/** The dialect for one endpoint. */
export class AnthropicDialect implements Dialect {
  readonly name = "anthropic";
  readonly path = "/messages";
  readonly #settings: DialectSettings;
  readonly #tools = anthropicTools();
  #messages = { images: true, reasoning: true, renderer: new AnthropicMessages(true, true) };
  #system = { text: "", json: "" };

  constructor(settings: DialectSettings) {
    this.#settings = settings;
  }

  headers(token: string | null): Record<string, string> {
    const version = { "anthropic-version": VERSION };
    return token === null ? version : { ...version, "x-api-key": token };
  }

  render(request: ModelRequest, model: string, quirks: Quirks): string[] {
    const { images, reasoning } = quirks;
    if (this.#messages.images !== images || this.#messages.reasoning !== reasoning) {
      this.#messages = { images, reasoning, renderer: new AnthropicMessages(images, reasoning) };
    }
    const parameters: JsonObject = { stream: true, max_tokens: this.#settings.maxOutputTokens };
    const thinks = this.#addThinking(parameters, quirks);
    // An endpoint that thinks takes no forced tool.
    const answers = asksForAnswer(request) && isObjectSchema(request.outputSchema) && !thinks &&
      quirks.answerTool;
    const tools = this.#renderTools(request, answers);
    const choice = this.#toolChoice(request, answers, tools !== "");
    const messages = this.#messages.renderer.render(request.messages);
    const system = this.#renderSystem(request.system);
    return [
      `{"model":${JSON.stringify(model)}${tools}${system},"messages":[`,
      messages.settled,
      `${messages.rest}]${choice}${renderParameters(parameters, this.#settings.options)}}`,
    ];
  }

  startReply(): ReplyReader {
    return new AnthropicReply(ANSWER_TOOL);
  }

  learn(status: number, message: string, body: string, quirks: Quirks): Quirks | null {
    if (status !== 400 && status !== 422) return null;
    if (
      quirks.answerTool && body.includes(`"name":"${ANSWER_TOOL}"`) && /tool_choice/.test(message)
    ) {
      return { ...quirks, answerTool: false };
    }
    // The conversation was another endpoint's for a while: its blocks are not signed for this one, or
    // its replies lack the blocks that thinking wants. Only without both can it go on here.
    if (quirks.reasoning && HISTORY_OF_THINKING.test(message) && /"thinking":/.test(body)) {
      return { ...quirks, reasoning: false, thinking: "off" };
    }
    if (
      quirks.thinking !== "off" && body.includes('"thinking":{') &&
      /thinking|budget_tokens|adaptive|effort|output_config/.test(message) &&
      !HISTORY_OF_THINKING.test(message)
    ) {
      return { ...quirks, thinking: quirks.thinking === "budget" ? "adaptive" : "off" };
    }
    if (quirks.images && body.includes('{"type":"image"') && /image/i.test(message)) {
      return { ...quirks, images: false };
    }
    return null;
  }

  /** Effort as a budget of thinking, and whether there is any. It excludes a temperature. */
  #addThinking(parameters: JsonObject, quirks: Quirks): boolean {
    const { reasoningEffort, maxOutputTokens, temperature } = this.#settings;
    const share = reasoningEffort === null ? undefined : THINKING_SHARE[reasoningEffort];
    const budget = Math.max(THINKING_TOKENS_MIN, Math.floor(maxOutputTokens * (share ?? 0)));
    const thinks = share !== undefined && quirks.thinking !== "off" && budget < maxOutputTokens;
    if (!thinks) {
      if (temperature !== null) parameters["temperature"] = temperature;
      return this.#settings.options["thinking"] !== undefined &&
        this.#settings.options["thinking"] !== null;
    }
    if (quirks.thinking === "budget") {
      parameters["thinking"] = { type: "enabled", budget_tokens: budget };
    } else {
      parameters["thinking"] = { type: "adaptive" };
      parameters["output_config"] = { effort: reasoningEffort };
    }
    return true;
  }

  #renderSystem(text: string): string {
    if (text.trim() === "") return "";
    if (this.#system.text !== text) {
      const block = `{"type":"text","text":${JSON.stringify(toWellFormed(text))},${CACHE_MARK}}`;
      this.#system = { text, json: `,"system":[${block}]` };
    }
    return this.#system.json;
  }

  #renderTools(request: ModelRequest, answers: boolean): string {
    const members: string[] = [];
    if (request.tools.length > 0) members.push(this.#tools.render(request.tools));
    else {
      for (const name of calledNames(request.messages)) members.push(formerTool(name));
    }
    if (answers) members.push(answerTool(request));
    return members.length === 0 ? "" : `,"tools":[${members.join(",")}]`;
  }

  #toolChoice(request: ModelRequest, answers: boolean, hasTools: boolean): string {
    if (answers) return `,"tool_choice":{"type":"tool","name":"${ANSWER_TOOL}"}`;
    return hasTools && (request.toolChoice === "none" || request.tools.length === 0)
      ? ',"tool_choice":{"type":"none"}'
      : "";
  }
}

function isObjectSchema(schema: JsonObject | null): boolean {
  return schema !== null && schema["type"] === "object";
}

function answerTool(request: ModelRequest): string {
  return JSON.stringify({
    name: ANSWER_TOOL,
    description: "The final answer.",
    input_schema: request.outputSchema,
  });
}

/** A tool that the history names and that is offered no more. */
function formerTool(name: string): string {
  return JSON.stringify({
    name,
    description: "No longer available.",
    input_schema: { type: "object" },
  });
}
