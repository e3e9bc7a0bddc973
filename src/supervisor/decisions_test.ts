import assert from "node:assert/strict";
import fc from "fast-check";
import {
  OBJECTIVE_CHARS_MAX,
  RESULT_ITEMS_MAX,
  RESULT_REASON_CHARS_MAX,
  SEED_BYTES_MAX,
  SEEDS_MAX,
  TOOL_SCHEMA_BYTES_MAX,
} from "../core/limits.ts";
import type { JsonObject } from "../core/json.ts";
import { failedResult } from "../wire/result.ts";
import { hostOf } from "./grant.ts";
import { parseFromAgent } from "./frames.ts";
import { planLadder } from "./ladder.ts";
import { parseOrder } from "./order.ts";
import {
  FRESH_RESTARTS,
  noteEnd,
  refuseStart,
  RESTART_PLAN,
  type RestartState,
} from "./restart.ts";

Deno.test("planLadder: deepest first, all of it within the drain time", () => {
  assert.deepEqual(planLadder([0, 1, 2, 1], 4_500), [
    { depth: 2, atMs: 0, rungMs: 1_000 },
    { depth: 1, atMs: 1_000, rungMs: 1_000 },
    { depth: 0, atMs: 2_000, rungMs: 1_000 },
  ]);
  assert.deepEqual(planLadder([0], 100), [{ depth: 0, atMs: 0, rungMs: 0 }]);
  assert.deepEqual(planLadder([], 1000), []);
});

Deno.test("noteEnd: bears what the plan bears, opens the circuit for longer each time, closes it", () => {
  const lived = (startedMs: number, ms: number) => ({
    startedMs,
    endedMs: startedMs + ms,
    reason: "exit 1",
  });
  let state: RestartState = { ...FRESH_RESTARTS };
  for (let i = 0; i < RESTART_PLAN.intensityMax; i++) {
    state = noteEnd(RESTART_PLAN, state, lived(i * 5_000, 2_000), 0.5);
    assert.equal(refuseStart(state, i * 5_000 + 2_000), null);
  }
  const open = noteEnd(RESTART_PLAN, state, lived(30_000, 2_000), 0.999999);
  assert.match(refuseStart(open, 32_000)!, /circuit is open: it ended 6 times within 60 s: exit 1/);
  assert.equal(open.open!.untilMs, 32_000 + 29_999);
  assert.equal(refuseStart(open, open.open!.untilMs), null);
  // A period later the same history would have been borne.
  assert.equal(noteEnd(RESTART_PLAN, state, lived(90_000, 5_000), 0).open, null);
  // A long life makes the next opening a first one.
  assert.equal(noteEnd(RESTART_PLAN, open, lived(70_000, 60_000), 0).opened, 0);
});

Deno.test("noteEnd: crashes on spawn fail fast, and at once again after the circuit was open", () => {
  let state: RestartState = { ...FRESH_RESTARTS };
  const crash = (at: number) => {
    state = noteEnd(RESTART_PLAN, state, { startedMs: at, endedMs: at + 10, reason: "exit 2" }, 0);
    return refuseStart(state, at + 10);
  };
  assert.equal(crash(0), null);
  assert.equal(crash(100), null);
  assert.match(crash(200)!, /crashed 3 times in a row as it started: exit 2/);
  const first = state.open!.untilMs - 210;
  assert.match(crash(100_000)!, /crashed 4 times/);
  assert.equal(state.open!.untilMs - 100_010, 2 * first);
});

const objective = "find out";
const orders: [string, JsonObject, RegExp | null][] = [
  ["an objective alone", { objective }, null],
  ["no objective", {}, /objective is required/],
  ["an objective of spaces", { objective: "  " }, /objective is required/],
  ["an objective that is no text", { objective: 7 }, /objective is required/],
  ["an objective at the bound", { objective: "x".repeat(OBJECTIVE_CHARS_MAX) }, null],
  ["an objective one past it", { objective: "x".repeat(OBJECTIVE_CHARS_MAX + 1) }, /at most 65536/],
  ["a schema that is no object", { objective, output_schema: [] }, /output_schema/],
  ["tools that are no list", { objective, tools: "docs/*" }, /tools must be/],
  ["a disposition of its own", { objective, disposition: "daemon" }, /sync, async or detach/],
  ["limits", { objective, limits: { max_steps: 3, max_tokens: 10, deadline: "90s" } }, null],
  ["no steps", { objective, limits: { max_steps: 0 } }, /max_steps/],
  ["a deadline that is a number", { objective, limits: { deadline: 90 } }, /limits.deadline/],
  ["a deadline of nothing", { objective, limits: { deadline: "0" } }, /limits.deadline/],
  [
    "seeds at the bound",
    { objective, seed: Array(SEEDS_MAX).fill({ label: "a", text: "b" }) },
    null,
  ],
  [
    "one seed too many",
    { objective, seed: Array(SEEDS_MAX + 1).fill({ label: "a", text: "b" }) },
    /at most 16 slices/,
  ],
  ["a schema", { objective, output_schema: { type: "object", required: ["a"] } }, null],
  ["a schema of no type", { objective, output_schema: { type: "word" } }, /#\/type .*word/],
  [
    "a schema that leads elsewhere",
    { objective, output_schema: { $ref: "https://other.example/schema" } },
    /output_schema is no JSON Schema: #\/\$ref .*leads nowhere/,
  ],
  [
    "a schema at the bound",
    { objective, output_schema: { title: "x".repeat(TOOL_SCHEMA_BYTES_MAX - 12) } },
    null,
  ],
  [
    "a schema over the bound",
    { objective, output_schema: { title: "x".repeat(TOOL_SCHEMA_BYTES_MAX - 11) } },
    /65537 bytes, at most 65536/,
  ],
  ["a seed that says nothing", { objective, seed: [{ label: "a" }] }, /needs text or a resource/],
  ["a seed over the bound", {
    objective,
    seed: [{ label: "", text: "x".repeat(SEED_BYTES_MAX + 1) }],
  }, /at most 262144/],
];

for (const [name, args, problem] of orders) {
  Deno.test(`parseOrder: ${name}`, () => {
    const order = parseOrder(args);
    if (problem) assert.match(order.ok ? "accepted" : order.failure, problem);
    else assert.ok(order.ok);
  });
}

Deno.test("parseOrder: what was said beside the objective is labelled in the instruction", () => {
  const order = parseOrder({
    objective,
    output_format: "one line",
    guidance: "docs/*",
    boundaries: "no mail",
  });
  assert.equal(
    order.ok && order.value.instruction,
    "find out\n\nOutput format: one line\n\nTool guidance: docs/*\n\nBoundaries: no mail",
  );
});

Deno.test("hostOf: host and port as Deno has them", () => {
  for (
    const [url, host] of [["https://a.example/v1", "a.example:443"], [
      "http://127.0.0.1:8080",
      "127.0.0.1:8080",
    ], ["http://[::1]/v1", "[::1]:80"]] as const
  ) {
    assert.equal(hostOf(url), host);
  }
});

const result = failedResult("completed", "done");
const good: unknown[] = [
  { v: 1, type: "ready" },
  { v: 1, type: "pong", n: 3 },
  { v: 1, type: "progress", progress: { step: 1, tokens: 2, cost: 0.5, doing: "tools" } },
  { v: 1, type: "request", id: 1, op: "spawn", arguments: { a: [1] } },
  { v: 1, type: "connected", servers: ["a"] },
  { v: 1, type: "updated", server: "a", uri: "mem://x", possibly: false },
  { v: 1, type: "delivered", id: "d", result },
  { v: 1, type: "result", result },
  {
    v: 1,
    type: "result",
    result: {
      ...result,
      verification: {
        passed: false,
        items: [{ kind: "check", name: "x", passed: false, passed_before: true, detail: "y" }],
      },
    },
  },
];

Deno.test("parseFromAgent: every sound frame comes out as it went in", () => {
  for (const frame of good) {
    const parsed = parseFromAgent(JSON.stringify(frame));
    assert.deepEqual(parsed.ok && parsed.value, frame);
  }
});

const bad: [unknown, RegExp][] = [
  ["{", /not JSON/],
  ["[]", /no object/],
  ["null", /no object/],
  [{ type: "ready" }, /version missing/],
  [{ v: "1", type: "ready" }, /version "1"/],
  [{ v: 1, type: "__proto__" }, /unknown type/],
  [{ v: 1, type: "pong", n: -1 }, /pong.n/],
  [{ v: 1, type: "pong", n: 1.5 }, /pong.n/],
  [{ v: 1, type: "progress", progress: { step: 1, tokens: 1, doing: "sleeping" } }, /progress/],
  [{ v: 1, type: "progress", progress: { step: 1, tokens: 1e300, doing: "model" } }, /progress/],
  [
    { v: 1, type: "progress", progress: { step: 1, tokens: 1, cost: -1, doing: "model" } },
    /progress/,
  ],
  [{ v: 1, type: "request", id: 1, op: "exec", arguments: {} }, /request.op/],
  [{ v: 1, type: "request", id: 1, op: "spawn", arguments: null }, /request.arguments/],
  [{ v: 1, type: "connected", servers: [1] }, /connected.servers/],
  [{ v: 1, type: "updated", server: "a" }, /updated/],
  [{ v: 1, type: "result" }, /result is missing/],
  [{ v: 1, type: "result", result: { ...result, status: "great" } }, /result.status/],
  [{ v: 1, type: "result", result: { ...result, abort: "mcp" } }, /exclude each other/],
  [{ v: 1, type: "result", result: { ...result, status: null } }, /exclude each other/],
  [
    { v: 1, type: "result", result: { ...result, usage: { ...result.usage, tokens_in: -5 } } },
    /result.usage/,
  ],
  [
    { v: 1, type: "result", result: { ...result, usage: { ...result.usage, cost: "0" } } },
    /result.usage/,
  ],
  [{ v: 1, type: "result", result: { ...result, verification: "passed" } }, /result.verification/],
  [
    { v: 1, type: "result", result: { ...result, verification: { passed: true, items: [{}] } } },
    /verification.items/,
  ],
];

for (const [frame, problem] of bad) {
  const text = typeof frame === "string" ? frame : JSON.stringify(frame);
  Deno.test(`parseFromAgent: refuses ${text.slice(0, 90)}`, () => {
    const parsed = parseFromAgent(text);
    assert.match(parsed.ok ? "accepted" : parsed.failure, problem);
  });
}

Deno.test("parseFromAgent: what an agent says of its end is bounded, at the bound and one past it", () => {
  const parse = (result: object) =>
    parseFromAgent(JSON.stringify({ v: 1, type: "result", result }));
  const item = { kind: "check", name: "c", passed: true, passed_before: false, detail: "" };
  const items = (count: number) => ({
    ...failedResult("completed", "done"),
    verification: { passed: true, items: Array(count).fill(item) },
  });
  assert.equal(parse(items(RESULT_ITEMS_MAX)).ok, true);
  assert.equal(parse(items(RESULT_ITEMS_MAX + 1)).ok, false);
  for (const length of [RESULT_REASON_CHARS_MAX, RESULT_REASON_CHARS_MAX + 1]) {
    const parsed = parse(failedResult("crashed", "x".repeat(length)));
    assert.ok(parsed.ok && parsed.value.type === "result");
    assert.ok(parsed.value.result.reason.length <= RESULT_REASON_CHARS_MAX + 1);
    assert.equal(parsed.value.result.reason.endsWith("x"), length === RESULT_REASON_CHARS_MAX);
  }
});

Deno.test("parseFromAgent: any JSON and any text is a value, never a throw", () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.json(),
        fc.string(),
        fc.constantFrom(...good).map((frame) => JSON.stringify(frame)).chain((text) =>
          fc.nat(text.length).map((n) => text.slice(0, n))
        ),
      ),
      (text) => {
        parseFromAgent(text);
      },
    ),
  );
});
