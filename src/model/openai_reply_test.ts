import assert from "node:assert/strict";
import type { Json, JsonObject } from "../core/json.ts";
import { MODEL_REPLY_BYTES_MAX } from "../core/limits.ts";
import { OpenAiReply } from "./openai_reply.ts";

function read(...events: Json[]): OpenAiReply {
  const reply = new OpenAiReply();
  for (const event of events) assert.equal(reply.take(event as JsonObject), null);
  return reply;
}

const delta = (delta: Json, finish: string | null = null): Json => ({
  choices: [{ index: 0, delta, finish_reason: finish }],
});

Deno.test("OpenAiReply: reasoning under its other name goes back under it, once", () => {
  const made = delta({
    tool_calls: [{ index: 0, id: "c1", function: { name: "fs__read", arguments: "{}" } }],
  }, "tool_calls");
  const rows: [Json, Json][] = [
    [{ reasoning: "hm" }, { reasoning: "hm" }],
    [{ reasoning: "hm", reasoning_content: "hm" }, { reasoning_content: "hm" }],
    [
      { reasoning: "hm", reasoning_details: [{ type: "t", text: "hm" }] },
      { reasoning_details: [{ type: "t", text: "hm" }] },
    ],
  ];
  for (const [piece, blocks] of rows) {
    assert.deepEqual(read(delta(piece), made).draft().opaque, { dialect: "openai", blocks });
  }
  const spin = new OpenAiReply();
  for (let i = 0; i < 20_000 && spin.cut === null; i++) {
    spin.take(delta({ reasoning: "hm, " }) as JsonObject);
  }
  assert.deepEqual([spin.draft().finish, spin.draft().text], ["repetition", ""]);
});

Deno.test("OpenAiReply: pieces of a stream, as servers of all sorts send them", () => {
  const tool = (piece: JsonObject) => delta({ tool_calls: [piece] });
  const rows: Record<string, { events: Json[]; calls: [string, string, string][]; text?: string }> =
    {
      "pieces by index": {
        events: [
          tool({ index: 0, id: "a", function: { name: "x", arguments: "" } }),
          tool({ index: 0, function: { arguments: '{"a"' } }),
          tool({ index: 1, id: "b", function: { name: "y", arguments: "{}" } }),
          tool({ index: 0, function: { arguments: ":1}" } }),
        ],
        calls: [["a", "x", '{"a":1}'], ["b", "y", "{}"]],
      },
      "index 0 for all": {
        events: [
          tool({ index: 0, id: "a", function: { name: "x", arguments: "{}" } }),
          tool({ index: 0, id: "b", function: { name: "x", arguments: '{"b":1}' } }),
        ],
        calls: [["a", "x", "{}"], ["b", "x", '{"b":1}']],
      },
      "no index": {
        events: [
          tool({ id: "a", function: { name: "x", arguments: "" } }),
          tool({ function: { arguments: "{}" } }),
          tool({ id: "b", function: { name: "y", arguments: "{}" } }),
        ],
        calls: [["a", "x", "{}"], ["b", "y", "{}"]],
      },
      "the name in every piece": {
        events: [
          tool({ index: 0, id: "a", function: { name: "x", arguments: "" } }),
          tool({ index: 0, id: "a", function: { name: "x", arguments: "{" } }),
          tool({ index: 0, id: "a", function: { name: "x", arguments: "}" } }),
        ],
        calls: [["a", "x", "{}"]],
      },
      "arguments as an object, no id": {
        events: [tool({ index: 0, function: { name: "x", arguments: { a: 1 } } })],
        calls: [["", "x", '{"a":1}']],
      },
      "whole": {
        events: [{
          choices: [{
            message: {
              content: "t",
              tool_calls: [
                { id: "a", function: { name: "x", arguments: "{}" } },
                { id: "b", function: { name: "x", arguments: "{}" } },
              ],
            },
            finish_reason: "tool_calls",
          }],
        }],
        calls: [["a", "x", "{}"], ["b", "x", "{}"]],
        text: "t",
      },
      "content in parts": {
        events: [delta({ content: [{ type: "text", text: "a" }, { type: "text", text: "b" }] })],
        calls: [],
        text: "ab",
      },
      "thinking inside the text": {
        events: [delta({ content: "<think>hm" }), delta({ content: "</think>\n\nyes" })],
        calls: [],
        text: "yes",
      },
      "no choices, null delta": {
        events: [{ choices: [] }, { choices: [{ delta: null }] }, {}],
        calls: [],
        text: "",
      },
    };
  for (const [name, { events, calls, text }] of Object.entries(rows)) {
    const draft = read(...events).draft();
    assert.deepEqual(draft.calls.map((made) => [made.id, made.name, made.arguments]), calls, name);
    assert.equal(draft.text, text ?? "", name);
  }
});

Deno.test("OpenAiReply: finish reasons and refusals", () => {
  const withCall = { tool_calls: [{ index: 0, id: "a", function: { name: "x", arguments: "{" } }] };
  const rows: [Json, string, string, string | null][] = [
    [{ content: "t" }, "stop", "stop", null],
    [withCall, "stop", "tool_calls", null],
    [withCall, "tool_calls", "tool_calls", null],
    [withCall, "length", "length", null],
    [{ content: "t" }, "tool_calls", "stop", null],
    [{ content: "t" }, "length", "length", null],
    [
      { content: "t" },
      "content_filter",
      "refusal",
      "the endpoint's content filter stopped the reply",
    ],
    [{ refusal: "I will not." }, "stop", "refusal", "I will not."],
    [{ content: "t" }, "something_new", "other", null],
  ];
  for (const [piece, wire, finish, refusal] of rows) {
    const draft = read(delta(piece), delta({}, wire)).draft();
    assert.deepEqual([draft.finish, draft.refusal], [finish, refusal], wire);
  }
});

Deno.test("OpenAiReply: only a reason, an end mark or a whole message makes a reply", () => {
  assert.equal(read(delta({ content: "half" })).finished, false);
  assert.equal(read(delta({ content: "x" }, "stop")).finished, true);
  assert.equal(read({ choices: [{ message: { content: "x" } }] }).finished, true);
  const marked = read(delta({ content: "x" }));
  assert.equal(marked.isEndMark("[DONE]"), true);
  assert.equal(marked.finished && marked.ended, true);
});

Deno.test("OpenAiReply: usage, cached tokens inside the input", () => {
  const rows: [Json, [number, number, number] | null][] = [
    [{
      prompt_tokens: 12929,
      completion_tokens: 5,
      prompt_tokens_details: { cached_tokens: 10880 },
    }, [12929, 5, 10880]],
    [{ prompt_tokens: 10, completion_tokens: 2 }, [10, 2, 0]],
    [{ prompt_tokens: 10, completion_tokens: 2, prompt_cache_hit_tokens: 4 }, [10, 2, 4]],
    [{ prompt_tokens: 10, completion_tokens: 2, prompt_tokens_details: { cached_tokens: 99 } }, [
      10,
      2,
      10,
    ]],
    [{ prompt_tokens: -1, completion_tokens: 2 }, null],
    [{ prompt_tokens: "10", completion_tokens: 2 }, null],
    [{}, null],
  ];
  for (const [usage, expected] of rows) {
    const { usage: got } = read({ choices: [], usage }).draft();
    assert.deepEqual(got && [got.tokensIn, got.tokensOut, got.tokensCached], expected);
  }
});

Deno.test("OpenAiReply: an error inside a stream keeps its status", () => {
  const reply = new OpenAiReply();
  assert.equal(reply.take({ error: { message: "slow down", code: 429 } })?.status, 429);
  assert.equal(reply.take({ error: { message: "broken", code: "server_error" } })?.status, 500);
  assert.equal(reply.take({ error: "broken" })?.status, 500);
});

Deno.test("OpenAiReply: cut at its bound and for repeating itself", () => {
  const long = new OpenAiReply();
  const piece = Array.from({ length: 5_000 }, (_, i) => `${i} `).join("");
  let fed = 0;
  while (long.cut === null && fed < 2 * MODEL_REPLY_BYTES_MAX) {
    long.take(delta({ content: piece }) as JsonObject);
    fed += piece.length;
  }
  assert.deepEqual([long.cut, long.draft().finish], ["length", "length"]);
  assert.ok(long.draft().text.length <= MODEL_REPLY_BYTES_MAX);
  assert.ok(long.draft().text.length > MODEL_REPLY_BYTES_MAX - piece.length);
  const spin = new OpenAiReply();
  let words = 0;
  for (; spin.cut === null && words < 20_000; words++) {
    spin.take(delta({ content: "again " }) as JsonObject);
  }
  assert.ok(words < 800, `${words} words`);
  assert.deepEqual([spin.draft().finish, spin.draft().text], ["repetition", "again again "]);
  const inArguments = new OpenAiReply();
  inArguments.take(
    delta({
      tool_calls: [{ index: 0, id: "a", function: { name: "x", arguments: '{"a":"' } }],
    }) as JsonObject,
  );
  for (let i = 0; i < 20_000 && inArguments.cut === null; i++) {
    inArguments.take(
      delta({ tool_calls: [{ index: 0, function: { arguments: "word " } }] }) as JsonObject,
    );
  }
  assert.deepEqual([inArguments.draft().finish, inArguments.draft().calls], ["repetition", []]);
});
