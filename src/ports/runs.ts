/** What a daemon knows of runs: it starts them, cancels them, hears how they ended. */

import type { Json } from "../core/json.ts";
import type { Outcome } from "../core/outcome.ts";
import type { CancelReason, Delivery } from "../wire/control.ts";
import type { AgentResult } from "../wire/result.ts";

/** What came with a trigger over HTTP: handed to the run as an artifact, never in its prompt. */
export interface Attachment {
  /** The trigger's name. */
  name: string;
  mimeType: string;
  bytes: Uint8Array;
}

/** One run to start. */
export interface RunRequest {
  /** `[A-Za-z0-9_-]{1,64}`; the id of its directory. For a resumed session, the id it had. */
  runId: string;
  /** Replaces the task's instruction; null: the task's own. */
  instruction: string | null;
  attachments: readonly Attachment[];
  /**
   * Null: a fresh run, one end. Else a warm session: it starts with its first delivery waiting,
   * stays after a final, and takes further deliveries. `resume`: from its record, if it has one.
   */
  session: { name: string; resume: boolean } | null;
}

/** How a run, or one delivery of a warm session, ended. */
export interface RunEnd {
  runId: string;
  result: AgentResult;
}

/** What an agent asks of the router: a subscription of its own warm session. */
export interface SubscribeRequest {
  op: "subscribe" | "unsubscribe";
  server: string;
  uri: string;
}

/** A run, or a warm session, in progress. */
export interface RunHandle {
  runId: string;
  /** When the process is gone and its terminal line is written. Never rejects. */
  ended: Promise<RunEnd>;
  /** Tokens that the tree of this run has used so far. */
  tokens(): number;
  /** Winds the run down: cancel frame, then the ladder. */
  cancel(reason: CancelReason): void;
  /** SIGKILL to every group, at once. */
  kill(): void;
  /** Warm sessions: one instruction with the URIs that changed; never their bodies. */
  deliver(delivery: Delivery, attachments: readonly Attachment[]): void;
}

/** What a warm session reports while it lives. */
export interface SessionListener {
  /** A delivery is over. */
  delivered(id: string, result: AgentResult): void;
  /** The agent wants to be woken, or no longer; the answer is what it reads. */
  subscribe(request: SubscribeRequest): Promise<Outcome<Json, string>>;
}

/** The watcher: an agent process without a model that holds the subscriptions. */
export interface WatcherHandle {
  /** Null: it was stopped by us. Else why it died. Never rejects. */
  ended: Promise<{ message: string; abort: "mcp" | null } | null>;
  watch(add: readonly string[], remove: readonly string[]): void;
  stop(): void;
  kill(): void;
}

/** What a watcher reports while it lives. */
export interface WatcherListener {
  /**
   * The servers of these names are connected, and their subscriptions in place. First when all of
   * them are; then whenever one is lost or is back.
   */
  connected(servers: readonly string[]): void;
  /** `possibly`: after a reconnect; nobody saw it change. */
  updated(server: string, uri: string, possibly: boolean): void;
}

/**
 * Runs. Contract: `start` answers at once and never throws for the world: a process that could not
 * be started is a handle whose `ended` is a crashed or aborted result; every handle ends; after
 * `cancel` it ends within the drain time.
 */
export interface RunsPort {
  start(request: RunRequest, listener?: SessionListener): RunHandle;
  /** `subscribe`: `server:uri-glob`; `possibly`: report each watched URI once at the start. */
  watch(
    subscribe: readonly string[],
    possibly: boolean,
    listener: WatcherListener,
  ): WatcherHandle;
}
