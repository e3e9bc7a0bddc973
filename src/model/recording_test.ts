import assert from "node:assert/strict";
import type { Message, ModelReply, ModelRequest, ToolCall, ToolSpec } from "../ports/model.ts";
import { RecordedEndpoint } from "./recorded.ts";
import {
  parseRecording,
  printRequest,
  type RecordedReply,
  RECORDING_HEADER,
  writeEntry,
} from "./recording.ts";

const signal = new AbortController().signal;
const tool = (name: string): ToolSpec => ({ name, description: name, inputSchema: {} });
const user = (text: string): Message => ({ role: "user", parts: [{ type: "text", text }] });

function request(messages: Message[], more: Partial<ModelRequest> = {}): ModelRequest {
  return {
    purpose: "turn",
    system: "s",
    messages,
    tools: [tool("a"), tool("b")],
    toolChoice: "auto",
    outputSchema: null,
    traceparent: "",
    ...more,
  };
}

function reply(text: string, ...calls: ToolCall[]): RecordedReply {
  return {
    text,
    calls,
    finish: calls.length > 0 ? "tool_calls" : "stop",
    refusal: null,
    opaque: null,
    usage: { tokensIn: 5, tokensOut: 2, tokensCached: 1, estimated: false },
    model: "m",
  };
}

/** A conversation of two calls and an answer, as the loop would build it. */
const CALLS: ToolCall[] = [
  { id: "1", name: "a", arguments: '{"x":1,"y":2}' },
  { id: "2", name: "b", arguments: "{}" },
];
const REPLIES = [reply("", CALLS[0]!), reply("now b", CALLS[1]!), reply("done")];

function conversation(turns: number, result = "r", rename = ""): Message[] {
  const messages: Message[] = [user("task")];
  for (let i = 0; i < turns; i++) {
    const call = { ...CALLS[i]!, id: CALLS[i]!.id + rename };
    messages.push({ role: "assistant", text: REPLIES[i]!.text, calls: [call] }, {
      role: "tool",
      callId: call.id,
      name: call.name,
      parts: [{ type: "text", text: result }],
      isError: false,
      note: `[note ${result}]`,
    });
  }
  return messages;
}

function record(requests: [ModelRequest, RecordedReply][]): string {
  const lines = requests.map(([asked, said]) => writeEntry(printRequest(asked), said));
  return [RECORDING_HEADER, ...lines].join("\n") + "\n";
}

const RECORDING = record(REPLIES.map((said, i) => [request(conversation(i)), said]));

async function ask(endpoint: RecordedEndpoint, asked: ModelRequest): Promise<string> {
  const outcome = await endpoint.complete(asked, signal);
  return outcome.ok ? outcome.value.text || outcome.value.calls[0]!.name : outcome.failure.message;
}

Deno.test("RecordedEndpoint: plays a conversation, whatever tools return and harnesses say", async () => {
  const endpoint = new RecordedEndpoint(RECORDING);
  const said: string[] = [];
  for (let i = 0; i < 3; i++) {
    said.push(
      await ask(endpoint, request(conversation(i, `other ${i}`, "-renamed"), { system: "new" })),
    );
  }
  assert.deepEqual(said, ["a", "now b", "done"]);
  const outcome = await endpoint.complete(request(conversation(2)), signal);
  assert.ok(outcome.ok);
  const { usage, endpoint: name, model, attempts, finish } = outcome.value as ModelReply;
  assert.deepEqual(
    { usage, name, model, attempts, finish },
    { usage: REPLIES[2]!.usage, name: "recorded", model: "m", attempts: 1, finish: "stop" },
  );
});

Deno.test("RecordedEndpoint: key order and white space of arguments do not matter, order of tools neither", async () => {
  const messages = conversation(1);
  const first = messages[1] as Extract<Message, { role: "assistant" }>;
  const spaced = { ...first, calls: [{ ...first.calls[0]!, arguments: '{ "y": 2, "x": 1 }' }] };
  const asked = request([messages[0]!, spaced, messages[2]!], { tools: [tool("b"), tool("a")] });
  assert.equal(await ask(new RecordedEndpoint(RECORDING), asked), "now b");
});

Deno.test("RecordedEndpoint: requests that look the same are answered in order, the last one again", async () => {
  const same = request([user("task")]);
  const endpoint = new RecordedEndpoint(record([[same, reply("one")], [same, reply("two")]]));
  const said: string[] = [];
  for (let i = 0; i < 4; i++) said.push(await ask(endpoint, same));
  assert.deepEqual(said, ["one", "two", "two", "two"]);
});

Deno.test("RecordedEndpoint: what is not covered is named, never answered", async () => {
  const strange: Message = { role: "assistant", text: "something else", calls: [] };
  const rows: [ModelRequest, RegExp][] = [
    [
      request([user("another task")]),
      /the instruction differs: recorded "task", asked "another task"/,
    ],
    [
      request([user("task")], { tools: [tool("a"), tool("c")] }),
      /the tools differ: recorded with b; now offered c/,
    ],
    [request([user("task")], { tools: [] }), /the tools differ: recorded with a, b$/],
    [request([user("task")], { purpose: "summary" }), /no reply for a summary/],
    [
      request([user("task"), strange, user("go on")]),
      /reply 1 of the conversation is not the recorded one/,
    ],
    [
      request([...conversation(2), { role: "assistant", text: "done", calls: [] }, user("more")]),
      /ends after reply 3/,
    ],
  ];
  for (const [asked, message] of rows) {
    const outcome = await new RecordedEndpoint(RECORDING).complete(asked, signal);
    assert.ok(!outcome.ok);
    assert.deepEqual([outcome.failure.class, outcome.failure.retryable], ["uncovered", false]);
    assert.match(outcome.failure.message, message);
  }
  assert.match(
    await ask(new RecordedEndpoint(RECORDING_HEADER), request([user("task")])),
    /holds no replies/,
  );
});

Deno.test("RecordedEndpoint: an aborted call is cancelled", async () => {
  const controller = new AbortController();
  controller.abort();
  const outcome = await new RecordedEndpoint(RECORDING).complete(
    request(conversation(0)),
    controller.signal,
  );
  assert.ok(!outcome.ok && outcome.failure.class === "cancelled");
});

Deno.test("parseRecording: joined files are read, faults name their line", () => {
  const joined = parseRecording(RECORDING + RECORDING);
  assert.ok(joined.ok && joined.value.length === 6);
  const lines = RECORDING.trim().split("\n");
  const bad = (change: (entry: Record<string, unknown>) => void) => {
    const entry = JSON.parse(lines[1]!);
    change(entry);
    return `${RECORDING_HEADER}\n${JSON.stringify(entry)}`;
  };
  const rows: [string, number, RegExp][] = [
    ["", 1, /no header/],
    [lines[1]!, 1, /no header/],
    [`${RECORDING_HEADER}\n{"torn`, 2, /not JSON/],
    [`${RECORDING_HEADER}\n\n[1]`, 3, /not a JSON object/],
    ['{"v":2,"kind":"agentd-recording"}', 1, /version 2; only 1 is read/],
    [bad((entry) => delete entry["reply"]), 2, /reply has no text/],
    [bad((entry) => entry["purpose"] = "other"), 2, /purpose/],
    [bad((entry) => entry["tools"] = [1]), 2, /tools/],
    [bad((entry) => (entry["reply"] as Record<string, unknown>)["calls"] = [{}]), 2, /calls/],
    [bad((entry) => (entry["reply"] as Record<string, unknown>)["finish"] = "x"), 2, /finish/],
    [bad((entry) => (entry["reply"] as Record<string, unknown>)["usage"] = null), 2, /usage/],
  ];
  for (const [text, line, message] of rows) {
    const parsed = parseRecording(text);
    assert.ok(!parsed.ok, text);
    assert.equal(parsed.failure.line, line);
    assert.match(parsed.failure.message, message);
  }
});

Deno.test("RecordedEndpoint: a recording that cannot be read answers nothing", async () => {
  const endpoint = new RecordedEndpoint("nonsense");
  for (let i = 0; i < 2; i++) {
    assert.match(
      await ask(endpoint, request(conversation(0))),
      /Cannot read the recording: line 1/,
    );
  }
});
