/** Feedback on the wire: budgets, verification, notes and the ledger, in both dialects. */

import assert from "node:assert/strict";
import type { ScriptReply } from "../fakes/model_server_process.ts";
import {
  call,
  type Case,
  conversation,
  runCases,
  toolNames,
  type WireDialect,
} from "./wire_case.ts";

/** A prompt of 1,000 tokens, 600 of them cached, and 100 of output. */
const usageOf = (dialect: WireDialect): ScriptReply["usage"] =>
  dialect === "openai"
    ? {
      prompt_tokens: 1_000,
      completion_tokens: 100,
      prompt_tokens_details: { cached_tokens: 600 },
    }
    : {
      input_tokens: 300,
      cache_creation_input_tokens: 100,
      cache_read_input_tokens: 600,
      output_tokens: 100,
    };

const PRICED = `model:
  prices: { input: 1000, cached_input: 100, output: 2000 }
limits:
  max_cost: 6
`;

const CASES: Case[] = [
  {
    name: "cost counts cached tokens apart, and its end comes after a warning",
    script: (dialect) => ({
      replies: [{ text: "so far", calls: [call("lib__count")], usage: usageOf(dialect) }],
      loop: true,
    }),
    args: ["--config", "priced.yaml"],
    files: { "priced.yaml": PRICED },
    code: 3,
    check: ({ ran, bodies }) => {
      const { status, reason, usage, partial } = ran.json;
      assert.equal(status, "exhausted_tokens");
      assert.match(reason, /^cost:/);
      assert.equal(partial, true);
      // (400 × 1,000 + 600 × 100 + 100 × 2,000) USD per million.
      assert.ok(Math.abs(usage.cost - bodies.length * 0.66) < 1e-9, `${usage.cost}`);
      assert.ok(usage.cost < 6);
      assert.equal(usage.tokens_in, bodies.length * 1_000);
      assert.equal(usage.tokens_cached, bodies.length * 600);
      assert.ok(bodies.length >= 3, `${bodies.length} calls`);
      assert.match(conversation(bodies.at(-1)), /This is the last turn/);
      assert.doesNotMatch(conversation(bodies.at(-2)), /This is the last turn/);
    },
  },
  {
    name: "without prices the cost is unknown, never 0",
    script: (dialect) => ({ replies: [{ text: "ok", usage: usageOf(dialect) }] }),
    check: ({ ran }) => assert.equal(ran.json.usage.cost, null),
  },
  {
    name: "with no tool granted the schema still binds the final text",
    script: { replies: [{ text: "It is one." }, { text: 'So:\n```json\n{"n": 1}\n```' }] },
    args: ["--tools", "!*", "--output-schema", "schema.json"],
    files: {
      "schema.json": '{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}',
    },
    check: ({ ran, bodies }) => {
      assert.deepEqual(ran.json.result, { n: 1 });
      assert.ok(!toolNames(bodies[0]).some((name) => name.startsWith("lib__")));
      assert.match(conversation(bodies[1]), /schema: the answer holds no JSON value/);
      assert.match(conversation(bodies[1]), /Mend this, then give the final answer again/);
    },
  },
  {
    name: "an array that a schema asks for is found in prose",
    script: { replies: [{ text: "The numbers [see below] are [1, 2, 3]." }] },
    args: ["--output-schema", "schema.json"],
    files: { "schema.json": '{"type":"array","items":{"type":"integer"}}' },
    check: ({ ran }) => assert.deepEqual(ran.json.result, [1, 2, 3]),
  },
  {
    name: "a resource that is there is accepted, and that it was there before is said",
    script: { replies: [{ text: "ok" }] },
    args: ["--require", "lib:lib://shelf0/book0"],
    check: ({ ran }) => {
      assert.deepEqual(ran.json.verification, {
        passed: true,
        items: [{
          kind: "require",
          name: "lib:lib://shelf0/book0",
          passed: true,
          passed_before: true,
          detail: "",
        }],
      });
    },
  },
  {
    name: "how long the checks of each claim took is told",
    script: { replies: [{ text: "no JSON" }, { text: "[1]" }] },
    args: ["--output-schema", "schema.json", "--check", "sleep 0.3"],
    files: { "schema.json": '{"type":"array"}' },
    check: ({ ran }) => {
      const told = ran.lines.filter(({ event }) => event === "verify.result");
      assert.deepEqual(told.map(({ passed }) => passed), [false, true]);
      for (const line of told) {
        assert.ok(Number(line.dur_ms) >= 290 && Number(line.dur_ms) < 10_000, `${line.dur_ms}`);
      }
    },
  },
  {
    name: "a resource that is missing is named, four times at most",
    script: { replies: [{ text: "It is done." }], loop: true },
    args: ["--require", "lib:lib://missing/x"],
    code: 3,
    check: ({ ran, bodies }) => {
      assert.equal(ran.json.status, "stalled");
      assert.equal(ran.json.usage.steps, 4);
      assert.match(conversation(bodies[1]), /- missing: lib:lib:\/\/missing\/x/);
    },
  },
  {
    name: "notes are offered where they are asked for, and outlive the turn",
    script: {
      replies: [
        { calls: [call("note_write", { text: "remember 42" })] },
        { calls: [call("note_read")] },
        { text: "ok" },
      ],
    },
    args: ["--notes"],
    check: async ({ ran, bodies, directory }) => {
      assert.equal(ran.json.status, "completed");
      assert.ok(toolNames(bodies[0]).includes("note_write"));
      assert.match(conversation(bodies[2]), /\[ok\]\\nremember 42/);
      assert.equal(await Deno.readTextFile(`${directory}/notes.md`), "remember 42\n");
    },
  },
  {
    name: "notes are not offered where nobody asked for them",
    script: { replies: [{ text: "ok" }] },
    check: ({ bodies }) => assert.ok(!toolNames(bodies[0]).some((name) => name.startsWith("note"))),
  },
  {
    name: "the ledger of all that was done can be read, in pages and by a word",
    script: {
      replies: [
        { calls: [call("lib__count"), call("lib__nosuch")] },
        { calls: [call("resource_read", { uri: "lib://missing/x" })] },
        { calls: [call("artifact_read", { id: "ledger" })] },
        { calls: [call("artifact_read", { id: "ledger", pattern: "MISSING" })] },
        { calls: [call("artifact_read", { id: "c9-9" })] },
        { text: "ok" },
      ],
    },
    check: ({ ran, bodies }) => {
      assert.equal(ran.json.status, "completed");
      const whole = conversation(bodies[3]);
      assert.match(
        whole,
        /bytes 0 to \d+ of \d+, the end\\n- c1-2 lib__nosuch -> invalid: no tool named/,
      );
      assert.match(whole, /- c1-1 lib\/count \{\} -> ok/);
      assert.match(whole, /- c2-1 self\/resource_read .* -> error: .*no such resource/);
      assert.match(conversation(bodies[4]), /1 of its lines match/);
      assert.match(conversation(bodies[5]), /There is no artifact c9-9/);
    },
  },
];

runCases("verify", CASES);
