/** Runs for daemons: the port that triggers start them through (src/ports/runs.ts). */

import type { Settings } from "../config/settings.ts";
import type {
  Attachment,
  RunEnd,
  RunHandle,
  RunRequest,
  RunsPort,
  SessionListener,
} from "../ports/runs.ts";
import type { WatcherHandle, WatcherListener } from "../ports/runs.ts";
import { makeUlid } from "../core/ids.ts";
import type { Delivery } from "../wire/control.ts";
import type { Start } from "../wire/payload.ts";
import { type AgentResult, failedResult } from "../wire/result.ts";
import { holdRun } from "../record/runs.ts";
import type { SupervisorPorts } from "./ports.ts";
import { deliverRecording } from "./recording.ts";
import { keepAttachments, openRoot, type Root, withSeeds } from "./root.ts";
import {
  FRESH_RESTARTS,
  noteEnd,
  refuseStart,
  RESTART_PLAN,
  type RestartState,
} from "./restart.ts";
import type { TreeListener } from "./tree.ts";

/**
 * Runs over real agent processes. Every handle ends, whatever the world does. Warm sessions and
 * watchers that crash again and again are not started for a while: their handles end at once.
 */
export function createRuns(settings: Settings, ports: SupervisorPorts): RunsPort {
  const governor = new Governor(ports);
  return {
    start: (request, listener) => {
      if (request.session === null) return startRun(settings, ports, request, listener);
      const name = `session ${request.session.name}`;
      const refusal = governor.refuse(name);
      if (refusal !== null) return endedHandle(request.runId, failedResult("crashed", refusal));
      const handle = startRun(settings, ports, request, listener);
      governor.follow(
        name,
        handle.ended.then(({ result }) => result.status === "crashed" ? result.reason : null),
      );
      return handle;
    },
    watch: (subscribe, possibly, listener) => {
      const refusal = governor.refuse("watcher");
      if (refusal !== null) return endedWatcher(refusal);
      const handle = startWatcher(settings, ports, subscribe, possibly, listener);
      governor.follow("watcher", handle.ended.then((end) => end?.message ?? null));
      return handle;
    },
  };
}

/** Remembers, by name, how what is restarted has ended. */
class Governor {
  readonly #ports: SupervisorPorts;
  readonly #states = new Map<string, RestartState>();

  constructor(ports: SupervisorPorts) {
    this.#ports = ports;
  }

  refuse(name: string): string | null {
    const state = this.#states.get(name);
    return state ? refuseStart(state, this.#ports.clock.monotonicMs()) : null;
  }

  /** `ended` gives the reason of an end that nobody wanted, null for any other. */
  follow(name: string, ended: Promise<string | null>): void {
    const { clock, random } = this.#ports;
    const startedMs = clock.monotonicMs();
    void ended.then((reason) => {
      if (reason === null) {
        this.#states.delete(name);
        return;
      }
      const end = { startedMs, endedMs: clock.monotonicMs(), reason };
      const state = this.#states.get(name) ?? FRESH_RESTARTS;
      this.#states.set(name, noteEnd(RESTART_PLAN, state, end, random.unit()));
    });
  }
}

function startRun(
  settings: Settings,
  ports: SupervisorPorts,
  request: RunRequest,
  listener: SessionListener | undefined,
): RunHandle {
  const { runId, session } = request;
  const start: Start = session ? { kind: "warm", resume: session.resume } : { kind: "fresh" };
  const opened = openRoot(settings, ports, {
    runId,
    start,
    instruction: request.instruction,
    attachments: request.attachments,
    listener: listenerFor(listener),
  });
  if (!opened.ok) return endedHandle(runId, failedResult("crashed", opened.failure.message));
  const root = opened.value;
  const { tree } = root;
  // What is asked of a run before it has its lock is done when it has begun.
  let early: (() => void)[] | null = [];
  const act = (what: () => void) => void (early === null ? what() : early.push(what));
  return {
    runId,
    ended: hold(settings, ports, root, () => {
      tree.start();
      for (const what of early ?? []) what();
      early = null;
    }),
    tokens: () => tree.tokens,
    cancel: (reason) => act(() => tree.stop(reason)),
    kill: () => act(() => tree.kill("drain")),
    deliver: (delivery, attachments) =>
      act(() => deliver(ports, root, delivery, attachments, listener)),
  };
}

/** Begins a run under its lock; its end, whichever it is. */
async function hold(
  settings: Settings,
  ports: SupervisorPorts,
  root: Root,
  begin: () => void,
): Promise<RunEnd> {
  const { directory, runId, telemetry, tree } = root;
  const held = await holdRun(ports, directory);
  if (!held.ok) return { runId, result: failedResult("crashed", held.failure.message) };
  begin();
  const result = await tree.ended;
  deliverRecording(settings, ports.files, telemetry, directory);
  held.value.release();
  return { runId, result };
}

function listenerFor(listener: SessionListener | undefined): TreeListener {
  if (!listener) return {};
  return {
    delivered: (id, result) => listener.delivered(id, result),
    subscribe: (op, server, uri) => listener.subscribe({ op, server, uri }),
  };
}

/** A delivery that cannot be handed over is over at once: somebody waits for its end. */
function deliver(
  ports: SupervisorPorts,
  root: Root,
  delivery: Delivery,
  attachments: readonly Attachment[],
  listener: SessionListener | undefined,
): void {
  const seeds = keepAttachments(ports, root.directory, attachments);
  if (!seeds.ok) {
    listener?.delivered(delivery.id, failedResult("crashed", seeds.failure.message));
    return;
  }
  const instruction = withSeeds(delivery.instruction, seeds.value);
  if (!root.tree.deliver({ ...delivery, instruction })) {
    listener?.delivered(
      delivery.id,
      failedResult("crashed", "the session does not take deliveries"),
    );
  }
}

function endedHandle(runId: string, result: AgentResult): RunHandle {
  return {
    runId,
    ended: Promise.resolve({ runId, result }),
    tokens: () => 0,
    cancel: () => {},
    kill: () => {},
    deliver: () => {},
  };
}

function endedWatcher(message: string): WatcherHandle {
  return {
    ended: Promise.resolve({ message, abort: null }),
    watch: () => {},
    stop: () => {},
    kill: () => {},
  };
}

/** The watcher has a directory beside the runs, since it is none: no record is ever read there. */
function startWatcher(
  settings: Settings,
  ports: SupervisorPorts,
  subscribe: readonly string[],
  possibly: boolean,
  listener: WatcherListener,
): WatcherHandle {
  const runId = makeUlid(ports.clock.wallMs(), ports.random.bytes(10));
  const opened = openRoot(watcherSettings(settings), ports, {
    runId,
    start: { kind: "watch", subscribe: [...subscribe], possibly },
    instruction: null,
    attachments: [],
    listener: {
      connected: (servers) => listener.connected(servers),
      updated: (server, uri, changed) => listener.updated(server, uri, changed),
    },
  });
  if (!opened.ok) return endedWatcher(opened.failure.message);
  const { tree, directory } = opened.value;
  let stopped = false;
  tree.start();
  return {
    ended: tree.ended.then((result) => {
      // Nothing of a watch is ever read again.
      ports.files.remove(directory);
      if (stopped) return null;
      return { message: result.reason, abort: result.abort === "mcp" ? "mcp" : null };
    }),
    watch: (add, remove) => tree.watch(add, remove),
    stop: () => {
      stopped = true;
      tree.stop("drain");
    },
    kill: () => {
      stopped = true;
      tree.kill("drain");
    },
  };
}

/**
 * What a watcher is told: no model, no task, no tools of the built-in kind, no end by time. It calls
 * no tool, so that the Rule of Two has nothing to say of it.
 */
function watcherSettings(settings: Settings): Settings {
  const { model, task, limits } = settings;
  return {
    ...settings,
    model: { ...model, endpoints: [], recordTo: null },
    task: { ...task, instruction: "", require: [], checks: [], outputSchema: null, seeds: [] },
    servers: settings.servers.filter((server) => server.kind !== "builtin"),
    tools: { ...settings.tools, grant: [] },
    hooks: { before_action: [], after_observation: [], before_compaction: [], on_stop: [] },
    limits: { ...limits, maxSubagents: 0, deadlineMs: WATCHER_DEADLINE_MS },
    runDirectory: `${settings.stateDirectory}/watchers`,
  };
}

/** A watcher lives as long as its daemon: ten years stand for ever, within what timers take. */
const WATCHER_DEADLINE_MS = 10 * 365 * 86_400_000;
