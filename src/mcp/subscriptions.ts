/**
 * What one server is asked to tell of: lists that change and watched resources, in both eras of the
 * protocol (`resources/subscribe`, and the later `subscriptions/listen`), across reconnections.
 */

import { backoffMs, type BackoffPlan } from "../core/backoff.ts";
import { failed, type Outcome, success } from "../core/outcome.ts";
import { type ClockPort, pause } from "../ports/clock.ts";
import type { RandomPort } from "../ports/random.ts";
import type { ToolFailure } from "../ports/tools.ts";
import type { Connection } from "./connection.ts";
import { classifyError, finalFault } from "./failure.ts";
import { isUri } from "./metadata.ts";
import { SDK_TIMEOUT_MS } from "./sdk.ts";
import { TimeLimit } from "./timing.ts";

/** What is heard. */
export interface SubscriptionEvents {
  toolsChanged(): void;
  resourcesChanged(): void;
  resourceUpdated(uri: string, possibly: boolean): void;
  /** The server is not heard for now, or is heard again. */
  heard(now: boolean): void;
}

/** Watched resources of one server. */
const WATCHED_MAX = 1_000;
/** A stream of notifications that ended is opened again, ever more slowly, while the server lives. */
const LISTEN_BACKOFF: BackoffPlan = { baseMs: 200, capMs: 30_000, attemptsMax: Infinity };
/** A stream that lived this long starts the backoff anew. */
const LISTEN_HEALTHY_MS = 10_000;

/** What a server may take to agree to a stream. */
const LISTEN_TIMEOUT_MS = 5_000;

type Listening = Awaited<ReturnType<Connection["client"]["listen"]>>;

/** The subscriptions of one server. */
export class Subscriptions {
  readonly #clock: ClockPort;
  readonly #random: RandomPort;
  readonly #events: SubscriptionEvents;
  readonly #watched = new Set<string>();
  /** Ends with the server's link. */
  readonly #life: AbortSignal;
  #connection: Connection | null = null;
  #listening: Listening | null = null;
  #heard = true;
  /** Openings of the stream happen one after the other. */
  #queue: Promise<unknown> = Promise.resolve();

  constructor(
    deps: { clock: ClockPort; random: RandomPort },
    events: SubscriptionEvents,
    life: AbortSignal,
  ) {
    this.#clock = deps.clock;
    this.#random = deps.random;
    this.#events = events;
    this.#life = life;
  }

  /** Listens on a connection in place of the one before; what was watched is asked for again. */
  async attach(connection: Connection, signal: AbortSignal): Promise<void> {
    this.#connection = connection;
    this.#listening = null;
    const { client } = connection;
    const current = (): boolean => this.#connection === connection;
    client.setNotificationHandler("notifications/tools/list_changed", () => {
      if (current()) this.#events.toolsChanged();
    });
    client.setNotificationHandler("notifications/resources/list_changed", () => {
      if (current()) this.#events.resourcesChanged();
    });
    client.setNotificationHandler("notifications/resources/updated", ({ params }) => {
      if (current() && this.#concerns(params.uri)) this.#events.resourceUpdated(params.uri, false);
    });
    if (connection.modern) {
      // A server that refuses the stream, or does not answer, is used without it.
      const limit = new TimeLimit(this.#clock, LISTEN_TIMEOUT_MS, signal);
      await this.#listen(connection, limit.signal).catch(() => {});
      limit.clear();
      return;
    }
    for (const uri of this.#watched) {
      // One that is refused now is still reported as possibly changed by the caller.
      await connection.request("resources/subscribe", { uri }, signal).catch(() => {});
    }
  }

  /** It is not heard for now. */
  lost(): void {
    if (this.#heard) this.#events.heard(false);
    this.#heard = false;
  }

  /** It is heard again: every watched resource may have changed meanwhile, and is reported once. */
  reportAll(): void {
    if (!this.#heard) this.#events.heard(true);
    this.#heard = true;
    for (const uri of this.#watched) this.#events.resourceUpdated(uri, true);
  }

  /** Watches a resource. */
  async add(
    connection: Connection,
    uri: string,
    signal: AbortSignal,
  ): Promise<Outcome<void, ToolFailure>> {
    if (this.#watched.has(uri)) return success(undefined);
    const refusal = refuseUri(connection, uri, this.#watched.size);
    if (refusal !== null) return failed(finalFault("protocol", refusal).failure);
    this.#watched.add(uri);
    try {
      if (!connection.modern) await connection.request("resources/subscribe", { uri }, signal);
      else {
        const honored = await this.#listen(connection, signal);
        if (!honored.includes(uri)) {
          this.#watched.delete(uri);
          return failed(finalFault("protocol", `the server does not watch ${uri}`).failure);
        }
      }
      return success(undefined);
    } catch (error) {
      this.#watched.delete(uri);
      return failed(classifyError(connection.sdk, error, connection.hadSession).failure);
    }
  }

  /** Stops watching a resource. */
  async remove(
    connection: Connection,
    uri: string,
    signal: AbortSignal,
  ): Promise<Outcome<void, ToolFailure>> {
    if (!this.#watched.delete(uri)) return success(undefined);
    try {
      if (connection.modern) await this.#listen(connection, signal);
      else await connection.request("resources/unsubscribe", { uri }, signal);
      return success(undefined);
    } catch (error) {
      return failed(classifyError(connection.sdk, error, connection.hadSession).failure);
    }
  }

  /** Whether an update is about something watched: the resource itself or a part of it. */
  #concerns(uri: string): boolean {
    if (this.#watched.has(uri)) return true;
    if (!isUri(uri)) return false;
    for (const watched of this.#watched) if (uri.startsWith(watched)) return true;
    return false;
  }

  /** Opens the stream with what is watched now; the URIs that the server agreed to. */
  #listen(connection: Connection, signal: AbortSignal): Promise<readonly string[]> {
    const opened = this.#queue.then(() => this.#openStream(connection, signal));
    this.#queue = opened.catch(() => {});
    return opened;
  }

  async #openStream(connection: Connection, signal: AbortSignal): Promise<readonly string[]> {
    if (this.#connection !== connection) return [];
    const { client } = connection;
    const declared = client.getServerCapabilities();
    const filter = {
      ...(declared?.tools?.listChanged === true ? { toolsListChanged: true } : {}),
      ...(declared?.resources?.listChanged === true ? { resourcesListChanged: true } : {}),
      ...(this.#watched.size > 0 ? { resourceSubscriptions: [...this.#watched] } : {}),
    };
    const before = this.#listening;
    if (Object.keys(filter).length === 0) this.#listening = null;
    else {
      // The signal bounds the opening alone: later, the stream ends when we close it.
      const opening = new AbortController();
      const onAbort = (): void => opening.abort(signal.reason);
      signal.addEventListener("abort", onAbort, { once: true });
      try {
        this.#listening = await client.listen(filter, {
          signal: opening.signal,
          timeout: SDK_TIMEOUT_MS,
        });
      } finally {
        signal.removeEventListener("abort", onAbort);
      }
      this.#watchStream(connection, this.#listening);
    }
    await before?.close();
    return this.#listening?.honoredFilter.resourceSubscriptions ?? [];
  }

  /** Opens the stream again when it ends by itself. */
  async #watchStream(connection: Connection, stream: Listening): Promise<void> {
    const openedMs = this.#clock.monotonicMs();
    await stream.closed;
    let attempt = this.#clock.monotonicMs() - openedMs > LISTEN_HEALTHY_MS ? 1 : 3;
    for (; this.#isCurrent(connection, stream); attempt++) {
      const delayMs = backoffMs(LISTEN_BACKOFF, attempt, this.#random.unit());
      if (!await pause(this.#clock, delayMs, this.#life)) return;
      if (!this.#isCurrent(connection, stream)) return;
      const limit = new TimeLimit(this.#clock, LISTEN_TIMEOUT_MS, this.#life);
      const opened = await this.#listen(connection, limit.signal).then(() => true, () => false);
      limit.clear();
      if (opened) return this.reportAll();
      this.lost();
    }
  }

  #isCurrent(connection: Connection, stream: Listening): boolean {
    return this.#connection === connection && this.#listening === stream && !this.#life.aborted;
  }
}

function refuseUri(connection: Connection, uri: string, watched: number): string | null {
  if (!isUri(uri)) return "the URI is too long or has control characters";
  if (watched >= WATCHED_MAX) return `${WATCHED_MAX} resources of one server are watched already`;
  if (!connection.can("resources.subscribe")) return "the server cannot watch resources";
  return null;
}
