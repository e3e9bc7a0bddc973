/** Mode reactive: sources feed the router, the router feeds runs and warm sessions. */

import { ROUTE_CAP, ROUTE_DEBOUNCE_MS, ROUTE_INFLIGHT_MAX } from "../core/config_limits.ts";
import { DELIVERY_ATTEMPTS_MAX } from "../core/limits.ts";
import { failed, type Outcome, success } from "../core/outcome.ts";
import type { Json } from "../core/json.ts";
import type { Route } from "../config/settings.ts";
import type { Cancel } from "../ports/clock.ts";
import type { Attachment, SubscribeRequest } from "../ports/runs.ts";
import type { AgentResult } from "../wire/result.ts";
import type { BodyStore } from "./bodies.ts";
import { MAIN_SESSION } from "./check.ts";
import type { Daemon } from "./daemon.ts";
import type { TriggerAnswer, TriggerCall } from "./endpoint.ts";
import {
  absoluteMatch,
  FILE_SERVER,
  listMatches,
  parseFileGlob,
  watchFiles,
} from "./file_source.ts";
import { tellChanges, tellRun } from "./instruction.ts";
import { isUnserved } from "./mode.ts";
import { droppedOf, growthOf } from "./queue_counts.ts";
import { type Change, queueDepth } from "./route_queue.ts";
import {
  accept,
  addDynamicRoute,
  type Delivery,
  openRouter,
  ownerOf,
  pendingOf,
  removeDynamicRoute,
  type Router,
  routerWakeMs,
  settle,
  takeDeliveries,
} from "./router.ts";
import type { Sessions } from "./sessions.ts";
import type { DaemonState } from "./state.ts";
import { splitSource } from "./watch.ts";
import { WatcherKeeper } from "./watcher_keeper.ts";

/** The server's name that requests to POST /trigger carry. */
const TRIGGER_SERVER = "trigger";

/** The route of everything, where the operator wrote none. */
function defaultRoute(session: "fresh" | "warm"): Route {
  return {
    match: "**",
    target: session === "warm"
      ? { kind: "continue", session: MAIN_SESSION }
      : { kind: "spawn", maxInflight: ROUTE_INFLIGHT_MAX },
    debounceMs: ROUTE_DEBOUNCE_MS,
    cap: ROUTE_CAP,
    overflow: "coalesce",
    instruction: null,
  };
}

/** What reactive mode needs. */
export interface ReactiveDeps {
  daemon: Daemon;
  sessions: Sessions;
  bodies: BodyStore;
  /** As read at the start. */
  state: DaemonState;
  /** Saves what must survive a restart, at once. */
  keep(): void;
  /** Null: ready. */
  setReady(why: string | null): void;
}

/** The reactive daemon's heart. */
export class Reactive {
  readonly #deps: ReactiveDeps;
  readonly #router: Router;
  readonly #serving = new Set<Promise<void>>();
  readonly #keeper: WatcherKeeper;
  #unwatchFiles: Cancel = () => {};

  constructor(deps: ReactiveDeps) {
    this.#deps = deps;
    const { settings } = deps.daemon;
    const { routes, session } = settings.trigger;
    this.#router = openRouter(
      routes.length === 0 ? [defaultRoute(session)] : routes.map((route) => ({
        ...route,
        match: absoluteMatch(route.match, settings.workingDirectory),
      })),
    );
    this.#keeper = new WatcherKeeper(deps.daemon, {
      watched: deps.state.watched,
      sources: this.#sources(false),
      wishes: () => deps.sessions.states().flatMap((state) => state.subscriptions),
      changed: (server, uri, possibly) => this.#changed(server, uri, possibly),
      firstHeld: deps.keep,
      setReady: deps.setReady,
    });
    for (const { name, subscriptions } of deps.state.sessions) {
      for (const source of subscriptions) {
        const { server, uri } = splitSource(source);
        addDynamicRoute(this.#router, server, uri, name, ROUTE_DEBOUNCE_MS, ROUTE_CAP);
      }
    }
    for (const change of deps.state.pending) this.#accept(change, true);
    this.#sweepBodies();
  }

  /** Whether subscriptions were ever in place. */
  get watched(): boolean {
    return this.#keeper.watched;
  }

  /** What a drain keeps. */
  pending(): Change[] {
    return pendingOf(this.#router);
  }

  /** Arms the sources of the file system; a failure is the operator's to mend. */
  openFiles(): Outcome<void, string> {
    const { daemon } = this.#deps;
    const { settings, ports } = daemon;
    const globs = this.#sources(true).map((text) =>
      parseFileGlob(text.slice(FILE_SERVER.length + 1), settings.workingDirectory)
    );
    const watching = watchFiles(ports, globs, {
      changed: (path, possibly) => this.#changed(FILE_SERVER, path, possibly),
      held: (glob, now) => {
        const event = now ? "subscribe" : "unsubscribe";
        ports.telemetry.emit(event, { server: FILE_SERVER, uri: glob }, now ? "info" : "warn");
      },
    });
    if (!watching.ok) return watching;
    this.#unwatchFiles = watching.value;
    if (this.#keeper.watched) {
      for (const glob of globs) {
        for (const path of listMatches(ports.files, glob)) this.#changed(FILE_SERVER, path, true);
      }
    }
    return success(undefined);
  }

  /** Serves until the daemon stops; what was in flight then has ended. */
  async run(): Promise<void> {
    const { daemon } = this.#deps;
    const { clock, telemetry } = daemon.ports;
    telemetry.emit("trigger.armed", {
      kind: "reactive",
      subscriptions: daemon.settings.trigger.subscribe.length,
      routes: this.#router.routes.length,
      kept: pendingOf(this.#router).length,
    });
    this.#keeper.start();
    while (daemon.stopping === null) {
      this.#serveReady();
      if (daemon.stopping !== null) break;
      const nowMs = clock.monotonicMs();
      const wakeMs = routerWakeMs(this.#router, nowMs);
      await daemon.wake(wakeMs === null ? null : Math.max(0, wakeMs - nowMs));
    }
    this.#unwatchFiles();
    this.#keeper.stop();
    await Promise.all(this.#serving);
    await this.#keeper.gone();
  }

  /** A request from outside. */
  trigger(call: TriggerCall): TriggerAnswer {
    const { daemon, sessions, bodies, keep } = this.#deps;
    if (daemon.stopping !== null) return { kind: "draining", message: "draining" };
    const owner = ownerOf(this.#router, { server: TRIGGER_SERVER, uri: call.name });
    if (owner === null) {
      return { kind: "unrouted", message: `no route matches trigger:${call.name}` };
    }
    const { target } = owner.queue.route;
    const ownId = daemon.mintRunId();
    const stored = call.body.length === 0 ? success(null) : bodies.put(ownId, call.body);
    if (!stored.ok) return { kind: "failed", message: "the body could not be kept" };
    const taken = this.#accept({
      server: TRIGGER_SERVER,
      uri: call.name,
      kind: "changed",
      runId: target.kind === "spawn" ? ownId : sessions.runIdOf(target.session),
      body: stored.value === null
        ? null
        : { path: stored.value, mimeType: call.mimeType, name: call.name },
      tries: 0,
    });
    if (taken !== "taken") {
      if (stored.value !== null) bodies.drop(stored.value);
      return { kind: "full", message: "the queue is full" };
    }
    keep();
    daemon.nudge();
    return {
      kind: "accepted",
      runId: target.kind === "spawn" ? ownId : sessions.runIdOf(target.session),
    };
  }

  /** A session's agent asks to be woken by a resource, or no longer. */
  subscribe(name: string, request: SubscribeRequest): Promise<Outcome<Json, string>> {
    return Promise.resolve(this.#subscribe(name, request));
  }

  #subscribe(name: string, { op, server, uri }: SubscribeRequest): Outcome<Json, string> {
    const { daemon, sessions } = this.#deps;
    const source = `${server}:${uri}`;
    if (!daemon.settings.servers.some((settings) => settings.name === server)) {
      return failed(`no tool server is named ${server}`);
    }
    daemon.ports.telemetry.emit(op, { server, uri, session: name });
    if (op === "unsubscribe") {
      this.refreshMetrics();
      const removed = removeDynamicRoute(this.#router, server, uri, name);
      if (!removed) return failed("this session has no such subscription");
      daemon.metrics.set("depth", 0, source);
      sessions.noteSubscription(name, source, false);
      this.#keeper.change([], [source]);
      return success({ unsubscribed: uri });
    }
    const added = addDynamicRoute(this.#router, server, uri, name, ROUTE_DEBOUNCE_MS, ROUTE_CAP);
    if (!added.ok) return added;
    if (added.value === "added") {
      sessions.noteSubscription(name, source, true);
      this.#keeper.change([source], []);
    }
    return success({ subscribed: uri, wakes: name });
  }

  /** Brings the figures up to date before they are read, and before a route is gone. */
  refreshMetrics(): void {
    const { metrics } = this.#deps.daemon;
    metrics.set("dropped", this.#router.unrouted, "-", "unrouted");
    for (const { match, queue } of this.#router.routes) {
      const grown = growthOf(queue.told, queue.counts);
      queue.told = structuredClone(queue.counts);
      metrics.set("depth", queueDepth(queue), match);
      metrics.add("received", grown.received, match);
      metrics.add("coalesced", grown.coalesced, match);
      metrics.add("retried", grown.retried, match);
      for (const [reason, count] of Object.entries(grown.dropped)) {
        metrics.add("dropped", count, match, reason);
      }
    }
  }

  #sources(ofFiles: boolean): string[] {
    const prefix = `${FILE_SERVER}:`;
    return this.#deps.daemon.settings.trigger.subscribe.filter((source) =>
      source.startsWith(prefix) === ofFiles
    );
  }

  #changed(server: string, uri: string, possibly: boolean): void {
    const { daemon } = this.#deps;
    // Also while runs wind down: nothing is served then, but what comes is kept for the next start.
    daemon.ports.telemetry.emit("resource.updated", { server, uri, possibly });
    const kind = possibly ? "possibly" : "changed";
    this.#accept({ server, uri, kind, runId: null, body: null, tries: 0 });
    daemon.nudge();
  }

  #accept(change: Change, kept = false): "taken" | "refused" | "unrouted" {
    const { daemon } = this.#deps;
    const owner = ownerOf(this.#router, change);
    const droppedBefore = owner === null ? 0 : droppedOf(owner.queue.counts);
    const taken = accept(this.#router, change, daemon.ports.clock.monotonicMs(), kept);
    if (owner === null || droppedOf(owner.queue.counts) > droppedBefore) {
      const reason = owner === null ? "unrouted" : owner.queue.route.overflow;
      daemon.metrics.add("skipped", 1, reason);
      daemon.ports.telemetry.emit("trigger.skipped", {
        kind: "reactive",
        server: change.server,
        uri: change.uri,
        route: owner?.match ?? null,
        reason,
      }, "warn");
      this.#sweepBodies();
    }
    return taken;
  }

  /** Bodies of requests that were dropped: nobody will ask for them. */
  #sweepBodies(): void {
    const kept = pendingOf(this.#router).flatMap(({ body }) => body === null ? [] : [body.path]);
    this.#deps.bodies.sweep(new Set(kept));
  }

  #serveReady(): void {
    const { daemon } = this.#deps;
    const { clock, random } = daemon.ports;
    const nowMs = clock.monotonicMs();
    for (const delivery of takeDeliveries(this.#router, nowMs)) {
      if (daemon.stopping !== null) {
        settle(this.#router, delivery.id, "outage", nowMs, random.unit());
        continue;
      }
      const serving = this.#serve(delivery).then((how) => {
        settle(this.#router, delivery.id, how, clock.monotonicMs(), random.unit());
        if (how === "served") this.#dropBodies(delivery);
        if (how === "again") this.#tellGivenUp(delivery);
        this.#serving.delete(serving);
        daemon.nudge();
      });
      this.#serving.add(serving);
    }
  }

  async #serve(delivery: Delivery): Promise<"served" | "again" | "outage"> {
    const { daemon, sessions } = this.#deps;
    const { settings, ports } = daemon;
    const { route, changes } = delivery;
    const told = tellChanges(route.instruction ?? settings.task.instruction, changes);
    const attachments = this.#attachments(changes);
    const trigger = changes[0]!.runId === null ? "resource" : "request";
    const request = changes.find((change) => change.runId !== null);
    const runId = route.target.kind === "continue"
      ? sessions.runIdOf(route.target.session)
      : request === undefined
      ? daemon.mintRunId()
      : retryId(request);
    ports.telemetry.emit("trigger.fired", {
      kind: trigger,
      route: route.match,
      run_id: runId,
      changes: changes.length,
      events: delivery.events,
      waited_ms: Math.round(ports.clock.monotonicMs() - delivery.firstMs),
    });
    const result = route.target.kind === "continue"
      ? await sessions.deliver(
        route.target.session,
        { id: delivery.id, ...told },
        attachments,
        trigger,
      )
      : await daemon.run(
        { runId, instruction: tellRun(told), attachments, session: null },
        trigger,
      );
    return howServed(result, daemon.stopping !== null);
  }

  #attachments(changes: readonly Change[]): Attachment[] {
    const out: Attachment[] = [];
    for (const { body } of changes) {
      const bytes = body === null ? null : this.#deps.bodies.get(body.path);
      if (body !== null && bytes !== null) {
        out.push({ name: body.name, mimeType: body.mimeType, bytes });
      }
    }
    return out;
  }

  /** After too many crashes an event is given up, which must be seen. */
  #tellGivenUp(delivery: Delivery): void {
    const { daemon } = this.#deps;
    if (delivery.attempts + 1 < DELIVERY_ATTEMPTS_MAX) return;
    daemon.metrics.add("skipped", 1, "given_up");
    daemon.ports.telemetry.emit("trigger.skipped", {
      kind: "reactive",
      route: delivery.route.match,
      uri: delivery.changes[0]!.uri,
      changes: delivery.changes.length,
      reason: "given_up",
    }, "error");
    this.#sweepBodies();
  }

  #dropBodies(delivery: Delivery): void {
    const { bodies, keep } = this.#deps;
    const requests = delivery.changes.filter((change) => change.runId !== null);
    for (const { body } of requests) if (body !== null) bodies.drop(body.path);
    if (requests.length > 0) keep();
  }
}

/** A request's run: the id it was promised, and for each try after the first one of its own. */
function retryId(change: Change): string {
  return change.tries === 0 ? change.runId! : `${change.runId!}-${change.tries + 1}`;
}

/** An abort is the infrastructure's, but for a request that the endpoint finds wrong in itself. */
function howServed(result: AgentResult, stopping: boolean): "served" | "again" | "outage" {
  if (!isUnserved(result)) return "served";
  if (stopping) return "outage";
  return result.abort !== null && !/^bad_request\b/.test(result.reason) ? "outage" : "again";
}
