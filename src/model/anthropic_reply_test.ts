import assert from "node:assert/strict";
import type { Json, JsonObject } from "../core/json.ts";
import { ANSWER_TOOL } from "./anthropic.ts";
import { AnthropicReply } from "./anthropic_reply.ts";

function read(...events: Json[]): AnthropicReply {
  const reply = new AnthropicReply(ANSWER_TOOL);
  for (const event of events) assert.equal(reply.take(event as JsonObject), null);
  return reply;
}

Deno.test("AnthropicReply: whole messages, stop reasons and refusals", () => {
  const whole = (stop: string, content: Json[], more: JsonObject = {}): Json => ({
    type: "message",
    model: "m",
    content,
    stop_reason: stop,
    usage: { input_tokens: 1, output_tokens: 1 },
    ...more,
  });
  const text = { type: "text", text: "t" };
  const use = { type: "tool_use", id: "a", name: "x", input: { a: 1 } };
  const rows: [Json, string, string | null][] = [
    [whole("end_turn", [text]), "stop", null],
    [whole("stop_sequence", [text]), "stop", null],
    [whole("tool_use", [text, use]), "tool_calls", null],
    [whole("end_turn", [use]), "tool_calls", null],
    [whole("max_tokens", [text, use]), "length", null],
    [whole("model_context_window_exceeded", [text]), "length", null],
    [whole("pause_turn", [text]), "length", null],
    [whole("refusal", []), "refusal", "the endpoint stopped the reply as a refusal"],
    [whole("refusal", [text]), "refusal", "t"],
    [whole("refusal", [], { stop_details: { explanation: "policy" } }), "refusal", "policy"],
    [whole("new_reason", [text]), "other", null],
  ];
  for (const [value, finish, refusal] of rows) {
    const draft = read(value).draft();
    assert.deepEqual([draft.finish, draft.refusal], [finish, refusal], JSON.stringify(value));
  }
});

Deno.test("AnthropicReply: the answer tool's call is the answer", () => {
  const use = { type: "tool_use", id: "a", name: ANSWER_TOOL, input: { a: 1 } };
  const draft = read({ type: "message", content: [use], stop_reason: "tool_use" }).draft();
  assert.deepEqual([draft.text, draft.calls, draft.finish], ['{"a":1}', [], "stop"]);
});

Deno.test("AnthropicReply: usage counts what was written to and read from the cache", () => {
  const rows: [JsonObject, [number, number, number] | null][] = [
    [{
      input_tokens: 3,
      cache_creation_input_tokens: 109075,
      cache_read_input_tokens: 0,
      output_tokens: 81,
    }, [109078, 81, 0]],
    [{ input_tokens: 10, cache_read_input_tokens: 90, output_tokens: 5 }, [100, 5, 90]],
    [{ output_tokens: 5 }, null],
  ];
  for (const [usage, expected] of rows) {
    const { usage: got } = read({ type: "message", content: [], stop_reason: "end_turn", usage })
      .draft();
    assert.deepEqual(got && [got.tokensIn, got.tokensOut, got.tokensCached], expected);
  }
});

Deno.test("AnthropicReply: half a message is none; errors inside a stream keep their kind", () => {
  const half = read(
    { type: "message_start", message: { model: "m" } },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "half" } },
  );
  assert.equal(half.finished, false);
  const rows: [string, number][] = [
    ["overloaded_error", 529],
    ["rate_limit_error", 429],
    ["authentication_error", 401],
    ["invalid_request_error", 400],
    ["api_error", 500],
  ];
  for (const [type, status] of rows) {
    const reply = new AnthropicReply(ANSWER_TOOL);
    assert.equal(
      reply.take({ type: "error", error: { type, message: "m" } })?.status,
      status,
      type,
    );
  }
});

Deno.test("AnthropicReply: blocks are carried back with what was streamed into them; those of no type are not", () => {
  const search = { type: "server_tool_use", id: "s", name: "web_search", input: {} };
  const delta = (index: number, partial_json: string): Json => ({
    type: "content_block_delta",
    index,
    delta: { type: "input_json_delta", partial_json },
  });
  const draft = read(
    { type: "content_block_start", index: 0, content_block: search },
    delta(0, '{"query":'),
    delta(0, '"deno"}'),
    { type: "content_block_start", index: 1, content_block: { text: "found" } },
    { type: "content_block_start", index: 2, content_block: { strange: true } },
    { type: "content_block_start", index: 3, content_block: { ...search, id: "cut" } },
    delta(3, '{"query":'),
    { type: "message_stop" },
  ).draft();
  assert.equal(draft.text, "found");
  assert.deepEqual(draft.opaque?.blocks, [
    { ...search, input: { query: "deno" } },
    { type: "text_place", length: 5 },
    { ...search, id: "cut" },
  ]);
});
