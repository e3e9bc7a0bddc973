import assert from "node:assert/strict";
import fc from "fast-check";
import { DELIVERY_ATTEMPTS_MAX, DELIVERY_URIS_MAX, RESOURCES_MAX } from "../core/limits.ts";
import type { Route } from "../config/settings.ts";
import {
  type Change,
  endBatch,
  enqueue,
  openQueue,
  pendingChanges,
  placeOf,
  queueDepth,
  queueWakeMs,
  type RouteQueue,
  takeBatch,
} from "./route_queue.ts";

const SPAWN: Route = {
  match: "*",
  target: { kind: "spawn", maxInflight: 2 },
  debounceMs: 250,
  cap: 3,
  overflow: "coalesce",
  instruction: null,
};
const CONTINUE: Route = { ...SPAWN, target: { kind: "continue", session: "main" } };

function change(uri: string, kind: Change["kind"] = "changed"): Change {
  return { server: "s", uri, kind, runId: null, body: null, tries: 0 };
}

function request(runId: string): Change {
  return { server: null, uri: "trigger:x", kind: "changed", runId, body: null, tries: 0 };
}

/** `+uri@t` a change, `!id@t` a request, `?id@t` takes a batch, `=id@t` serves it, `~id@t` crash, `-id@t` outage. */
function script(route: Partial<Route>, text: string): { out: string[]; queue: RouteQueue } {
  const queue = openQueue({ ...SPAWN, ...route });
  const out: string[] = [];
  for (const word of text.split(" ")) {
    const [, op, name, at] = /^([+!?=~-])(.+)@(\d+)$/.exec(word)!;
    const nowMs = Number(at);
    if (op === "+") {
      if (enqueue(queue, change(name!), nowMs) === "refused") out.push(`refused ${name}`);
    } else if (op === "!") {
      if (enqueue(queue, request(name!), nowMs) === "refused") out.push(`refused ${name}`);
    } else if (op === "?") {
      const batch = takeBatch(queue, name!, nowMs);
      out.push(
        batch === null
          ? "-"
          : batch.entries.map((entry) =>
            [...entry.changes.values()].map((item) => item.runId ?? item.uri).join("+")
          ).join(" "),
      );
    } else {
      endBatch(queue, name!, op === "=" ? "served" : op === "~" ? "again" : "outage", nowMs, 0);
    }
  }
  return { out, queue };
}

Deno.test("RouteQueue: debounce, bounds, order, merging", () => {
  const rows: [string, Partial<Route>, string, string[]][] = [
    ["not before the debounce", {}, "+a@0 ?1@249 ?1@250", ["-", "a"]],
    ["a new change starts it anew", {}, "+a@0 +a@200 ?1@300 ?1@450", ["-", "a"]],
    ["but not for ever", {}, "+a@0 +a@200 +a@400 ?1@499 ?1@500", ["-", "a"]],
    ["spawn: each URI its own run, bounded in flight", {}, "+a@0 +b@0 +c@0 ?1@250 ?2@250 ?3@250", [
      "a",
      "b",
      "-",
    ]],
    ["spawn: room again", {}, "+a@0 +b@0 +c@0 ?1@250 ?2@250 =1@260 ?3@260", ["a", "b", "c"]],
    ["spawn: no two runs on one URI", {}, "+a@0 ?1@250 +a@260 ?2@900 =1@901 ?2@902", [
      "a",
      "-",
      "a",
    ]],
    [
      "continue: a set at once, the rest after",
      CONTINUE,
      "+a@0 +b@200 ?1@250 +c@260 ?2@900 =1@901 ?2@902",
      [
        "a b",
        "-",
        "c",
      ],
    ],
    [
      "coalesce: what is over the capacity rides with the newest",
      {},
      "+a@0 +b@0 +c@0 +d@0 +e@0 ?1@500 ?2@500 =1@501 ?3@501",
      [
        "a",
        "b",
        "c+d+e",
      ],
    ],
    ["coalesce at the capacity exactly", {}, "+a@0 +b@0 +c@0 ?1@250 ?2@250 =1@251 ?3@251", [
      "a",
      "b",
      "c",
    ]],
    [
      "drop_oldest",
      { overflow: "drop_oldest" },
      "+a@0 +b@0 +c@0 +d@0 ?1@250 ?2@250 =1@251 ?3@251",
      [
        "b",
        "c",
        "d",
      ],
    ],
    [
      "drop_newest",
      { overflow: "drop_newest" },
      "+a@0 +b@0 +c@0 +d@0 +a@1 ?1@300 ?2@300 =1@301 ?3@301 =2@302 ?4@302",
      [
        "refused d",
        "a",
        "b",
        "c",
        "-",
      ],
    ],
    [
      "block: nothing lost, moved up as room is made",
      { overflow: "block" },
      "+a@0 +b@0 +c@0 +d@0 +e@0 ?1@250 ?2@250 =1@251 ?3@251 =2@252 ?4@252 =3@253 ?5@253",
      [
        "a",
        "b",
        "c",
        "d",
        "e",
      ],
    ],
    ["requests: at once, none merged, full is told", {}, "!r1@0 !r2@0 !r3@0 !r4@0 ?1@0 ?2@0 ?3@0", [
      "refused r4",
      "r1",
      "r2",
      "-",
    ]],
    [
      "a crash puts it back at the front, after a back-off",
      {},
      "+a@0 +b@0 ?1@250 ~1@251 ?2@251 ?3@260 ?3@800",
      [
        "a",
        "b",
        "-",
        "a",
      ],
    ],
    [
      "a crash yields to what changed meanwhile",
      {},
      "+a@0 ?1@250 +a@260 ~1@270 ?2@600 ?2@900 =2@901 ?3@9000",
      [
        "a",
        "-",
        "a",
        "-",
      ],
    ],
    [
      "continue: a back-off holds up what came after",
      CONTINUE,
      "+a@0 ?1@250 ~1@251 +b@252 ?2@600 ?2@900",
      [
        "a",
        "-",
        "a b",
      ],
    ],
  ];
  for (const [name, route, text, expected] of rows) {
    assert.deepEqual(script(route, text).out, expected, name);
  }
});

Deno.test("RouteQueue: drops, merges and retries are counted by their reason", () => {
  const rows: [Partial<Route>, string, Partial<RouteQueue["counts"]>][] = [
    [{ overflow: "drop_oldest" }, "+a@0 +a@1 +b@0 +c@0 +d@0", {
      received: 5,
      coalesced: 1,
      dropped: { drop_oldest: 2, drop_newest: 0, full: 0, given_up: 0 },
    }],
    [{ overflow: "drop_newest" }, "+a@0 +b@0 +c@0 +d@0 +e@0", {
      dropped: { drop_oldest: 0, drop_newest: 2, full: 0, given_up: 0 },
    }],
    [{}, "!a@0 !b@0 !c@0 +d@0", {
      dropped: { drop_oldest: 0, drop_newest: 0, full: 1, given_up: 0 },
    }],
    [{}, "+a@0 ?1@250 -1@251", { retried: 1, delivered: 0 }],
    [{}, "+a@0 +a@1 ?1@300 =1@301", { delivered: 2, coalesced: 1 }],
  ];
  for (const [route, text, expected] of rows) {
    const { counts } = script(route, text).queue;
    for (const [key, value] of Object.entries(expected)) {
      assert.deepEqual(counts[key as keyof typeof counts], value, `${text}: ${key}`);
    }
  }
});

Deno.test("RouteQueue: a crash is tried again up to the bound, an outage for ever", () => {
  const queue = openQueue(SPAWN);
  enqueue(queue, change("a"), 0);
  let nowMs = 1000;
  for (let i = 1; i < DELIVERY_ATTEMPTS_MAX; i++) {
    assert(takeBatch(queue, `${i}`, nowMs), `attempt ${i}`);
    endBatch(queue, `${i}`, "again", nowMs, 0.5);
    nowMs += 120_000;
  }
  assert(takeBatch(queue, "last", nowMs));
  endBatch(queue, "last", "again", nowMs, 0.5);
  assert.equal(queue.counts.dropped.given_up, 1);
  assert.equal(queueDepth(queue), 0);

  enqueue(queue, change("b"), nowMs);
  for (let i = 0; i < DELIVERY_ATTEMPTS_MAX * 3; i++) {
    nowMs += 120_000;
    assert(takeBatch(queue, `b${i}`, nowMs));
    endBatch(queue, `b${i}`, "outage", nowMs, 0.5);
  }
  assert.equal(queueDepth(queue), 1);
  const wait = queueWakeMs(queue, nowMs)! - nowMs;
  assert(wait >= 30_000 && wait <= 60_000, `${wait}`);
});

Deno.test("RouteQueue: a possibly changed that changes is changed, and stays so", () => {
  const queue = openQueue(SPAWN);
  enqueue(queue, change("a", "possibly"), 0);
  enqueue(queue, change("a", "changed"), 1);
  enqueue(queue, change("a", "possibly"), 2);
  assert.deepEqual(pendingChanges(queue), [change("a", "changed")]);
});

Deno.test("RouteQueue: what was kept over a restart finds room, whatever the policy", () => {
  for (const overflow of ["coalesce", "drop_oldest", "drop_newest", "block"] as const) {
    const queue = openQueue({ ...SPAWN, overflow });
    for (let i = 0; i < SPAWN.cap * 2; i++) enqueue(queue, request(`r${i}`), 0, true);
    assert.equal(queueDepth(queue), SPAWN.cap * 2);
    assert.equal(Object.values(queue.counts.dropped).reduce((sum, n) => sum + n, 0), 0);
  }
});

Deno.test("RouteQueue: one delivery tells of a bounded number of URIs, the next of the rest", () => {
  const queue = openQueue({ ...CONTINUE, cap: 1 });
  const count = DELIVERY_URIS_MAX * 2 + 1;
  for (let i = 0; i < count; i++) enqueue(queue, change(`u${i}`), 0);
  const sizes: number[] = [];
  for (let i = 0;; i++) {
    const batch = takeBatch(queue, `${i}`, 500);
    if (batch === null) break;
    sizes.push(batch.entries.reduce((sum, entry) => sum + entry.changes.size, 0));
    endBatch(queue, `${i}`, "served", 500, 0);
  }
  assert.deepEqual(sizes, [DELIVERY_URIS_MAX, DELIVERY_URIS_MAX, 1]);
  assert.equal(queue.counts.delivered, count);
});

Deno.test("RouteQueue: at most RESOURCES_MAX places are held, one past it is counted", () => {
  for (const overflow of ["coalesce", "block"] as const) {
    const queue = openQueue({ ...SPAWN, overflow });
    for (let i = 0; i < RESOURCES_MAX; i++) {
      assert.equal(enqueue(queue, change(`u${i}`), 0), "taken");
    }
    assert.equal(enqueue(queue, change("one more"), 0), "refused");
    assert.equal(enqueue(queue, change("u0"), 0), "taken");
    assert.equal(queue.counts.dropped.full, 1);
  }
});

Deno.test("RouteQueue: whatever happens, nothing is lost beyond merging and counted drops", () => {
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.record({ op: fc.constant("change"), n: fc.nat(8) }) },
    { weight: 1, arbitrary: fc.record({ op: fc.constant("request"), n: fc.nat(3) }) },
    { weight: 3, arbitrary: fc.record({ op: fc.constant("wait"), n: fc.nat(400) }) },
    { weight: 3, arbitrary: fc.record({ op: fc.constant("take"), n: fc.nat(3) }) },
    { weight: 2, arbitrary: fc.record({ op: fc.constant("served"), n: fc.nat(3) }) },
    { weight: 1, arbitrary: fc.record({ op: fc.constant("outage"), n: fc.nat(3) }) },
  );
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 120 }),
      fc.constantFrom("coalesce", "drop_oldest", "drop_newest", "block") as fc.Arbitrary<
        Route["overflow"]
      >,
      fc.boolean(),
      (steps, overflow, spawn) => {
        const route = { ...(spawn ? SPAWN : CONTINUE), overflow };
        const queue = openQueue(route);
        let nowMs = 0;
        let ids = 0;
        /** Order of the last change of each URI that was taken in, and of its last telling. */
        const changed = new Map<string, number>();
        const told = new Map<string, number>();
        const requests = new Set<string>();
        let order = 0;
        const balance = () => {
          const { counts } = queue;
          const events = (entries: Iterable<{ events: number }>) =>
            [...entries].reduce((sum, entry) => sum + entry.events, 0);
          const held = events(queue.waiting) + events(queue.blocked) +
            events([...queue.inflight.values()].flat());
          const dropped = Object.values(counts.dropped).reduce((sum, n) => sum + n, 0);
          assert.equal(counts.received, held + counts.delivered + dropped);
          assert(queue.waiting.every((entry) => entry.events >= entry.changes.size));
        };
        const take = () => {
          const batch = takeBatch(queue, `${++ids}`, nowMs);
          if (batch === null) return false;
          order++;
          const places = new Set<string>();
          for (const other of queue.inflight.values()) {
            for (const entry of other) {
              if (entry.request) continue;
              for (const place of entry.changes.keys()) {
                assert(!places.has(place), "one URI in flight twice");
                places.add(place);
              }
            }
          }
          for (const entry of batch.entries) {
            for (const item of entry.changes.values()) {
              if (item.runId === null) told.set(placeOf(item), order);
              else assert(requests.delete(item.runId), "a request twice");
            }
          }
          return true;
        };
        const end = (how: "served" | "outage", n: number) => {
          const id = [...queue.inflight.keys()][n % Math.max(1, queue.inflight.size)];
          if (id === undefined) return;
          if (how === "outage") {
            for (const entry of queue.inflight.get(id)!) {
              for (const item of entry.changes.values()) {
                if (item.runId !== null) requests.add(item.runId);
                else told.delete(placeOf(item));
              }
            }
          }
          endBatch(queue, id, how, nowMs, 0.5);
        };
        for (const { op, n } of steps) {
          if (op === "change") {
            order++;
            const item = change(`u${n}`);
            if (enqueue(queue, item, nowMs) === "taken") changed.set(placeOf(item), order);
            else if (!queue.places.has(placeOf(item))) changed.delete(placeOf(item));
          } else if (op === "request") {
            const runId = `r${++ids}`;
            if (enqueue(queue, request(runId), nowMs) === "taken") requests.add(runId);
          } else if (op === "wait") nowMs += n;
          else if (op === "take") take();
          else end(op as "served" | "outage", n);
          assert(queue.waiting.length <= route.cap + 2 * DELIVERY_ATTEMPTS_MAX);
          assert(queue.inflight.size <= (spawn ? 2 : 1));
          balance();
        }
        for (let i = 0; i < 1000 && (queueDepth(queue) > 0 || queue.inflight.size > 0); i++) {
          while (queue.inflight.size > 0) end("served", 0);
          nowMs = Math.max(nowMs, queueWakeMs(queue, nowMs) ?? nowMs);
          take();
          balance();
        }
        assert.equal(queueDepth(queue), 0, "the queue does not run dry");
        assert.equal(queue.places.size, 0);
        assert.equal(queue.busy.size, 0);
        if (overflow !== "coalesce" && overflow !== "block") return;
        for (const [place, at] of changed) assert(told.get(place)! > at, `${place} was not told`);
        assert.equal(requests.size, 0);
      },
    ),
    { numRuns: 600 },
  );
});
