import assert from "node:assert/strict";
import fc from "fast-check";
import {
  AGENT_EXIT_GRACE_MS,
  KILL_RUNG_MS,
  PING_INTERVAL_MS,
  PING_MISSES_MAX,
  SIGNAL_WAIT_MS,
  TERM_RUNG_MS,
} from "../core/limits.ts";
import { failedResult } from "../wire/result.ts";
import { resultOf } from "./ending.ts";
import type { ChildEvent, ChildPlan, ChildState } from "./state.ts";
import { nextMs, stepChild, TABLE } from "./table.ts";

const plan: ChildPlan = {
  startTimeoutMs: 1_000,
  deadlineMs: 100_000,
  progressTimeoutMs: 30_000,
  cancelRungMs: 2_000,
};
const done = failedResult("completed", "done");
const exit = { code: 0, signal: null };

/** Events by short names, so that a scenario is one line. */
const EVENTS: Record<string, (at: number) => ChildEvent> = {
  spawned: (at) => ({ at, type: "spawned", plan }),
  spawnFailed: (at) => ({ at, type: "spawnFailed", message: "no such file" }),
  ready: (at) => ({ at, type: "readied" }),
  progress: (at) => ({ at, type: "progressed", progress: { step: 1, tokens: 5, doing: "model" } }),
  excuse: (at) => ({ at, type: "excused", yes: true }),
  demand: (at) => ({ at, type: "excused", yes: false }),
  heard: (at) => ({ at, type: "heard" }),
  pong1: (at) => ({ at, type: "ponged", n: 1 }),
  result: (at) => ({ at, type: "resulted", result: done }),
  broken: (at) => ({ at, type: "frameBroken", message: "no JSON" }),
  eof: (at) => ({ at, type: "outputEnded" }),
  exit: (at) => ({ at, type: "exited", exit }),
  crash: (at) => ({ at, type: "exited", exit: { code: 137, signal: "SIGKILL" } }),
  stop: (at) => ({ at, type: "stopRequested", reason: "sigterm", rungMs: null }),
  kill: (at) => ({ at, type: "killRequested", reason: "sigterm" }),
  fat: (at) => ({ at, type: "memoryExceeded", bytes: 2048, bytesMax: 1024 }),
  term: (at) => ({ at, type: "signalled", signal: "SIGTERM" }),
  sent: (at) => ({ at, type: "signalled", signal: "SIGKILL" }),
  tick: (at) => ({ at, type: "timePassed" }),
};

/** Runs `name@ms` words; the outcome is the last state and everything that was done. */
function play(words: string): string {
  let state: ChildState = { tag: "down" };
  const done: string[] = [];
  for (const word of words.split(" ")) {
    const [name, at] = word.split("@");
    const [next, actions] = stepChild(state, EVENTS[name!]!(Number(at)));
    state = next;
    for (const action of actions) {
      done.push("signal" in action ? action.signal : action.type);
    }
  }
  const rung = state.tag === "stopping" ? `/${state.rung}` : "";
  const end = state.tag === "reaped" || state.tag === "failed"
    ? ` ${resultOf(state, null).status}`
    : "";
  return `${state.tag}${rung}${end}: ${done.join(" ")}`;
}

const scenarios: [string, string, string][] = [
  [
    "a good life",
    "spawned@0 ready@50 progress@60 result@70 exit@80",
    "reaped completed: sendStart settle",
  ],
  ["cannot start", "spawnFailed@0", "failed crashed: settle"],
  ["not ready in time", "spawned@0 tick@1000", "stopping/term: sendStart reportStuck SIGTERM"],
  ["not ready, one before", "spawned@0 tick@999", "starting: sendStart"],
  [
    "detector A",
    "spawned@0 ready@50 excuse@60 tick@100000",
    "stopping/term: sendStart reportLimit SIGTERM",
  ],
  ["detector B", "spawned@0 ready@50 tick@30050", "stopping/term: sendStart reportStuck SIGTERM"],
  [
    "detector B, work just before",
    "spawned@0 ready@50 heard@30049 tick@30050",
    "up: sendStart sendPing",
  ],
  [
    "detector B leaves alone whose silence is legal",
    "spawned@0 ready@50 excuse@60 tick@90000",
    "up: sendStart sendPing",
  ],
  [
    "detector B, no longer excused",
    "spawned@0 ready@50 excuse@60 demand@50000 tick@79999 tick@80000",
    "stopping/term: sendStart sendPing reportStuck SIGTERM",
  ],
  ["a ping", "spawned@0 ready@50 tick@5000", "up: sendStart sendPing"],
  [
    "detector C",
    "spawned@0 ready@50 tick@5000 tick@10000 tick@15000 tick@20000",
    "stopping/term: sendStart sendPing sendPing sendPing reportStuck SIGTERM",
  ],
  [
    "detector C, a late pong",
    "spawned@0 ready@50 tick@5000 pong1@5001 tick@10000 tick@15000 tick@20000",
    "up: sendStart sendPing sendPing sendPing sendPing",
  ],
  [
    "the ladder",
    "spawned@0 ready@50 stop@100 tick@2100 term@2110 tick@2609 tick@2610 sent@2700 tick@3699 tick@3700",
    "failed cancelled: sendStart sendCancel SIGTERM SIGKILL settle",
  ],
  [
    "the ladder, gone at SIGTERM",
    "spawned@0 ready@50 stop@100 tick@2100 crash@2200",
    "reaped cancelled: sendStart sendCancel SIGTERM settle",
  ],
  [
    "the ladder, its own result",
    "spawned@0 ready@50 stop@100 result@200 exit@300",
    "reaped completed: sendStart sendCancel settle",
  ],
  [
    "a second signal",
    "spawned@0 ready@50 stop@100 kill@150 crash@160",
    "reaped cancelled: sendStart sendCancel SIGKILL settle",
  ],
  [
    "a second stop",
    "spawned@0 ready@50 stop@100 stop@150",
    "stopping/cancel: sendStart sendCancel",
  ],
  [
    "lingers after its result",
    "spawned@0 ready@50 result@100 tick@3100 term@3100 tick@3600 crash@3700",
    "reaped completed: sendStart SIGTERM SIGKILL settle",
  ],
  [
    "closes stdout, exits",
    "spawned@0 ready@50 eof@100 crash@120",
    "reaped crashed: sendStart settle",
  ],
  [
    "closes stdout, lives on",
    "spawned@0 ready@50 eof@100 tick@600 term@600 tick@1100 crash@1110",
    "reaped crashed: sendStart SIGTERM SIGKILL settle",
  ],
  [
    "a broken frame",
    "spawned@0 ready@50 broken@60 crash@70",
    "reaped crashed: sendStart SIGKILL settle",
  ],
  ["ready twice", "spawned@0 ready@50 ready@60", "killing: sendStart SIGKILL"],
  ["work before ready", "spawned@0 progress@10", "killing: sendStart SIGKILL"],
  [
    "too much memory",
    "spawned@0 ready@50 fat@60 crash@70",
    "reaped crashed: sendStart reportLimit SIGKILL settle",
  ],
  [
    "late frames of the dead",
    "spawned@0 ready@50 crash@60 progress@70 result@70 tick@80",
    "reaped crashed: sendStart settle",
  ],
];

for (const [name, words, outcome] of scenarios) {
  Deno.test(`stepChild: ${name}`, () => assert.equal(play(words), outcome));
}

Deno.test("TABLE: every state has a cell for every event; the matrix", () => {
  const types = Object.keys(TABLE.down).sort();
  const rows = Object.entries(TABLE).map(([tag, cells]) => {
    assert.deepEqual(Object.keys(cells).sort(), types);
    const row = types.map((type) => {
      const cell = cells[type as keyof typeof cells];
      return typeof cell === "function" ? "h" : cell === "ignore" ? "." : "!";
    });
    return `${tag.padEnd(8)} ${row.join("")}`;
  });
  assert.equal(
    types.join(" "),
    "excused exited frameBroken heard killRequested memoryExceeded outputEnded ponged progressed readied " +
      "resulted signalled spawnFailed spawned stopRequested timePassed",
  );
  assert.deepEqual(rows, [
    "down     .!!!..!!!!!.hh..",
    "starting hhhhhhhhhhh!!!hh",
    "up       hhhhhhhhhhh!!!hh",
    "stopping .hh.hh....hh!!hh",
    "killing  .h.........h!!.h",
    "reaped   .!..........!!..",
    "failed   ............!!..",
  ]);
});

Deno.test("stepChild: whatever happens, an agent is settled once, within the ladder's bounds", () => {
  const names = Object.keys(EVENTS).filter((name) => name !== "spawned" && name !== "spawnFailed");
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.constantFrom(...names), fc.nat(8_000)), { maxLength: 60 }),
      (steps) => {
        let at = 0;
        let settled = 0;
        let over = false;
        let signals = 0;
        let state: ChildState = { tag: "down" };
        const take = (event: ChildEvent) => {
          const [next, actions] = stepChild(state, event);
          state = next;
          settled += actions.filter((action) => action.type === "settle").length;
          signals += actions.filter((action) => action.type === "signalGroup").length;
        };
        take(EVENTS.spawned!(0));
        for (const [name, ms] of steps) {
          if (over && (name === "exit" || name === "crash")) {
            continue;
          }
          if (name === "exit" || name === "crash") over = true;
          if ((name === "term" || name === "sent") && signals === 0) continue;
          at += ms;
          take(EVENTS[name]!(at));
        }
        // From here on only time passes: the deadline and the ladder end everything.
        const fromMs = at;
        for (let due = nextMs(state); due !== null; due = nextMs(state)) {
          at = Math.max(at + 1, due);
          take(EVENTS.tick!(at));
        }
        assert.equal(settled, 1);
        const boundMs = Math.max(fromMs, plan.deadlineMs) + plan.cancelRungMs + TERM_RUNG_MS +
          KILL_RUNG_MS + 2 * SIGNAL_WAIT_MS + AGENT_EXIT_GRACE_MS +
          PING_INTERVAL_MS * (PING_MISSES_MAX + 1);
        assert.ok(at <= boundMs, `${at} > ${boundMs}`);
      },
    ),
  );
});

Deno.test("stepChild: agents that started at different moments are pinged at the same ones", () => {
  const moments = [0, 1, 4_999, 5_000, 7_500].map((at) => {
    const [state] = stepChild({ tag: "down" }, {
      type: "spawned",
      at,
      plan: { ...plan, startTimeoutMs: 60_000 },
    });
    const first = nextMs(state)!;
    const [pinged, actions] = stepChild(state, { type: "timePassed", at: first + 3 });
    assert.deepEqual(actions, [{ type: "sendPing", n: 1 }]);
    return [first, nextMs(pinged)!];
  });
  assert.deepEqual(moments, [
    [5_000, 10_000],
    [5_000, 10_000],
    [10_000, 15_000],
    [10_000, 15_000],
    [15_000, 20_000],
  ]);
});
