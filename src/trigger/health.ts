/**
 * Well-being of the supervisor itself: does its own loop turn? An idle daemon is healthy, and a
 * stuck child is not its fault. Readiness is apart: are the triggers armed and the servers there?
 */

import { HEALTH_INTERVAL_MS } from "../core/limits.ts";
import { formatIso } from "../core/time.ts";
import type { Cancel, ClockPort } from "../ports/clock.ts";
import type { FilesPort } from "../ports/files.ts";
import type { NotifyPort } from "../ports/notify.ts";
import type { TelemetryPort } from "../ports/telemetry.ts";

/** A loop that is later than this is not healthy. */
const LAG_MS_MAX = 5_000;

/** What a heartbeat needs. */
export interface HealthDeps {
  clock: ClockPort;
  files: FilesPort;
  notify: NotifyPort;
  telemetry: TelemetryPort;
  pid: number;
  /** Null: none is kept. */
  healthFile: string | null;
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
  #writeFailed = false;
  #stopped = false;

  constructor(deps: HealthDeps) {
    this.#deps = deps;
    this.#intervalMs = Math.min(HEALTH_INTERVAL_MS, deps.notify.watchdogMs ?? HEALTH_INTERVAL_MS);
  }

  start(): void {
    this.#dueMs = this.#deps.clock.monotonicMs();
    this.#beat();
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
    if (healthFile !== null) files.remove(healthFile);
  }

  #beat(): void {
    if (this.#stopped) return;
    const { clock, notify } = this.#deps;
    const nowMs = clock.monotonicMs();
    this.#lagMs = Math.max(0, nowMs - this.#dueMs);
    this.#dueMs = nowMs + this.#intervalMs;
    this.#writeFile();
    if (notify.watchdogMs !== null) notify.tell("WATCHDOG=1");
    this.#timer = clock.after(this.#intervalMs, () => this.#beat());
  }

  #writeFile(): void {
    const { files, clock, telemetry, healthFile, pid } = this.#deps;
    if (healthFile === null || this.#stopped) return;
    const { healthy, ready, why } = this.report();
    const ts = formatIso(clock.wallMs());
    const text = JSON.stringify({ ts, healthy, ready, why, pid }) + "\n";
    const written = files.writeAtomic(healthFile, text);
    if (!written.ok && !this.#writeFailed) {
      // Whoever probes the file will kill a daemon that is well: its log must say why.
      telemetry.emit("loop.error", {
        err: {
          type: "health_file",
          message: `Cannot write the health file: ${written.failure.message}`,
        },
      }, "error");
    }
    this.#writeFailed = !written.ok;
  }
}
