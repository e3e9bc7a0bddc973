import assert from "node:assert/strict";
import type { AgentResult } from "../wire/result.ts";
import {
  boundSleepMs,
  cutsRuns,
  type DaemonBounds,
  type DaemonFacts,
  exitOf,
  isCredentialsRefusal,
  isRealWork,
  isUnserved,
  startLoop,
  stepLoop,
  stopReason,
} from "./mode.ts";

const NO_BOUNDS: DaemonBounds = { maxIterations: 0, lifetimeMs: 0, lifetimeTokens: 0 };
const FACTS: DaemonFacts = {
  iterations: 5,
  started: 5,
  elapsedMs: 1000,
  tokens: 100,
  draining: false,
  inflight: 0,
  exhausted: false,
  failure: null,
};

function result(over: Partial<AgentResult>): AgentResult {
  return {
    status: "completed",
    abort: null,
    reason: "",
    retryable: false,
    resumable: false,
    partial: false,
    result: null,
    artifact: null,
    verification: "none declared",
    usage: {
      steps: 1,
      model_calls: 1,
      tool_calls: 0,
      tokens_in: 0,
      tokens_out: 0,
      tokens_cached: 0,
      tokens_estimated: false,
      cost: null,
    },
    ...over,
  };
}

Deno.test("stopReason, exitOf: every bound at the bound and one before it, and which comes first", () => {
  const rows: [Partial<DaemonFacts>, Partial<DaemonBounds>, ReturnType<typeof stopReason>][] = [
    [{}, {}, null],
    [{ started: 1e9, tokens: 1e15, elapsedMs: 1e15 }, {}, null],
    [{ started: 2 }, { maxIterations: 3 }, null],
    [{ started: 3 }, { maxIterations: 3 }, "bounded"],
    [{ elapsedMs: 999 }, { lifetimeMs: 1000 }, null],
    [{ elapsedMs: 1000 }, { lifetimeMs: 1000 }, "lifetime"],
    [{ tokens: 99 }, { lifetimeTokens: 100 }, null],
    [{ tokens: 100 }, { lifetimeTokens: 100 }, "lifetime_tokens"],
    [{ draining: true }, {}, "drained"],
    [{ draining: true, started: 3 }, { maxIterations: 3 }, "drained"],
    [{ exhausted: true }, {}, "bounded"],
    [{ exhausted: true, inflight: 1 }, {}, null],
    [{ failure: "credentials", draining: true }, { lifetimeMs: 1 }, "credentials"],
    [{ failure: "required_server" }, {}, "required_server"],
    [
      { tokens: 100, elapsedMs: 1000 },
      { lifetimeTokens: 100, lifetimeMs: 1000 },
      "lifetime_tokens",
    ],
  ];
  for (const [facts, bounds, expected] of rows) {
    const reason = stopReason({ ...FACTS, ...facts }, { ...NO_BOUNDS, ...bounds });
    assert.equal(reason, expected, JSON.stringify([facts, bounds]));
    assert.equal(exitOf(reason, 1), null);
    assert.equal(exitOf(reason, 0), expected);
  }
  assert.equal(cutsRuns("bounded"), false);
  for (const reason of ["drained", "lifetime", "lifetime_tokens", "credentials"] as const) {
    assert.equal(cutsRuns(reason), true);
  }
  assert.equal(boundSleepMs(FACTS, NO_BOUNDS), null);
  assert.equal(boundSleepMs(FACTS, { ...NO_BOUNDS, lifetimeMs: 1500 }), 500);
  assert.equal(boundSleepMs(FACTS, { ...NO_BOUNDS, lifetimeMs: 500 }), 0);
});

Deno.test("ends of runs: what is work, what is served, what ends the daemon", () => {
  const usage = { ...result({}).usage, tool_calls: 3 };
  const rows: [Partial<AgentResult>, boolean, boolean, boolean][] = [
    [{}, false, false, false],
    [{ usage }, true, false, false],
    [{ usage, evidence: 0 }, false, false, false],
    [{ evidence: 2 }, true, false, false],
    [{ status: "stalled", evidence: 2 }, true, false, false],
    [{ status: "crashed" }, false, true, false],
    [{ status: "cancelled" }, false, true, false],
    [{ status: null, abort: "mcp" }, false, true, false],
    [
      { status: null, abort: "intelligence", retryable: false, reason: "auth: 401" },
      false,
      true,
      true,
    ],
    [
      { status: null, abort: "intelligence", retryable: true, reason: "unreachable: refused" },
      false,
      true,
      false,
    ],
    [
      { status: null, abort: "intelligence", retryable: false, reason: "quota: spent" },
      false,
      true,
      false,
    ],
  ];
  for (const [over, work, unserved, refused] of rows) {
    const end = result(over);
    assert.deepEqual(
      [isRealWork(end), isUnserved(end), isCredentialsRefusal(end)],
      [work, unserved, refused],
      JSON.stringify(over),
    );
  }
});

Deno.test("stepLoop: at once or by the interval, idle doubling to the cap, reset by real work", () => {
  const idle = result({});
  const work = result({ evidence: 1 });
  const crash = result({ status: "crashed", evidence: 4 });
  const rows: [number, AgentResult[], number[]][] = [
    [0, [work, work], [0, 0]],
    [0, [idle, idle, idle, work, idle], [1000, 2000, 4000, 0, 1000]],
    [0, Array(9).fill(idle), [1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000, 60000]],
    [0, [crash, crash], [1000, 2000]],
    [300_000, [work, idle, idle], [300_000, 300_000, 300_000]],
    [200, [idle, work, idle], [200, 200, 200]],
  ];
  for (const [intervalMs, ends, expected] of rows) {
    let state = startLoop();
    const waits: number[] = [];
    for (const end of ends) {
      const [next, wait] = stepLoop(state, end, intervalMs);
      state = next;
      waits.push(wait);
    }
    assert.deepEqual(waits, expected);
  }
  assert.equal(stepLoop({ idleRuns: 5000 }, idle, 0)[1], 60_000);
});
