/** Keeps one watcher alive for a reactive daemon: started again after a back-off, for ever. */

import { backoffMs } from "../core/backoff.ts";
import { DELIVERY_BACKOFF } from "../core/limits.ts";
import type { WatcherHandle } from "../ports/runs.ts";
import type { Daemon } from "./daemon.ts";
import { splitSource } from "./watch.ts";

/** A watcher that held for this long starts the back-off anew. */
const HEALTHY_MS = 60_000;

/** What the keeper is told, and tells. */
export interface KeeperDeps {
  /** Subscriptions were in place before this start of the daemon. */
  watched: boolean;
  /** What the operator wants watched, each `server:uri-glob`: without one of them nothing works. */
  sources: readonly string[];
  /** What agents want watched now, each `server:uri`. Their mistakes end no watch and no daemon. */
  wishes(): string[];
  changed(server: string, uri: string, possibly: boolean): void;
  /** Subscriptions are in place for the first time: that is to be kept. */
  firstHeld(): void;
  /** Null: ready. */
  setReady(why: string | null): void;
}

/** At most one watcher at a time. */
export class WatcherKeeper {
  readonly #daemon: Daemon;
  readonly #deps: KeeperDeps;
  #watcher: WatcherHandle | null = null;
  /** It takes changes: before that it would not know its servers. */
  #connected = false;
  #gone: Promise<void> = Promise.resolve();
  #attempt = 0;
  #watched: boolean;

  constructor(daemon: Daemon, deps: KeeperDeps) {
    this.#daemon = daemon;
    this.#deps = deps;
    this.#watched = deps.watched;
  }

  /** Whether subscriptions were ever in place: then, after a gap, what they name may have changed. */
  get watched(): boolean {
    return this.#watched;
  }

  /** Starts a watcher; without anything to watch, there is nothing to wait for. */
  start(): void {
    const daemon = this.#daemon;
    const { sources, wishes, setReady } = this.#deps;
    if (sources.length === 0 && wishes().length === 0) {
      this.#attempt = 0;
      this.#held();
      return setReady(null);
    }
    const startedMs = daemon.ports.clock.monotonicMs();
    const needed = [...new Set(sources.map((source) => splitSource(source).server))];
    const watcher = daemon.ports.runs.watch(sources, this.#watched, {
      connected: (servers) => {
        if (!this.#connected) {
          this.#connected = true;
          daemon.serversMet = true;
          this.#held();
          const wished = wishes();
          if (wished.length > 0) watcher.watch(wished, []);
        }
        const missing = needed.filter((server) => !servers.includes(server));
        const why = missing.length === 0 ? null : `not connected: ${missing.join(", ")}`;
        if (daemon.stopping === null) setReady(why);
      },
      updated: (server, uri, possibly) => this.#deps.changed(server, uri, possibly),
    });
    this.#watcher = watcher;
    const running = { tokens: () => 0, cancel: () => watcher.stop(), kill: () => watcher.kill() };
    daemon.track(running);
    this.#gone = watcher.ended.then(async (end) => {
      const connected = this.#connected;
      this.#watcher = null;
      this.#connected = false;
      daemon.untrack(running, 0);
      if (end === null || daemon.stopping !== null) return;
      if (!daemon.serversMet && sources.length > 0 && end.abort === "mcp") {
        return daemon.failServer(end.message);
      }
      const heldMs = daemon.ports.clock.monotonicMs() - startedMs;
      this.#attempt = connected && heldMs >= HEALTHY_MS ? 1 : this.#attempt + 1;
      await this.#waitOut(end.message);
      if (daemon.stopping === null) this.start();
    });
  }

  /** Takes up and gives up wishes of agents; a watcher that is not connected reads them when it is. */
  change(add: readonly string[], remove: readonly string[]): void {
    if (this.#connected) this.#watcher?.watch(add, remove);
    else if (this.#watcher === null && this.#attempt === 0 && add.length > 0) this.start();
  }

  stop(): void {
    this.#watcher?.stop();
  }

  /** When no watcher is left. */
  async gone(): Promise<void> {
    await this.#gone;
  }

  #held(): void {
    if (this.#watched) return;
    this.#watched = true;
    this.#deps.firstHeld();
  }

  async #waitOut(why: string): Promise<void> {
    const daemon = this.#daemon;
    this.#deps.setReady("the watcher is down");
    const waitMs = backoffMs(
      DELIVERY_BACKOFF,
      this.#attempt,
      0.5 + daemon.ports.random.unit() / 2,
    );
    daemon.metrics.add("restarts", 1, "watcher");
    daemon.ports.telemetry.emit("subagent.restart", {
      child_path: "watcher",
      attempt: this.#attempt,
      wait_ms: waitMs,
      why,
    }, "warn");
    await daemon.sleep(waitMs);
  }
}
