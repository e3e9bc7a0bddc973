/** A daemon in this process: fake runs, a clock moved by hand, real files and locks. */

import type { Route, Settings } from "../../src/config/settings.ts";
import type { EventName } from "../../src/wire/telemetry.ts";
import type { Fields } from "../../src/ports/telemetry.ts";
import type { RunEnd } from "../../src/ports/runs.ts";
import { systemDigest } from "../../src/sys/digest.ts";
import { systemFiles } from "../../src/sys/files.ts";
import { systemLock } from "../../src/sys/lock.ts";
import { runDaemon } from "../../src/trigger/run.ts";
import { makeSettings } from "../supervised/settings.ts";
import { ManualClock } from "./manual_clock.ts";
import { FakeRuns } from "./runs.ts";

const SETTLE_TURNS = 20;

/** A route that hands what changes below `mem://in/` to the session `main`. */
export const MAIN_ROUTE: Route = {
  match: "mem://in/**",
  target: { kind: "continue", session: "main" },
  debounceMs: 250,
  cap: 16,
  overflow: "coalesce",
  instruction: null,
};

/** A clock whose wall time can be set apart. */
export class SettableClock extends ManualClock {
  /** What somebody did to the wall clock. */
  wallOffsetMs = 0;

  override wallMs(): number {
    return super.wallMs() + this.wallOffsetMs;
  }
}

export interface DaemonScene {
  clock: SettableClock;
  runs: FakeRuns;
  events: ({ event: EventName } & Fields)[];
  reports: RunEnd[];
  ended: ReturnType<typeof runDaemon>;
  signal(name: "SIGINT" | "SIGTERM"): void;
  /** Lets everything that is ready happen. */
  settle(): Promise<void>;
  /** Moves time on in steps, letting things happen after each. */
  pass(durationMs: number, stepMs?: number): Promise<void>;
  /** Events of a name, one field each. */
  seen(event: EventName, field: string): unknown[];
  /** Asks the daemon's HTTP endpoint, where it listens. */
  ask(request: Request): Promise<Response>;
  /** Handlers of signals that are installed. */
  listening(): number;
}

/** Starts a daemon in `directory`; `settings.trigger` needs only what differs. */
export function startDaemon(
  directory: string,
  over: Partial<Omit<Settings, "trigger" | "vault" | "limits">> & {
    trigger?: Partial<Settings["trigger"]>;
  },
  clock = new SettableClock(),
): DaemonScene {
  const { trigger, ...rest } = over;
  const settings = makeSettings({ script: {}, directory, settings: rest });
  settings.task.instruction = "Go";
  settings.trigger = { ...settings.trigger, ...trigger };
  const runs = new FakeRuns();
  const events: DaemonScene["events"] = [];
  const reports: RunEnd[] = [];
  const handlers = new Map<string, () => void>();
  let answer: (request: Request) => Promise<Response> | Response = () => Response.error();
  const effects = new Set<Promise<unknown>>();
  const wait = <T>(effect: Promise<T>): Promise<T> => {
    effects.add(effect);
    return effect.finally(() => effects.delete(effect));
  };
  const ended = runDaemon(settings, {
    pid: 1,
    runs,
    clock,
    random: { bytes: (count) => crypto.getRandomValues(new Uint8Array(count)), unit: () => 0.5 },
    files: systemFiles,
    locks: {
      tryLock: (path) => wait(systemLock.tryLock(path)),
      isHeld: (path) => wait(systemLock.isHeld(path)),
    },
    signals: {
      on: (signal, handle) => {
        handlers.set(signal, handle);
        return () => handlers.delete(signal);
      },
    },
    telemetry: { emit: (event, fields = {}) => void events.push({ ...fields, event }) },
    digest: { sha256: (content) => wait(systemDigest.sha256(content)) },
    listen: {
      listen: (_hostname, _port, handle) => {
        answer = handle;
        return { ok: true, value: { port: 1, close: () => Promise.resolve() } };
      },
    },
    fileWatch: { watch: () => ({ ok: true, value: () => {} }) },
    notify: { present: false, watchdogMs: null, tell() {} },
    report: (end) => void reports.push(end),
  });
  // Real effects that are waited for are those of locks and digests; after the last of them a few
  // turns of the loop are enough.
  const settle = async () => {
    for (let turn = 0; turn < SETTLE_TURNS; turn++) {
      if (effects.size > 0) turn = 0;
      await Promise.allSettled(effects);
      await new Promise((resolve) => setTimeout(resolve, 0));
    }
  };
  return {
    clock,
    runs,
    events,
    reports,
    ended,
    settle,
    ask: async (request) => await answer(request),
    signal: (name) => handlers.get(name)?.(),
    listening: () => handlers.size,
    async pass(durationMs, stepMs = durationMs) {
      await settle();
      for (let passed = 0; passed < durationMs; passed += stepMs) {
        clock.advance(Math.min(stepMs, durationMs - passed));
        await new Promise((resolve) => setTimeout(resolve, 0));
      }
      await settle();
    },
    seen: (name, field) =>
      events.filter((event) => event.event === name).map((event) => event[field]),
  };
}
