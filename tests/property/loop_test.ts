/**
 * The loop's invariant over arbitrary scripts of replies, results, failures, cancels and clock jumps:
 * every run ends in one of the nine statuses or two aborts, within its limits; every iteration changes
 * state or consumes a bounded resource; the same events give the same decisions.
 */

import assert from "node:assert/strict";
import fc from "fast-check";
import type { CheckOutcome } from "../../src/agent/event.ts";
import { STATUSES } from "../../src/wire/result.ts";
import {
  assertAnswered,
  play,
  replay,
  type Say,
  type Scenario,
  type Told,
  tool,
  toolError,
} from "../fakes/simulation.ts";

const TOOLS = [
  tool("fs/read", { readOnly: true }),
  tool("fs/write"),
  tool("ci/status", { readOnly: true, poll: true }),
  tool("shop/order", { idempotent: true }),
];

const names = fc.constantFrom(
  "fs__read",
  "fs__write",
  "ci__status",
  "shop__order",
  "nosuch",
  "task_refuse",
  "artifact_read",
);
const args = fc.oneof(
  fc.record({ path: fc.constantFrom("a", "b", "c") }).map((value) => JSON.stringify(value)),
  fc.constantFrom("", "[1]", "null", '{"a":', "{}", '{"id":"x"}', '{"reason":"no"}'),
  fc.string({ maxLength: 20 }),
);
const calls = fc.array(
  fc.record({ name: names, arguments: args, id: fc.constantFrom("a", "b", "", "c d") }),
  { minLength: 1, maxLength: 20 },
);

const say: fc.Arbitrary<Say> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ text: fc.string({ maxLength: 30 }), calls }) },
  { weight: 2, arbitrary: fc.record({ text: fc.string({ unit: "binary", maxLength: 60 }) }) },
  {
    weight: 1,
    arbitrary: fc.constantFrom<Say>(
      { text: '{"action":"final","result":{"n":1}}' },
      { text: '{"action":"tool","tool":"fs__read","arguments":{"path":"a"}}' },
      { text: "cut", finish: "length" },
      { text: "ha ".repeat(50), finish: "repetition" },
      { text: "", calls: [] },
      { refusal: "no" },
      { fail: { class: "context_length" } },
      { fail: { class: "tools_unsupported" } },
      { fail: { class: "unreachable", retryable: true } },
      { fail: { class: "auth" } },
      { text: "big", tokensIn: 90_000 },
    ),
  },
);

const told: fc.Arbitrary<Told> = fc.oneof(
  fc.constantFrom<Told>(
    "same",
    toolError("ENOENT"),
    { class: "unknown", why: "lost" },
    { class: "error", error: "protocol", message: "-32000", retryable: true, excerpt: null },
    {
      class: "truncated",
      parts: [{ type: "text", text: "head" }],
      excerpt: { kept: 4, total: 400_000, artifact: "x" },
    },
  ),
  fc.string({ maxLength: 400 }),
  fc.nat().map((n) => `count ${n}`),
);

const check: fc.Arbitrary<CheckOutcome> = fc.record({
  kind: fc.constant("check" as const),
  name: fc.constant("test"),
  passed: fc.boolean(),
  detail: fc.string({ maxLength: 20 }),
  digest: fc.constantFrom("x", "y", "z"),
  progress: fc.option(fc.record({ done: fc.nat(5), total: fc.constant(5) })),
  ms: fc.constant(1),
});

const script = fc.record({
  says: fc.array(say, { minLength: 1, maxLength: 12 }),
  tolds: fc.array(told, { minLength: 1, maxLength: 12 }),
  checks: fc.option(fc.array(check, { minLength: 1, maxLength: 6 })),
  checkWhen: fc.constantFrom("final" as const, "turn" as const),
  schema: fc.boolean(),
  summaries: fc.array(fc.option(fc.string({ maxLength: 2_000 })), { minLength: 1, maxLength: 4 }),
  toolMode: fc.constantFrom("auto" as const, "native" as const, "json" as const),
  limits: fc.record({
    maxSteps: fc.integer({ min: 1, max: 30 }),
    maxTokens: fc.integer({ min: 500, max: 400_000 }),
    maxCalls: fc.integer({ min: 1, max: 60 }),
    maxCallsPerTurn: fc.integer({ min: 1, max: 16 }),
    idleLimit: fc.integer({ min: 1, max: 5 }),
    failLimit: fc.integer({ min: 1, max: 10 }),
    repeatCap: fc.integer({ min: 1, max: 4 }),
    keepVerbatim: fc.integer({ min: 0, max: 5 }),
    deadlineMs: fc.integer({ min: 5, max: 5_000 }),
  }),
  contextWindow: fc.constantFrom(6_000, 20_000, 128_000),
  // Now and then the clock jumps ahead: a machine that slept.
  ticks: fc.array(
    fc.oneof({ weight: 20, arbitrary: fc.constant(1) }, { weight: 1, arbitrary: fc.nat(6_000) }),
    {
      minLength: 1,
      maxLength: 30,
    },
  ),
  cancelAt: fc.option(fc.record({
    nth: fc.integer({ min: 2, max: 40 }),
    reason: fc.constantFrom(
      "sigint" as const,
      "sigterm" as const,
      "deadline" as const,
      "tree_tokens" as const,
      "parent" as const,
    ),
  })),
});

const at = <Value>(list: readonly Value[], nth: number): Value => list[(nth - 1) % list.length]!;

Deno.test("step: every script ends by a name, within its limits, and replays", () => {
  fc.assert(
    fc.property(script, (drawn) => {
      let asked = 0;
      const scenario: Scenario = {
        tools: TOOLS,
        toolMode: drawn.toolMode,
        limits: drawn.limits,
        contextWindow: drawn.contextWindow,
        task: {
          checks: drawn.checks === null
            ? []
            : [{ command: ["test"], when: drawn.checkWhen, timeoutMs: 1 }],
          outputSchema: drawn.schema ? { type: "object", required: ["n"] } : null,
        },
        model: (turn) => at(drawn.says, turn),
        tool: (_planned, nth) => at(drawn.tolds, nth),
        check: () => [at(drawn.checks!, ++asked)],
        summary: (nth) => at(drawn.summaries, nth),
        tickMs: (nth) => at(drawn.ticks, nth),
        ...(drawn.cancelAt === null ? {} : { cancelAt: drawn.cancelAt }),
        eventsMax: 5_000,
      };
      const played = play(scenario);
      const { result, decisions, requests, calls: executed } = played;
      // A name from the closed set, exactly one of the two.
      assert.ok((result.status === null) !== (result.abort === null));
      assert.ok(result.status === null || STATUSES.includes(result.status));
      assert.equal(decisions.filter((decision) => decision.type === "run.ended").length, 1);
      // Within its limits.
      assert.ok(result.usage.steps <= drawn.limits.maxSteps);
      assert.ok(executed.length <= drawn.limits.maxCalls);
      // Every iteration consumed a step or was a summarising call, which is bounded by two a turn.
      const judged = decisions.filter((decision) => decision.type === "turn.judged");
      assert.equal(judged.length, result.usage.steps);
      judged.forEach((decision, index) =>
        assert.equal(decision.type === "turn.judged" && decision.step, index + 1)
      );
      const summaries = requests.length +
        decisions.filter((decision) => decision.type === "context.compacted").length;
      assert.ok(summaries <= 6 * (result.usage.steps + 2));
      // Every call that was emitted has one result in every request that followed.
      for (const request of requests) assertAnswered(request);
      // The record alone gives the same decisions.
      assert.deepEqual(replay(played.events).decisions, decisions);
    }),
    { numRuns: Number(Deno.env.get("AGENTD_PROPERTY_RUNS") ?? 1_000) },
  );
});
