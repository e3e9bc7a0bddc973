/**
 * Well-being of the supervisor itself: does its own loop turn? An idle daemon is healthy, and a
 * stuck child is not its fault. Readiness is apart: are the triggers armed and the servers there?
 */

import { HEALTH_INTERVAL_MS } from "../core/limits.ts";
import { failed, type Outcome, success } from "../core/outcome.ts";
import { formatIso } from "../core/time.ts";
import type { Cancel, ClockPort } from "../ports/clock.ts";
import type { FileFailure, FilesPort } from "../ports/files.ts";
import type { NotifyPort } from "../ports/notify.ts";

/** A loop that is later than this is not healthy. */
const LAG_MS_MAX = 5_000;

/** What a heartbeat needs. */
export interface HealthDeps {
  clock: ClockPort;
  files: FilesPort;
  notify: NotifyPort;
  pid: number;
  /** Null: none is kept. */
  healthFile: string | null;
  /** The file can no longer be written; told once, until it can again. */
  unkept(message: string): void;
}

/** What probes read. */
export interface HealthReport {
  healthy: boolean;
  ready: boolean;
  /** Why not, in a few words. */
  why: string;
  lagMs: number;
}

/** The heartbeat. It owns one timer from `start` to `stop`. */
export class Health {
  readonly #deps: HealthDeps;
  readonly #intervalMs: number;
  #why = "starting";
  #dueMs = 0;
  #lagMs = 0;
  #timer: Cancel = () => {};
  #told = false;
  #stopped = false;
  #unkept = false;
  /** The file was ours once. */
  #written = false;

  constructor(deps: HealthDeps) {
    this.#deps = deps;
    this.#intervalMs = Math.min(HEALTH_INTERVAL_MS, deps.notify.watchdogMs ?? HEALTH_INTERVAL_MS);
  }

  /** Fails, and nothing beats, where the file cannot be written: a probe would never see it. */
  start(): Outcome<void, string> {
    this.#dueMs = this.#deps.clock.monotonicMs();
    const written = this.#write();
    if (!written.ok) return failed(`Cannot keep the health file: ${written.failure.message}`);
    this.#written = true;
    this.#arm(this.#dueMs);
    return success(undefined);
  }

  /** `null`: ready. Else what it waits for, or `draining`. */
  setReady(why: string | null): void {
    const { notify } = this.#deps;
    if (this.#stopped || this.#why === (why ?? "")) return;
    this.#why = why ?? "";
    if (why === null && !this.#told) {
      this.#told = true;
      notify.tell("READY=1");
    }
    notify.tell(why === "draining" ? "STOPPING=1" : `STATUS=${why ?? "ready"}`);
    this.#writeFile();
  }

  report(): HealthReport {
    // A timer that is overdue says that the loop is stuck right now, or was until this moment.
    const overdueMs = Math.max(0, this.#deps.clock.monotonicMs() - this.#dueMs);
    const lagMs = Math.max(this.#lagMs, overdueMs);
    return {
      healthy: lagMs <= LAG_MS_MAX,
      ready: this.#why === "" && lagMs <= LAG_MS_MAX,
      why: lagMs > LAG_MS_MAX ? "the supervisor's loop is late" : this.#why,
      lagMs,
    };
  }

  stop(): void {
    this.#stopped = true;
    this.#timer();
    const { files, healthFile } = this.#deps;
    if (healthFile === null || !this.#written) return;
    // What is there now may be somebody else's: a directory is never ours.
    const there = files.lstat(healthFile);
    if (!there.ok || there.value.kind !== "directory") files.remove(healthFile);
  }

  #beat(): void {
    if (this.#stopped) return;
    const nowMs = this.#deps.clock.monotonicMs();
    this.#lagMs = Math.max(0, nowMs - this.#dueMs);
    this.#dueMs = nowMs + this.#intervalMs;
    this.#writeFile();
    this.#arm(nowMs);
  }

  #arm(nowMs: number): void {
    const { clock, notify } = this.#deps;
    this.#dueMs = nowMs + this.#intervalMs;
    if (notify.watchdogMs !== null) notify.tell("WATCHDOG=1");
    this.#timer = clock.after(this.#intervalMs, () => this.#beat());
  }

  #writeFile(): void {
    if (this.#stopped) return;
    const written = this.#write();
    if (!written.ok && !this.#unkept) this.#deps.unkept(written.failure.message);
    this.#unkept = !written.ok;
  }

  #write(): Outcome<void, FileFailure> {
    const { files, clock, healthFile, pid } = this.#deps;
    if (healthFile === null) return success(undefined);
    const { healthy, ready, why } = this.report();
    const ts = formatIso(clock.wallMs());
    return files.writeAtomic(healthFile, JSON.stringify({ ts, healthy, ready, why, pid }) + "\n");
  }
}
