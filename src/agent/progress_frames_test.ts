import assert from "node:assert/strict";
import { ManualClock } from "../../tests/fakes/manual_clock.ts";
import { ProgressFrames } from "./progress_frames.ts";

function setup() {
  const clock = new ManualClock();
  const sent: string[] = [];
  const startMs = clock.monotonicMs();
  const frames = new ProgressFrames(
    clock,
    (doing) => sent.push(`${clock.monotonicMs() - startMs} ${doing}`),
  );
  return { clock, sent, frames };
}

Deno.test("ProgressFrames: what begins is told at most every 100 ms, the newest last", () => {
  const { clock, sent, frames } = setup();
  frames.tell("model");
  clock.advance(1);
  frames.tell("tools");
  frames.tell("verifying");
  clock.advance(98);
  assert.deepEqual(sent, ["0 model"]);
  clock.advance(1);
  assert.deepEqual(sent, ["0 model", "100 verifying"]);
  clock.advance(100);
  frames.tell("model");
  assert.deepEqual(sent.slice(2), ["200 model"]);
  frames.tell("tools");
  frames.stop();
  assert.equal(clock.pending, 0);
});

Deno.test("ProgressFrames: what was spent is told at once, at most every 10 ms", () => {
  const { clock, sent, frames } = setup();
  frames.tell("model");
  clock.advance(10);
  frames.spent();
  assert.deepEqual(sent, ["0 model", "10 model"]);
  frames.tell("tools");
  clock.advance(3);
  // Does not wait for the frame that is due in 97 ms; that one has nothing to add then.
  frames.spent();
  frames.spent();
  clock.advance(6);
  assert.equal(sent.length, 2);
  clock.advance(1);
  assert.deepEqual(sent.slice(2), ["20 tools"]);
  assert.equal(clock.pending, 0);
});
