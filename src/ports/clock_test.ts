import assert from "node:assert/strict";
import { systemClock } from "../sys/clock.ts";
import { ManualClock } from "../../tests/fakes/manual_clock.ts";
import { pause, within, withinTurns } from "./clock.ts";

Deno.test("pause: waits, or ends with the signal and leaves no timer", async () => {
  const clock = new ManualClock();
  const stop = new AbortController();
  const whole = pause(clock, 10, stop.signal);
  clock.advance(10);
  assert.equal(await whole, true);
  const cut = pause(clock, 10, stop.signal);
  stop.abort();
  assert.equal(await cut, false);
  assert.equal(await pause(clock, 10, stop.signal), false);
  assert.equal(clock.pending, 0);
});

Deno.test("within: says whether it was in time, rejects with it, and leaves no timer", async () => {
  const clock = new ManualClock();
  assert.equal(await within(clock, 10, Promise.resolve()), true);
  const late = within(clock, 10, new Promise(() => {}));
  clock.advance(9);
  assert.equal(clock.pending, 1);
  clock.advance(1);
  assert.equal(await late, false);
  await assert.rejects(within(clock, 10, Promise.reject(new Error("x"))), /x/);
  assert.equal(clock.pending, 0);
});

Deno.test("withinTurns: a machine that was halted does not judge; a promise that never comes is late", async () => {
  const ready = new Promise((resolve) => setTimeout(resolve, 40));
  const inTime = withinTurns(systemClock, 50, ready);
  const short = within(systemClock, 20, ready);
  for (const startMs = performance.now(); performance.now() - startMs < 200;);
  assert.equal(await inTime, true);
  assert.equal(await short, false);
  const startMs = performance.now();
  assert.equal(await withinTurns(systemClock, 50, new Promise(() => {})), false);
  assert.ok(performance.now() - startMs >= 50);
});
