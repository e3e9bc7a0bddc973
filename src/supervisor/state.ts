/**
 * One agent as its supervisor sees it: states that carry what they need, events in the past tense,
 * actions in the imperative. `at`, and every other time here, is monotonic milliseconds.
 */

import type { ExitStatus } from "../ports/process.ts";
import type { CancelReason, Progress } from "../wire/control.ts";
import type { AgentResult } from "../wire/result.ts";

/** What bounds one agent from outside. */
export interface ChildPlan {
  startTimeoutMs: number;
  /** Detector A: the deadline, grace included, at which the ladder begins. */
  deadlineMs: number;
  /** Detector B: silence longer than this, beyond the longest legal call. */
  progressTimeoutMs: number;
  /** From the cancel frame to SIGTERM, at most. */
  cancelRungMs: number;
}

/** Why the supervisor ended an agent. The first reason wins. */
export type Why =
  | { kind: "cancel"; reason: CancelReason }
  | { kind: "killed"; reason: CancelReason }
  | { kind: "deadline" }
  | { kind: "memory"; bytes: number; bytesMax: number }
  /** Detector B. */
  | { kind: "silent"; forMs: number }
  /** Detector C: pings without pong. */
  | { kind: "mute"; misses: number }
  | { kind: "start" }
  | { kind: "frame"; message: string }
  /** It closed its stdout and lived on. */
  | { kind: "output_ended" };

/** What the detectors know. */
export interface Watch {
  /** The last frame that shows the loop at work. */
  heardMs: number;
  /** By our own knowledge its silence is legal: subagents at work, a session without a delivery. */
  excused: boolean;
  /** The ping last sent, and the pings since the last pong. */
  ping: number;
  unanswered: number;
  nextPingMs: number;
}

/** Where an agent is between not being there and not being there any more. */
export type ChildState =
  | { tag: "down" }
  | { tag: "starting"; plan: ChildPlan; startedMs: number; watch: Watch }
  | { tag: "up"; plan: ChildPlan; watch: Watch }
  | {
    tag: "stopping";
    plan: ChildPlan;
    /** `exit`: it is to go by itself; `cancel`: it was asked to; `term`: SIGTERM was sent. */
    rung: "exit" | "cancel" | "term";
    untilMs: number;
    why: Why | null;
    result: AgentResult | null;
  }
  | { tag: "killing"; untilMs: number; why: Why | null; result: AgentResult | null }
  | { tag: "reaped"; exit: ExitStatus; why: Why | null; result: AgentResult | null }
  /** It never started, or SIGKILL did not end it. */
  | { tag: "failed"; message: string; why: Why | null; result: AgentResult | null };

/** The name of a state. */
export type ChildTag = ChildState["tag"];

/** What happened to an agent. */
export type ChildEvent =
  & { at: number }
  & (
    | { type: "spawned"; plan: ChildPlan }
    | { type: "spawnFailed"; message: string }
    | { type: "readied" }
    | { type: "ponged"; n: number }
    | { type: "progressed"; progress: Progress }
    /** A request or another frame of the loop. */
    | { type: "heard" }
    /** Its silence became legal, or no longer is. */
    | { type: "excused"; yes: boolean }
    | { type: "resulted"; result: AgentResult }
    | { type: "frameBroken"; message: string }
    | { type: "outputEnded" }
    | { type: "exited"; exit: ExitStatus }
    | { type: "stopRequested"; reason: CancelReason; rungMs: number | null }
    | { type: "killRequested"; reason: CancelReason }
    | { type: "memoryExceeded"; bytes: number; bytesMax: number }
    /** The signal of a rung is out: its time begins. */
    | { type: "signalled"; signal: "SIGTERM" | "SIGKILL" }
    | { type: "timePassed" }
  );

/** The name of an event. */
export type ChildEventType = ChildEvent["type"];

/** What is to be done about it. */
export type ChildAction =
  | { type: "sendStart" }
  | { type: "sendPing"; n: number }
  | { type: "sendCancel"; reason: CancelReason }
  | { type: "signalGroup"; signal: "SIGTERM" | "SIGKILL"; why: Why | null }
  | { type: "reportStuck"; why: Why }
  | { type: "reportLimit"; why: Why }
  /** The end: nothing more will come of this agent. */
  | { type: "settle" };
