/**
 * The watcher's work, in the Worker of an agent process without a model: it holds subscriptions,
 * follows globs over the servers' resource lists, and reports URIs that changed, never bodies.
 */

import { UPDATES_BURST_MAX, UPDATES_PER_SECOND_MAX } from "../core/limits.ts";
import { globToRegExp } from "../core/glob.ts";
import { TokenBucket } from "../core/token_bucket.ts";
import type { ClockPort } from "../ports/clock.ts";
import type { Resource, ServerFailure, ToolFailure, ToolsPort } from "../ports/tools.ts";
import type { FromAgent } from "../wire/control.ts";
import type { Start } from "../wire/payload.ts";
import { type AgentResult, failedResult } from "../wire/result.ts";

/** What a watch needs. */
export interface WatchDeps {
  start: Extract<Start, { kind: "watch" }>;
  /** Not yet connected. */
  tools: ToolsPort;
  clock: ClockPort;
  /** Sends a frame to the supervisor. */
  tell(frame: Extract<FromAgent, { type: "connected" | "updated" }>): void;
  /** Ends the watch. */
  signal: AbortSignal;
}

/** A watch in progress. */
export interface Watch {
  /** Null: it was ended by its signal. Never rejects. */
  ended: Promise<ServerFailure | null>;
  /** Takes up and gives up subscriptions of one URI each, `server:uri`. */
  change(add: readonly string[], remove: readonly string[]): void;
}

interface Source {
  server: string;
  uri: string;
  /** Null: one URI. */
  pattern: RegExp | null;
}

/** Connects, subscribes, reports `connected`, and goes on reporting until it ends. */
export function startWatch(deps: WatchDeps): Watch {
  const watcher = new Watcher(deps);
  return {
    ended: watcher.run(),
    change: (add, remove) => void watcher.change(add, remove),
  };
}

/** The terminal result of a watcher: a failure of its servers is the abort `mcp`. */
export function watchResult(failure: ServerFailure | null): AgentResult {
  if (failure === null) return { ...failedResult("cancelled", "drain"), resumable: false };
  return {
    ...failedResult("crashed", `${failure.server}: ${failure.message}`),
    status: null,
    abort: "mcp",
    retryable: true,
    resumable: false,
  };
}

/** `server:uri`, split at its first colon. */
export function splitSource(source: string): { server: string; uri: string } {
  const colon = source.indexOf(":");
  return { server: source.slice(0, colon), uri: source.slice(colon + 1) };
}

/** Refused subscriptions that are named before the rest is not asked for any more. */
const REFUSALS_MAX = 20;

class Watcher {
  readonly #deps: WatchDeps;
  readonly #sources: Source[];
  /** `server\nuri` of every subscription in place. */
  readonly #held = new Set<string>();
  /** What is to be reported, in order; the value: only possibly changed. */
  readonly #dirty = new Map<string, boolean>();
  readonly #bucket: TokenBucket;
  readonly #over = Promise.withResolvers<ServerFailure | null>();
  /** Servers that are not heard for now. */
  readonly #unheard = new Set<string>();
  /** Changes happen one after the other: what is given up may still be on its way in. */
  #changes: Promise<void> = Promise.resolve();
  #flushing = false;
  #listing = false;
  #stale = false;
  #ready = false;

  constructor(deps: WatchDeps) {
    this.#deps = deps;
    this.#sources = deps.start.subscribe.map((text) => {
      const { server, uri } = splitSource(text);
      return { server, uri, pattern: /[*?]/.test(uri) ? globToRegExp(uri) : null };
    });
    this.#bucket = new TokenBucket(
      UPDATES_BURST_MAX,
      1_000 / UPDATES_PER_SECOND_MAX,
      deps.clock.monotonicMs(),
    );
  }

  async run(): Promise<ServerFailure | null> {
    const { tools, signal, start } = this.#deps;
    const stop = () => this.#over.resolve(null);
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
    tools.onChange((change) => {
      if (change.kind === "resource_updated") {
        this.#report(change.server, change.uri, change.possibly);
      } else if (change.kind === "heard") this.#heard(change.server, change.heard);
      else if (change.kind === "resources") this.#relist();
      else if (change.kind === "server_down") this.#over.resolve(change.failure);
    });
    const connected = await tools.connect(signal);
    if (!connected.ok) this.#over.resolve(connected.failure);
    else {
      const failure = await this.#begin(connected.value.resources);
      if (failure !== null) this.#over.resolve(failure);
      else if (!signal.aborted) {
        this.#ready = true;
        this.#tellConnected();
        if (start.possibly) { for (const key of this.#held) this.#report(...unkey(key), true); }
        // Lists that changed while we subscribed.
        if (this.#stale) this.#relist();
        this.#flush();
      }
    }
    const failure = await this.#over.promise;
    signal.removeEventListener("abort", stop);
    await tools.close();
    return failure;
  }

  #heard(server: string, heard: boolean): void {
    if (heard) this.#unheard.delete(server);
    else this.#unheard.add(server);
    if (this.#ready && !this.#deps.signal.aborted) this.#tellConnected();
  }

  /** The servers of the subscriptions in place: once at the start, then whenever one comes or goes. */
  #tellConnected(): void {
    const servers = new Set(this.#sources.map((source) => source.server));
    for (const server of this.#unheard) servers.delete(server);
    this.#deps.tell({ v: 1, type: "connected", servers: [...servers] });
  }

  change(add: readonly string[], remove: readonly string[]): Promise<void> {
    this.#changes = this.#changes.then(() => this.#change(add, remove));
    return this.#changes;
  }

  async #change(add: readonly string[], remove: readonly string[]): Promise<void> {
    for (const text of remove) {
      const { server, uri } = splitSource(text);
      const at = this.#sources.findIndex((source) =>
        source.server === server && source.uri === uri
      );
      if (at !== -1) this.#sources.splice(at, 1);
      if (this.#sources.some((source) => covers(source, server, uri))) continue;
      if (this.#held.delete(key(server, uri))) await this.#deps.tools.unsubscribe(server, uri);
    }
    for (const text of add) {
      const { server, uri } = splitSource(text);
      this.#sources.push({ server, uri, pattern: null });
      // One that its server refuses is not watched; the agent still reads the resource itself.
      const failure = await this.#hold(server, uri);
      // Between its last read and now it may have changed.
      if (failure === null) this.#report(server, uri, true);
    }
  }

  /** Every subscription, in order; those that their servers refuse fail the watch, all named. */
  async #begin(resources: readonly Resource[]): Promise<ServerFailure | null> {
    const refused: { server: string; message: string }[] = [];
    for (const source of this.#sources) {
      const uris = source.pattern === null
        ? [source.uri]
        : matches(resources, source).map((resource) => resource.uri);
      for (const uri of uris) {
        if (this.#deps.signal.aborted) return null;
        const failure = await this.#hold(source.server, uri);
        if (failure !== null) {
          const message = `Cannot subscribe to ${uri}: ${failure.message}`;
          refused.push({ server: source.server, message });
        }
        if (refused.length >= REFUSALS_MAX) return refusalOf(refused);
      }
    }
    return refusalOf(refused);
  }

  async #hold(server: string, uri: string): Promise<ToolFailure | null> {
    if (this.#held.has(key(server, uri))) return null;
    const subscribed = await this.#deps.tools.subscribe(server, uri);
    if (!subscribed.ok) return subscribed.failure;
    this.#held.add(key(server, uri));
    return null;
  }

  /** Globs are matched anew; one listing at a time, and one more for what came meanwhile. */
  #relist(): void {
    this.#stale = true;
    if (this.#listing || !this.#ready) return;
    this.#listing = true;
    void (async () => {
      while (this.#stale && !this.#deps.signal.aborted) {
        this.#stale = false;
        // We are inside the news of a change: its teller must come to its end before it is asked.
        await Promise.resolve();
        await this.#follow();
      }
      this.#listing = false;
    })();
  }

  async #follow(): Promise<void> {
    const { resources } = await this.#deps.tools.list(this.#deps.signal);
    const listed = new Set(resources.map((resource) => key(resource.server, resource.uri)));
    for (const source of this.#sources) {
      if (source.pattern === null) continue;
      for (const { uri } of matches(resources, source)) {
        if (this.#held.has(key(source.server, uri))) continue;
        // A resource that is new is a change; one that its server refuses is tried again next time.
        const failure = await this.#hold(source.server, uri);
        if (failure === null) this.#report(source.server, uri, false);
      }
    }
    for (const held of [...this.#held]) {
      const [server, uri] = unkey(held);
      const wanted = this.#sources.some((source) =>
        source.pattern === null && covers(source, server, uri)
      );
      if (wanted || listed.has(held)) continue;
      this.#held.delete(held);
      await this.#deps.tools.unsubscribe(server, uri);
    }
  }

  #report(server: string, uri: string, possibly: boolean): void {
    const place = key(server, uri);
    this.#dirty.set(place, possibly && (this.#dirty.get(place) ?? true));
    this.#flush();
  }

  /** As many frames as the supervisor takes; the rest waits, merged by URI. */
  #flush(): void {
    const { clock, tell, signal } = this.#deps;
    if (this.#flushing || !this.#ready || signal.aborted) return;
    for (const [place, possibly] of this.#dirty) {
      const nowMs = clock.monotonicMs();
      const waitMs = this.#bucket.waitMs(1, nowMs);
      if (waitMs > 0) {
        this.#flushing = true;
        const cancel = clock.after(waitMs, () => {
          signal.removeEventListener("abort", cancel);
          this.#flushing = false;
          this.#flush();
        });
        signal.addEventListener("abort", cancel, { once: true });
        return;
      }
      this.#bucket.take(1, nowMs);
      this.#dirty.delete(place);
      const [server, uri] = unkey(place);
      tell({ v: 1, type: "updated", server, uri, possibly });
    }
  }
}

function refusalOf(refused: readonly { server: string; message: string }[]): ServerFailure | null {
  const [first, ...others] = refused;
  if (first === undefined) return null;
  const rest = others.map(({ server, message }) =>
    server === first.server ? message : `${server}: ${message}`
  );
  // A glob may name again what stands beside it.
  const message = [...new Set([first.message, ...rest])].join("; ");
  return { server: first.server, message, stderr: "" };
}

function key(server: string, uri: string): string {
  return `${server}\n${uri}`;
}

function unkey(place: string): [string, string] {
  const end = place.indexOf("\n");
  return [place.slice(0, end), place.slice(end + 1)];
}

function covers(source: Source, server: string, uri: string): boolean {
  if (source.server !== server) return false;
  return source.pattern === null ? source.uri === uri : source.pattern.test(uri);
}

function matches(resources: readonly Resource[], source: Source): Resource[] {
  return resources.filter((resource) =>
    !resource.template && covers(source, resource.server, resource.uri)
  );
}
