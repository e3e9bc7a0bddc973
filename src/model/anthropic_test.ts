import assert from "node:assert/strict";
import type { Json, JsonObject } from "../core/json.ts";
import type { Message, ModelRequest, ToolSpec } from "../ports/model.ts";
import { assistant, call, PNG, result, user } from "../../tests/fakes/conversation.ts";
import { findFault } from "../../tests/fakes/model_rules.ts";
import { ANSWER_TOOL, AnthropicDialect } from "./anthropic.ts";
import { AnthropicReply } from "./anthropic_reply.ts";
import { type DialectSettings, FULL_QUIRKS, type Quirks } from "./dialect.ts";

const SETTINGS: DialectSettings = {
  maxOutputTokens: 8192,
  temperature: null,
  reasoningEffort: null,
  options: {},
};
const TOOLS: ToolSpec[] = ["fs__list", "fs__read"].map((name) => ({
  name,
  description: "Does it.",
  inputSchema: { type: "object" },
}));
const MARK = { type: "ephemeral" };

// deno-lint-ignore no-explicit-any
type Loose = any;

function render(
  messages: Message[],
  more: Partial<ModelRequest> = {},
  settings: Partial<DialectSettings> = {},
  quirks: Partial<Quirks> = {},
): Loose {
  const dialect = new AnthropicDialect({ ...SETTINGS, ...settings });
  const request: ModelRequest = {
    purpose: "turn",
    system: "Be good.",
    messages,
    tools: TOOLS,
    toolChoice: "auto",
    outputSchema: null,
    traceparent: "00-0-0-01",
    ...more,
  };
  const body = JSON.parse(dialect.render(request, "m", { ...FULL_QUIRKS, ...quirks }).join(""));
  assert.equal(findFault("anthropic", body), null);
  return body;
}

function read(...events: Json[]): AnthropicReply {
  const reply = new AnthropicReply(ANSWER_TOOL);
  for (const event of events) assert.equal(reply.take(event as JsonObject), null);
  return reply;
}

Deno.test("AnthropicDialect.render: results ride in one user message, the stable prefix is marked", () => {
  const body = render([
    user("do it"),
    assistant("Reading.", call("c1", '{"p": 1}'), call("c2")),
    result("c1", "one", { isError: true } as Partial<Message>),
    result("c2", "", { note: "[note]" } as Partial<Message>),
    user("go on"),
  ]);
  assert.deepEqual(body.system, [{ type: "text", text: "Be good.", cache_control: MARK }]);
  assert.deepEqual(body.tools.map((tool: Loose) => tool.cache_control), [undefined, MARK]);
  assert.deepEqual(body.messages, [
    { role: "user", content: [{ type: "text", text: "do it", cache_control: MARK }] },
    {
      role: "assistant",
      content: [
        { type: "text", text: "Reading." },
        { type: "tool_use", id: "c1", name: "fs__read", input: { p: 1 } },
        { type: "tool_use", id: "c2", name: "fs__read", input: {} },
      ],
    },
    {
      role: "user",
      content: [
        { type: "tool_result", tool_use_id: "c1", content: "one", is_error: true },
        { type: "tool_result", tool_use_id: "c2", content: "(empty)\n\n[note]" },
        { type: "text", text: "go on", cache_control: MARK },
      ],
    },
  ]);
  assert.equal(body.max_tokens, 8192);
});

Deno.test("AnthropicDialect.render: whatever the conversation, the wire's rules hold", () => {
  const many = Array.from({ length: 200 }, (_, i) => call(`c${i}`));
  const rows: Message[][] = [
    [user("a"), user("b")],
    [user("a"), assistant("one"), assistant("two"), user("go on")],
    [user("a"), assistant(" "), user("b")],
    [user("")],
    [assistant("x"), user("b")],
    [
      user("a"),
      assistant("", call("1", '{"a":'), call("2", "null")),
      result("1", "i"),
      result("2", "i"),
    ],
    [user("a"), assistant("", call("a b", "{}", "fs.read!")), result("a b", "no such tool")],
    [user("a\0\ud800"), assistant("\udc00", call("1")), result("1", "\0\ud800")],
    [user("a"), assistant("", ...many), ...many.map((made) => result(made.id, "r"))],
    [
      user("a"),
      assistant("", call("1")),
      result("1", "", { parts: [PNG], note: "n" } as Partial<Message>),
    ],
  ];
  for (const messages of rows) render(messages);
});

Deno.test("AnthropicDialect.render: images where they belong, described when the endpoint is blind", () => {
  const messages: Message[] = [
    { role: "user", parts: [{ type: "text", text: "look" }, PNG] },
    assistant("", call("1")),
    result("1", "", { parts: [PNG] } as Partial<Message>),
  ];
  const image = {
    type: "image",
    source: { type: "base64", media_type: "image/png", data: "aGk=" },
  };
  const body = render(messages);
  assert.deepEqual(body.messages[0].content[1], { ...image, cache_control: MARK });
  assert.deepEqual(body.messages[2].content[0].content, [image]);
  const blind = render(messages, {}, {}, { images: false });
  assert.match(blind.messages[2].content[0].content, /^\[image image\/png, 3B: not shown\]$/);
});

Deno.test("AnthropicDialect.render: marks are two at most in the conversation, on the last user messages", () => {
  const messages: Message[] = [user("start")];
  for (let turn = 0; turn < 6; turn++) {
    messages.push(assistant("", call(`c${turn}`)), result(`c${turn}`, `r${turn}`));
  }
  const marked = render(messages).messages.flatMap((message: Loose, index: number) =>
    message.content.some((block: Loose) => block.cache_control) ? [index] : []
  );
  assert.deepEqual(marked, [10, 12]);
});

Deno.test("AnthropicDialect.render: old messages are not rendered again", () => {
  const dialect = new AnthropicDialect(SETTINGS);
  let reads = 0;
  const counted: Message = {
    role: "user",
    get parts() {
      reads++;
      return [{ type: "text" as const, text: "once" }];
    },
  };
  for (let i = 0; i < 5; i++) {
    dialect.render(
      {
        purpose: "turn",
        system: "s",
        messages: [counted],
        tools: TOOLS,
        toolChoice: "auto",
        outputSchema: null,
        traceparent: "",
      },
      "m",
      FULL_QUIRKS,
    );
  }
  assert.equal(reads, 1);
});

Deno.test("AnthropicDialect.render: answers only, answer tool, thinking, options", () => {
  const outputSchema: JsonObject = { type: "object", required: ["a"] };
  const history = [user("a"), assistant("", call("1")), result("1", "r")];
  const forced = { type: "tool", name: ANSWER_TOOL };
  const rows: [
    Message[],
    Partial<ModelRequest>,
    Partial<DialectSettings>,
    Partial<Quirks>,
    JsonObject,
  ][] = [
    [[user("a")], { toolChoice: "none" }, {}, {}, { tool_choice: { type: "none" } }],
    [[user("a")], { tools: [] }, {}, {}, { tool_choice: undefined!, tools: undefined! }],
    [history, { tools: [] }, {}, {}, { tool_choice: { type: "none" } }],
    [[user("a")], { outputSchema }, {}, {}, { tool_choice: undefined! }],
    [[user("a")], { outputSchema, tools: [] }, {}, {}, { tool_choice: forced }],
    [[user("a")], { outputSchema, toolChoice: "none" }, {}, {}, { tool_choice: forced }],
    [[user("a")], { outputSchema: { type: "array" }, tools: [] }, {}, {}, {
      tool_choice: undefined!,
    }],
    [[user("a")], { outputSchema, tools: [] }, {}, { answerTool: false }, {
      tool_choice: undefined!,
    }],
    [[user("a")], { outputSchema, tools: [] }, { reasoningEffort: "low" }, {}, {
      tool_choice: undefined!,
    }],
    [[user("a")], {}, { reasoningEffort: "medium", temperature: 0 }, {}, {
      thinking: { type: "enabled", budget_tokens: 4096 },
      temperature: undefined!,
    }],
    [[user("a")], {}, { reasoningEffort: "low", maxOutputTokens: 2048 }, {}, {
      thinking: { type: "enabled", budget_tokens: 1024 },
    }],
    [[user("a")], {}, { reasoningEffort: "high", maxOutputTokens: 1000 }, {}, {
      thinking: undefined!,
    }],
    [[user("a")], {}, { reasoningEffort: "none", temperature: 0 }, {}, {
      thinking: undefined!,
      temperature: 0,
    }],
    [[user("a")], {}, { reasoningEffort: "high" }, { thinking: "adaptive" }, {
      thinking: { type: "adaptive" },
      output_config: { effort: "high" },
    }],
    [[user("a")], {}, { options: { top_k: 5, max_tokens: 7, system: "no" } }, {}, {
      top_k: 5,
      max_tokens: 7,
    }],
  ];
  for (const [messages, more, settings, quirks, expected] of rows) {
    const body = render(messages, more, settings, quirks);
    for (const [key, value] of Object.entries(expected)) assert.deepEqual(body[key], value, key);
  }
  assert.deepEqual(
    render(history, { tools: [] }).tools.map((tool: Loose) => tool.name),
    ["fs__read"],
  );
});

Deno.test("AnthropicReply: thinking blocks are carried back unchanged, in their place", () => {
  const thinking = { type: "thinking", thinking: "Let me see.", signature: "sig" };
  const redacted = { type: "redacted_thinking", data: "opaque" };
  const draft = read(
    {
      type: "message_start",
      message: { model: "m", usage: { input_tokens: 3, output_tokens: 1 } },
    },
    {
      type: "content_block_start",
      index: 0,
      content_block: { type: "thinking", thinking: "", signature: "" },
    },
    {
      type: "content_block_delta",
      index: 0,
      delta: { type: "thinking_delta", thinking: "Let me " },
    },
    { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "see." } },
    { type: "content_block_delta", index: 0, delta: { type: "signature_delta", signature: "sig" } },
    { type: "content_block_start", index: 1, content_block: redacted },
    { type: "content_block_start", index: 2, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 2, delta: { type: "text_delta", text: "First. " } },
    {
      type: "content_block_start",
      index: 3,
      content_block: { type: "tool_use", id: "c1", name: "fs__read", input: {} },
    },
    {
      type: "content_block_delta",
      index: 3,
      delta: { type: "input_json_delta", partial_json: '{"a"' },
    },
    {
      type: "content_block_delta",
      index: 3,
      delta: { type: "input_json_delta", partial_json: ":1}" },
    },
    { type: "content_block_start", index: 4, content_block: { type: "text", text: "Second." } },
    { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 9 } },
    { type: "message_stop" },
  ).draft();
  assert.equal(draft.text, "First. Second.");
  assert.deepEqual(draft.calls, [{ id: "c1", name: "fs__read", arguments: '{"a":1}' }]);
  assert.deepEqual(draft.usage, { tokensIn: 3, tokensOut: 9, tokensCached: 0 });
  const message: Message = {
    role: "assistant",
    text: draft.text,
    calls: draft.calls,
    opaque: draft.opaque!,
  };
  const [, carried] = render([user("a"), message, result("c1", "r")], {}, {}).messages
    .map((wire: Loose) => wire.content) as Loose[];
  assert.deepEqual(
    carried,
    [
      thinking,
      redacted,
      { type: "text", text: "First. " },
      { type: "tool_use", id: "c1", name: "fs__read", input: { a: 1 } },
      { type: "text", text: "Second." },
    ].filter(() => true),
  );
});

Deno.test("AnthropicDialect.render: thinking alone is followed by a text, and left out where it is not taken", () => {
  const thinking = { type: "thinking", thinking: "Hm.", signature: "s" };
  const opaque = {
    dialect: "anthropic",
    blocks: [
      thinking,
      { type: "text_place", length: 2 },
      { type: "call_place", index: 0 },
    ] as Json,
  };
  const rows: [string, ReturnType<typeof call>[], Partial<Quirks>, string[]][] = [
    ["", [], {}, ["thinking", "text"]],
    ["\n\n", [], {}, ["thinking", "text"]],
    ["ok", [], {}, ["thinking", "text"]],
    ["ok", [call("1")], {}, ["thinking", "text", "tool_use"]],
    ["ok", [call("1")], { reasoning: false }, ["text", "tool_use"]],
    ["", [], { reasoning: false }, ["text"]],
  ];
  for (const [text, calls, quirks, types] of rows) {
    const message: Message = { role: "assistant", text, calls, opaque };
    const results = calls.length > 0 ? [result("1", "r")] : [user("b")];
    const body = render([user("a"), message, ...results], {}, {}, quirks);
    const content = body.messages[1].content as Loose[];
    assert.deepEqual(content.map((block) => block.type), types, JSON.stringify([text, quirks]));
  }
});

Deno.test("AnthropicDialect.learn: a history of thinking that is rejected is sent without, once", () => {
  const dialect = new AnthropicDialect(SETTINGS);
  const carried = '{"type":"thinking","thinking":"Hm.","signature":"s"}';
  const rows = [
    "messages.1.content.0: Invalid `signature` in `thinking` block",
    "messages.5.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified",
    "Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final `assistant` message must start with a thinking block",
  ];
  for (const message of rows) {
    for (const body of [carried, '"thinking":{"type":"enabled"}']) {
      const learned = dialect.learn(400, message, body, FULL_QUIRKS);
      assert.deepEqual([learned?.reasoning, learned?.thinking], [false, "off"], message);
      assert.equal(dialect.learn(400, message, body, learned!), null);
    }
    assert.equal(dialect.learn(400, message, "{}", FULL_QUIRKS), null);
  }
});

Deno.test("AnthropicDialect.learn: each rejection changes one thing, until it is off", () => {
  const dialect = new AnthropicDialect(SETTINGS);
  const thinking = '"thinking":{"type":"enabled"';
  const budget = dialect.learn(
    400,
    "thinking.type.enabled is not supported",
    thinking,
    FULL_QUIRKS,
  );
  assert.equal(budget?.thinking, "adaptive");
  const off = dialect.learn(400, "adaptive thinking is not supported", thinking, budget!);
  assert.equal(off?.thinking, "off");
  assert.equal(dialect.learn(400, "thinking", thinking, off!), null);
  assert.equal(
    dialect.learn(400, "Could not process image", '{"type":"image"', FULL_QUIRKS)?.images,
    false,
  );
  assert.equal(
    dialect.learn(400, "tool_choice is not allowed", `"name":"${ANSWER_TOOL}"`, FULL_QUIRKS)
      ?.answerTool,
    false,
  );
  assert.equal(dialect.learn(400, "prompt is too long", thinking, FULL_QUIRKS), null);
  assert.equal(dialect.learn(429, "image", '{"type":"image"', FULL_QUIRKS), null);
});
