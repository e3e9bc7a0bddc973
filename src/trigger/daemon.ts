/** What every mode of a daemon shares: runs in flight, bounds, signals, and the one way to stop. */

import { makeUlid } from "../core/ids.ts";
import type { Settings } from "../config/settings.ts";
import type { Cancel, ClockPort } from "../ports/clock.ts";
import type { DigestPort } from "../ports/digest.ts";
import type { FileWatchPort } from "../ports/file_watch.ts";
import type { FilesPort } from "../ports/files.ts";
import type { ListenPort } from "../ports/listen.ts";
import type { LockPort } from "../ports/lock.ts";
import type { NotifyPort } from "../ports/notify.ts";
import type { RandomPort } from "../ports/random.ts";
import type { RunEnd, RunHandle, RunRequest, RunsPort } from "../ports/runs.ts";
import type { SignalsPort } from "../ports/signals.ts";
import type { TelemetryPort } from "../ports/telemetry.ts";
import type { CancelReason } from "../wire/control.ts";
import type { AgentResult } from "../wire/result.ts";
import {
  boundSleepMs,
  cutsRuns,
  type DaemonBounds,
  type DaemonEnd,
  type DaemonFacts,
  isCredentialsRefusal,
  stopReason,
} from "./mode.ts";
import { Metrics } from "./metrics.ts";
import { RecordCounts } from "./record_counts.ts";

/** Effects that a daemon needs. */
export interface DaemonPorts {
  pid: number;
  runs: RunsPort;
  clock: ClockPort;
  random: RandomPort;
  files: FilesPort;
  locks: LockPort;
  signals: SignalsPort;
  telemetry: TelemetryPort;
  digest: DigestPort;
  listen: ListenPort;
  fileWatch: FileWatchPort;
  notify: NotifyPort;
  /** Prints the result of a run or delivery that ended. */
  report(end: RunEnd, span: { startedWallMs: number; endedWallMs: number }): void;
}

/** How often the tokens of runs in progress are looked at, while they have a bound. */
const TOKENS_INTERVAL_MS = 1_000;
/** Longer sleeps are slept in parts: timers take no more than 2^31 - 1 ms. */
const SLEEP_PART_MS_MAX = 2 ** 31 - 1;

/** Something that is running and can be wound down. */
interface Stoppable {
  tokens(): number;
  cancel(reason: CancelReason): void;
  kill(): void;
}

/** The core. Modes call {@link Daemon.start} and {@link Daemon.sleep}, and look at `stopping`. */
export class Daemon {
  readonly settings: Settings;
  readonly ports: DaemonPorts;
  readonly metrics = new Metrics();
  /** The first signal. */
  signal: "SIGINT" | "SIGTERM" | null = null;
  killed = false;
  /** Required servers were connected once: from then on their absence ends nothing. */
  serversMet = false;
  /** Why the daemon ended early, for people. */
  message = "";
  readonly #startedMs: number;
  readonly #records: RecordCounts;
  readonly #running = new Set<Stoppable>();
  readonly #waiters = new Set<() => void>();
  readonly #cancels: Cancel[] = [];
  #boundTimer: Cancel = () => {};
  #tokensTimer: Cancel | null = null;
  #tokensDone = 0;
  #started = 0;
  #iterations = 0;
  #inflight = 0;
  #exhausted = false;
  #failure: DaemonFacts["failure"] = null;
  #stopping: DaemonEnd | null = null;

  constructor(settings: Settings, ports: DaemonPorts) {
    this.settings = settings;
    this.ports = ports;
    this.#startedMs = ports.clock.monotonicMs();
    this.#records = new RecordCounts(ports, this.metrics);
  }

  /** Why nothing more is started; null while the daemon goes on. */
  get stopping(): DaemonEnd | null {
    return this.#stopping;
  }

  get iterations(): number {
    return this.#iterations;
  }

  get inflight(): number {
    return this.#inflight;
  }

  get elapsedMs(): number {
    return this.ports.clock.monotonicMs() - this.#startedMs;
  }

  /** Listens for signals and arms the bounds. */
  arm(): void {
    for (const signal of ["SIGINT", "SIGTERM"] as const) {
      this.#cancels.push(this.ports.signals.on(signal, () => this.#signalled(signal)));
    }
    this.#armBounds();
    this.evaluate();
  }

  disarm(): void {
    for (const cancel of this.#cancels.splice(0)) cancel();
    this.#boundTimer();
    this.#tokensTimer?.();
    this.#tokensTimer = null;
  }

  /** A fresh run id. */
  mintRunId(): string {
    return makeUlid(this.ports.clock.wallMs(), this.ports.random.bytes(10));
  }

  /** Starts a fresh run and counts it; its end is reported, counted and judged. */
  async run(
    request: RunRequest,
    trigger: string,
    started: (handle: RunHandle) => void = () => {},
  ): Promise<AgentResult> {
    const begun = this.begin(trigger);
    const handle = this.ports.runs.start(request);
    this.track(handle);
    started(handle);
    const end = await handle.ended;
    this.untrack(handle, tokensOf(end.result));
    begun.end(end);
    return end.result;
  }

  /** Counts an iteration: a run, or a delivery to a warm session. */
  begin(trigger: string): { end(end: RunEnd): void } {
    const { clock } = this.ports;
    const startedMs = clock.monotonicMs();
    const startedWallMs = clock.wallMs();
    this.#started++;
    this.#inflight++;
    this.metrics.add("starts", 1, trigger);
    this.metrics.set("inflight", this.#inflight);
    this.evaluate();
    return {
      end: (end) => {
        this.#inflight--;
        this.#iterations++;
        this.metrics.set("inflight", this.#inflight);
        this.metrics.countEnd(end.result, clock.monotonicMs() - startedMs);
        if (this.settings.listen !== null) {
          void this.#records.count(`${this.settings.runDirectory}/${end.runId}`);
        }
        this.#judge(end.result);
        this.ports.report(end, { startedWallMs, endedWallMs: clock.wallMs() });
        this.evaluate();
      },
    };
  }

  /** A process of ours is up: it is cut when the daemon must stop. */
  track(running: Stoppable): void {
    this.#running.add(running);
    if (this.#stopping !== null && cutsRuns(this.#stopping)) running.cancel(this.#cutReason());
    this.#watchTokens();
  }

  /** It is gone, having used so many tokens by its own account. */
  untrack(running: Stoppable, tokens: number): void {
    if (!this.#running.delete(running)) return;
    this.#tokensDone += Math.max(tokens, running.tokens());
    this.evaluate();
  }

  /** A required server could not be started at the beginning. */
  failServer(message: string): void {
    this.#failure ??= "required_server";
    this.message = message;
    this.evaluate();
  }

  /** Nothing can ever start again. */
  exhaust(): void {
    this.#exhausted = true;
    this.evaluate();
  }

  /** Sleeps, at most until the daemon stops. */
  async sleep(durationMs: number): Promise<void> {
    const { clock } = this.ports;
    const dueMs = clock.monotonicMs() + durationMs;
    for (;;) {
      const restMs = dueMs - clock.monotonicMs();
      if (restMs <= 0 || this.#stopping !== null) return;
      await this.wake(Math.min(restMs, SLEEP_PART_MS_MAX));
    }
  }

  /** Waits until something happened to the daemon, or the time is over; null: no time. */
  wake(durationMs: number | null): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = durationMs === null ? () => {} : this.ports.clock.after(durationMs, () => {
      this.#waiters.delete(done);
      resolve();
    });
    const done = () => {
      timer();
      resolve();
    };
    this.#waiters.add(done);
    return promise;
  }

  /** Lets everybody who waits look again. */
  nudge(): void {
    const waiters = [...this.#waiters];
    this.#waiters.clear();
    for (const waiter of waiters) waiter();
  }

  /** Looks at the exit predicates. */
  evaluate(): void {
    if (this.#stopping === null) {
      const reason = stopReason(this.facts(), this.#bounds());
      if (reason !== null) {
        this.#stopping = reason;
        this.ports.telemetry.emit("proc.shutdown", { reason, signal: this.signal });
        if (cutsRuns(reason)) this.#cut();
      }
    }
    this.nudge();
  }

  facts(): DaemonFacts {
    let tokens = this.#tokensDone;
    for (const running of this.#running) tokens += running.tokens();
    return {
      iterations: this.#iterations,
      started: this.#started,
      elapsedMs: this.elapsedMs,
      tokens,
      draining: this.signal !== null,
      inflight: this.#inflight,
      exhausted: this.#exhausted,
      failure: this.#failure,
    };
  }

  #bounds(): DaemonBounds {
    return this.settings.trigger;
  }

  #signalled(signal: "SIGINT" | "SIGTERM"): void {
    if (this.signal === null) {
      this.signal = signal;
      // A bound that lets runs end by themselves gives way to a signal that does not.
      if (this.#stopping === "bounded") {
        this.#stopping = "drained";
        this.#cut();
      }
    } else {
      this.killed = true;
      for (const running of this.#running) running.kill();
    }
    this.evaluate();
  }

  #judge(result: AgentResult): void {
    if (isCredentialsRefusal(result)) {
      this.#failure ??= "credentials";
      this.message = result.reason;
    } else if (
      // At the beginning: later, and in the middle of a run, a server's death is a failed run.
      result.abort === "mcp" && this.#iterations === 1 && result.usage.model_calls === 0 &&
      !this.serversMet && this.signal === null
    ) {
      this.#failure ??= "required_server";
      this.message = result.reason;
    }
  }

  #cut(): void {
    for (const running of this.#running) running.cancel(this.#cutReason());
  }

  #cutReason(): CancelReason {
    if (this.#stopping === "lifetime") return "deadline";
    return this.#stopping === "lifetime_tokens" ? "tree_tokens" : "drain";
  }

  #armBounds(): void {
    const restMs = boundSleepMs(this.facts(), this.#bounds());
    if (restMs === null) return;
    this.#boundTimer = this.ports.clock.after(Math.min(restMs, SLEEP_PART_MS_MAX), () => {
      this.evaluate();
      if (this.#stopping === null) this.#armBounds();
    });
  }

  #watchTokens(): void {
    if (this.settings.trigger.lifetimeTokens === 0 || this.#tokensTimer !== null) return;
    this.#tokensTimer = this.ports.clock.after(TOKENS_INTERVAL_MS, () => {
      this.#tokensTimer = null;
      this.evaluate();
      if (this.#running.size > 0) this.#watchTokens();
    });
  }
}

/** Tokens of a result, by its own account. */
export function tokensOf(result: AgentResult): number {
  return result.usage.tokens_in + result.usage.tokens_out;
}
