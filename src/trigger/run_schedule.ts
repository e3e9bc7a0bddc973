/** Mode schedule: the clock's machine with a timer, a state file and runs behind it. */

import type { Settings } from "../config/settings.ts";
import { failed, type Outcome, success } from "../core/outcome.ts";
import { formatIso } from "../core/time.ts";
import {
  type ClockAction,
  type ClockEvent,
  type ClockPlan,
  type ClockState,
  sleepMs,
  startClock,
  stepClock,
} from "./clock.ts";
import type { Daemon } from "./daemon.ts";
import { cronSlots, intervalSlots, loadCron, type Slots } from "./slots.ts";
import type { ScheduleKept } from "./state.ts";

/** What the schedule's times are made of: another text, another schedule. */
export function planText(settings: Settings): string {
  const { cron, timezone, intervalMs } = settings.trigger;
  return cron === null ? `interval ${intervalMs}ms` : `cron ${cron} ${timezone}`;
}

/** The slots of a configuration, an interval counting from `anchorMs`. */
export async function openSlots(
  settings: Settings,
  anchorMs: number,
): Promise<Outcome<Slots, string>> {
  const { cron, timezone, intervalMs } = settings.trigger;
  if (cron === null) return success(intervalSlots(Math.max(1, intervalMs ?? 0), anchorMs));
  const slots = cronSlots(await loadCron(), cron, timezone);
  if (slots.ok) return slots;
  return failed(slots.failure.map((problem) => `${problem.field}: ${problem.message}`).join("; "));
}

/** Fires until the daemon stops; what was in flight then has ended. `keep` saves, at once. */
export async function runSchedule(
  daemon: Daemon,
  slots: Slots,
  kept: ScheduleKept,
  keep: (kept: ScheduleKept) => void,
): Promise<void> {
  await new Schedule(daemon, slots, kept, keep).run();
}

class Schedule {
  readonly #daemon: Daemon;
  readonly #plan: ClockPlan;
  readonly #keep: (kept: ScheduleKept) => void;
  readonly #kept: ScheduleKept;
  #state: ClockState;
  #cancelRun: () => void = () => {};
  #running: Promise<void> | null = null;

  constructor(
    daemon: Daemon,
    slots: Slots,
    kept: ScheduleKept,
    keep: (kept: ScheduleKept) => void,
  ) {
    const { overlap, jitterMs, catchUp } = daemon.settings.trigger;
    this.#daemon = daemon;
    this.#plan = { slots, overlap, jitterMs, catchUp };
    this.#kept = kept;
    this.#keep = keep;
    this.#state = startClock(kept.lastSlotMs, kept.queuedSlotMs);
  }

  async run(): Promise<void> {
    const daemon = this.#daemon;
    const { clock } = daemon.ports;
    this.#step("started");
    const next = this.#state.due?.slotMs ?? null;
    daemon.ports.telemetry.emit("trigger.armed", {
      kind: "schedule",
      plan: planText(daemon.settings),
      next: next === null ? null : formatIso(next),
    });
    while (daemon.stopping === null) {
      const waitMs = sleepMs(this.#state, clock.wallMs());
      if (waitMs === null && this.#running === null) daemon.exhaust();
      if (daemon.stopping !== null) break;
      if (waitMs === null || waitMs > 0) await daemon.wake(waitMs);
      if (daemon.stopping === null) this.#step("ticked");
    }
    this.#apply({ type: "disarmed" });
    await this.#running;
  }

  #step(type: "started" | "ticked" | "runEnded"): void {
    const { clock, random } = this.#daemon.ports;
    this.#apply({ type, nowMs: Math.floor(clock.wallMs()), unit: random.unit() });
  }

  #apply(event: ClockEvent): void {
    const [state, actions] = stepClock(this.#state, event, this.#plan);
    this.#state = state;
    for (const action of actions) this.#act(action);
  }

  #act(action: ClockAction): void {
    const { telemetry } = this.#daemon.ports;
    const { metrics } = this.#daemon;
    switch (action.type) {
      case "save":
        this.#keep({
          ...this.#kept,
          lastSlotMs: this.#state.lastSlotMs,
          queuedSlotMs: this.#state.queuedSlotMs,
        });
        break;
      case "fire":
        this.#fire(action);
        break;
      case "skip":
        metrics.add("skipped", 1, action.reason);
        telemetry.emit("trigger.skipped", {
          kind: "schedule",
          slot: formatIso(action.slotMs),
          reason: action.reason,
          policy: this.#policy(action.reason),
        });
        break;
      case "skipMany":
        metrics.add("skipped", action.count, "missed");
        telemetry.emit("trigger.skipped", {
          kind: "schedule",
          reason: "missed",
          count: action.count,
          at_least: action.atLeast,
          from: formatIso(action.fromMs),
          to: formatIso(action.toMs),
          policy: this.#policy("missed"),
        });
        break;
      case "cancelRun":
        this.#cancelRun();
        break;
      case "rearm":
        telemetry.emit("trigger.armed", {
          kind: "schedule",
          reason: "the wall clock went back",
          now: formatIso(action.nowMs),
        }, "warn");
    }
  }

  /** The rule that decided: what an operator would change. */
  #policy(reason: string): string {
    if (reason !== "missed") return `overlap ${this.#plan.overlap}`;
    return this.#plan.catchUp ? "catch_up: the newest fires once" : "catch_up is off";
  }

  #fire(action: Extract<ClockAction, { type: "fire" }>): void {
    const daemon = this.#daemon;
    const runId = daemon.mintRunId();
    daemon.metrics.observe("late", action.lateMs / 1000);
    daemon.ports.telemetry.emit("trigger.fired", {
      kind: "schedule",
      run_id: runId,
      slot: formatIso(action.slotMs),
      reason: action.reason,
      late_ms: action.lateMs,
    });
    const request = { runId, instruction: null, attachments: [], session: null };
    this.#running = daemon.run(request, "schedule", (handle) => {
      this.#cancelRun = () => handle.cancel("replaced");
    }).then(() => {
      this.#cancelRun = () => {};
      this.#running = null;
      this.#step("runEnded");
      daemon.nudge();
    });
  }
}
