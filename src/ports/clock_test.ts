import assert from "node:assert/strict";
import { ManualClock } from "../../tests/fakes/manual_clock.ts";
import { pause, within } from "./clock.ts";

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
