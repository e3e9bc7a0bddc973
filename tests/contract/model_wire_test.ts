/** What goes over the wire and comes back in the field, in both dialects, and several endpoints. */

import assert from "node:assert/strict";
import type { JsonObject } from "../../src/core/json.ts";
import { IMAGE_BYTES_EQUIVALENT } from "../../src/core/limits.ts";
import { Vault } from "../../src/core/secret.ts";
import { type ScriptReply, startModelServer } from "../fakes/model_server_process.ts";
import { failureOf, fault, forBoth, OK, replyOf, TASK } from "./model_field.ts";
import {
  answered,
  closedPort,
  endpointAt,
  recordedEndpoint,
  requestOf,
  rigOf,
  settingsOf,
} from "./model_setup.ts";

forBoth("usage as the field has it", async (dialect, server, open) => {
  const usage: JsonObject = dialect === "openai"
    ? {
      prompt_tokens: 12929,
      completion_tokens: 7,
      prompt_tokens_details: { cached_tokens: 10880 },
    }
    : {
      input_tokens: 3,
      cache_creation_input_tokens: 109075,
      cache_read_input_tokens: 0,
      output_tokens: 81,
    };
  const expected = dialect === "openai"
    ? { tokensIn: 12929, tokensOut: 7, tokensCached: 10880, estimated: false }
    : { tokensIn: 109078, tokensOut: 81, tokensCached: 0, estimated: false };
  for (const whole of [false, true]) {
    await server.script({ replies: [{ text: "x", usage, whole }] });
    assert.deepEqual((await replyOf(open())).usage, expected);
  }
});

forBoth("a prompt of no tokens was not counted", async (dialect, server, open) => {
  const usage: JsonObject = dialect === "openai"
    ? { prompt_tokens: 0, completion_tokens: 0 }
    : { input_tokens: 0, output_tokens: 0 };
  await server.script({ replies: [{ text: "x".repeat(400), usage }] });
  const reply = await replyOf(open());
  const [request] = await server.completions();
  assert.deepEqual(reply.usage, {
    tokensIn: Math.ceil(JSON.stringify(request!.body).length / 4),
    tokensOut: 100,
    tokensCached: 0,
    estimated: true,
  });
});

forBoth("an image that nobody counted costs what images cost", async (_dialect, server, open) => {
  const prompt = async (data: string) => {
    await server.script({ replies: [{ text: "x", usage: null }] });
    const image = { type: "image" as const, mimeType: "image/png", data };
    const parts = [{ type: "text" as const, text: "What is it?" }, image];
    return (await replyOf(open(), [{ role: "user", parts }])).usage.tokensIn;
  };
  const small = await prompt("aGk=");
  assert.equal(await prompt("A".repeat(400_000)), small);
  assert.ok(small > IMAGE_BYTES_EQUIVALENT / 4 && small < IMAGE_BYTES_EQUIVALENT);
});

forBoth("streams in all their forms", async (_dialect, server, open) => {
  const text = "Grüße \u{1F44B} ".repeat(5);
  const calls = [{ id: "a", name: "fs__read", arguments: { path: "ü" } }];
  const rows: ScriptReply[] = [
    { noise: true },
    { splitBytes: 1 },
    { splitBytes: 7, noise: true },
    { eventDelayMs: 1 },
    { whole: true },
    { keepOpen: true },
    ...[64, 1].map((splitBytes) => ({
      splitBytes,
      headers: { "content-type": "application/json" },
    })),
  ];
  for (const form of rows) {
    await server.script({ replies: [{ text, calls, ...form }] });
    const reply = await replyOf(open());
    assert.deepEqual([reply.text, reply.attempts], [text, 1], JSON.stringify(form));
    assert.deepEqual(JSON.parse(reply.calls[0]!.arguments), { path: "ü" });
  }
});

forBoth("a whole reply of a gateway that leaves out all it can", async (dialect, server, open) => {
  const content = [{ type: "text", text: "bare" }];
  const body = dialect === "openai"
    ? { choices: [{ message: { content: "bare" } }] }
    : { content, stop_reason: null };
  // Asked for a stream, some say that they send one.
  for (const type of ["application/json", "text/plain", "text/event-stream"]) {
    const headers = { "content-type": type };
    await server.script({ replies: [{ raw: JSON.stringify(body), headers }] });
    const reply = await replyOf(open());
    assert.deepEqual([reply.text, reply.finish, reply.attempts], ["bare", "stop", 1], type);
    assert.equal(reply.usage.estimated, true);
  }
});

forBoth(
  "a reply that only repeats itself is cut off on the wire",
  async (_dialect, server, open) => {
    await server.script({
      replies: [{ text: "again ", times: 20_000 }, { text: "again ", times: 20_000, whole: true }],
    });
    const rig = open();
    const reply = await replyOf(rig);
    assert.deepEqual([reply.finish, reply.text, reply.usage.estimated], [
      "repetition",
      "again again ",
      true,
    ]);
    const [request] = await server.completions();
    // Some of it is on its way before the server can notice; the whole would be over two megabytes.
    assert.ok(request!.sentBytes < 20_000 * 100, `${request!.sentBytes} bytes`);
  },
);

forBoth(
  "connections are kept; the model's name is asked for once; old requests are prefixes",
  async (dialect, server, open) => {
    await server.script({
      replies: [{ calls: [{ name: "fs__read", arguments: { n: "{{n}}" } }], repeat: 10 }, OK],
      models: ["first", "second"],
    });
    const before = (await server.stats()).connections;
    const rig = open({ name: null });
    let messages = TASK;
    for (let turn = 0; turn < 10; turn++) {
      messages = answered(
        messages,
        await replyOf(rig, messages),
      );
    }
    assert.equal((await replyOf(rig, messages)).model, "first");
    const requests = await server.requests();
    assert.equal(requests.filter((request) => request.path === "/v1/models").length, 1);
    assert.ok((await server.stats()).connections - before <= 1);
    const bodies = requests.filter((request) => request.method === "POST").map((request) =>
      request.body
    );
    assert.equal(bodies.length, 11);
    const bare = (value: unknown) =>
      JSON.stringify(value).replaceAll(',"cache_control":{"type":"ephemeral"}', "");
    for (let i = 1; i < bodies.length; i++) {
      assert.equal(JSON.stringify(bodies[i].tools), JSON.stringify(bodies[0].tools));
      assert.equal(JSON.stringify(bodies[i].system), JSON.stringify(bodies[0].system));
      assert.ok(
        bare(bodies[i].messages).startsWith(bare(bodies[i - 1].messages).slice(0, -1)),
        dialect,
      );
    }
  },
);

forBoth(
  "headers: credentials by dialect, secrets of the file, the trace",
  async (dialect, server) => {
    await server.script({
      replies: [OK, fault(401, "bad key sk-canary-1234 and canary-header")(dialect)],
    });
    const vault = Vault.from({ "env:KEY": "sk-canary-1234", "env:H": "canary-header" });
    const endpoint = endpointAt(server.url, {
      dialect,
      token: [{ secret: "env:KEY" }],
      headers: { "X-Team": ["t-", { secret: "env:H" }] },
    });
    const rig = rigOf(settingsOf([endpoint]), { vault });
    await replyOf(rig);
    const [request] = await server.completions();
    const { headers } = request!;
    if (dialect === "openai") assert.equal(headers["authorization"], "Bearer sk-canary-1234");
    else {
      assert.equal(headers["x-api-key"], "sk-canary-1234");
      assert.equal(headers["anthropic-version"], "2023-06-01");
      assert.equal(headers["authorization"], undefined);
    }
    assert.equal(headers["x-team"], "t-canary-header");
    assert.equal(headers["traceparent"], requestOf(TASK).traceparent);
    const failure = await failureOf(rig);
    assert.match(failure.message, /bad key \*\*\* and \*\*\*/);
    const told = JSON.stringify([rig.events, rig.lines, failure]);
    assert.ok(!told.includes("canary"), told);
  },
);

forBoth(
  "a redirect is followed within the origin, and never with credentials beyond it",
  async (dialect, server) => {
    await using other = await startModelServer({ replies: [OK], loop: true });
    const vault = Vault.from({ "env:KEY": "sk-canary-1234" });
    const endpoint = endpointAt(server.url, { dialect, token: [{ secret: "env:KEY" }] });
    const path = dialect === "openai" ? "/chat/completions" : "/messages";
    await server.script({ replies: [{ status: 307, headers: { location: `/v2${path}` } }, OK] });
    const rig = rigOf(settingsOf([endpoint]), { vault });
    assert.equal((await replyOf(rig)).attempts, 2);
    assert.deepEqual((await server.completions()).map((request) => request.path), [
      `/v1${path}`,
      `/v2${path}`,
    ]);
    await server.script({
      replies: [{ status: 307, headers: { location: other.url + path } }],
      loop: true,
    });
    const failure = await failureOf(rig);
    assert.deepEqual([failure.class, failure.retryable, failure.attempts], [
      "bad_request",
      false,
      1,
    ]);
    assert.match(failure.message, new RegExp(String(other.port)));
    assert.equal((await other.requests()).length, 0);
    await server.script({
      replies: [{ status: 307, headers: { location: `/v1${path}` } }],
      loop: true,
    });
    assert.equal((await failureOf(rig)).attempts, 4);
  },
);

Deno.test("max_completion_tokens: learned from one rejection and remembered", async () => {
  await using server = await startModelServer();
  const reject = fault(
    400,
    "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
  )("openai");
  await server.script({ replies: [reject, OK, OK] });
  const rig = rigOf(settingsOf([endpointAt(server.url)]));
  assert.equal((await replyOf(rig)).attempts, 2);
  assert.equal((await replyOf(rig)).attempts, 1);
  const bodies = (await server.completions()).map((request) => request.body);
  assert.deepEqual(bodies.map((body) => [body.max_tokens, body.max_completion_tokens]), [
    [1000, undefined],
    [undefined, 1000],
    [undefined, 1000],
  ]);
  // An endpoint that rejects both is told of, not asked for ever.
  await server.script({ replies: [reject], loop: true });
  assert.equal((await failureOf(rigOf(settingsOf([endpointAt(server.url)])))).attempts, 2);
});

forBoth(
  "an image that the endpoint does not take is described instead",
  async (dialect, server, open) => {
    await server.script({ replies: [fault(400, "Could not process image")(dialect), OK] });
    const image = { type: "image" as const, mimeType: "image/png", data: "aGk=" };
    const reply = await replyOf(open(), [{
      role: "user",
      parts: [{ type: "text", text: "look" }, image],
    }]);
    assert.equal(reply.attempts, 2);
    const [first, second] = await server.completions();
    assert.ok(JSON.stringify(first!.body).includes("aGk="));
    assert.ok(!JSON.stringify(second!.body).includes("aGk="));
  },
);

forBoth(
  "200 calls in one reply: the next request is valid where 128 is the most",
  async (_dialect, server, open) => {
    const calls = Array.from(
      { length: 200 },
      (_, i) => ({ id: `c${i}`, name: "fs__read", arguments: { i } }),
    );
    await server.script({ replies: [{ calls }, OK] });
    const rig = open();
    const reply = await replyOf(rig);
    assert.equal(reply.calls.length, 200);
    assert.equal((await replyOf(rig, answered(TASK, reply))).text, "fine");
  },
);

forBoth(
  "cut by length in the middle of a call: said so, arguments as far as they came",
  async (_dialect, server, open) => {
    const finish = _dialect === "openai" ? "length" : "max_tokens";
    await server.script({
      replies: [{ calls: [{ name: "fs__read", arguments: '{"path":"/lo' }], finish }, OK],
    });
    const rig = open();
    const reply = await replyOf(rig);
    assert.deepEqual([reply.finish, reply.calls[0]!.arguments], ["length", '{"path":"/lo']);
    assert.equal((await replyOf(rig, answered(TASK, reply))).text, "fine");
  },
);

Deno.test("failover: thinking that another endpoint signed is left out where it is not taken", async () => {
  await using server = await startModelServer();
  const words = "messages.1.content.0: Invalid `signature` in `thinking` block";
  await server.script({ replies: [fault(400, words)("anthropic"), OK] });
  const rig = rigOf(settingsOf([endpointAt(server.url, { dialect: "anthropic" })]));
  const thinking = { type: "thinking", thinking: "Hm.", signature: "of another" };
  const reply = await replyOf(rig, [
    ...TASK,
    {
      role: "assistant",
      text: "",
      calls: [],
      opaque: { dialect: "anthropic", blocks: [thinking] },
    },
    ...TASK,
  ]);
  assert.equal(reply.text, "fine");
  const sent = (await server.completions()).map((request) => JSON.stringify(request.body));
  assert.deepEqual(sent.map((body) => body.includes("of another")), [true, false]);
});

Deno.test("failover: the next endpoint answers, a failing one is skipped, credentials that fail are told", async () => {
  await using server = await startModelServer();
  await using second = await startModelServer({ replies: [OK], loop: true });
  const both = settingsOf([
    endpointAt(server.url),
    endpointAt(second.url, { dialect: "anthropic" }),
  ]);
  const rows: [ScriptReply, number][] = [
    [fault(401, "no")("openai"), 1],
    [fault(429, "monthly quota")("openai"), 1],
    [{ status: 503 }, 4],
    [{ status: 429, headers: { "retry-after": "30" } }, 1],
  ];
  for (const [reply, asked] of rows) {
    await server.script({ replies: [reply], loop: true });
    const rig = rigOf(both);
    const good = await replyOf(rig);
    assert.deepEqual([good.endpoint, good.attempts], [second.url, asked + 1]);
    assert.equal((await replyOf(rig)).attempts, 1);
    assert.equal((await server.completions()).length, asked, JSON.stringify(reply));
    const next = rig.events.find(({ fields }) => fields["next"] !== undefined);
    assert.equal(next?.fields["next"], second.url);
  }
  // What the conversation itself brings about is not tried elsewhere.
  await server.script({ replies: [fault(400, "prompt is too long")("openai")], loop: true });
  assert.equal((await failureOf(rigOf(both))).class, "context_length");
  // All fail: all are told, and one that may pass makes it retryable.
  await server.script({ replies: [fault(401, "no")("openai")], loop: true });
  const gone = endpointAt(`http://127.0.0.1:${closedPort()}/v1`);
  const failure = await failureOf(rigOf(settingsOf([endpointAt(server.url), gone])));
  assert.deepEqual([failure.class, failure.retryable, failure.attempts], ["unreachable", true, 5]);
  assert.match(failure.message, /2 model endpoints: .*refused the credentials.*; Cannot reach/);
});

Deno.test("probe: a local server that is there answers, else the recording does and it shows", async () => {
  await using server = await startModelServer({
    replies: [{ text: "live" }],
    loop: true,
    models: ["local"],
  });
  const live = rigOf(settingsOf([endpointAt(server.url)], { name: null }));
  await replyOf(live);
  const recording = recordedEndpoint(live.lines.join("\n"));
  const there = rigOf(
    settingsOf([endpointAt(server.url, { probe: true }), recording], { name: null }),
  );
  const first = await replyOf(there);
  assert.deepEqual([first.endpoint, first.model], [server.url, "local"]);

  const gone = `http://127.0.0.1:${closedPort()}/v1`;
  for (const url of [gone, `${server.url}/nowhere/models`]) {
    const rig = rigOf(settingsOf([endpointAt(url, { probe: true }), recording], { name: null }));
    if (url !== gone) await server.script({ models: [] });
    assert.equal((await replyOf(rig)).endpoint, "recorded");
    assert.equal((await replyOf(rig)).endpoint, "recorded");
    const told = rig.events.map((
      { event, fields },
    ) => [event, fields["reason"] ?? fields["endpoint"], fields["next"]]);
    assert.deepEqual(told, [
      ["intel.retry", "no_answer", "recorded"],
      ["intel.result", "recorded", undefined],
      ["intel.result", "recorded", undefined],
    ]);
  }
  const nobody = await failureOf(rigOf(settingsOf([endpointAt(gone, { probe: true })])));
  assert.deepEqual([nobody.class, nobody.retryable], ["unreachable", true]);
  assert.match(nobody.message, /nothing answers at/);
});

Deno.test("an endpoint that lists no models: named, with what to do", async () => {
  await using server = await startModelServer({ models: [] });
  const failure = await failureOf(rigOf(settingsOf([endpointAt(server.url)], { name: null })));
  assert.deepEqual([failure.class, failure.retryable], ["not_found", false]);
  assert.match(failure.message, /--model/);
});

Deno.test("secrets that a tool or a model echoes do not reach a recording", async () => {
  await using server = await startModelServer({ replies: [{ text: 'it is sk-"canary"-1234' }] });
  const vault = Vault.from({ "env:KEY": 'sk-"canary"-1234' });
  const rig = rigOf(settingsOf([endpointAt(server.url)]), { vault });
  await replyOf(rig);
  assert.ok(rig.lines.length === 2 && rig.lines[1]!.includes("it is ***"), rig.lines[1]);
});
