/**
 * The router: every change has exactly one owner among the routes, and every route one queue. Like
 * its queues a machine over plain data, owned by the caller and changed in place.
 */

import { DYNAMIC_ROUTES_MAX, RESOURCES_MAX, ROUTES_MAX } from "../core/limits.ts";
import { globToRegExp } from "../core/glob.ts";
import { failed, type Outcome, success } from "../core/outcome.ts";
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
  waitingEvents,
} from "./route_queue.ts";

/** A route with its queue. `session`: made by that session's agent, not by the operator. */
export interface OwnedRoute {
  match: string;
  exact: boolean;
  /** Characters before the first wildcard. */
  literalChars: number;
  pattern: RegExp;
  session: string | null;
  queue: RouteQueue;
}

/** All routes. `owners` remembers who owns what, until the routes change. */
export interface Router {
  routes: OwnedRoute[];
  owners: Map<string, OwnedRoute | null>;
  /** Changes that no route matches, and events dropped with routes that were given up. */
  unrouted: number;
  /** Numbers deliveries. */
  batches: number;
}

/** A batch to hand over: to a new run, or to the warm session of a name. */
export interface Delivery {
  id: string;
  route: Route;
  changes: Change[];
  /** Events that it stands for. */
  events: number;
  /** When the first of them came, monotonic milliseconds. */
  firstMs: number;
  /** How often it was tried before. */
  attempts: number;
}

/** A router of the operator's routes, in their order; at most ROUTES_MAX. */
export function openRouter(routes: readonly Route[]): Router {
  return {
    routes: routes.slice(0, ROUTES_MAX).map((route) => own(route, null)),
    owners: new Map(),
    unrouted: 0,
    batches: 0,
  };
}

function own(route: Route, session: string | null): OwnedRoute {
  // What an agent names is one resource, and a URI may have a query.
  const wildcard = session === null ? route.match.search(/[*?]/) : -1;
  return {
    match: route.match,
    exact: wildcard === -1,
    literalChars: wildcard === -1 ? route.match.length : wildcard,
    pattern: session === null ? globToRegExp(route.match) : literalPattern(route.match),
    session,
    queue: openQueue(route),
  };
}

function literalPattern(text: string): RegExp {
  return new RegExp(`^${text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")}$`, "su");
}

/**
 * The route that owns a change: exact before glob, longest literal prefix first, then order. A
 * match is written against the URI, or against `server:uri`.
 */
export function ownerOf(
  router: Router,
  change: Pick<Change, "server" | "uri">,
): OwnedRoute | null {
  const place = placeOf(change);
  const known = router.owners.get(place);
  if (known !== undefined) return known;
  const scoped = change.server === null ? null : `${change.server}:${change.uri}`;
  let owner: OwnedRoute | null = null;
  for (const route of router.routes) {
    if (owner !== null && !precedes(route, owner)) continue;
    if (route.pattern.test(change.uri) || (scoped !== null && route.pattern.test(scoped))) {
      owner = route;
    }
  }
  if (router.owners.size >= RESOURCES_MAX) router.owners.clear();
  router.owners.set(place, owner);
  return owner;
}

function precedes(a: OwnedRoute, b: OwnedRoute): boolean {
  if (a.exact !== b.exact) return a.exact;
  return a.literalChars > b.literalChars;
}

/** A change comes in. `unrouted`: no route wants it; `refused`: its queue has no room for it. */
export function accept(
  router: Router,
  change: Change,
  nowMs: number,
  kept = false,
): "taken" | "refused" | "unrouted" {
  const owner = ownerOf(router, change);
  if (owner === null) {
    router.unrouted++;
    return "unrouted";
  }
  return enqueue(owner.queue, change, nowMs, kept);
}

/** Everything that may be handed over now. Each must be ended by {@link settle}. */
export function takeDeliveries(router: Router, nowMs: number): Delivery[] {
  const out: Delivery[] = [];
  for (const { queue } of router.routes) {
    for (;;) {
      const batch = takeBatch(queue, `d${router.batches + 1}`, nowMs);
      if (batch === null) break;
      router.batches++;
      out.push({
        id: batch.id,
        route: queue.route,
        changes: batch.entries.flatMap((entry) => [...entry.changes.values()]),
        events: batch.entries.reduce((sum, entry) => sum + entry.events, 0),
        firstMs: Math.min(...batch.entries.map((entry) => entry.firstMs)),
        attempts: Math.max(...batch.entries.map((entry) => entry.attempts)),
      });
    }
  }
  return out;
}

/** A delivery is over; see {@link endBatch}. */
export function settle(
  router: Router,
  id: string,
  how: "served" | "again" | "outage",
  nowMs: number,
  unit: number,
): void {
  for (const { queue } of router.routes) endBatch(queue, id, how, nowMs, unit);
}

/** When {@link takeDeliveries} may next give something, by time alone; null: not by time. */
export function routerWakeMs(router: Router, nowMs: number): number | null {
  let wake: number | null = null;
  for (const { queue } of router.routes) {
    const at = queueWakeMs(queue, nowMs);
    if (at !== null && (wake === null || at < wake)) wake = at;
  }
  return wake;
}

/**
 * A session's agent wants to be woken by a resource: an exact route to that session. Refused where
 * an operator's exact route or another session owns it already; the failure says why.
 */
export function addDynamicRoute(
  router: Router,
  server: string,
  uri: string,
  session: string,
  debounceMs: number,
  cap: number,
): Outcome<"added" | "known", string> {
  const match = `${server}:${uri}`;
  if (uri.includes("*")) return failed("a subscription names one resource, without wildcards");
  const there = ownerOf(router, { server, uri });
  if (there !== null && there.exact) {
    const { target } = there.queue.route;
    if (target.kind === "continue" && target.session === session) return success("known");
    return failed(
      there.session === null
        ? "the operator's route already says what a change of it starts"
        : "another session is subscribed to it",
    );
  }
  const dynamic = router.routes.filter((route) => route.session !== null).length;
  if (dynamic >= DYNAMIC_ROUTES_MAX) {
    return failed(`${DYNAMIC_ROUTES_MAX} subscriptions by agents exist, no more are taken`);
  }
  router.routes.push(own({
    match,
    target: { kind: "continue", session },
    debounceMs,
    cap,
    overflow: "coalesce",
    instruction: null,
  }, session));
  router.owners.clear();
  return success("added");
}

/**
 * Takes a session's own route away again; whether there was one. What waited in it is dropped; what
 * is in flight, as when a session is told and then lets go, goes on to its end.
 */
export function removeDynamicRoute(
  router: Router,
  server: string,
  uri: string,
  session: string,
): boolean {
  const match = `${server}:${uri}`;
  const at = router.routes.findIndex((route) => route.session === session && route.match === match);
  if (at === -1) return false;
  router.unrouted += waitingEvents(router.routes[at]!.queue);
  router.routes.splice(at, 1);
  router.owners.clear();
  return true;
}

/** What a drain keeps for the next start, oldest first within each route. */
export function pendingOf(router: Router): Change[] {
  return router.routes.flatMap(({ queue }) => pendingChanges(queue));
}

/** Entries that wait, over all routes. */
export function routerDepth(router: Router): number {
  return router.routes.reduce((sum, { queue }) => sum + queueDepth(queue), 0);
}
