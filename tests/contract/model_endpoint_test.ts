/** What endpoints do to their clients in the field, each with the right outcome, in both dialects. */

import assert from "node:assert/strict";
import type { JsonObject } from "../../src/core/json.ts";
import { Vault } from "../../src/core/secret.ts";
import type { Outcome } from "../../src/core/outcome.ts";
import type { ModelFailure, ModelFailureClass, ModelReply } from "../../src/ports/model.ts";
import { systemClock } from "../../src/sys/clock.ts";
import type { ModelSettings } from "../../src/wire/payload.ts";
import {
  type ModelServerProcess,
  type ScriptReply,
  startModelServer,
} from "../fakes/model_server_process.ts";
import {
  answered,
  closedPort,
  endpointAt,
  never,
  recordedEndpoint,
  requestOf,
  type Rig,
  rigOf,
  settingsOf,
  type TimerKind,
  user,
} from "./model_setup.ts";

type Dialect = "openai" | "anthropic";
const DIALECTS: Dialect[] = ["openai", "anthropic"];
const TASK = [user("Read the file.")];
const OK: ScriptReply = { text: "fine" };

function errorBody(dialect: Dialect, message: string, type = "some_error"): JsonObject {
  return dialect === "openai"
    ? { error: { message, type, code: type } }
    : { type: "error", error: { type, message } };
}

async function replyOf(rig: Rig, messages = TASK): Promise<ModelReply> {
  const outcome = await rig.model.complete(requestOf(messages), never);
  assert.ok(outcome.ok, outcome.ok ? "" : outcome.failure.message);
  return outcome.value;
}

async function failureOf(rig: Rig, messages = TASK) {
  const outcome = await rig.model.complete(requestOf(messages), never);
  assert.ok(!outcome.ok, "a reply instead of a failure");
  return outcome.failure;
}

/** One server for both dialects of one test. */
function forBoth(
  name: string,
  check: (
    dialect: Dialect,
    server: ModelServerProcess,
    open: (settings?: Partial<ModelSettings>, deps?: Parameters<typeof rigOf>[1]) => Rig,
  ) => Promise<void>,
): void {
  Deno.test(name, async (t) => {
    await using server = await startModelServer();
    for (const dialect of DIALECTS) {
      await t.step(
        dialect,
        () =>
          check(
            dialect,
            server,
            (more, deps) => rigOf(settingsOf([endpointAt(server.url, { dialect })], more), deps),
          ),
      );
    }
  });
}

interface Final {
  case: string;
  reply: (dialect: Dialect) => ScriptReply;
  class: ModelFailureClass;
  retryable: boolean;
  message?: RegExp;
}

const fault =
  (status: number, message: string, type?: string, headers = {}) => (dialect: Dialect) => ({
    status,
    headers,
    body: errorBody(dialect, message, type),
  });

const FINALS: Final[] = [
  {
    case: "404, model not found: no retries, the model and the endpoint's own list named",
    reply: fault(404, "model 'm' not found", "not_found_error"),
    class: "not_found",
    retryable: false,
    message: /model m:.*its models: alpha, beta/,
  },
  {
    case: "429, the monthly quota is spent, no Retry-After",
    reply: fault(429, "Your monthly quota is spent."),
    class: "quota",
    retryable: false,
  },
  {
    case: "429, the monthly quota is spent, sixteen days",
    reply: fault(429, "monthly quota exceeded", "quota", { "retry-after": "1382400" }),
    class: "quota",
    retryable: false,
  },
  {
    case: "Retry-After: 86400 is not waited for",
    reply: fault(429, "slow down", "rate_limit_error", { "retry-after": "86400" }),
    class: "unreachable",
    retryable: true,
    message: /wait 86400 s/,
  },
  {
    case: "401",
    reply: fault(401, "invalid key", "authentication_error"),
    class: "auth",
    retryable: false,
    message: /refused the credentials.*no token was given/,
  },
  { case: "403", reply: fault(403, "forbidden"), class: "auth", retryable: false },
  {
    case: "the context is too long",
    reply: fault(400, "prompt is too long: 210000 tokens > 200000 maximum"),
    class: "context_length",
    retryable: false,
  },
  {
    case: "the model takes no tools",
    reply: fault(400, "gemma does not support tools"),
    class: "tools_unsupported",
    retryable: false,
  },
  {
    case: "a request that is wrong",
    reply: fault(400, "temperature: at most 1"),
    class: "bad_request",
    retryable: false,
    message: /400: temperature: at most 1/,
  },
];

forBoth("final at the first request, with its class", async (_dialect, server, open) => {
  for (const row of FINALS) {
    const reply = row.reply(_dialect);
    await server.script({ replies: [reply], loop: true, models: ["alpha", "beta"] });
    const rig = open();
    const failure = await failureOf(rig);
    assert.deepEqual(
      [failure.class, failure.retryable, failure.attempts],
      [row.class, row.retryable, 1],
      row.case,
    );
    if (row.message) assert.match(failure.message, row.message);
    assert.equal((await server.completions()).length, 1, row.case);
    assert.deepEqual(rig.waits, [], row.case);
  }
});

interface Passing {
  case: string;
  reply: (dialect: Dialect) => ScriptReply;
  /** The timer that ends the attempt. */
  timer?: TimerKind;
}

const PASSING: Passing[] = [
  { case: "429", reply: fault(429, "slow down", "rate_limit_error") },
  { case: "500", reply: fault(500, "oops", "api_error") },
  { case: "502 with a page", reply: () => ({ status: 502, body: "<html>bad gateway</html>" }) },
  { case: "503 without a body", reply: () => ({ status: 503 }) },
  { case: "529", reply: fault(529, "Overloaded", "overloaded_error") },
  { case: "the connection closes without an answer", reply: () => ({ reset: true }) },
  { case: "no answer in time", reply: () => ({ hang: true }), timer: "request" },
  {
    case: "half a stream, then silence",
    reply: () => ({ text: "HALF and more of it", pieceChars: 4, cutAfter: 5, then: "silence" }),
    timer: "idle",
  },
  {
    case: "half a stream, then a reset",
    reply: () => ({ text: "HALF and more of it", pieceChars: 4, cutAfter: 5, then: "reset" }),
  },
  {
    case: "half a stream, then its end",
    reply: () => ({ text: "HALF and more of it", pieceChars: 4, cutAfter: 5, then: "end" }),
  },
  {
    case: "half a call, then its end",
    reply: () => ({ calls: [{ name: "fs__read", arguments: { a: 1 } }], cutAfter: 3, then: "end" }),
  },
  {
    case: "an error inside the stream",
    reply: (dialect) => ({
      raw: `data: ${JSON.stringify(errorBody(dialect, "Overloaded", "overloaded_error"))}\n\n`,
    }),
  },
  { case: "an event that is no JSON", reply: () => ({ raw: "data: {HALF\n\n" }) },
  { case: "an empty stream", reply: () => ({ raw: "" }) },
  {
    case: "a page instead of a reply",
    reply: () => ({ raw: "<html>HALF</html>", headers: { "content-type": "text/html" } }),
  },
  {
    case: "JSON of another kind",
    reply: () => ({ raw: '{"hello":1}', headers: { "content-type": "application/json" } }),
  },
];

forBoth(
  "passing trouble is retried three times, and the half is not an answer",
  async (dialect, server, open) => {
    for (const row of PASSING) {
      const reply = row.reply(dialect);
      const ask = async (times: number): Promise<[Rig, Outcome<ModelReply, ModelFailure>]> => {
        const rig = open({}, { manual: row.timer !== undefined });
        const asked = rig.model.complete(requestOf(TASK), never);
        if (row.timer !== undefined) await endAttempts(server, rig, row.timer, times);
        return [rig, await asked];
      };
      await server.script({ replies: [{ ...reply, repeat: 3 }, OK] });
      const [rig, good] = await ask(3);
      assert.ok(good.ok, row.case);
      const { text, calls, attempts } = good.value;
      assert.deepEqual([text, calls.length, attempts], ["fine", 0, 4], row.case);
      assert.equal((await server.completions()).length, 4, row.case);
      // Full jitter at nine tenths of 100 ms, doubling.
      assert.deepEqual(rig.waits, [90, 180, 360], row.case);
      const retries = rig.events.filter(({ event }) => event === "intel.retry");
      assert.equal(retries.length, 3, row.case);

      await server.script({ replies: [reply], loop: true });
      const [, bad] = await ask(4);
      assert.ok(!bad.ok, row.case);
      const { failure } = bad;
      assert.deepEqual(
        [failure.class, failure.retryable, failure.attempts],
        ["unreachable", true, 4],
        row.case,
      );
      assert.equal((await server.completions()).length, 4, row.case);
      assert.ok(!failure.message.includes("HALF"), failure.message);
    }
  },
);

/** Lets the time of an attempt pass, each time the server has the request (and half a reply is here). */
async function endAttempts(
  server: ModelServerProcess,
  rig: Rig,
  timer: TimerKind,
  times: number,
): Promise<void> {
  for (let ended = 0; ended < times;) {
    if ((await server.completions()).length > ended && rig.isArmed(timer)) {
      rig.fire(timer);
      ended++;
    }
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

forBoth(
  "Retry-After is honoured up to 60 s, in seconds and as a date",
  async (dialect, server, open) => {
    const slow = (headers: Record<string, string>) =>
      fault(429, "slow", "rate_limit_error", headers)(dialect);
    const date = new Date(Date.now() + 20_000).toUTCString();
    await server.script({
      replies: [
        slow({ "retry-after": "7" }),
        slow({ "retry-after": "60" }),
        slow({ "retry-after": date }),
        OK,
      ],
    });
    const rig = open();
    assert.equal((await replyOf(rig)).attempts, 4);
    assert.deepEqual(rig.waits.slice(0, 2), [7_000, 60_000]);
    assert.ok(rig.waits[2]! > 10_000 && rig.waits[2]! <= 20_000, `${rig.waits[2]}`);
  },
);

forBoth("nothing listens: four attempts, retryable", async (dialect) => {
  const rig = rigOf(settingsOf([endpointAt(`http://127.0.0.1:${closedPort()}/v1`, { dialect })]));
  const failure = await failureOf(rig);
  assert.deepEqual([failure.class, failure.retryable, failure.attempts], ["unreachable", true, 4]);
  assert.match(failure.message, /refused/i);
});

forBoth(
  "an abort ends the call wherever it is, and leaves nothing behind",
  async (dialect, server) => {
    const rows: ScriptReply[] = [
      { hang: true },
      { text: "half a reply", pieceChars: 3, cutAfter: 5, then: "silence" },
      { status: 429, headers: { "retry-after": "50" } },
    ];
    for (const reply of rows) {
      await server.script({ replies: [reply], loop: true });
      const controller = new AbortController();
      const settings = settingsOf([endpointAt(server.url, { dialect })]);
      const told = { emit: () => {} };
      const rig = rigOf(settings, { clock: systemClock, telemetry: told });
      const asked = rig.model.complete(requestOf(TASK), controller.signal);
      while ((await server.completions()).length === 0) {
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
      controller.abort();
      const outcome = await asked;
      assert.ok(!outcome.ok && outcome.failure.class === "cancelled", JSON.stringify(reply));
      assert.equal((await server.completions()).length, 1);
    }
  },
);

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
  ];
  for (const form of rows) {
    await server.script({ replies: [{ text, calls, ...form }] });
    const reply = await replyOf(open());
    assert.deepEqual([reply.text, reply.attempts], [text, 1], JSON.stringify(form));
    assert.deepEqual(JSON.parse(reply.calls[0]!.arguments), { path: "ü" });
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
