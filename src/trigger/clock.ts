/**
 * The schedule's machine: what an alarm clock must do when its owner sleeps, restarts, or sets the
 * wall clock. Every slot ends in exactly one `fire` or one `skip`; nothing here looks at a clock.
 */

import {
  CLOCK_BACK_MS_MAX,
  FIRE_GRACE_MS,
  MISSED_SLOTS_MAX,
  SKIPPED_LINES_MAX,
  TRIGGER_SLEEP_MS_MAX,
} from "../core/limits.ts";
import type { Slots } from "./slots.ts";

/** What an operator wants of a schedule. */
export interface ClockPlan {
  slots: Slots;
  overlap: "skip" | "queue" | "replace";
  /** A fire comes up to this much after its slot, but never after the next slot. */
  jitterMs: number;
  /** Of the slots missed while down or asleep: fire the newest once, or none. */
  catchUp: boolean;
}

/** Plain data; what must survive a restart is `lastSlotMs` and `queuedSlotMs`. */
export interface ClockState {
  /** The newest slot that was dealt with; none at or before it comes again. */
  lastSlotMs: number;
  /** The slot that is waited for, and when to fire it; null: not looked for yet, or none left. */
  due: { slotMs: number; fireAtMs: number } | null;
  /** The slot whose run is in progress. */
  runningSlotMs: number | null;
  /** The slot that fires when the run in progress ends; at most one. */
  queuedSlotMs: number | null;
  armed: boolean;
}

/** What happens to a schedule. */
export type ClockEvent =
  /** The daemon is up. `unit` is a random number in [0, 1), here and below. */
  | { type: "started"; nowMs: number; unit: number }
  /** The wall clock was looked at. */
  | { type: "ticked"; nowMs: number; unit: number }
  | { type: "runEnded"; nowMs: number; unit: number }
  /** The daemon drains: nothing fires any more. */
  | { type: "disarmed" };

/** Why a slot fires. */
export type FireReason = "on_time" | "catch_up" | "queued" | "replaced";
/** Why a slot does not fire. */
export type SkipReason = "missed" | "overlap" | "queue_full" | "superseded";

/** What is to be done about it, in order. */
export type ClockAction =
  /** The state must be on disk before the next action is carried out. */
  | { type: "save" }
  | { type: "fire"; slotMs: number; reason: FireReason; lateMs: number }
  | { type: "skip"; slotMs: number; reason: SkipReason }
  /** More slots than are named one by one; `atLeast`: they were not all counted. */
  | { type: "skipMany"; count: number; fromMs: number; toMs: number; atLeast: boolean }
  | { type: "cancelRun" }
  /** The wall clock went back so far that its slots count anew from now. */
  | { type: "rearm"; nowMs: number };

/** A clock that has seen no slot after `lastSlotMs`. */
export function startClock(lastSlotMs: number, queuedSlotMs: number | null = null): ClockState {
  return { lastSlotMs, due: null, runningSlotMs: null, queuedSlotMs, armed: true };
}

/** One event. Total: every event is legal in every state. */
export function stepClock(
  state: ClockState,
  event: ClockEvent,
  plan: ClockPlan,
): [ClockState, ClockAction[]] {
  if (event.type === "disarmed") return [{ ...state, armed: false, due: null }, [{ type: "save" }]];
  const next = { ...state };
  const actions: ClockAction[] = [];
  if (event.type === "runEnded") next.runningSlotMs = null;
  if (!next.armed) return [next, actions];
  if (next.lastSlotMs > event.nowMs + CLOCK_BACK_MS_MAX) {
    next.lastSlotMs = event.nowMs;
    next.due = null;
    actions.push({ type: "rearm", nowMs: event.nowMs });
  }
  passSlots(next, event, plan, actions);
  if (next.runningSlotMs === null && next.queuedSlotMs !== null) {
    const reason = plan.overlap === "replace" ? "replaced" : "queued";
    fire(next, next.queuedSlotMs, reason, event.nowMs, actions);
    next.queuedSlotMs = null;
  }
  if (next.due === null) next.due = findDue(next.lastSlotMs, plan, event.unit);
  const changed = next.lastSlotMs !== state.lastSlotMs || next.queuedSlotMs !== state.queuedSlotMs;
  return [next, changed ? [{ type: "save" }, ...actions] : actions];
}

/** Milliseconds to sleep before the next `ticked`; null: there is nothing to wait for. */
export function sleepMs(state: ClockState, nowMs: number): number | null {
  if (!state.armed || state.due === null) return null;
  return Math.min(Math.max(0, state.due.fireAtMs - nowMs), TRIGGER_SLEEP_MS_MAX);
}

function findDue(lastSlotMs: number, plan: ClockPlan, unit: number): ClockState["due"] {
  const slotMs = plan.slots.next(lastSlotMs);
  if (slotMs === null) return null;
  if (plan.jitterMs === 0) return { slotMs, fireAtMs: slotMs };
  const followingMs = plan.slots.next(slotMs) ?? Infinity;
  const span = Math.min(plan.jitterMs, followingMs - slotMs);
  return { slotMs, fireAtMs: slotMs + Math.floor(unit * span) };
}

function passSlots(
  state: ClockState,
  event: { type: string; nowMs: number; unit: number },
  plan: ClockPlan,
  actions: ClockAction[],
): void {
  const { nowMs } = event;
  const due = state.due ?? findDue(state.lastSlotMs, plan, event.unit);
  state.due = due;
  if (due === null || due.fireAtMs > nowMs) return;
  const passed = [due.slotMs];
  let following: number | null = null;
  for (;;) {
    following = plan.slots.next(passed.at(-1)!);
    if (following === null || following > nowMs || passed.length >= MISSED_SLOTS_MAX) break;
    passed.push(following);
  }
  const uncounted = following !== null && following <= nowMs;
  const newest = passed.pop()!;
  const lateMs = nowMs - (newest === due.slotMs ? due.fireAtMs : newest);
  const onTime = event.type !== "started" && lateMs <= FIRE_GRACE_MS && !uncounted;
  const fires = onTime || plan.catchUp;
  if (!fires) passed.push(newest);
  skipMissed(passed, uncounted, actions);
  state.lastSlotMs = uncounted ? nowMs : newest;
  state.due = null;
  if (fires) arrive(state, newest, onTime ? "on_time" : "catch_up", nowMs, plan, actions);
}

function skipMissed(slots: number[], uncounted: boolean, actions: ClockAction[]): void {
  const named = slots.slice(0, SKIPPED_LINES_MAX);
  for (const slotMs of named) actions.push({ type: "skip", slotMs, reason: "missed" });
  const count = slots.length - named.length;
  if (count === 0) return;
  actions.push({
    type: "skipMany",
    count,
    fromMs: slots[named.length]!,
    toMs: slots.at(-1)!,
    atLeast: uncounted,
  });
}

function arrive(
  state: ClockState,
  slotMs: number,
  reason: FireReason,
  nowMs: number,
  plan: ClockPlan,
  actions: ClockAction[],
): void {
  if (state.runningSlotMs === null) {
    if (state.queuedSlotMs !== null) {
      // Kept from before a restart, and now there is a newer one.
      actions.push({ type: "skip", slotMs: state.queuedSlotMs, reason: "superseded" });
      state.queuedSlotMs = null;
    }
    fire(state, slotMs, reason, nowMs, actions);
  } else if (plan.overlap === "skip") {
    actions.push({ type: "skip", slotMs, reason: "overlap" });
  } else if (state.queuedSlotMs === null) {
    state.queuedSlotMs = slotMs;
    if (plan.overlap === "replace") actions.push({ type: "cancelRun" });
  } else if (plan.overlap === "queue") {
    actions.push({ type: "skip", slotMs, reason: "queue_full" });
  } else {
    actions.push({ type: "skip", slotMs: state.queuedSlotMs, reason: "superseded" });
    state.queuedSlotMs = slotMs;
  }
}

function fire(
  state: ClockState,
  slotMs: number,
  reason: FireReason,
  nowMs: number,
  actions: ClockAction[],
): void {
  state.runningSlotMs = slotMs;
  actions.push({ type: "fire", slotMs, reason, lateMs: Math.max(0, nowMs - slotMs) });
}
