/** The total table of one agent: every state times every event. `step` is the machine. */

import { unreachable } from "../core/assert.ts";
import {
  AGENT_EXIT_GRACE_MS,
  KILL_RUNG_MS,
  PING_INTERVAL_MS,
  PING_MISSES_MAX,
  SIGNAL_WAIT_MS,
  TERM_RUNG_MS,
} from "../core/limits.ts";
import type { AgentResult } from "../wire/result.ts";
import type {
  ChildAction,
  ChildEvent,
  ChildEventType,
  ChildPlan,
  ChildState,
  ChildTag,
  Watch,
  Why,
} from "./state.ts";

type Step = [ChildState, ChildAction[]];
type StateOf<Tag extends ChildTag> = Extract<ChildState, { tag: Tag }>;
type EventOf<Type extends ChildEventType> = Extract<ChildEvent, { type: Type }>;
type Handler<Tag extends ChildTag, Type extends ChildEventType> = (
  state: StateOf<Tag>,
  event: EventOf<Type>,
) => Step;

/** What a cell may hold: a handler, nothing to do, or a bug of ours. */
type Cell<Tag extends ChildTag, Type extends ChildEventType> =
  | Handler<Tag, Type>
  | "ignore"
  | "impossible";

type Table = { [Tag in ChildTag]: { [Type in ChildEventType]: Cell<Tag, Type> } };

type Live = StateOf<"starting"> | StateOf<"up">;

const kill = (why: Why | null, result: AgentResult | null, at: number): Step => [
  { tag: "killing", untilMs: at + SIGNAL_WAIT_MS + KILL_RUNG_MS, why, result },
  [{ type: "signalGroup", signal: "SIGKILL", why }],
];

const terminate = (
  plan: ChildPlan,
  why: Why | null,
  result: AgentResult | null,
  at: number,
): Step => [
  { tag: "stopping", plan, rung: "term", untilMs: at + SIGNAL_WAIT_MS + TERM_RUNG_MS, why, result },
  [{ type: "signalGroup", signal: "SIGTERM", why }],
];

const reap =
  (why: Why | null, result: AgentResult | null) =>
  (_state: unknown, event: EventOf<"exited">): Step => [
    { tag: "reaped", exit: event.exit, why, result },
    [{ type: "settle" }],
  ];

const heard = (watch: Watch, at: number): Watch => ({ ...watch, heardMs: at });

const live = {
  ponged: <S extends Live>(state: S, event: EventOf<"ponged">): Step => // A pong to a ping never sent, or to an old one, proves nothing and breaks nothing.
  [
    event.n === state.watch.ping ? { ...state, watch: { ...state.watch, unanswered: 0 } } : state,
    [],
  ],
  progressed: <S extends Live>(state: S, event: EventOf<"progressed">): Step => [
    { ...state, watch: heard(state.watch, event.at) },
    [],
  ],
  excused: <S extends Live>(state: S, event: EventOf<"excused">): Step => [
    { ...state, watch: { ...heard(state.watch, event.at), excused: event.yes } },
    [],
  ],
  heard: <S extends Live>(state: S, event: EventOf<"heard">): Step => [
    { ...state, watch: heard(state.watch, event.at) },
    [],
  ],
  resulted: (state: Live, event: EventOf<"resulted">): Step => [
    {
      tag: "stopping",
      plan: state.plan,
      rung: "exit",
      untilMs: event.at + AGENT_EXIT_GRACE_MS,
      why: null,
      result: event.result,
    },
    [],
  ],
  frameBroken: (_state: Live, event: EventOf<"frameBroken">): Step =>
    kill({ kind: "frame", message: event.message }, null, event.at),
  outputEnded: (state: Live, event: EventOf<"outputEnded">): Step => [
    // Most likely it is on its way out: its exit status is the proof.
    {
      tag: "stopping",
      plan: state.plan,
      rung: "exit",
      untilMs: event.at + TERM_RUNG_MS,
      why: null,
      result: null,
    },
    [],
  ],
  exited: reap(null, null),
  stopRequested: (state: Live, event: EventOf<"stopRequested">): Step => [
    {
      tag: "stopping",
      plan: state.plan,
      rung: "cancel",
      untilMs: event.at + (event.rungMs ?? state.plan.cancelRungMs),
      why: { kind: "cancel", reason: event.reason },
      result: null,
    },
    [{ type: "sendCancel", reason: event.reason }],
  ],
  killRequested: (_state: Live, event: EventOf<"killRequested">): Step =>
    kill({ kind: "killed", reason: event.reason }, null, event.at),
  memoryExceeded: (_state: Live, event: EventOf<"memoryExceeded">): Step => {
    const why: Why = { kind: "memory", bytes: event.bytes, bytesMax: event.bytesMax };
    const [state, actions] = kill(why, null, event.at);
    return [state, [{ type: "reportLimit", why }, ...actions]];
  },
  timePassed: (state: Live, event: EventOf<"timePassed">): Step => detect(state, event.at),
} as const;

/**
 * Pings of all agents fall on the same moments, an interval apart: we wake once for all of them, which
 * costs a third of waking for each.
 */
const nextPing = (at: number): number => (Math.floor(at / PING_INTERVAL_MS) + 1) * PING_INTERVAL_MS;

/** Detectors A, B and C, in this order; then the next ping. */
function detect(state: Live, at: number): Step {
  const { plan, watch } = state;
  if (at >= plan.deadlineMs) {
    const why: Why = { kind: "deadline" };
    const [next, actions] = terminate(plan, why, null, at);
    return [next, [{ type: "reportLimit", why }, ...actions]];
  }
  const stuck = findStuck(state, at);
  if (stuck) {
    const [next, actions] = terminate(plan, stuck, null, at);
    return [next, [{ type: "reportStuck", why: stuck }, ...actions]];
  }
  if (at < watch.nextPingMs) return [state, []];
  const n = watch.ping + 1;
  return [
    {
      ...state,
      watch: {
        ...watch,
        ping: n,
        unanswered: watch.unanswered + 1,
        nextPingMs: nextPing(at),
      },
    },
    [{ type: "sendPing", n }],
  ];
}

function findStuck(state: Live, at: number): Why | null {
  const { plan, watch } = state;
  if (state.tag === "starting" && at >= state.startedMs + plan.startTimeoutMs) {
    return { kind: "start" };
  }
  const silentMs = at - watch.heardMs;
  if (state.tag === "up" && !watch.excused && silentMs >= plan.progressTimeoutMs) {
    return { kind: "silent", forMs: silentMs };
  }
  if (watch.unanswered >= PING_MISSES_MAX && at >= watch.nextPingMs) {
    return { kind: "mute", misses: watch.unanswered };
  }
  return null;
}

const ended = {
  spawned: "impossible",
  spawnFailed: "impossible",
  readied: "ignore",
  ponged: "ignore",
  progressed: "ignore",
  heard: "ignore",
  excused: "ignore",
  resulted: "ignore",
  frameBroken: "ignore",
  outputEnded: "ignore",
  stopRequested: "ignore",
  killRequested: "ignore",
  memoryExceeded: "ignore",
  signalled: "ignore",
  timePassed: "ignore",
} as const;

/** Every state times every event. A missing cell does not compile. */
export const TABLE: Table = {
  down: {
    ...ended,
    spawned: (_state, { at, plan }) => [
      {
        tag: "starting",
        plan,
        startedMs: at,
        watch: {
          heardMs: at,
          excused: false,
          ping: 0,
          unanswered: 0,
          // While it starts it has better things to do.
          nextPingMs: nextPing(at + PING_INTERVAL_MS / 2),
        },
      },
      [{ type: "sendStart" }],
    ],
    spawnFailed: (_state, { message }) => [
      { tag: "failed", message, why: null, result: null },
      [{ type: "settle" }],
    ],
    readied: "impossible",
    ponged: "impossible",
    progressed: "impossible",
    heard: "impossible",
    resulted: "impossible",
    frameBroken: "impossible",
    outputEnded: "impossible",
    exited: "impossible",
  },
  starting: {
    ...live,
    spawned: "impossible",
    spawnFailed: "impossible",
    signalled: "impossible",
    progressed: (_state, { at }) =>
      kill({ kind: "frame", message: "the frame `progress` came before `ready`" }, null, at),
    heard: (_state, { at }) =>
      kill({ kind: "frame", message: "a request or report came before `ready`" }, null, at),
    readied: (state, { at }) => [
      { tag: "up", plan: state.plan, watch: heard(state.watch, at) },
      [],
    ],
  },
  up: {
    ...live,
    spawned: "impossible",
    spawnFailed: "impossible",
    signalled: "impossible",
    // Saying it twice is out of order: it is no agent of ours.
    readied: (_state, { at }) =>
      kill({ kind: "frame", message: "the frame `ready` came twice" }, null, at),
  },
  stopping: {
    ...ended,
    resulted: (state, { at, result }) =>
      // The first result stands.
      state.result ? [state, []] : [
        state.rung === "term"
          ? { ...state, result }
          : { ...state, rung: "exit", untilMs: at + AGENT_EXIT_GRACE_MS, result },
        [],
      ],
    frameBroken: (state, { at, message }) =>
      kill(state.why ?? { kind: "frame", message }, state.result, at),
    exited: (state, event) => reap(state.why, state.result)(state, event),
    stopRequested: (state, { reason }) =>
      state.rung !== "exit" || state.result
        ? [state, []]
        : [{ ...state, why: state.why ?? { kind: "cancel", reason } }, []],
    killRequested: (state, { at, reason }) =>
      kill(state.why ?? { kind: "killed", reason }, state.result, at),
    memoryExceeded: (state, { at, bytes, bytesMax }) => {
      const why: Why = { kind: "memory", bytes, bytesMax };
      const [next, actions] = kill(state.why ?? why, state.result, at);
      return [next, [{ type: "reportLimit", why }, ...actions]];
    },
    signalled: (state, { at }) => [
      state.rung === "term" ? { ...state, untilMs: at + TERM_RUNG_MS } : state,
      [],
    ],
    timePassed: (state, { at }) => {
      if (at < state.untilMs) return [state, []];
      if (state.rung === "term") return kill(state.why, state.result, at);
      const why = state.why ?? (state.result ? null : { kind: "output_ended" as const });
      return terminate(state.plan, why, state.result, at);
    },
  },
  killing: {
    ...ended,
    exited: (state, event) => reap(state.why, state.result)(state, event),
    signalled: (state, { at, signal }) => [
      signal === "SIGKILL" ? { ...state, untilMs: at + KILL_RUNG_MS } : state,
      [],
    ],
    timePassed: (state, { at }) =>
      at < state.untilMs ? [state, []] : [
        {
          tag: "failed",
          message: "SIGKILL did not end the process",
          why: state.why,
          result: state.result,
        },
        [{ type: "settle" }],
      ],
  },
  reaped: { ...ended, exited: "impossible" },
  failed: { ...ended, exited: "ignore" },
};

/** One event in, the next state and what to do out. */
export function stepChild(state: ChildState, event: ChildEvent): Step {
  const cell = TABLE[state.tag][event.type] as Cell<ChildTag, ChildEventType>;
  if (cell === "ignore") return [state, []];
  if (cell === "impossible") {
    return unreachable({ state: state.tag, event: event.type } as never);
  }
  return cell(state as never, event as never);
}

/** When the machine wants `timePassed` next; null: never. */
export function nextMs(state: ChildState): number | null {
  switch (state.tag) {
    case "starting":
      return Math.min(
        state.startedMs + state.plan.startTimeoutMs,
        state.plan.deadlineMs,
        state.watch.nextPingMs,
      );
    case "up":
      return Math.min(
        state.plan.deadlineMs,
        state.watch.nextPingMs,
        state.watch.excused ? Infinity : state.watch.heardMs + state.plan.progressTimeoutMs,
      );
    case "stopping":
    case "killing":
      return state.untilMs;
    default:
      return null;
  }
}
