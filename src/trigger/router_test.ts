import assert from "node:assert/strict";
import { DYNAMIC_ROUTES_MAX } from "../core/limits.ts";
import type { Route } from "../config/settings.ts";
import type { Change } from "./route_queue.ts";
import {
  accept,
  addDynamicRoute,
  openRouter,
  ownerOf,
  pendingOf,
  removeDynamicRoute,
  routerDepth,
  routerWakeMs,
  settle,
  takeDeliveries,
} from "./router.ts";

function spawn(match: string): Route {
  return {
    match,
    target: { kind: "spawn", maxInflight: 4 },
    debounceMs: 250,
    cap: 16,
    overflow: "coalesce",
    instruction: null,
  };
}

function warm(match: string, session: string): Route {
  return { ...spawn(match), target: { kind: "continue", session } };
}

function change(uri: string, server: string | null = "docs"): Change {
  return { server, uri, kind: "changed", runId: null, body: null, tries: 0 };
}

Deno.test("ownerOf: exactly one: exact before glob, longest literal prefix, then order", () => {
  const rows: [string[], string, string | null][] = [
    [["mem://*", "mem://state"], "mem://state", "mem://state"],
    [["**", "mem://**", "mem://inbox/*"], "mem://inbox/1", "mem://inbox/*"],
    [["mem://inbox/*", "mem://inbox/?"], "mem://inbox/1", "mem://inbox/*"],
    [["mem://inbox/?", "mem://inbox/*"], "mem://inbox/1", "mem://inbox/?"],
    [["mem://inbox/*"], "mem://inbox/a/b", null],
    [["mem://inbox/**"], "mem://inbox/a/b", "mem://inbox/**"],
    [["docs:mem://*", "mem://*"], "mem://x", "docs:mem://*"],
    [["other:mem://*"], "mem://x", null],
    [["mem://x.y"], "mem://xzy", null],
    [[], "mem://x", null],
  ];
  for (const [matches, uri, expected] of rows) {
    const router = openRouter(matches.map(spawn));
    assert.equal(ownerOf(router, change(uri))?.match ?? null, expected, `${matches} ${uri}`);
    assert.equal(ownerOf(router, change(uri))?.match ?? null, expected, "remembered");
  }
});

Deno.test("Router: a change goes to one queue, deliveries name their route, unrouted is counted", () => {
  const router = openRouter([spawn("mem://inbox/*"), warm("mem://state", "main")]);
  assert.equal(accept(router, change("mem://inbox/1"), 0), "taken");
  assert.equal(accept(router, change("mem://state"), 10), "taken");
  assert.equal(accept(router, change("mem://else"), 10), "unrouted");
  assert.equal(router.unrouted, 1);
  assert.equal(routerDepth(router), 2);
  assert.equal(routerWakeMs(router, 10), 250);
  const out = takeDeliveries(router, 260);
  assert.deepEqual(
    out.map((delivery) => [delivery.route.match, delivery.changes.map((item) => item.uri)]),
    [["mem://inbox/*", ["mem://inbox/1"]], ["mem://state", ["mem://state"]]],
  );
  assert.equal(routerWakeMs(router, 260), null);
  assert.equal(pendingOf(router).length, 2, "what is in flight is kept over a restart too");
  settle(router, out[0]!.id, "served", 300, 0);
  settle(router, out[1]!.id, "outage", 300, 0);
  assert.deepEqual(pendingOf(router).map((item) => item.uri), ["mem://state"]);
  assert.equal(routerWakeMs(router, 300), 800);
});

Deno.test("addDynamicRoute: an exact route to the session's own, refused where it is owned", () => {
  const router = openRouter([spawn("mem://*"), spawn("mem://fixed"), warm("mem://mine", "a")]);
  const add = (uri: string, session: string) =>
    addDynamicRoute(router, "docs", uri, session, 250, 16);
  assert.deepEqual(add("mem://x", "a"), { ok: true, value: "added" });
  assert.deepEqual(add("mem://x", "a"), { ok: true, value: "known" });
  assert.deepEqual(add("mem://mine", "a"), { ok: true, value: "known" });
  for (
    const [uri, session, why] of [
      ["mem://x", "b", /another session/],
      ["mem://fixed", "a", /operator/],
      ["mem://*", "a", /wildcards/],
    ] as const
  ) {
    const refused = add(uri, session);
    assert(!refused.ok);
    assert.match(refused.failure, why);
  }
  const owner = ownerOf(router, change("mem://x"))!;
  assert.deepEqual(owner.queue.route.target, { kind: "continue", session: "a" });
  assert.equal(ownerOf(router, change("mem://x", "other"))!.match, "mem://*");

  accept(router, change("mem://x"), 0);
  assert.equal(removeDynamicRoute(router, "docs", "mem://x", "b"), false);
  assert.equal(removeDynamicRoute(router, "docs", "mem://x", "a"), true);
  assert.equal(router.unrouted, 1, "what it held is counted");
  assert.equal(ownerOf(router, change("mem://x"))!.match, "mem://*");

  // A query is a part of a URI, not a wildcard.
  assert(add("db://rows?id=1", "a").ok);
  assert.equal(ownerOf(router, change("db://rows?id=1"))!.session, "a");
  assert.equal(ownerOf(router, change("db://rows/id=1")), null);
  assert.equal(removeDynamicRoute(router, "docs", "db://rows?id=1", "a"), true);

  // Told, and then let go: that is no drop.
  assert(add("mem://once", "a").ok);
  accept(router, change("mem://once"), 0);
  assert.equal(takeDeliveries(router, 250).length, 1);
  assert.equal(removeDynamicRoute(router, "docs", "mem://once", "a"), true);
  assert.equal(router.unrouted, 1);

  for (let i = 0; i < DYNAMIC_ROUTES_MAX; i++) assert(add(`mem://d/${i}`, "a").ok);
  assert(!add("mem://d/one-more", "a").ok);
});
