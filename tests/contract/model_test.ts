/** One suite for every model behind the port: both dialects, streamed and whole, and the recorded one. */

import assert from "node:assert/strict";
import type { Outcome } from "../../src/core/outcome.ts";
import type { ModelFailure, ModelReply } from "../../src/ports/model.ts";
import type { ModelSettings } from "../../src/wire/payload.ts";
import {
  type ModelServerProcess,
  type ScriptReply,
  startModelServer,
} from "../fakes/model_server_process.ts";
import {
  answered,
  endpointAt,
  never,
  recordedEndpoint,
  requestOf,
  type Rig,
  rigOf,
  settingsOf,
  user,
} from "./model_setup.ts";

interface Kind {
  name: string;
  /** A model that gives these replies, one after the other, to this drive. */
  open(
    server: ModelServerProcess,
    replies: ScriptReply[],
    drive: (rig: Rig) => Promise<void>,
  ): Promise<Rig>;
}

function wired(dialect: "openai" | "anthropic", stream: boolean): Kind {
  const options: ModelSettings["options"] = stream ? {} : { stream: false };
  return {
    name: `${dialect}, ${stream ? "streamed" : "whole"}`,
    async open(server, replies) {
      await server.script({ replies });
      return rigOf(settingsOf([endpointAt(server.url, { dialect })], { options }));
    },
  };
}

/** What a real endpoint said once, played back. */
const recorded: Kind = {
  name: "recorded",
  async open(server, replies, drive) {
    await server.script({ replies });
    const live = rigOf(settingsOf([endpointAt(server.url)]));
    await drive(live);
    return rigOf(settingsOf([recordedEndpoint(live.lines.join("\n"))]));
  },
};

const KINDS = [
  wired("openai", true),
  wired("openai", false),
  wired("anthropic", true),
  wired("anthropic", false),
  recorded,
];

function valueOf(outcome: Outcome<ModelReply, ModelFailure>): ModelReply {
  assert.ok(outcome.ok, outcome.ok ? "" : outcome.failure.message);
  return outcome.value;
}

const TASK = [user("Read the file.")];

/** One request, and what came of it. */
interface Criterion {
  name: string;
  replies: ScriptReply[];
  expect: Partial<ModelReply> | ((reply: ModelReply) => void);
}

const CRITERIA: Criterion[] = [
  {
    name: "an answer, with its text as it was written",
    replies: [{ text: "Grüße, \u{1F44B}\n```json\n{}\n```", pieceChars: 1 }],
    expect: {
      text: "Grüße, \u{1F44B}\n```json\n{}\n```",
      calls: [],
      finish: "stop",
      refusal: null,
      model: "m",
      attempts: 1,
    },
  },
  {
    name: "calls in order, text beside them, arguments as raw text",
    replies: [{
      text: "Two.",
      calls: [
        { id: "a", name: "fs__read", arguments: { path: "x", n: [1, { y: null }] } },
        { id: "b", name: "fs__read", arguments: {} },
      ],
    }],
    expect: (reply) => {
      assert.equal(reply.text, "Two.");
      assert.equal(reply.finish, "tool_calls");
      assert.deepEqual(reply.calls.map((call) => [call.id, call.name]), [
        ["a", "fs__read"],
        ["b", "fs__read"],
      ]);
      assert.deepEqual(JSON.parse(reply.calls[0]!.arguments), { path: "x", n: [1, { y: null }] });
      assert.deepEqual(JSON.parse(reply.calls[1]!.arguments || "{}"), {});
    },
  },
  {
    name: "ids of their own for calls that share one or have none",
    replies: [{
      calls: [
        { id: "same", name: "fs__read" },
        { id: "same", name: "fs__read" },
        { id: "", name: "fs__read" },
      ],
    }],
    expect: (reply) => {
      const ids = reply.calls.map((call) => call.id);
      assert.equal(new Set(ids).size, 3);
      assert.equal(ids[0], "same");
      assert.ok(ids.every((id) => /^[A-Za-z0-9_-]{1,64}$/.test(id)), ids.join(" "));
    },
  },
  {
    name: "the wire's own refusal",
    replies: [{ refusal: "I cannot help with that." }],
    expect: { finish: "refusal", refusal: "I cannot help with that.", calls: [] },
  },
  {
    name: "an empty reply",
    replies: [{ text: "" }],
    expect: { text: "", calls: [], finish: "stop", refusal: null },
  },
  {
    name: "no usage reported: an estimate that says so",
    replies: [{ text: "twelve chars", usage: null }],
    expect: (reply) => {
      assert.equal(reply.usage.estimated, true);
      assert.equal(reply.usage.tokensOut, 3);
      assert.ok(reply.usage.tokensIn > 20);
    },
  },
  {
    name: "a reply that only repeats itself is cut off",
    replies: [{ text: "again ", times: 20_000 }],
    expect: (reply) => {
      assert.equal(reply.finish, "repetition");
      assert.equal(reply.text, "again again ");
      assert.deepEqual(reply.calls, []);
      assert.equal(reply.usage.tokensOut > 0, true);
    },
  },
];

for (const kind of KINDS) {
  Deno.test(`ModelPort (${kind.name}): one request`, async (t) => {
    await using server = await startModelServer();
    for (const { name, replies, expect } of CRITERIA) {
      await t.step(name, async () => {
        const drive = async (rig: Rig) => {
          const reply = valueOf(await rig.model.complete(requestOf(TASK), never));
          if (typeof expect === "function") return expect(reply);
          for (const [key, value] of Object.entries(expect)) {
            assert.deepEqual(reply[key as keyof ModelReply], value, key);
          }
        };
        await drive(await kind.open(server, replies, drive));
      });
    }
  });

  Deno.test(`ModelPort (${kind.name}): a conversation, every call answered once`, async () => {
    await using server = await startModelServer();
    const replies: ScriptReply[] = Array.from({ length: 6 }, (_, i) => ({
      text: i % 2 === 0 ? "" : `Step ${i}.`,
      reasoning: i % 3 === 0 ? "Thinking." : "",
      // The same id in every turn: the client tells them apart.
      calls: [{ id: "call_0", name: "fs__read", arguments: { i } }, { name: "fs__read" }],
    }));
    replies.push({ text: "Done." });
    const drive = async (rig: Rig) => {
      let messages = TASK;
      for (let turn = 0; turn < 6; turn++) {
        const reply = valueOf(await rig.model.complete(requestOf(messages), never));
        assert.equal(reply.calls.length, 2);
        messages = answered(messages, reply, `${turn}`);
      }
      const last = valueOf(await rig.model.complete(requestOf(messages), never));
      assert.equal(last.text, "Done.");
      const summary = rig.events.filter((event) => event.event === "intel.result");
      assert.equal(summary.length, 7);
      assert.ok(summary.every(({ fields }) => Number(fields["tokens_in"]) > 0));
    };
    await drive(await kind.open(server, replies, drive));
  });

  Deno.test(`ModelPort (${kind.name}): an aborted call is cancelled, and sends nothing more`, async () => {
    await using server = await startModelServer();
    const rig = await kind.open(server, [{ text: "x" }], async (live) => {
      valueOf(await live.model.complete(requestOf(TASK), never));
    });
    const before = (await server.completions()).length;
    const controller = new AbortController();
    controller.abort();
    const outcome = await rig.model.complete(requestOf(TASK), controller.signal);
    assert.ok(!outcome.ok && outcome.failure.class === "cancelled");
    assert.equal((await server.completions()).length, before);
  });

  Deno.test(`ModelPort (${kind.name}): what it cannot answer is a failure, never a throw`, async () => {
    await using server = await startModelServer();
    const rig = await kind.open(server, [{ text: "x" }], async (live) => {
      valueOf(await live.model.complete(requestOf(TASK), never));
    });
    if (kind !== recorded) valueOf(await rig.model.complete(requestOf(TASK), never));
    const outcome = await rig.model.complete(requestOf([user("Something else.")]), never);
    assert.ok(!outcome.ok);
    assert.equal(outcome.failure.class, kind === recorded ? "uncovered" : "bad_request");
    assert.equal(outcome.failure.retryable, false);
    assert.match(outcome.failure.message, /^Cannot /);
  });
}

Deno.test("ModelPort: a recording made of a recording is the same", async () => {
  await using server = await startModelServer();
  await server.script({ replies: [{ text: "x", usage: null }] });
  const live = rigOf(settingsOf([endpointAt(server.url)]));
  valueOf(await live.model.complete(requestOf(TASK), never));
  const settings: ModelSettings = settingsOf([recordedEndpoint(live.lines.join("\n"))]);
  const played = rigOf(settings);
  valueOf(await played.model.complete(requestOf(TASK), never));
  assert.deepEqual(played.lines, live.lines);
});
