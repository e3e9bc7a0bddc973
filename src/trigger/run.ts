/** `agentd run` in the modes loop, reactive and schedule: from the lock to a clean exit. */

import type { Settings } from "../config/settings.ts";
import { failed, type Outcome, success } from "../core/outcome.ts";
import type { Listening } from "../ports/listen.ts";
import type { LockHandle } from "../ports/lock.ts";
import { fileBodies } from "./bodies.ts";
import { parseListen } from "./check.ts";
import { Daemon, type DaemonPorts } from "./daemon.ts";
import { answerRequest } from "./endpoint.ts";
import { Health } from "./health.ts";
import type { DaemonEnd } from "./mode.ts";
import { runLoop } from "./run_loop.ts";
import { Reactive } from "./run_reactive.ts";
import { openSlots, planText, runSchedule } from "./run_schedule.ts";
import { Sessions } from "./sessions.ts";
import {
  daemonName,
  type DaemonState,
  emptyState,
  loadState,
  saveState,
  type ScheduleKept,
  setAside,
} from "./state.ts";

export type { DaemonPorts } from "./daemon.ts";

/** How a daemon ended; the exit code is the command line's business. */
export interface DaemonOutcome {
  end: DaemonEnd;
  /** The first signal that this process got. */
  signal: "SIGINT" | "SIGTERM" | null;
  /** Why, for people; empty after a clean end. */
  message: string;
  iterations: number;
}

/** Why a daemon did not begin: a user's mistake or a full disk. Nothing was started. */
export interface DaemonProblem {
  message: string;
}

/** Runs a daemon to its end. Never rejects. */
export async function runDaemon(
  settings: Settings,
  ports: DaemonPorts,
): Promise<Outcome<DaemonOutcome, DaemonProblem>> {
  const name = daemonName(settings);
  const locked = await acquireLock(settings, ports, name, keepsState(settings));
  if (!locked.ok) return locked;
  if (locked.value === "held") return success(skipped(ports, name));
  try {
    return await new Shell(settings, ports, name).run();
  } finally {
    locked.value?.release();
  }
}

/**
 * The lock of a name, in the state directory: `held` says that another process is at work, null
 * that none is wanted. Mode once takes it too, when `--lock` names one; it dies with its process.
 */
export async function acquireLock(
  settings: Pick<Settings, "lock" | "stateDirectory">,
  ports: Pick<DaemonPorts, "files" | "locks">,
  name: string,
  wanted = settings.lock !== null,
): Promise<Outcome<LockHandle | "held" | null, DaemonProblem>> {
  if (!wanted) return success(null);
  const made = ports.files.makeDirectory(settings.stateDirectory);
  if (!made.ok) {
    return failed({ message: `Cannot make the state directory: ${made.failure.message}` });
  }
  const lock = await ports.locks.tryLock(`${settings.stateDirectory}/${name}.lock`);
  if (lock.ok) return lock;
  return lock.failure.class === "held"
    ? success("held")
    : failed({ message: `Cannot take the lock: ${lock.failure.message}` });
}

/** Says that another process is at work: the one line that a second start leaves. */
export function tellSkipped(ports: Pick<DaemonPorts, "telemetry">, name: string): void {
  ports.telemetry.emit("trigger.skipped", {
    kind: "lock",
    lock: name,
    reason: "another is running",
  });
}

function skipped(ports: DaemonPorts, name: string): DaemonOutcome {
  tellSkipped(ports, name);
  return { end: "locked", signal: null, message: `${name} is running already`, iterations: 0 };
}

/** Whether two daemons of a configuration would share a state file: they exclude each other. */
function keepsState(settings: Settings): boolean {
  return settings.lock !== null || settings.mode !== "loop" || settings.trigger.session === "warm";
}

class Shell {
  readonly #settings: Settings;
  readonly #ports: DaemonPorts;
  readonly #path: string;
  readonly #daemon: Daemon;
  readonly #health: Health;
  #state: DaemonState = emptyState();
  #sessions: Sessions | null = null;
  #reactive: Reactive | null = null;
  #schedule: ScheduleKept | null = null;
  #saveFailed = false;

  constructor(settings: Settings, ports: DaemonPorts, name: string) {
    this.#settings = settings;
    this.#ports = ports;
    this.#path = `${settings.stateDirectory}/${name}.json`;
    this.#daemon = new Daemon(settings, ports);
    this.#health = new Health({
      ...ports,
      healthFile: settings.healthFile,
      unkept: (message) => this.#tellUnkept("health_file", message),
    });
  }

  async run(): Promise<Outcome<DaemonOutcome, DaemonProblem>> {
    const loaded = this.#load();
    if (!loaded.ok) return loaded;
    const daemon = this.#daemon;
    this.#sessions = new Sessions(daemon, {
      subscribe: (name, request) =>
        this.#reactive?.subscribe(name, request) ??
          Promise.resolve(failed("only a reactive daemon wakes its sessions")),
      changed: () => this.#save(),
    }, this.#knownSessions());
    const listening = this.#listen();
    if (!listening.ok) return listening;
    const kept = this.#health.start();
    const mode = kept.ok ? await this.#prepare() : failed({ message: kept.failure });
    if (!mode.ok) {
      this.#health.stop();
      await listening.value?.close();
      return mode;
    }
    this.#ports.telemetry.emit("proc.start", {
      mode: this.#settings.mode,
      listen: listening.value?.port ?? null,
    });
    daemon.arm();
    const watchStop = this.#watchStop();
    await mode.value();
    await this.#sessions.close("drain");
    await watchStop;
    this.#save();
    await listening.value?.close();
    this.#health.stop();
    daemon.disarm();
    const end = daemon.killed ? "killed" : daemon.stopping ?? "drained";
    this.#ports.telemetry.emit("proc.exit", { reason: end, iterations: daemon.iterations });
    return success({
      end,
      signal: daemon.signal,
      message: daemon.message,
      iterations: daemon.iterations,
    });
  }

  /** The mode's own loop, ready to start; problems come before any side effect. */
  async #prepare(): Promise<Outcome<() => Promise<void>, DaemonProblem>> {
    const daemon = this.#daemon;
    const sessions = this.#sessions!;
    const ready = (why: string | null) => this.#setReady(why);
    switch (this.#settings.mode) {
      case "schedule": {
        const kept = this.#keptSchedule();
        const slots = await openSlots(this.#settings, kept.anchorMs);
        if (!slots.ok) return failed({ message: slots.failure });
        this.#schedule = kept;
        return success(() => {
          this.#save();
          ready(null);
          return runSchedule(daemon, slots.value, kept, (next) => {
            this.#schedule = next;
            this.#save();
          });
        });
      }
      case "reactive": {
        const reactive = new Reactive({
          daemon,
          sessions,
          bodies: fileBodies(this.#ports.files, `${this.#path.replace(/\.json$/, "")}.bodies`),
          state: this.#state,
          keep: () => this.#save(),
          setReady: ready,
        });
        const files = reactive.openFiles();
        if (!files.ok) return failed({ message: files.failure });
        this.#reactive = reactive;
        return success(() => {
          ready("connecting");
          return reactive.run();
        });
      }
      default:
        return success(() => {
          ready(null);
          return runLoop(daemon, sessions);
        });
    }
  }

  #load(): Outcome<void, DaemonProblem> {
    if (!keepsState(this.#settings)) return success(undefined);
    const loaded = loadState(this.#ports.files, this.#path);
    if (loaded.ok) {
      this.#state = loaded.value;
      return success(undefined);
    }
    if (loaded.failure.class !== "corrupt") return failed({ message: loaded.failure.message });
    setAside(this.#ports.files, this.#path);
    this.#ports.telemetry.emit("trigger.skipped", {
      kind: "state",
      reason: "corrupt",
      kept_as: `${this.#path}.corrupt`,
      err: { type: "state", message: loaded.failure.message },
    }, "error");
    // What the file said is gone: what was watched may have changed unseen.
    this.#state = { ...emptyState(), watched: true };
    return success(undefined);
  }

  /** Sessions that this configuration still has; a loop's only while it is warm. */
  #knownSessions(): DaemonState["sessions"] {
    const { routes, session } = this.#settings.trigger;
    const names = new Set(
      routes.flatMap(({ target }) => target.kind === "continue" ? [target.session] : []),
    );
    if (session === "warm") names.add("main");
    return this.#state.sessions.filter((state) => names.has(state.name));
  }

  #keptSchedule(): ScheduleKept {
    const plan = planText(this.#settings);
    const kept = this.#state.schedule;
    if (kept !== null && kept.plan === plan) return kept;
    const nowMs = Math.floor(this.#ports.clock.wallMs());
    return { plan, anchorMs: nowMs, lastSlotMs: nowMs, queuedSlotMs: null };
  }

  #save(): void {
    if (!keepsState(this.#settings)) return;
    const saved = saveState(this.#ports.files, this.#path, {
      schedule: this.#schedule,
      watched: this.#reactive?.watched ?? false,
      sessions: this.#sessions?.states() ?? [],
      pending: this.#reactive?.pending() ?? [],
    });
    if (!saved.ok && !this.#saveFailed) this.#tellUnkept("state", saved.failure);
    this.#saveFailed = !saved.ok;
  }

  /** A file of the daemon's that cannot be written any more. */
  #tellUnkept(what: "state" | "health_file", message: string): void {
    const err = { type: what, message };
    this.#ports.telemetry.emit("limit.exceeded", { limit: what, err }, "error");
  }

  #setReady(why: string | null): void {
    if (this.#daemon.stopping !== null && why === null) return;
    if (why === null) this.#ports.telemetry.emit("proc.ready", { mode: this.#settings.mode });
    this.#health.setReady(why);
  }

  /** Probes learn of the drain at once, not when it is over. */
  async #watchStop(): Promise<void> {
    while (this.#daemon.stopping === null) await this.#daemon.wake(null);
    this.#health.setReady("draining");
  }

  #listen(): Outcome<Listening | null, DaemonProblem> {
    const { listen, trigger, vault } = this.#settings;
    if (listen === null) return success(null);
    const address = parseListen(listen);
    if (address === undefined) return failed({ message: `Cannot listen on ${listen}` });
    const token = trigger.tokenSecret === null ? null : vault.get(trigger.tokenSecret) ?? null;
    const listening = this.#ports.listen.listen(
      address.hostname,
      address.port,
      (request) =>
        answerRequest(request, {
          clock: this.#ports.clock,
          digest: this.#ports.digest,
          token: this.#settings.mode === "reactive" ? token : null,
          health: () => this.#health.report(),
          metrics: () => this.#renderMetrics(),
          trigger: (call) =>
            this.#reactive?.trigger(call) ?? { kind: "unrouted", message: "not reactive" },
        }),
    );
    if (listening.ok) return listening;
    const why = listening.failure.class === "in_use"
      ? "the address is in use"
      : listening.failure.message;
    return failed({ message: `Cannot listen on ${listen}: ${why}` });
  }

  #renderMetrics(): string {
    const { metrics } = this.#daemon;
    const { ready, lagMs } = this.#health.report();
    metrics.set("ready", ready ? 1 : 0);
    metrics.set("lag", lagMs / 1000);
    metrics.set("up", this.#daemon.elapsedMs / 1000);
    this.#reactive?.refreshMetrics();
    return metrics.render();
  }
}
