/**
 * One route's queue, as a machine over plain data. It holds what changed (URIs, never bodies) until
 * a run or a warm session may be told. Deterministic and without effects; the state is owned by the
 * caller and changed in place, since a queue is touched thousands of times a second.
 *
 * Nothing is lost but by a counted drop: `received = waiting + blocked + in flight + delivered +
 * dropped`, in events. Merging loses none: an entry stands for all the events that it holds.
 */

import {
  DEBOUNCE_WAITS_MAX,
  DELIVERY_ATTEMPTS_MAX,
  DELIVERY_BACKOFF,
  DELIVERY_URIS_MAX,
  RESOURCES_MAX,
} from "../core/limits.ts";
import { backoffMs } from "../core/backoff.ts";
import type { Route } from "../config/settings.ts";
import { noCounts, type QueueCounts } from "./queue_counts.ts";

/** A body that came over HTTP, kept in a file of the state directory until it is handed over. */
export interface StoredBody {
  path: string;
  mimeType: string;
  name: string;
}

/** A change, or a request from outside. Times are monotonic milliseconds. */
export interface Change {
  /** Null: not from a tool server. */
  server: string | null;
  uri: string;
  /** `possibly`: nobody saw it change, but while nobody looked it may have. */
  kind: "changed" | "possibly";
  /** A request of its own, never merged with others: the id of the run it was promised. */
  runId: string | null;
  body: StoredBody | null;
  /** Of a request: runs that were started for it and ended without serving it. */
  tries: number;
}

/** Something waiting to be told. One entry is one run, or part of one delivery. */
export interface Entry {
  /** By {@link placeOf}; a request from outside is alone in its entry. */
  changes: Map<string, Change>;
  /** A request from outside: never merged. */
  request: boolean;
  /** Events that it stands for, those merged into it included. */
  events: number;
  firstMs: number;
  lastMs: number;
  /** Not before this: the back-off after a run that crashed or aborted. */
  notBeforeMs: number;
  attempts: number;
}

/** The queue of one route. */
export interface RouteQueue {
  route: Route;
  waiting: Entry[];
  /** Overflow `block`: beyond the capacity, in order; moved up as room is made. */
  blocked: Entry[];
  inflight: Map<string, Entry[]>;
  /** The waiting or blocked entry that a mergeable URI is in. */
  places: Map<string, Entry>;
  /** How many deliveries in flight tell of a URI. */
  busy: Map<string, number>;
  counts: QueueCounts;
  /** The counts as they were when the figures last had them. */
  told: QueueCounts;
}

/** An empty queue. */
export function openQueue(route: Route): RouteQueue {
  return {
    route,
    waiting: [],
    blocked: [],
    inflight: new Map(),
    places: new Map(),
    busy: new Map(),
    counts: noCounts(),
    told: noCounts(),
  };
}

/** A URI with the server it is of: what changes are merged by. */
export function placeOf(change: Pick<Change, "server" | "uri">): string {
  return `${change.server ?? ""}\n${change.uri}`;
}

/**
 * Takes a change in. `refused`: dropped or no room, counted; the source may be told. A change of a
 * URI that is already waiting merges into it: newest wins, and `changed` wins over `possibly`.
 * `kept`: it was taken in before a restart, and so finds room whatever the capacity.
 */
export function enqueue(
  queue: RouteQueue,
  change: Change,
  nowMs: number,
  kept = false,
): "taken" | "refused" {
  queue.counts.received++;
  const place = placeOf(change);
  const host = change.runId === null ? queue.places.get(place) : undefined;
  if (host !== undefined) {
    mergeInto(queue, host, place, change, nowMs);
    return "taken";
  }
  const entry: Entry = {
    changes: new Map([[place, change]]),
    request: change.runId !== null,
    events: 1,
    firstMs: nowMs,
    lastMs: nowMs,
    notBeforeMs: 0,
    attempts: 0,
  };
  if (queue.waiting.length >= queue.route.cap && !kept) return overflow(queue, entry, place, nowMs);
  append(queue, queue.waiting, entry);
  return "taken";
}

function append(queue: RouteQueue, list: Entry[], entry: Entry): void {
  list.push(entry);
  if (!entry.request) { for (const place of entry.changes.keys()) queue.places.set(place, entry); }
}

function mergeInto(
  queue: RouteQueue,
  host: Entry,
  place: string,
  change: Change,
  nowMs: number,
): void {
  const known = host.changes.get(place);
  host.changes.set(place, known?.kind === "changed" ? { ...change, kind: "changed" } : change);
  host.events++;
  host.lastMs = nowMs;
  queue.places.set(place, host);
  queue.counts.coalesced++;
}

function overflow(
  queue: RouteQueue,
  entry: Entry,
  place: string,
  nowMs: number,
): "taken" | "refused" {
  const { dropped } = queue.counts;
  const policy = queue.route.overflow;
  if (policy === "drop_oldest") {
    const oldest = queue.waiting.shift()!;
    dropped.drop_oldest += oldest.events;
    forget(queue, oldest);
    append(queue, queue.waiting, entry);
    return "taken";
  }
  if (policy === "drop_newest") {
    dropped.drop_newest++;
    return "refused";
  }
  // A request cannot be merged, but whoever sent it can be told to come back.
  const host = queue.waiting.findLast((waiting) => !waiting.request);
  const full = entry.request || queue.places.size >= RESOURCES_MAX ||
    (policy === "coalesce" && host === undefined);
  if (full) {
    dropped.full++;
    return "refused";
  }
  if (policy === "block") append(queue, queue.blocked, entry);
  else mergeInto(queue, host!, place, entry.changes.get(place)!, nowMs);
  return "taken";
}

function forget(queue: RouteQueue, entry: Entry): void {
  for (const place of entry.changes.keys()) {
    if (queue.places.get(place) === entry) queue.places.delete(place);
  }
}

/** When an entry has settled: the debounce after its last change, twice that after its first. */
function settledAtMs(queue: RouteQueue, entry: Entry): number {
  if (entry.request) return entry.notBeforeMs;
  const { debounceMs } = queue.route;
  const quietMs = Math.min(
    entry.lastMs + debounceMs,
    entry.firstMs + DEBOUNCE_WAITS_MAX * debounceMs,
  );
  return Math.max(quietMs, entry.notBeforeMs);
}

/** The changes of one run or delivery. */
export interface Batch {
  id: string;
  entries: Entry[];
}

/**
 * What may be told now, if anything: one call, one batch; call until null. A `spawn` route gives an
 * entry that has settled and none of whose URIs a run in flight was told of; a `continue` route
 * gives everything that waits, once the first of it has settled and nothing is in flight.
 */
export function takeBatch(queue: RouteQueue, id: string, nowMs: number): Batch | null {
  const { target } = queue.route;
  const entries = target.kind === "spawn"
    ? (queue.inflight.size < target.maxInflight ? takeSpawn(queue, nowMs) : [])
    : (queue.inflight.size === 0 ? takeContinue(queue, nowMs) : []);
  if (entries.length === 0) return null;
  queue.inflight.set(id, entries);
  for (const entry of entries) {
    for (const place of entry.changes.keys()) {
      queue.busy.set(place, (queue.busy.get(place) ?? 0) + 1);
    }
  }
  moveUp(queue);
  return { id, entries };
}

function takeSpawn(queue: RouteQueue, nowMs: number): Entry[] {
  const at = queue.waiting.findIndex((entry) => isReady(queue, entry, nowMs));
  return at === -1 ? [] : [takeAt(queue, at, DELIVERY_URIS_MAX)];
}

function isReady(queue: RouteQueue, entry: Entry, nowMs: number): boolean {
  if (settledAtMs(queue, entry) > nowMs) return false;
  if (entry.request) return true;
  for (const place of entry.changes.keys()) if (queue.busy.has(place)) return false;
  return true;
}

function takeContinue(queue: RouteQueue, nowMs: number): Entry[] {
  if (!queue.waiting.some((entry) => settledAtMs(queue, entry) <= nowMs)) return [];
  const taken: Entry[] = [];
  let room = DELIVERY_URIS_MAX;
  // Strict order: what waits out a back-off holds up what came after it.
  while (room > 0 && queue.waiting.length > 0 && queue.waiting[0]!.notBeforeMs <= nowMs) {
    const entry = takeAt(queue, 0, room);
    taken.push(entry);
    room -= entry.changes.size;
  }
  return taken;
}

/** Removes an entry, or as much of it as there is room for: the rest stays in its place. */
function takeAt(queue: RouteQueue, at: number, urisMax: number): Entry {
  const entry = queue.waiting[at]!;
  if (entry.changes.size <= urisMax) {
    queue.waiting.splice(at, 1);
    forget(queue, entry);
    return entry;
  }
  const part: Entry = { ...entry, changes: new Map(), events: urisMax };
  for (const [place, change] of entry.changes) {
    if (part.changes.size === urisMax) break;
    part.changes.set(place, change);
    entry.changes.delete(place);
    queue.places.delete(place);
  }
  // Every change is one event at least; what was merged beyond that stays with the rest.
  entry.events -= urisMax;
  return part;
}

function moveUp(queue: RouteQueue): void {
  while (queue.blocked.length > 0 && queue.waiting.length < queue.route.cap) {
    queue.waiting.push(queue.blocked.shift()!);
  }
}

/**
 * A batch is over. `served`: the agent was told. `again`: its run crashed or aborted before it can
 * be taken for told, so everything goes back to the front and waits out a back-off; `outage`: the
 * same, and no attempt is counted, since nothing was wrong with the events. `unit` in [0, 1).
 */
export function endBatch(
  queue: RouteQueue,
  id: string,
  how: "served" | "again" | "outage",
  nowMs: number,
  unit: number,
): void {
  const entries = queue.inflight.get(id);
  if (entries === undefined) return;
  queue.inflight.delete(id);
  for (const entry of entries) {
    for (const place of entry.changes.keys()) {
      const count = queue.busy.get(place)! - 1;
      if (count === 0) queue.busy.delete(place);
      else queue.busy.set(place, count);
    }
  }
  if (how === "served") {
    for (const entry of entries) queue.counts.delivered += entry.events;
    return;
  }
  for (const entry of entries.reverse()) putBack(queue, entry, how, nowMs, unit);
}

function putBack(
  queue: RouteQueue,
  entry: Entry,
  how: "again" | "outage",
  nowMs: number,
  unit: number,
): void {
  entry.attempts++;
  if (how === "again" && entry.attempts >= DELIVERY_ATTEMPTS_MAX) {
    queue.counts.dropped.given_up += entry.events;
    return;
  }
  queue.counts.retried += entry.events;
  // Half of it is certain: a back-off of nothing would be a hot loop.
  entry.notBeforeMs = nowMs + backoffMs(DELIVERY_BACKOFF, entry.attempts, 0.5 + unit / 2);
  if (entry.request) countTry(entry);
  else if (!yieldToNewer(queue, entry)) return;
  queue.waiting.unshift(entry);
  if (!entry.request) { for (const place of entry.changes.keys()) queue.places.set(place, entry); }
}

function countTry(entry: Entry): void {
  for (const [place, change] of entry.changes) {
    entry.changes.set(place, { ...change, tries: change.tries + 1 });
  }
}

/** Leaves what changed again meanwhile to the newer entries; whether anything is left. */
function yieldToNewer(queue: RouteQueue, entry: Entry): boolean {
  for (const place of [...entry.changes.keys()]) {
    const newer = queue.places.get(place);
    if (newer === undefined) continue;
    entry.changes.delete(place);
    const moved = entry.changes.size === 0 ? entry.events : 1;
    entry.events -= moved;
    newer.events += moved;
    queue.counts.coalesced += moved;
    newer.notBeforeMs = Math.max(newer.notBeforeMs, entry.notBeforeMs);
    newer.attempts = Math.max(newer.attempts, entry.attempts);
  }
  return entry.changes.size > 0;
}

/** When {@link takeBatch} may next give something, by time alone; null: not by time. */
export function queueWakeMs(queue: RouteQueue, nowMs: number): number | null {
  const { target } = queue.route;
  const limit = target.kind === "spawn" ? target.maxInflight : 1;
  if (queue.inflight.size >= limit) return null;
  let wake: number | null = null;
  for (const entry of queue.waiting) {
    const at = target.kind === "continue"
      ? Math.max(settledAtMs(queue, entry), queue.waiting[0]!.notBeforeMs)
      : settledAtMs(queue, entry);
    const blockedByRun = target.kind === "spawn" && at <= nowMs && !isReady(queue, entry, nowMs);
    if (!blockedByRun && (wake === null || at < wake)) wake = at;
  }
  return wake;
}

/** Everything that was taken in and not yet served, oldest first: what a drain keeps. */
export function pendingChanges(queue: RouteQueue): Change[] {
  const changes = (entries: Entry[]) => entries.flatMap((entry) => [...entry.changes.values()]);
  const inflight = changes([...queue.inflight.values()].flat());
  return [
    ...inflight.map((change) =>
      change.runId === null ? change : { ...change, tries: change.tries + 1 }
    ),
    ...changes(queue.waiting),
    ...changes(queue.blocked),
  ];
}

/** Events that wait, blocked ones included. */
export function waitingEvents(queue: RouteQueue): number {
  return [...queue.waiting, ...queue.blocked].reduce((sum, entry) => sum + entry.events, 0);
}

/** Entries that wait, blocked ones included. */
export function queueDepth(queue: RouteQueue): number {
  return queue.waiting.length + queue.blocked.length;
}
