import assert from "node:assert/strict";
import { ManualClock } from "../../tests/fakes/manual_clock.ts";
import { PROGRESS_EXTENSIONS_MAX } from "../core/limits.ts";
import { TimeLimit, unlessAborted } from "./timing.ts";

const never = new AbortController().signal;

Deno.test("TimeLimit: ends at its time, not before, and says so", () => {
  const clock = new ManualClock();
  const limit = new TimeLimit(clock, 100, never);
  clock.advance(99);
  assert.equal(limit.signal.aborted, false);
  clock.advance(1);
  assert.equal(limit.signal.aborted, true);
  assert.equal(limit.cause, "timeout");
  assert.equal(clock.pending, 0);
});

Deno.test("TimeLimit: ends with its owner's signal, also one that ended before", () => {
  const clock = new ManualClock();
  const owner = new AbortController();
  const limit = new TimeLimit(clock, 100, owner.signal);
  owner.abort();
  assert.equal(limit.cause, "cancelled");
  assert.equal(new TimeLimit(clock, 100, owner.signal).cause, "cancelled");
  assert.equal(clock.pending, 0);
});

Deno.test("TimeLimit: cleared, it does not end any more", () => {
  const clock = new ManualClock();
  const owner = new AbortController();
  const limit = new TimeLimit(clock, 100, owner.signal);
  limit.clear();
  owner.abort();
  clock.advance(1_000);
  assert.equal(limit.cause, null);
  assert.equal(limit.signal.aborted, false);
});

Deno.test("TimeLimit: progress starts the time anew as often as allowed and once less", () => {
  const clock = new ManualClock();
  const limit = new TimeLimit(clock, 100, never, PROGRESS_EXTENSIONS_MAX);
  for (let ms = 0; limit.cause === null; ms += 50) {
    assert.ok(ms < 10_000, "it ends");
    clock.advance(50);
    limit.extend();
  }
  // Each time but the last is started anew by the report in its middle.
  assert.equal(clock.monotonicMs(), 100 + PROGRESS_EXTENSIONS_MAX * 50);
});

Deno.test("TimeLimit: a thousand reports at once count as one", () => {
  const clock = new ManualClock();
  const limit = new TimeLimit(clock, 100, never, 2);
  clock.advance(90);
  for (let report = 0; report < 1_000; report++) limit.extend();
  clock.advance(90);
  limit.extend();
  clock.advance(90);
  assert.equal(limit.cause, null);
  clock.advance(10);
  assert.equal(limit.cause, "timeout");
});

Deno.test("unlessAborted: the value, the error, or undefined when it is over", async () => {
  const stop = new AbortController();
  assert.equal(await unlessAborted(Promise.resolve(1), stop.signal), 1);
  await assert.rejects(unlessAborted(Promise.reject(new Error("x")), stop.signal), /x/);
  const waiting = unlessAborted(new Promise(() => {}), stop.signal);
  stop.abort();
  assert.equal(await waiting, undefined);
  assert.equal(await unlessAborted(new Promise(() => {}), stop.signal), undefined);
});
