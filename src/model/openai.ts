/** The chat/completions dialect, as OpenAI and the many that follow it speak it. */

import type { JsonObject } from "../core/json.ts";
import type { ModelRequest } from "../ports/model.ts";
import {
  asksForAnswer,
  type Dialect,
  type DialectSettings,
  type Quirks,
  renderParameters,
  type ReplyReader,
  wantsStream,
} from "./dialect.ts";
import { OpenAiMessages, openAiTools } from "./openai_messages.ts";
import { OpenAiReply } from "./openai_reply.ts";

/** The dialect for one endpoint. */
export class OpenAiDialect implements Dialect {
  readonly name = "openai";
  readonly path = "/chat/completions";
  readonly #settings: DialectSettings;
  readonly #tools = openAiTools();
  #messages = { images: true, reasoning: true, renderer: new OpenAiMessages(true, true) };

  constructor(settings: DialectSettings) {
    this.#settings = settings;
  }

  headers(token: string | null): Record<string, string> {
    return token === null ? {} : { authorization: `Bearer ${token}` };
  }

  render(request: ModelRequest, model: string, quirks: Quirks): string[] {
    if (
      this.#messages.images !== quirks.images || this.#messages.reasoning !== quirks.reasoning
    ) {
      const { images, reasoning } = quirks;
      this.#messages = { images, reasoning, renderer: new OpenAiMessages(images, reasoning) };
    }
    // Tools and conversation first: what follows them may change without touching the prefix.
    const tools = request.tools.length === 0
      ? ""
      : `,"tools":[${this.#tools.render(request.tools)}]`;
    const messages = this.#messages.renderer.render(request.system, request.messages);
    const parameters = renderParameters(
      this.#parameters(request, quirks),
      this.#settings.options,
    );
    return [
      `{"model":${JSON.stringify(model)}${tools},"messages":[${messages.head}`,
      messages.settled,
      `${messages.rest}]${this.#toolChoice(request)}${parameters}}`,
    ];
  }

  startReply(): ReplyReader {
    return new OpenAiReply();
  }

  learn(status: number, message: string, body: string, quirks: Quirks): Quirks | null {
    if (status !== 400 && status !== 422 && status !== 500 && status !== 501) return null;
    if (
      quirks.maxTokensField === "max_tokens" && body.includes('"max_tokens":') &&
      /max_completion_tokens/.test(message)
    ) return { ...quirks, maxTokensField: "max_completion_tokens" };
    if (status !== 500 && quirks.streamOptions && /stream_options/.test(message)) {
      return { ...quirks, streamOptions: false };
    }
    if (
      quirks.responseFormat && body.includes('"response_format":') &&
      /response_format|json_schema|structured output|grammar/i.test(message)
    ) return { ...quirks, responseFormat: false };
    if (
      quirks.images && body.includes('{"type":"image_url"') &&
      /image|vision|multimodal|mmproj/i.test(message)
    ) return { ...quirks, images: false };
    if (
      quirks.reasoning && /"reasoning(_content|_details)?":|"extra_content":/.test(body) &&
      /reasoning(?!_effort)|extra_content/.test(message)
    ) return { ...quirks, reasoning: false };
    return null;
  }

  #toolChoice(request: ModelRequest): string {
    return request.toolChoice === "none" && request.tools.length > 0 ? ',"tool_choice":"none"' : "";
  }

  #parameters(request: ModelRequest, quirks: Quirks): JsonObject {
    const settings = this.#settings;
    const parameters: JsonObject = {};
    parameters["stream"] = true;
    if (quirks.streamOptions && wantsStream(settings.options)) {
      parameters["stream_options"] = { include_usage: true };
    }
    parameters[quirks.maxTokensField] = settings.maxOutputTokens;
    if (settings.temperature !== null) parameters["temperature"] = settings.temperature;
    if (settings.reasoningEffort !== null) {
      parameters["reasoning_effort"] = settings.reasoningEffort;
    }
    if (asksForAnswer(request) && quirks.responseFormat) {
      parameters["response_format"] = {
        type: "json_schema",
        json_schema: { name: "result", schema: request.outputSchema! },
      };
    }
    return parameters;
  }
}
