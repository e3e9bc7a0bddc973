/** What a scripted model endpoint is told to do, and how its replies look on either wire. */

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
type JsonObject = { [key: string]: Json };

export interface ScriptCall {
  /** Left out: minted. */
  id?: string;
  name: string;
  /** An object, or the raw text that the model wrote. */
  arguments?: Json;
}

/**
 * One reply, or one fault. In texts and arguments, `{{n}}` is the number of the request (from 1),
 * `{{turn}}` the number of the model's earlier replies, `{{last}}` the text of the last message.
 */
export interface ScriptReply {
  text?: string;
  /** The text this many times, a piece each. */
  times?: number;
  reasoning?: string;
  calls?: ScriptCall[];
  refusal?: string;
  /** The wire's own reason, as is. */
  finish?: string;
  /** The wire's own usage object, as is; null: none is reported. */
  usage?: JsonObject | null;
  model?: string;
  /** Answer whole although a stream was asked for. */
  whole?: boolean;
  /** Pieces of a text, in characters. */
  pieceChars?: number;
  /** Comments, blank lines and CR LF between events. */
  noise?: boolean;
  /** Write the body in pieces of so many bytes, across borders of characters. */
  splitBytes?: number;
  delayMs?: number;
  /** Between two events. */
  eventDelayMs?: number;
  /** Stop after so many events, and then. */
  cutAfter?: number;
  then?: "silence" | "reset" | "end";
  /** After the end mark, keep the body open. */
  keepOpen?: boolean;

  /** A fault: this answer instead. */
  status?: number;
  headers?: Record<string, string>;
  body?: Json;
  /** Never answers. */
  hang?: boolean;
  /** Closes the connection without an answer. */
  reset?: boolean;
  /** This body as it is, with status 200; `headers` may name its type. */
  raw?: string;

  /** Serve this entry so many times. */
  repeat?: number;
}

export interface Script {
  replies?: ScriptReply[];
  /** The last reply answers for ever. */
  loop?: boolean;
  /** `order`: one after the other; `turn`: by the number of earlier replies in the conversation. */
  by?: "order" | "turn";
  /** Conversations whose first user text or system text holds `when` have replies of their own. */
  routes?: { when: string; replies: ScriptReply[]; loop?: boolean; by?: "order" | "turn" }[];
  models?: string[];
  /** Answer requests that break the dialect's rules with 400 (default true). */
  check?: boolean;
  /** Bodies kept in the log (default true). */
  log?: boolean;
  /** Credentials that are accepted; left out: any. */
  token?: string;
}

/** What a reply may refer to. */
export interface ReplyFacts {
  n: number;
  turn: number;
  last: string;
  model: string;
  bodyChars: number;
}

/** A reply as it will be sent: data of events, or one whole body. */
export interface WireReply {
  events: string[];
  whole: JsonObject;
}

/** Renders a reply for a dialect. */
export function renderReply(
  dialect: "openai" | "anthropic",
  reply: ScriptReply,
  facts: ReplyFacts,
): WireReply {
  const text = (fill(reply.text ?? "", facts) as string).repeat(reply.times ?? 1);
  const calls = (reply.calls ?? []).map((call, index) => ({
    id: call.id ?? `call_${facts.n}_${index}`,
    name: call.name,
    arguments: fill(call.arguments ?? {}, facts),
  }));
  const parts = { text, calls, pieces: cutPieces(text, reply) };
  return dialect === "openai"
    ? renderOpenAi(reply, parts, facts)
    : renderAnthropic(reply, parts, facts);
}

interface Parts {
  text: string;
  pieces: string[];
  calls: { id: string; name: string; arguments: Json }[];
}

function cutPieces(text: string, reply: ScriptReply): string[] {
  if (text === "") return [];
  const times = reply.times ?? 1;
  const size = reply.pieceChars ??
    (times > 1 ? text.length / times : Math.max(16, Math.ceil(text.length / 16)));
  const pieces: string[] = [];
  for (let at = 0; at < text.length; at += size) pieces.push(text.slice(at, at + size));
  return pieces;
}

function rawArguments(value: Json): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function renderOpenAi(reply: ScriptReply, parts: Parts, facts: ReplyFacts): WireReply {
  const base = { id: `chatcmpl-${facts.n}`, created: 0, model: reply.model ?? facts.model };
  const finish = reply.finish ?? (parts.calls.length > 0 ? "tool_calls" : "stop");
  const calls = parts.calls.map((call, index) => ({
    index,
    id: call.id,
    type: "function",
    function: { name: call.name, arguments: rawArguments(call.arguments) },
  }));
  const usage = reply.usage === undefined
    ? {
      prompt_tokens: Math.ceil(facts.bodyChars / 4),
      completion_tokens: Math.ceil((parts.text.length + JSON.stringify(calls).length) / 4),
    }
    : reply.usage;
  const deltas: JsonObject[] = [{ role: "assistant", content: "" }];
  if (reply.reasoning) deltas.push({ reasoning_content: reply.reasoning });
  for (const piece of parts.pieces) deltas.push({ content: piece });
  if (reply.refusal !== undefined) deltas.push({ refusal: reply.refusal });
  for (const call of calls) {
    const { arguments: args, name } = call.function;
    deltas.push({ tool_calls: [{ ...call, function: { name, arguments: "" } }] });
    const half = Math.ceil(args.length / 2);
    for (const piece of [args.slice(0, half), args.slice(half)]) {
      if (piece !== "") {
        deltas.push({ tool_calls: [{ index: call.index, function: { arguments: piece } }] });
      }
    }
  }
  const chunk = (rest: JsonObject) =>
    JSON.stringify({ ...base, object: "chat.completion.chunk", ...rest });
  const events = deltas.map((delta) =>
    chunk({ choices: [{ index: 0, delta, finish_reason: null }] })
  );
  events.push(chunk({ choices: [{ index: 0, delta: {}, finish_reason: finish }] }));
  if (usage !== null) events.push(chunk({ choices: [], usage }));
  events.push("[DONE]");
  const message: JsonObject = { role: "assistant", content: parts.text || null };
  if (reply.reasoning) message["reasoning_content"] = reply.reasoning;
  if (reply.refusal !== undefined) message["refusal"] = reply.refusal;
  if (calls.length > 0) message["tool_calls"] = calls;
  const whole: JsonObject = {
    ...base,
    object: "chat.completion",
    choices: [{ index: 0, message, finish_reason: finish }],
  };
  if (usage !== null) whole["usage"] = usage;
  return { events, whole };
}

function renderAnthropic(reply: ScriptReply, parts: Parts, facts: ReplyFacts): WireReply {
  const stop = reply.finish ??
    (reply.refusal !== undefined ? "refusal" : parts.calls.length > 0 ? "tool_use" : "end_turn");
  const output = Math.ceil((parts.text.length + JSON.stringify(parts.calls).length) / 4);
  const usage: JsonObject | null = reply.usage === undefined
    ? { input_tokens: Math.ceil(facts.bodyChars / 4), output_tokens: output }
    : reply.usage;
  const head: JsonObject = {
    id: `msg_${facts.n}`,
    type: "message",
    role: "assistant",
    model: reply.model ?? facts.model,
  };
  const content: JsonObject[] = [];
  const events: JsonObject[] = [];
  const addBlock = (block: JsonObject, empty: JsonObject, deltas: JsonObject[]) => {
    const index = content.push(block) - 1;
    events.push({ type: "content_block_start", index, content_block: empty });
    for (const delta of deltas) events.push({ type: "content_block_delta", index, delta });
    events.push({ type: "content_block_stop", index });
  };
  if (reply.reasoning) {
    const signature = `signed-${facts.n}`;
    addBlock(
      { type: "thinking", thinking: reply.reasoning, signature },
      { type: "thinking", thinking: "", signature: "" },
      [
        { type: "thinking_delta", thinking: reply.reasoning },
        { type: "signature_delta", signature },
      ],
    );
  }
  if (parts.text !== "") {
    addBlock(
      { type: "text", text: parts.text },
      { type: "text", text: "" },
      parts.pieces.map((text) => ({ type: "text_delta", text })),
    );
  }
  for (const call of parts.calls) {
    const raw = rawArguments(call.arguments);
    const half = Math.ceil(raw.length / 2);
    const start = { type: "tool_use", id: call.id, name: call.name };
    addBlock(
      { ...start, input: call.arguments },
      { ...start, input: {} },
      [raw.slice(0, half), raw.slice(half)].filter((piece) => piece !== "").map((piece) => ({
        type: "input_json_delta",
        partial_json: piece,
      })),
    );
  }
  const details: JsonObject = reply.refusal === undefined
    ? {}
    : { stop_details: { type: "refusal", explanation: reply.refusal } };
  const { output_tokens: outputTokens, ...input }: JsonObject = usage ?? {};
  const startUsage: JsonObject = usage === null ? {} : { usage: { ...input, output_tokens: 1 } };
  const endUsage: JsonObject = usage === null
    ? {}
    : { usage: { output_tokens: outputTokens ?? 0 } };
  const all: JsonObject[] = [
    {
      type: "message_start",
      message: { ...head, content: [], stop_reason: null, ...startUsage },
    },
    { type: "ping" },
    ...events,
    {
      type: "message_delta",
      delta: { stop_reason: stop, stop_sequence: null, ...details },
      ...endUsage,
    },
    { type: "message_stop" },
  ];
  const whole: JsonObject = { ...head, content, stop_reason: stop, ...details };
  if (usage !== null) whole["usage"] = usage;
  return { events: all.map((event) => JSON.stringify(event)), whole };
}

function fill(value: Json, facts: ReplyFacts): Json {
  if (typeof value === "string") {
    if (!value.includes("{{")) return value;
    return value.replaceAll("{{n}}", String(facts.n)).replaceAll("{{turn}}", String(facts.turn))
      .replaceAll("{{last}}", () => facts.last);
  }
  if (Array.isArray(value)) return value.map((item) => fill(item, facts));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fill(item, facts)]));
}
