/** Equal calls in one reply: none of them can know yet whether another brings something new. */

import assert from "node:assert/strict";
import {
  assertAnswered,
  play,
  type Played,
  replay,
  type Scenario,
  tool,
  traceOf,
} from "../fakes/simulation.ts";

const POP = tool("queue/pop");

function playWhole(scenario: Scenario): Played {
  const played = play(scenario);
  for (const request of played.requests) assertAnswered(request);
  assert.deepEqual(replay(played.events).decisions, played.decisions);
  return played;
}

const times = (count: number, name: string) =>
  Array.from({ length: count }, () => ({ name, arguments: {} }));

Deno.test("repeats: equal calls of one reply that each bring something new are never flagged", () => {
  for (const popped of [POP, { ...POP, readOnly: true }]) {
    const played = playWhole({
      tools: [popped],
      limits: { maxCalls: 1_000 },
      model: (turn) => turn <= 3 ? { calls: times(12, "queue__pop") } : { text: "empty" },
      tool: (_planned, nth) => `item ${nth}`,
    });
    assert.equal(played.result.status, "completed");
    assert.equal(played.calls.length, 36);
  }
});

Deno.test("repeats: equal calls of one reply with one answer run up to the cap, the 7th is detected", () => {
  for (const popped of [POP, { ...POP, readOnly: true }]) {
    const rows: [number, string[]][] = [
      [6, ["ok+", "ok", "ok", "refused", "refused", "refused"]],
      [7, ["ok+", "ok", "ok", "refused", "refused", "refused", "refused"]],
    ];
    for (const [count, classes] of rows) {
      const played = playWhole({
        tools: [popped],
        model: (turn) => turn === 1 ? { calls: times(count, "queue__pop") } : { text: "done" },
        tool: () => "the queue is empty",
      });
      assert.equal(
        traceOf(played)[0],
        ["1 advanced 1 idle 0", ...classes.map((name) => `queue/pop:${name}`)].join(" "),
      );
      assert.equal(played.result.status, count === 7 ? "loop_detected" : "completed");
      assert.equal(played.calls.length, 3);
    }
  }
});

Deno.test("repeats: what waits for its likes is answered once when the run is stopped", () => {
  const played = playWhole({
    tools: [{ ...POP, readOnly: true }],
    model: () => ({ calls: times(6, "queue__pop") }),
    tool: (_planned, nth) => `item ${nth}`,
    cancelAt: { nth: 5, reason: "sigterm" },
  });
  assert.equal(played.result.status, "cancelled");
  assert.match(traceOf(played)[0]!, /(queue\/pop:\S+ ?){6}$/);
});
