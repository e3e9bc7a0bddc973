import assert from "node:assert/strict";
import type { Json, JsonObject } from "../core/json.ts";
import type { Message, ModelRequest, ToolSpec } from "../ports/model.ts";
import { assistant, call, PNG, result, user } from "../../tests/fakes/conversation.ts";
import { findFault } from "../../tests/fakes/model_rules.ts";
import { type DialectSettings, FULL_QUIRKS, type Quirks } from "./dialect.ts";
import { OpenAiDialect } from "./openai.ts";
import { OpenAiReply } from "./openai_reply.ts";

const SETTINGS: DialectSettings = {
  maxOutputTokens: 100,
  temperature: null,
  reasoningEffort: null,
  options: {},
};
const TOOLS: ToolSpec[] = [{
  name: "fs__read",
  description: "Reads.",
  inputSchema: { type: "object" },
}];

function request(messages: Message[], more: Partial<ModelRequest> = {}): ModelRequest {
  return {
    purpose: "turn",
    system: "Be good.",
    messages,
    tools: TOOLS,
    toolChoice: "auto",
    outputSchema: null,
    traceparent: "00-0-0-01",
    ...more,
  };
}

// deno-lint-ignore no-explicit-any
type Loose = any;

function render(
  messages: Message[],
  more: Partial<ModelRequest> = {},
  settings: Partial<DialectSettings> = {},
  quirks: Partial<Quirks> = {},
): Loose {
  const dialect = new OpenAiDialect({ ...SETTINGS, ...settings });
  const body = JSON.parse(
    dialect.render(request(messages, more), "m", { ...FULL_QUIRKS, ...quirks }).join(""),
  );
  assert.equal(findFault("openai", body), null);
  return body;
}

function read(...events: Json[]): OpenAiReply {
  const reply = new OpenAiReply();
  for (const event of events) assert.equal(reply.take(event as JsonObject), null);
  return reply;
}

const delta = (delta: Json, finish: string | null = null): Json => ({
  choices: [{ index: 0, delta, finish_reason: finish }],
});

Deno.test("OpenAiDialect.render: a turn with calls, results and notes", () => {
  const body = render([
    user("do it"),
    assistant("", call("c1", '{"p": 1}'), call("c2")),
    result("c1", "one"),
    result("c2", "", { note: "[note]" }),
  ]);
  assert.deepEqual(body.messages, [
    { role: "system", content: "Be good." },
    { role: "user", content: "do it" },
    {
      role: "assistant",
      content: null,
      tool_calls: [
        { id: "c1", type: "function", function: { name: "fs__read", arguments: '{"p": 1}' } },
        { id: "c2", type: "function", function: { name: "fs__read", arguments: "{}" } },
      ],
    },
    { role: "tool", tool_call_id: "c1", content: "one" },
    { role: "tool", tool_call_id: "c2", content: "(empty)\n\n[note]" },
  ]);
  assert.deepEqual(body.stream_options, { include_usage: true });
  assert.equal(body.max_tokens, 100);
  for (const key of ["temperature", "reasoning_effort", "tool_choice", "response_format"]) {
    assert.ok(!(key in body), key);
  }
});

Deno.test("OpenAiDialect.render: whatever the conversation, the wire's rules hold", () => {
  const noise = "x".repeat(1_000_000);
  const rows: Record<string, Message[]> = {
    "consecutive users": [user("a"), user("b")],
    "consecutive replies": [user("a"), assistant("part one"), assistant("part two"), user("go on")],
    "an empty reply": [user("a"), assistant("  "), user("b")],
    "broken arguments": [
      user("a"),
      assistant("", call("1", '{"a":'), call("2", "[1]"), call("3", noise)),
      ...["1", "2", "3"].map((id) => result(id, "invalid")),
    ],
    "a made-up name and id": [
      user("a"),
      assistant("", call("id with spaces", "{}", "fs.read!")),
      result("id with spaces", "no such tool"),
    ],
    "an empty user part": [user("")],
    "broken text": [user("a\0b\ud800c"), assistant("\ud800", call("1")), result("1", "\udc00\0")],
    "user after results": [user("a"), assistant("", call("1")), result("1", "r"), user("also")],
    "image in a result": [
      user("a"),
      assistant("", call("1")),
      result("1", "r", { parts: [PNG] } as Partial<Message>),
      user("also"),
    ],
  };
  for (const messages of Object.values(rows)) render(messages);
});

Deno.test("OpenAiDialect.render: images as data URLs, other parts described, results' images after them", () => {
  const audio = { type: "audio" as const, mimeType: "audio/wav", data: "A".repeat(4096) };
  const tiff = { type: "image" as const, mimeType: "image/tiff", data: "aGk=" };
  const messages: Message[] = [
    { role: "user", parts: [{ type: "text", text: "look" }, PNG, audio, tiff] },
    assistant("", call("1"), call("2")),
    result("1", "", { parts: [{ type: "text", text: "shot" }, PNG] } as Partial<Message>),
    result("2", "plain"),
  ];
  const shown = render(messages).messages;
  assert.deepEqual(shown[1].content, [
    { type: "text", text: "look" },
    { type: "image_url", image_url: { url: "data:image/png;base64,aGk=" } },
    { type: "text", text: "[audio audio/wav, 3KiB: not shown]" },
    { type: "text", text: "[image image/tiff, 3B: not shown]" },
  ]);
  assert.equal(shown[3].content, "shot\n\n[image 1: shown in the next message]");
  assert.deepEqual(shown.slice(5), [{
    role: "user",
    content: [
      { type: "text", text: "Image 1 of the result of fs__read (1):" },
      { type: "image_url", image_url: { url: "data:image/png;base64,aGk=" } },
    ],
  }]);
  const blind = render(messages, {}, {}, { images: false }).messages;
  assert.equal(blind.length, 5);
  assert.ok(!JSON.stringify(blind).includes("image_url"));
});

Deno.test("OpenAiDialect.render: at most 128 tool messages of a turn, the rest told in the last", () => {
  const calls = Array.from({ length: 200 }, (_, i) => call(`c${i}`));
  const results = calls.map((made, i) =>
    result(
      made.id,
      i < 150 ? `result ${i}` : "refused: over the cap",
      i === 199 ? { note: "[left: 3]" } : {},
    )
  );
  const { messages } = render([user("a"), assistant("", ...calls), ...results]);
  assert.equal(messages[2].tool_calls.length, 128);
  assert.equal(messages.length, 2 + 1 + 128);
  const last = messages.at(-1).content;
  assert.match(last, /^result 127\n\n72 more calls of the same reply ended so:\n/);
  assert.match(last, /fs__read: result 128\n/);
  assert.match(last, /50 × fs__read: refused: over the cap/);
  assert.match(last, /\[left: 3\]$/);
  const exact = render([
    user("a"),
    assistant("", ...calls.slice(0, 128)),
    ...results.slice(0, 128),
  ]);
  assert.equal(exact.messages.at(-1).content, "result 127");
});

Deno.test("OpenAiDialect.render: old messages stay byte for byte and are not rendered again", () => {
  const dialect = new OpenAiDialect(SETTINGS);
  const messages: Message[] = [user("do it")];
  let before = "";
  for (let turn = 0; turn < 20; turn++) {
    const body = dialect.render(request([...messages]), "m", FULL_QUIRKS).join("");
    const conversation = body.slice(0, body.indexOf('],"stream"'));
    assert.ok(conversation.startsWith(before));
    before = conversation;
    messages.push(assistant(`turn ${turn}`, call(`c${turn}`)), result(`c${turn}`, `${turn}`));
  }
  // Touched by nobody but the renderer: a getter that counts proves that each part is read once.
  let reads = 0;
  const counted: Message = {
    role: "user",
    get parts() {
      reads++;
      return [{ type: "text" as const, text: "once" }];
    },
  };
  for (let i = 0; i < 5; i++) dialect.render(request([counted]), "m", FULL_QUIRKS);
  assert.equal(reads, 1);
});

Deno.test("OpenAiDialect.render: answers only, schema, options, quirks", () => {
  const outputSchema: JsonObject = { type: "object" };
  const format = { type: "json_schema", json_schema: { name: "result", schema: outputSchema } };
  const rows: [Partial<ModelRequest>, Partial<DialectSettings>, Partial<Quirks>, JsonObject][] = [
    [{ toolChoice: "none" }, {}, {}, { tool_choice: "none" }],
    [{ tools: [], toolChoice: "none" }, {}, {}, { tool_choice: undefined!, tools: undefined! }],
    [{ outputSchema }, {}, {}, { response_format: undefined! }],
    [{ outputSchema, tools: [] }, {}, {}, { response_format: format }],
    [{ outputSchema, toolChoice: "none" }, {}, {}, { response_format: format }],
    [{ outputSchema, tools: [], purpose: "summary" }, {}, {}, { response_format: undefined! }],
    [{ outputSchema, tools: [] }, {}, { responseFormat: false }, { response_format: undefined! }],
    [{}, { temperature: 0, reasoningEffort: "low" }, {}, {
      temperature: 0,
      reasoning_effort: "low",
    }],
    [{}, { options: { top_p: 0.5, max_tokens: 7 } }, {}, { top_p: 0.5, max_tokens: 7 }],
    [{}, { options: { max_tokens: null, messages: [], tools: [] } }, {}, {
      max_tokens: undefined!,
    }],
    [{}, { options: { stream: false } }, {}, { stream: false, stream_options: undefined! }],
    [{}, {}, { maxTokensField: "max_completion_tokens" }, {
      max_completion_tokens: 100,
      max_tokens: undefined!,
    }],
    [{}, {}, { streamOptions: false }, { stream_options: undefined!, stream: true }],
  ];
  for (const [more, settings, quirks, expected] of rows) {
    const body = render([user("a")], more, settings, quirks);
    for (const [key, value] of Object.entries(expected)) assert.deepEqual(body[key], value, key);
  }
});

Deno.test("OpenAiDialect: reasoning is carried back within a turn of calls, in the form it came", () => {
  const reply = read(
    delta({ reasoning_content: "I must " }),
    delta({ reasoning_content: "read." }),
    delta({ reasoning_details: [{ type: "reasoning.text", index: 0, text: "I " }] }),
    delta({
      reasoning_details: [{ type: "reasoning.text", index: 0, text: "must", signature: "s" }],
    }),
    delta({
      tool_calls: [{
        index: 0,
        id: "c1",
        function: { name: "fs__read", arguments: "{}" },
        extra_content: { google: { thought_signature: "t" } },
      }],
    }, "tool_calls"),
  ).draft();
  const message: Message = {
    role: "assistant",
    text: "",
    calls: reply.calls,
    opaque: reply.opaque!,
  };
  const wire = render([user("a"), message, result("c1", "r")]).messages[2];
  assert.equal(wire.reasoning_content, "I must read.");
  assert.deepEqual(wire.reasoning_details, [{
    type: "reasoning.text",
    index: 0,
    text: "I must",
    signature: "s",
  }]);
  assert.deepEqual(wire.tool_calls[0].extra_content, { google: { thought_signature: "t" } });
  const bare =
    render([user("a"), message, result("c1", "r")], {}, {}, { reasoning: false }).messages[2];
  assert.deepEqual(Object.keys(bare), ["role", "content", "tool_calls"]);
  const other: Message = { ...message, opaque: { dialect: "anthropic", blocks: [] } };
  assert.deepEqual(Object.keys(render([user("a"), other, result("c1", "r")]).messages[2]), [
    "role",
    "content",
    "tool_calls",
  ]);
});

Deno.test("OpenAiDialect.learn: each rejection changes one thing, once", () => {
  const dialect = new OpenAiDialect({ ...SETTINGS });
  const image = '{"type":"image_url"';
  const rows: [number, string, string, Partial<Quirks> | null][] = [
    [
      400,
      "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
      '"max_tokens":1',
      { maxTokensField: "max_completion_tokens" },
    ],
    [400, "Unrecognized request argument: stream_options", "", { streamOptions: false }],
    [400, "response_format is not supported", '"response_format":', { responseFormat: false }],
    [500, "image input is not supported, hint: provide the mmproj", image, { images: false }],
    [400, "unknown field reasoning_content", '"reasoning_content":"x"', { reasoning: false }],
    [400, "property 'reasoning' is unsupported", '"reasoning":"x"', { reasoning: false }],
    [400, "unknown value for reasoning_effort", '"reasoning":"x"', null],
    [400, "temperature too high", "", null],
    [400, "image input is not supported", "", null],
    [429, "stream_options", "", null],
  ];
  for (const [status, message, body, change] of rows) {
    const learned = dialect.learn(status, message, body, FULL_QUIRKS);
    assert.deepEqual(learned, change === null ? null : { ...FULL_QUIRKS, ...change }, message);
    if (learned !== null) {
      assert.equal(dialect.learn(status, message, body, learned), null, message);
    }
  }
});
