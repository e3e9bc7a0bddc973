import assert from "node:assert/strict";
import fc from "fast-check";
import { CLOCK_BACK_MS_MAX, MISSED_SLOTS_MAX, SKIPPED_LINES_MAX } from "../core/limits.ts";
import { type ClockAction, type ClockPlan, sleepMs, startClock, stepClock } from "./clock.ts";
import { intervalSlots } from "./slots.ts";

const HOUR = 3_600_000;
const MINUTE = 60_000;

/** Runs events over an hourly schedule from 0 and prints what came of them. */
function run(
  plan: Partial<ClockPlan>,
  events: (["start" | "tick" | "end", number] | ["disarm"])[],
  from = { last: 0, queued: null as number | null },
): string[] {
  const whole: ClockPlan = {
    slots: intervalSlots(HOUR, 0),
    overlap: "skip",
    jitterMs: 0,
    catchUp: false,
    ...plan,
  };
  let state = startClock(from.last, from.queued);
  const out: string[] = [];
  for (const event of events) {
    const type = event[0];
    const stepped: [typeof state, ClockAction[]] = type === "disarm"
      ? stepClock(state, { type: "disarmed" }, whole)
      : stepClock(state, {
        type: ({ start: "started", tick: "ticked", end: "runEnded" } as const)[type],
        nowMs: event[1]!,
        unit: 0.5,
      }, whole);
    state = stepped[0];
    for (const action of stepped[1]) {
      if (action.type === "fire") out.push(`fire ${action.slotMs / HOUR} ${action.reason}`);
      else if (action.type === "skip") out.push(`skip ${action.slotMs / HOUR} ${action.reason}`);
      else if (action.type !== "save") out.push(action.type);
    }
  }
  return out;
}

Deno.test("stepClock: slots, overlap, misses, restarts, wall clocks that jump", () => {
  const rows: [string, string[], string[]][] = [
    ["on time", run({}, [["start", 1], ["tick", HOUR], ["end", HOUR + 5], ["tick", 2 * HOUR]]), [
      "fire 1 on_time",
      "fire 2 on_time",
    ]],
    ["early look", run({}, [["start", 1], ["tick", HOUR - 1]]), []],
    ["looked at twice", run({}, [["start", 1], ["tick", HOUR], ["tick", HOUR + 1]]), [
      "fire 1 on_time",
    ]],
    ["overlap skip", run({}, [["start", 1], ["tick", HOUR], ["tick", 2 * HOUR]]), [
      "fire 1 on_time",
      "skip 2 overlap",
    ]],
    [
      "overlap queue: one waits, more do not",
      run({ overlap: "queue" }, [
        ["start", 1],
        ["tick", HOUR],
        ["tick", 2 * HOUR],
        ["tick", 3 * HOUR],
        ["end", 3.5 * HOUR],
        ["end", 3.6 * HOUR],
      ]),
      ["fire 1 on_time", "skip 3 queue_full", "fire 2 queued"],
    ],
    [
      "overlap replace: the newest wins",
      run({ overlap: "replace" }, [
        ["start", 1],
        ["tick", HOUR],
        ["tick", 2 * HOUR],
        ["tick", 3 * HOUR],
        ["end", 3 * HOUR + 1],
      ]),
      ["fire 1 on_time", "cancelRun", "skip 2 superseded", "fire 3 replaced"],
    ],
    [
      "three slots slept through: one line each, none fired",
      run({}, [["start", 1], ["tick", 3.5 * HOUR], ["tick", 4 * HOUR]]),
      ["skip 1 missed", "skip 2 missed", "skip 3 missed", "fire 4 on_time"],
    ],
    [
      "three slots slept through, caught up once",
      run({ catchUp: true }, [["start", 1], ["tick", 3.5 * HOUR], ["end", 3.6 * HOUR]]),
      ["skip 1 missed", "skip 2 missed", "fire 3 catch_up"],
    ],
    [
      "woken just after the third: it is on time",
      run({}, [["start", 1], ["tick", 3 * HOUR + MINUTE]]),
      ["skip 1 missed", "skip 2 missed", "fire 3 on_time"],
    ],
    [
      "one past the grace",
      run({}, [["start", 1], ["tick", 3 * HOUR + MINUTE + 1]]),
      ["skip 1 missed", "skip 2 missed", "skip 3 missed"],
    ],
    [
      "restart between two slots",
      run({}, [["start", 1.5 * HOUR]], { last: HOUR, queued: null }),
      [],
    ],
    [
      "down over a slot, back within the grace: still missed",
      run({}, [["start", 2 * HOUR + 1]], { last: HOUR, queued: null }),
      ["skip 2 missed"],
    ],
    [
      "down over two slots, caught up",
      run({ catchUp: true }, [["start", 3 * HOUR + 1]], { last: HOUR, queued: null }),
      ["skip 2 missed", "fire 3 catch_up"],
    ],
    [
      "a slot that was queued at the drain fires at the next start",
      run({ overlap: "queue" }, [["start", 2 * HOUR + 1]], { last: 2 * HOUR, queued: 2 * HOUR }),
      ["fire 2 queued"],
    ],
    [
      "a queued slot gives way to one that is caught up",
      run({ overlap: "queue", catchUp: true }, [["start", 3.5 * HOUR]], {
        last: 2 * HOUR,
        queued: 2 * HOUR,
      }),
      ["skip 2 superseded", "fire 3 catch_up"],
    ],
    [
      "wall clock back by an hour: no slot twice",
      run({}, [["start", 1], ["tick", 2 * HOUR], ["end", 2 * HOUR + 1], ["tick", HOUR], [
        "tick",
        2 * HOUR + 2,
      ], ["tick", 3 * HOUR]]),
      ["skip 1 missed", "fire 2 on_time", "fire 3 on_time"],
    ],
    [
      "wall clock was days ahead: slots count anew",
      run({}, [["start", 1], ["tick", 100 * HOUR], ["end", 100 * HOUR + 1], ["tick", 2 * HOUR], [
        "tick",
        3 * HOUR,
      ]]).slice(-3),
      ["fire 100 on_time", "rearm", "fire 3 on_time"],
    ],
    [
      "state from a clock that was ahead",
      run({}, [["start", 2 * HOUR], ["tick", 3 * HOUR]], { last: 500 * HOUR, queued: null }),
      ["rearm", "fire 3 on_time"],
    ],
    [
      "back by the bound exactly: not anew",
      run({}, [["start", 2 * HOUR]], { last: 2 * HOUR + CLOCK_BACK_MS_MAX, queued: null }),
      [],
    ],
    [
      "disarmed: nothing fires",
      run({ overlap: "queue" }, [
        ["start", 1],
        ["tick", HOUR],
        ["tick", 2 * HOUR],
        ["disarm"],
        ["end", 3 * HOUR],
        ["tick", 5 * HOUR],
      ]),
      ["fire 1 on_time"],
    ],
    ["no slot ever", run({ slots: { next: () => null } }, [["start", 1], ["tick", HOUR]]), []],
  ];
  for (const [name, got, expected] of rows) assert.deepEqual(got, expected, name);
});

Deno.test("stepClock: a long gap is counted, named up to the bound, and never a burst", () => {
  const plan: ClockPlan = {
    slots: intervalSlots(1000, 0),
    overlap: "skip",
    jitterMs: 0,
    catchUp: true,
  };
  const rows: [number, number, number | undefined, boolean | undefined][] = [
    [SKIPPED_LINES_MAX + 1, SKIPPED_LINES_MAX, undefined, undefined],
    [SKIPPED_LINES_MAX + 2, SKIPPED_LINES_MAX, 1, false],
    [MISSED_SLOTS_MAX, SKIPPED_LINES_MAX, MISSED_SLOTS_MAX - 1 - SKIPPED_LINES_MAX, false],
    [MISSED_SLOTS_MAX * 50, SKIPPED_LINES_MAX, MISSED_SLOTS_MAX - 1 - SKIPPED_LINES_MAX, true],
  ];
  for (const [slots, named, counted, atLeast] of rows) {
    const [state, actions] = stepClock(
      startClock(0),
      { type: "started", nowMs: slots * 1000, unit: 0 },
      plan,
    );
    assert.equal(actions.filter((action) => action.type === "skip").length, named);
    assert.equal(actions.filter((action) => action.type === "fire").length, 1);
    const many = actions.find((action) => action.type === "skipMany");
    assert.equal(many?.type === "skipMany" ? many.count : undefined, counted);
    assert.equal(many?.type === "skipMany" ? many.atLeast : undefined, atLeast);
    assert(state.due!.slotMs > slots * 1000);
    assert.deepEqual(actions[0], { type: "save" });
  }
});

Deno.test("stepClock: jitter delays by the drawn share, never past the next slot", () => {
  const rows: [number, number, number][] = [[10 * MINUTE, 0, 0], [10 * MINUTE, 0.5, 5 * MINUTE], [
    5 * HOUR,
    0.999,
    0.999 * HOUR,
  ]];
  for (const [jitterMs, unit, expected] of rows) {
    const plan: ClockPlan = {
      slots: intervalSlots(HOUR, 0),
      overlap: "skip",
      jitterMs,
      catchUp: false,
    };
    const [state] = stepClock(startClock(0), { type: "started", nowMs: 1, unit }, plan);
    assert.equal(state.due!.fireAtMs - state.due!.slotMs, Math.floor(expected));
  }
});

Deno.test("sleepMs: bounded above and below, null with nothing to wait for", () => {
  const plan: ClockPlan = {
    slots: intervalSlots(HOUR, 0),
    overlap: "skip",
    jitterMs: 0,
    catchUp: false,
  };
  const [state] = stepClock(startClock(0), { type: "started", nowMs: 1, unit: 0 }, plan);
  assert.equal(sleepMs(state, 1), 30_000);
  assert.equal(sleepMs(state, HOUR - 10), 10);
  assert.equal(sleepMs(state, HOUR + 10), 0);
  assert.equal(sleepMs(startClock(0), 1), null);
});

Deno.test("stepClock: any walk of the clock deals with every slot once, in order, one run at a time", () => {
  const move = fc.oneof(
    fc.record({ type: fc.constant("tick"), by: fc.integer({ min: 0, max: 5 * HOUR }) }),
    fc.record({ type: fc.constant("tick"), by: fc.integer({ min: -2 * HOUR, max: 0 }) }),
    fc.record({ type: fc.constant("end"), by: fc.integer({ min: 0, max: HOUR }) }),
    fc.record({ type: fc.constant("restart"), by: fc.integer({ min: 0, max: 4 * HOUR }) }),
  );
  fc.assert(
    fc.property(
      fc.array(move, { maxLength: 60 }),
      fc.constantFrom("skip", "queue", "replace") as fc.Arbitrary<ClockPlan["overlap"]>,
      fc.boolean(),
      fc.integer({ min: 0, max: 2 * HOUR }),
      (moves, overlap, catchUp, jitterMs) => {
        const plan: ClockPlan = { slots: intervalSlots(HOUR, 0), overlap, jitterMs, catchUp };
        let nowMs = 1;
        let furthest = 1;
        let state = startClock(0);
        let running = 0;
        const dealt: number[] = [];
        const apply = (type: "started" | "ticked" | "runEnded") => {
          const [next, actions] = stepClock(state, { type, nowMs, unit: 0.3 }, plan);
          state = next;
          for (const action of actions) {
            if (action.type === "fire") assert.equal(running++, 0, "two runs at once");
            if (action.type === "fire" || action.type === "skip") dealt.push(action.slotMs);
          }
          assert(actions.filter((action) => action.type === "fire").length <= 1, "a burst");
        };
        apply("started");
        for (const step of moves) {
          nowMs = Math.max(1, furthest - CLOCK_BACK_MS_MAX, nowMs + step.by);
          furthest = Math.max(furthest, nowMs);
          if (step.type === "restart") {
            running = 0;
            state = startClock(state.lastSlotMs, state.queuedSlotMs);
            apply("started");
          } else if (step.type === "end") {
            if (running === 1) {
              running = 0;
              apply("runEnded");
            }
          } else apply("ticked");
        }
        const settled = new Set(dealt);
        assert.equal(settled.size, dealt.length, "a slot twice");
        for (let slot = HOUR; slot <= state.lastSlotMs; slot += HOUR) {
          assert(settled.has(slot) || state.queuedSlotMs === slot, `slot ${slot / HOUR} lost`);
        }
        assert(state.lastSlotMs <= furthest);
      },
    ),
    { numRuns: 500 },
  );
});
