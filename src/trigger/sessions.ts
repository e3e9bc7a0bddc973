/**
 * Warm sessions: agents that stay after a final and take further deliveries. One delivery at a time
 * each; bounded in number by their declaration, and in age; taken up again from their record after a restart.
 */

import { DEADLINE_GRACE_MS, SESSION_AGE_MS_MAX } from "../core/limits.ts";
import type { Outcome } from "../core/outcome.ts";
import type { Json } from "../core/json.ts";
import type { Attachment, RunEnd, RunHandle, SubscribeRequest } from "../ports/runs.ts";
import type { CancelReason, Delivery } from "../wire/control.ts";
import { type AgentResult, failedResult } from "../wire/result.ts";
import { type Daemon, tokensOf } from "./daemon.ts";
import type { SessionState } from "./state.ts";

/** Ends in a row without a delivery served, before a session's record is given up. */
const FAILURES_MAX = 2;

/** What sessions tell their daemon. */
export interface SessionEvents {
  /** Its agent wants to be woken by a resource, or no longer. */
  subscribe(name: string, request: SubscribeRequest): Promise<Outcome<Json, string>>;
  /** What must survive a restart changed. */
  changed(): void;
}

interface Session {
  state: SessionState;
  handle: RunHandle;
  /** The delivery in progress. */
  current: { id: string; resolve: (result: AgentResult) => void } | null;
  served: number;
  /** Wound down by us: its end is no news. */
  leaving: boolean;
  tokens: number;
}

/** All warm sessions of a daemon. */
export class Sessions {
  readonly #daemon: Daemon;
  readonly #events: SessionEvents;
  readonly #alive = new Map<string, Session>();
  /** Also those that are not alive: they are taken up when they are needed. */
  readonly #known = new Map<string, SessionState>();
  /** Ends in a row that served nothing. */
  readonly #failures = new Map<string, number>();
  /** The end of the newest delivery of each session: several routes may lead to one. */
  readonly #turns = new Map<string, Promise<unknown>>();
  #closing = false;

  constructor(daemon: Daemon, events: SessionEvents, known: readonly SessionState[]) {
    this.#daemon = daemon;
    this.#events = events;
    for (const state of known) this.#known.set(state.name, state);
  }

  /** What a restart needs to know. */
  states(): SessionState[] {
    return [...this.#known.values()];
  }

  /** The id of a session's run: what it has, or what it will have. */
  runIdOf(name: string): string {
    return this.#remember(name).runId;
  }

  /** Subscriptions that agents made, by session. */
  noteSubscription(name: string, source: string, held: boolean): void {
    const state = this.#remember(name);
    const others = state.subscriptions.filter((known) => known !== source);
    state.subscriptions = held ? [...others, source] : others;
    this.#events.changed();
  }

  /**
   * Delivers, opening the session where it is not alive; one delivery at a time, in the order of the
   * calls. Ends when the delivery is over.
   */
  deliver(
    name: string,
    delivery: Delivery,
    attachments: readonly Attachment[],
    trigger: string,
  ): Promise<AgentResult> {
    const before = this.#turns.get(name) ?? Promise.resolve();
    const turn = before.then(() => this.#deliver(name, delivery, attachments, trigger));
    this.#turns.set(name, turn);
    return turn;
  }

  async #deliver(
    name: string,
    delivery: Delivery,
    attachments: readonly Attachment[],
    trigger: string,
  ): Promise<AgentResult> {
    if (this.#daemon.stopping !== null) return failedResult("cancelled", "drain: not begun");
    await this.#retireOld(name);
    const session = this.#alive.get(name) ?? this.#open(name);
    const begun = this.#daemon.begin(trigger);
    const { promise, resolve } = Promise.withResolvers<AgentResult>();
    session.current = { id: delivery.id, resolve };
    session.handle.deliver(delivery, attachments);
    // The agent keeps its own deadline; this is for one that does not.
    const { clock } = this.#daemon.ports;
    const deadlineMs = this.#daemon.settings.limits.deadlineMs + 2 * DEADLINE_GRACE_MS;
    const timer = clock.after(deadlineMs, () => session.handle.cancel("deadline"));
    const result = await promise;
    timer();
    session.current = null;
    if (result.status !== "crashed" && result.abort === null) session.served++;
    begun.end({ runId: session.state.runId, result });
    return result;
  }

  /** Winds every session down at a turn border and waits for them. */
  async close(reason: CancelReason): Promise<void> {
    this.#closing = true;
    await Promise.all([...this.#alive.values()].map((session) => this.#wind(session, reason)));
  }

  #remember(name: string): SessionState {
    let state = this.#known.get(name);
    if (state === undefined) {
      state = {
        name,
        runId: this.#daemon.mintRunId(),
        startedWallMs: Math.floor(this.#daemon.ports.clock.wallMs()),
        begun: false,
        subscriptions: [],
      };
      this.#known.set(name, state);
    }
    return state;
  }

  #open(name: string): Session {
    const state = this.#remember(name);
    const resume = state.begun;
    state.begun = true;
    const session: Session = {
      state,
      handle: undefined as unknown as RunHandle,
      current: null,
      served: 0,
      leaving: false,
      tokens: 0,
    };
    session.handle = this.#daemon.ports.runs.start({
      runId: state.runId,
      instruction: null,
      attachments: [],
      session: { name, resume },
    }, {
      delivered: (id, result) => {
        session.tokens += tokensOf(result);
        if (session.current?.id === id) session.current.resolve(result);
      },
      subscribe: (request) => this.#events.subscribe(name, request),
    });
    this.#alive.set(name, session);
    this.#daemon.metrics.set("sessions", this.#alive.size);
    this.#daemon.track(session.handle);
    void session.handle.ended.then((end) => this.#ended(session, end));
    this.#events.changed();
    return session;
  }

  #ended(session: Session, end: RunEnd): void {
    const { name } = session.state;
    if (this.#alive.get(name) === session) this.#alive.delete(name);
    this.#daemon.metrics.set("sessions", this.#alive.size);
    this.#daemon.untrack(session.handle, session.tokens);
    if (!session.leaving && !this.#closing) {
      this.#daemon.metrics.add("restarts", 1, "session");
      this.#noteFailure(name, session.served);
    }
    session.current?.resolve(
      end.result.abort === null && end.result.status === "completed"
        ? failedResult("crashed", "the session ended before its delivery was over")
        : end.result,
    );
    this.#events.changed();
  }

  /** A record from which nothing is served again and again is left: the next begins anew. */
  #noteFailure(name: string, served: number): void {
    const failures = served > 0 ? 1 : (this.#failures.get(name) ?? 0) + 1;
    this.#failures.set(name, failures);
    const state = this.#known.get(name);
    if (failures < FAILURES_MAX || state === undefined) return;
    this.#failures.delete(name);
    this.#known.delete(name);
    this.#remember(name).subscriptions = state.subscriptions;
  }

  /** A session over its age is left, and its successor starts with an empty transcript. */
  async #retireOld(name: string): Promise<void> {
    const state = this.#known.get(name);
    if (state === undefined) return;
    if (this.#daemon.ports.clock.wallMs() - state.startedWallMs <= SESSION_AGE_MS_MAX) return;
    const session = this.#alive.get(name);
    if (session !== undefined) await this.#wind(session, "drain");
    this.#known.delete(name);
    this.#remember(name).subscriptions = state.subscriptions;
  }

  async #wind(session: Session, reason: CancelReason): Promise<void> {
    session.leaving = true;
    session.handle.cancel(reason);
    await session.handle.ended;
  }
}
