/** The link to one server for the length of a run: started, listed, restarted, given up. */

import { backoffMs, type BackoffPlan } from "../core/backoff.ts";
import { RESOURCES_MAX, TOOLS_MAX } from "../core/limits.ts";
import { failed, type Outcome, success } from "../core/outcome.ts";
import { pause } from "../ports/clock.ts";
import type { RandomPort } from "../ports/random.ts";
import type { TelemetryPort } from "../ports/telemetry.ts";
import type { Resource, ServerFailure, ToolFailure } from "../ports/tools.ts";
import type { ServerSettings } from "../wire/payload.ts";
import {
  type Connection,
  type ConnectionDeps,
  handshakeTimeoutMs,
  openConnection,
  startTimeoutMessage,
} from "./connection.ts";
import { finalFault } from "./failure.ts";
import { HttpTransport } from "./http.ts";
import { exitOf, LinkLog } from "./link_log.ts";
import { type Listing, readList } from "./listing.ts";
import { type ListedTool, readResource } from "./metadata.ts";
import { fingerprint, readTools } from "./listed_tools.ts";
import { type SubscriptionEvents, Subscriptions } from "./subscriptions.ts";
import { TimeLimit, unlessAborted } from "./timing.ts";

/** What a link needs. */
export interface LinkDeps extends ConnectionDeps {
  random: RandomPort;
  telemetry: TelemetryPort;
  restartsMax: number;
}

/** What a link tells. */
export interface LinkEvents extends SubscriptionEvents {
  /** It is gone for good. */
  down(failure: ServerFailure): void;
}

type State =
  | { kind: "idle" }
  | { kind: "up"; connection: Connection }
  | { kind: "recovering"; over: Promise<void> }
  | { kind: "down"; failure: ServerFailure }
  | { kind: "closed" };

const RESTART_BACKOFF: BackoffPlan = { baseMs: 200, capMs: 5_000, attemptsMax: Infinity };
/** An HTTP server that cannot be reached is somebody else's to restart, which takes longer. */
const REACH_BACKOFF: BackoffPlan = { baseMs: 1_000, capMs: 30_000, attemptsMax: Infinity };
/** After a list that failed, when it is tried again at the earliest. */
const REFRESH_RETRY_MS = 10_000;
/** An HTTP server that is not there yet is knocked at again while it starts. */
const HTTP_START_BACKOFF: BackoffPlan = { baseMs: 100, capMs: 1_000, attemptsMax: 3 };

/** The link. */
export class ServerLink {
  readonly settings: ServerSettings;
  /** What the server lists now. */
  tools: ListedTool[] = [];
  resources: Resource[] = [];
  /** Grows whenever its tools are listed. */
  toolsVersion = 0;
  readonly #deps: LinkDeps;
  readonly #events: LinkEvents;
  readonly #subscriptions: Subscriptions;
  readonly #life = new AbortController();
  readonly #log: LinkLog;
  #state: State = { kind: "idle" };
  #restarts = 0;
  #toolsStale = false;
  #resourcesStale = false;
  /** The last listing of what changed failed: the next change is told again. */
  #listFailed = false;
  #refreshing: Promise<void> | null = null;
  #refreshAfterMs = 0;

  constructor(deps: LinkDeps, settings: ServerSettings, events: LinkEvents) {
    this.settings = settings;
    this.#deps = deps;
    this.#events = events;
    this.#log = new LinkLog(deps.telemetry, settings);
    this.#subscriptions = new Subscriptions(deps, {
      toolsChanged: () => {
        // Until it is listed anew, one change is as good as a thousand; unless listing failed.
        if (!this.#toolsStale || this.#listFailed) this.#events.toolsChanged();
        this.#toolsStale = true;
        this.#listFailed = false;
      },
      resourcesChanged: () => {
        if (!this.#resourcesStale || this.#listFailed) this.#events.resourcesChanged();
        this.#resourcesStale = true;
        this.#listFailed = false;
      },
      resourceUpdated: (uri, possibly) => this.#events.resourceUpdated(uri, possibly),
      heard: (now) => this.#events.heard(now),
    }, this.#life.signal);
  }

  get name(): string {
    return this.settings.name;
  }

  /** Whether its tools may be called, now or after a restart. */
  get alive(): boolean {
    return this.#state.kind === "up" || this.#state.kind === "recovering";
  }

  /** Whether the server said that its tools changed and they were not listed since. */
  get toolsStale(): boolean {
    return this.#toolsStale;
  }

  /** The same of its resources. */
  get resourcesStale(): boolean {
    return this.#resourcesStale;
  }

  /** Restarts that are left before the server is given up. */
  get restartsLeft(): number {
    return this.#deps.restartsMax - this.#restarts;
  }

  /** Starts the server and lists what it has, within its start timeout. */
  async start(signal: AbortSignal): Promise<Outcome<void, ServerFailure>> {
    const started = await this.#connect(signal);
    if (started.ok) return started;
    if (this.#state.kind !== "closed") this.#state = { kind: "down", failure: started.failure };
    return started;
  }

  /** The connection, as soon as there is one. */
  async acquire(signal: AbortSignal): Promise<Outcome<Connection, ToolFailure>> {
    for (;;) {
      const state = this.#state;
      if (state.kind === "up") return success(state.connection);
      if (state.kind === "recovering") {
        await unlessAborted(state.over, signal);
        if (!signal.aborted) continue;
        return failed(finalFault("not_sent", `server ${this.name} is restarting`, true).failure);
      }
      const why = state.kind === "down" ? state.failure.message : "it is not connected";
      const lasting = state.kind === "down" && this.settings.required;
      const message = `server ${this.name} is down: ${why}`;
      return failed(finalFault(lasting ? "server_down" : "not_sent", message).failure);
    }
  }

  /**
   * Lists anew what the server said has changed, if anything; keeps what it has if that fails. A
   * server that cannot be listed is not asked again for a while.
   */
  async refresh(signal: AbortSignal): Promise<void> {
    const nowMs = this.#deps.clock.monotonicMs();
    if (this.#state.kind !== "up" || !(this.#toolsStale || this.#resourcesStale)) return;
    if (nowMs < this.#refreshAfterMs) return;
    this.#refreshing ??= this.#relist(this.#state.connection).finally(() =>
      this.#refreshing = null
    );
    await unlessAborted(this.#refreshing, signal);
  }

  async #relist(connection: Connection): Promise<void> {
    const { clock } = this.#deps;
    const limit = new TimeLimit(clock, this.settings.startTimeoutMs, this.#life.signal);
    try {
      await this.#list(connection, limit.signal, this.#toolsStale, this.#resourcesStale);
    } catch {
      this.#listFailed = true;
      this.#refreshAfterMs = clock.monotonicMs() + REFRESH_RETRY_MS;
    } finally {
      limit.clear();
    }
  }

  /** Watches a resource, or stops watching it. */
  async watch(uri: string, wanted: boolean): Promise<Outcome<void, ToolFailure>> {
    const limit = new TimeLimit(
      this.#deps.clock,
      this.settings.startTimeoutMs,
      this.#life.signal,
    );
    try {
      const acquired = await this.acquire(limit.signal);
      if (!acquired.ok) return acquired;
      return wanted
        ? await this.#subscriptions.add(acquired.value, uri, limit.signal)
        : await this.#subscriptions.remove(acquired.value, uri, limit.signal);
    } finally {
      limit.clear();
    }
  }

  /** The server forgot the session of this connection: it gets a new one. */
  sessionLost(connection: Connection): void {
    if (this.#state.kind === "up" && this.#state.connection === connection) {
      this.#recover(connection, "session lost");
    }
  }

  /** Ends the link. */
  async close(): Promise<void> {
    const state = this.#state;
    this.#state = { kind: "closed" };
    this.#life.abort();
    if (state.kind === "recovering") await state.over;
    if (state.kind !== "up") return;
    this.#log.disconnected(state.connection, "closed");
    await state.connection.end();
  }

  async #connect(signal: AbortSignal): Promise<Outcome<void, ServerFailure>> {
    const { clock } = this.#deps;
    const startMs = clock.monotonicMs();
    const limit = new TimeLimit(clock, handshakeTimeoutMs(this.settings), signal);
    const outcome = await this.#open(limit.signal);
    limit.clear();
    const durMs = Math.round(clock.monotonicMs() - startMs);
    if (outcome.ok) {
      const connection = outcome.value;
      if (this.#life.signal.aborted) {
        await connection.close();
        return failed({ server: this.name, message: "cancelled", stderr: "" });
      }
      this.#state = { kind: "up", connection };
      this.#log.connected(connection, this.tools.length, this.resources.length, durMs);
      return success(undefined);
    }
    const failure = { ...outcome.failure, server: this.name };
    if (limit.cause === "cancelled") return failed({ ...failure, message: "cancelled" });
    if (limit.cause === "timeout") failure.message = startTimeoutMessage(this.settings);
    if (!failure.message.startsWith("Cannot ")) {
      failure.message = `Cannot start ${this.name}: ${failure.message}`;
    }
    this.#log.connectFailed(failure, limit.cause ?? "start", durMs);
    return failed(failure);
  }

  /** Opens a connection, asks for its lists and its notifications. */
  async #open(signal: AbortSignal): Promise<Outcome<Connection, ServerFailure>> {
    const { clock, random } = this.#deps;
    const attempts = this.settings.kind === "http" ? HTTP_START_BACKOFF.attemptsMax : 0;
    for (let attempt = 0;; attempt++) {
      let ended = false;
      let connection: Connection | null = null;
      const opened = await openConnection(this.#deps, this.settings, {
        ended: () => {
          ended = true;
          if (connection !== null) this.#ended(connection);
        },
        sessionLost: () => {
          if (connection !== null) this.sessionLost(connection);
        },
        stray: (line) => this.#log.stray(line),
        streamReopened: () => this.#subscriptions.reportAll(),
        streamFailed: () => this.#subscriptions.lost(),
      }, signal);
      if (!opened.ok) {
        const delayMs = backoffMs(HTTP_START_BACKOFF, attempt + 1, random.unit());
        if (attempt < attempts && await pause(clock, delayMs, signal)) continue;
        return opened;
      }
      connection = opened.value;
      try {
        await this.#subscriptions.attach(connection, signal);
        await this.#list(connection, signal, true, true);
        if (!ended && !signal.aborted) return success(connection);
      } catch (error) {
        if (!ended && !signal.aborted) {
          await connection.close();
          const reason = error instanceof Error ? error.message : String(error);
          return failed({ server: this.name, message: `cannot list: ${reason}`, stderr: "" });
        }
      }
      const exit = exitOf(connection);
      await connection.close();
      return failed({
        server: this.name,
        message: exit === null
          ? "it did not list its tools in time"
          : `it ended with ${exit.signal ?? `exit code ${exit.code}`} while it was listed`,
        stderr: exit?.stderr ?? "",
      });
    }
  }

  async #list(
    connection: Connection,
    signal: AbortSignal,
    tools: boolean,
    resources: boolean,
  ): Promise<void> {
    const read = (method: string, key: string, max: number): Promise<Listing> =>
      readList((params) => connection.request(method, params, signal), key, max);
    const none: Listing = { items: [], cut: null };
    let unlisted = false;
    const wanted = resources && connection.can("resources");
    // What changes while it is listed is stale again, not forgotten.
    if (tools) this.#toolsStale = false;
    if (resources) this.#resourcesStale = false;
    try {
      const [toolList, resourceList, templateList] = await Promise.all([
        tools && connection.can("tools") ? read("tools/list", "tools", TOOLS_MAX) : none,
        // A server whose resources cannot be listed still has its tools.
        !wanted ? none : read("resources/list", "resources", RESOURCES_MAX).catch(() => {
          unlisted = true;
          return none;
        }),
        !wanted ? none : read("resources/templates/list", "resourceTemplates", RESOURCES_MAX)
          .catch(() => none),
      ]);
      if (tools) this.#takeTools(toolList, mirrorsHeaders(connection));
      // What cannot be listed anew stays as it was, and is asked for again at the next change.
      if (resources && unlisted && this.resources.length > 0) {
        this.#resourcesStale = true;
        this.#listFailed = true;
        this.#refreshAfterMs = this.#deps.clock.monotonicMs() + REFRESH_RETRY_MS;
      } else if (resources) this.#takeResources(resourceList, templateList);
    } catch (error) {
      if (tools) this.#toolsStale = true;
      if (resources) this.#resourcesStale = true;
      throw error;
    }
  }

  #takeTools(listing: Listing, mirrors: boolean): void {
    this.tools = readTools(listing.items, mirrors, (name, why) => this.#log.leftOut(name, why));
    this.#log.cut("tools", listing);
    this.toolsVersion++;
  }

  #takeResources(resources: Listing, templates: Listing): void {
    this.#log.cut("resources", resources);
    this.resources = [
      ...resources.items.map((raw) => readResource(this.name, raw, false)),
      ...templates.items.map((raw) => readResource(this.name, raw, true)),
    ].filter((resource) => resource !== undefined).slice(0, RESOURCES_MAX);
  }

  #ended(connection: Connection): void {
    if (this.#state.kind !== "up" || this.#state.connection !== connection) return;
    this.#recover(connection, "ended");
  }

  #recover(connection: Connection, reason: string): void {
    this.#log.disconnected(connection, reason);
    connection.retire();
    this.#subscriptions.lost();
    const over = this.#restart(connection);
    if (this.#state.kind !== "down") this.#state = { kind: "recovering", over };
  }

  /** Restarts until it is up, the restarts are used up, or the link is closed. */
  async #restart(before: Connection): Promise<void> {
    const { clock, random, restartsMax } = this.#deps;
    const toolsBefore = fingerprint(this.tools);
    const resourcesBefore = JSON.stringify(this.resources);
    const exit = exitOf(before);
    const how = exit === null ? "" : ` with ${exit.signal ?? `exit code ${exit.code}`}`;
    let failure: ServerFailure = {
      server: this.name,
      message: `Cannot keep ${this.name} running: it ended${how}, restarts: ${this.#restarts}`,
      stderr: exit?.stderr ?? "",
    };
    // A new session of a living server is no restart; only failing to get one counts.
    let counted = this.settings.kind !== "http";
    const backoff = counted ? RESTART_BACKOFF : REACH_BACKOFF;
    for (let attempt = counted ? 1 : 0;; attempt++) {
      if (counted && this.#restarts >= restartsMax) return this.#giveUp(failure);
      if (counted) this.#restarts++;
      counted = true;
      const delayMs = attempt === 0 ? 0 : backoffMs(backoff, attempt, random.unit());
      if (!await pause(clock, delayMs, this.#life.signal)) return;
      const started = await this.#connect(this.#life.signal);
      if (this.#life.signal.aborted) return;
      if (!started.ok) {
        failure = started.failure;
        continue;
      }
      if (this.settings.kind === "http") this.#restarts = 0;
      if (fingerprint(this.tools) !== toolsBefore) this.#events.toolsChanged();
      if (JSON.stringify(this.resources) !== resourcesBefore) this.#events.resourcesChanged();
      return this.#subscriptions.reportAll();
    }
  }

  #giveUp(failure: ServerFailure): void {
    this.#state = { kind: "down", failure };
    this.tools = [];
    this.toolsVersion++;
    this.resources = [];
    this.#events.down(failure);
  }
}

/** Whether arguments travel in headers too: HTTP, in the second era. */
function mirrorsHeaders(connection: Connection): boolean {
  return connection.modern && connection.transport instanceof HttpTransport;
}
