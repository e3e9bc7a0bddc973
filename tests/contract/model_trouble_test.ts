/** Trouble that endpoints make in the field, each with the right verdict, in both dialects. */

import assert from "node:assert/strict";
import type { Outcome } from "../../src/core/outcome.ts";
import type { ModelFailure, ModelFailureClass, ModelReply } from "../../src/ports/model.ts";
import { systemClock } from "../../src/sys/clock.ts";
import type { ModelServerProcess, ScriptReply } from "../fakes/model_server_process.ts";
import {
  type Dialect,
  errorBody,
  failureOf,
  fault,
  forBoth,
  OK,
  replyOf,
  TASK,
} from "./model_field.ts";
import {
  closedPort,
  endpointAt,
  never,
  requestOf,
  type Rig,
  rigOf,
  settingsOf,
  type TimerKind,
} from "./model_setup.ts";

interface Final {
  case: string;
  reply: (dialect: Dialect) => ScriptReply;
  class: ModelFailureClass;
  retryable: boolean;
  message?: RegExp;
}

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
