/** The link to one server for the length of a run: started, listed, restarted, given up. */

import { backoffMs, type BackoffPlan } from "../core/backoff.ts";
import type { JsonObject } from "../core/json.ts";
import { RESOURCES_MAX, TOOL_LINE_BYTES_MAX, TOOLS_MAX } from "../core/limits.ts";
import { failed, type Outcome, success } from "../core/outcome.ts";
import type { RandomPort } from "../ports/random.ts";
import type { TelemetryPort } from "../ports/telemetry.ts";
import type { Resource, ServerFailure, ToolFailure } from "../ports/tools.ts";
import type { ServerSettings } from "../wire/payload.ts";
import {
  type Connection,
  type ConnectionDeps,
  openConnection,
  startTimeoutMessage,
} from "./connection.ts";
import { finalFault } from "./failure.ts";
import { type Listing, readList } from "./listing.ts";
import { type ListedTool, readResource, readTool } from "./metadata.ts";
import { PortTransport, type StrayLine } from "./stdio.ts";
import { type SubscriptionEvents, Subscriptions } from "./subscriptions.ts";
import { pause, TimeLimit, unlessAborted } from "./timing.ts";

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
/** An HTTP server that is not there yet is knocked at again while it starts. */
const HTTP_START_BACKOFF: BackoffPlan = { baseMs: 100, capMs: 1_000, attemptsMax: 3 };

/** The link. */
export class ServerLink {
  readonly settings: ServerSettings;
  /** What the server lists now. */
  tools: ListedTool[] = [];
  resources: Resource[] = [];
  readonly #deps: LinkDeps;
  readonly #events: LinkEvents;
  readonly #subscriptions: Subscriptions;
  readonly #life = new AbortController();
  /** Names and reasons that were told already. */
  readonly #told = new Set<string>();
  #state: State = { kind: "idle" };
  #restarts = 0;
  #toolsStale = false;
  #resourcesStale = false;

  constructor(deps: LinkDeps, settings: ServerSettings, events: LinkEvents) {
    this.settings = settings;
    this.#deps = deps;
    this.#events = events;
    this.#subscriptions = new Subscriptions(deps, {
      toolsChanged: () => {
        // Until it is listed anew, one change is as good as a thousand.
        if (!this.#toolsStale) this.#events.toolsChanged();
        this.#toolsStale = true;
      },
      resourcesChanged: () => {
        if (!this.#resourcesStale) this.#events.resourcesChanged();
        this.#resourcesStale = true;
      },
      resourceUpdated: (uri) => this.#events.resourceUpdated(uri),
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
      const reason = state.kind === "down" ? `: ${state.failure.message}` : "";
      const lasting = state.kind === "down" && this.settings.required;
      return failed(
        finalFault(lasting ? "server_down" : "not_sent", `server ${this.name} is down${reason}`)
          .failure,
      );
    }
  }

  /** Lists anew what the server said has changed; keeps what it has if that fails. */
  async refresh(signal: AbortSignal): Promise<void> {
    if (this.#state.kind !== "up" || !(this.#toolsStale || this.#resourcesStale)) return;
    const limit = new TimeLimit(this.#deps.clock, this.settings.startTimeoutMs, signal);
    try {
      await this.#list(
        this.#state.connection,
        limit.signal,
        this.#toolsStale,
        this.#resourcesStale,
      );
    } catch {
      /* still stale: the next refresh asks again */
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
    this.#tellDisconnect(state.connection, "closed");
    await state.connection.end();
  }

  async #connect(signal: AbortSignal): Promise<Outcome<void, ServerFailure>> {
    const { clock, telemetry } = this.#deps;
    const startMs = clock.monotonicMs();
    const limit = new TimeLimit(clock, this.settings.startTimeoutMs, signal);
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
      telemetry.emit("mcp.connect", {
        server: this.name,
        tools: this.tools.length,
        resources: this.resources.length,
        protocol: connection.protocol,
        ...strayFields(connection),
        dur_ms: durMs,
      });
      return success(undefined);
    }
    if (limit.cause === "cancelled") {
      return failed({ ...outcome.failure, server: this.name, message: "cancelled" });
    }
    const failure = limit.cause === "timeout"
      ? { ...outcome.failure, message: startTimeoutMessage(this.settings.startTimeoutMs) }
      : outcome.failure;
    telemetry.emit("mcp.connect.fail", {
      server: this.name,
      required: this.settings.required,
      err: { type: limit.cause ?? "start", message: failure.message },
      stderr: failure.stderr,
      dur_ms: durMs,
    }, this.settings.required ? "error" : "warn");
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
        stray: (line) => this.#tellStray(line),
        streamReopened: () => this.#subscriptions.reportAll(),
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
      const { transport } = connection;
      const exit = transport instanceof PortTransport ? transport.exit : null;
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
    const orNone = (listing: Promise<Listing>): Promise<Listing> => listing.catch(() => none);
    // What changes while it is listed is stale again, not forgotten.
    if (tools) this.#toolsStale = false;
    if (resources) this.#resourcesStale = false;
    const wanted = resources && connection.can("resources");
    try {
      const [toolList, resourceList, templateList] = await Promise.all([
        tools && connection.can("tools") ? read("tools/list", "tools", TOOLS_MAX) : none,
        // A server whose resources cannot be listed still has its tools.
        wanted ? orNone(read("resources/list", "resources", RESOURCES_MAX)) : none,
        wanted
          ? orNone(read("resources/templates/list", "resourceTemplates", RESOURCES_MAX))
          : none,
      ]);
      if (tools) this.#takeTools(toolList);
      if (resources) this.#takeResources(resourceList, templateList);
    } catch (error) {
      if (tools) this.#toolsStale = true;
      if (resources) this.#resourcesStale = true;
      throw error;
    }
  }

  #takeTools(listing: Listing): void {
    const tools = new Map<string, ListedTool>();
    for (const raw of listing.items) {
      const tool = readTool(raw);
      if ("why" in tool) this.#tellLeftOut(tool.name, tool.why);
      else if (tools.has(tool.remoteName)) this.#tellLeftOut(tool.remoteName, "it is listed twice");
      else tools.set(tool.remoteName, tool);
    }
    this.#tellCut("tools", listing);
    this.tools = [...tools.values()];
  }

  #takeResources(resources: Listing, templates: Listing): void {
    this.#tellCut("resources", resources);
    this.resources = [
      ...resources.items.map((raw) => readResource(this.name, raw, false)),
      ...templates.items.map((raw) => readResource(this.name, raw, true)),
    ].filter((resource) => resource !== undefined).slice(0, RESOURCES_MAX);
  }

  #tellLeftOut(tool: string, why: string): void {
    if (this.#told.size >= TOOLS_MAX || this.#told.has(`${tool}\n${why}`)) return;
    this.#told.add(`${tool}\n${why}`);
    const fields: JsonObject = { server: this.name, tool, change: "left_out", why };
    this.#deps.telemetry.emit("mcp.tool.changed", fields, "warn");
  }

  #tellCut(list: string, listing: Listing): void {
    if (listing.cut === null) return;
    const fields = { server: this.name, limit: `list_${listing.cut}`, list };
    this.#deps.telemetry.emit("limit.exceeded", { ...fields, kept: listing.items.length }, "warn");
  }

  #tellStray(line: StrayLine): void {
    const { telemetry } = this.#deps;
    if (line.kind === "oversized") {
      const fields = { limit: "tool_line_bytes", server: this.name, bound: TOOL_LINE_BYTES_MAX };
      return telemetry.emit("limit.exceeded", { ...fields, bytes: line.bytes }, "warn");
    }
    const fields = { server: this.name, stray: line.kind, bytes: line.bytes };
    telemetry.emit("mcp.connect", fields, "warn");
  }

  #tellDisconnect(connection: Connection, reason: string): void {
    const { transport } = connection;
    const exit = transport instanceof PortTransport ? transport.exit : null;
    this.#deps.telemetry.emit("mcp.disconnect", {
      server: this.name,
      reason,
      ...(exit === null ? {} : { code: exit.code, signal: exit.signal }),
      ...strayFields(connection),
    }, reason === "closed" ? "info" : "warn");
  }

  #ended(connection: Connection): void {
    if (this.#state.kind !== "up" || this.#state.connection !== connection) return;
    this.#recover(connection, "ended");
  }

  #recover(connection: Connection, reason: string): void {
    this.#tellDisconnect(connection, reason);
    connection.retire();
    const over = this.#restart(connection);
    if (this.#state.kind !== "down") this.#state = { kind: "recovering", over };
  }

  /** Restarts until it is up, the restarts are used up, or the link is closed. */
  async #restart(before: Connection): Promise<void> {
    const { clock, random, restartsMax } = this.#deps;
    const toolsBefore = fingerprint(this.tools);
    const resourcesBefore = JSON.stringify(this.resources);
    const { transport } = before;
    let failure: ServerFailure = {
      server: this.name,
      message: "it ended",
      stderr: transport instanceof PortTransport ? transport.exit?.stderr ?? "" : "",
    };
    // A new session of a living server is no restart; only failing to get one counts.
    let counted = this.settings.kind !== "http";
    for (let attempt = counted ? 1 : 0;; attempt++) {
      if (counted && this.#restarts >= restartsMax) return this.#giveUp(failure);
      if (counted) this.#restarts++;
      counted = true;
      const delayMs = attempt === 0 ? 0 : backoffMs(RESTART_BACKOFF, attempt, random.unit());
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
    this.resources = [];
    this.#events.down(failure);
  }
}

function fingerprint(tools: readonly ListedTool[]): string {
  return tools.map((tool) => `${tool.remoteName}\n${tool.fingerprint}`).join("\n\n");
}

function strayFields(connection: Connection): Record<string, number> {
  const { transport } = connection;
  const stray = transport instanceof PortTransport ? transport.stray : null;
  const fields: Record<string, number> = {
    noise_lines: stray?.noise ?? 0,
    invalid_lines: stray?.invalid ?? 0,
    oversized_lines: stray?.oversized ?? 0,
    complaints: connection.complaints,
  };
  return Object.fromEntries(Object.entries(fields).filter(([, count]) => count > 0));
}
