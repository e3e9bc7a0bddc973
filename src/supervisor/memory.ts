/** Looks at the process table from time to time: resident sizes, and who left an agent's group. */

import { MEMORY_INTERVAL_MS, PROCESS_TABLE_WAIT_MS } from "../core/limits.ts";
import { type Cancel, type ClockPort, within } from "../ports/clock.ts";
import type { ProcessPort, ProcessRow } from "../ports/process.ts";
import type { Progress } from "../wire/control.ts";

/** Shares of the bound that need no hurry, and that count as unchanged. */
const SMALL_SHARE = 0.25;
const SAME_SHARE = 0.02;
/** From every 4 s to every 32 s. */
const QUIET_DOUBLINGS_MAX = 3;

/** A watch over the process table. */
export interface MemoryWatch {
  /** Somebody is at work: the next look is near again. */
  stir(): void;
  /** No further looks; fulfilled when none is under way, which is not waited for without a bound. */
  stop(): Promise<unknown>;
}

/** What one look at the table showed. */
export interface Sight {
  /** The largest share that an agent has of its bound. */
  share: number;
  /** Programs of an agent are at work: they may want memory at any moment. */
  busy: boolean;
}

/** Whether what an agent said last means that tools or checks of it are at work. */
export function runsPrograms(progress: Progress | null): boolean {
  return progress?.doing === "tools" || progress?.doing === "verifying";
}

/**
 * Shows the table to `observe`: the nearer an agent is to its bound, the sooner the next look; while
 * the share is small and stays the same and nobody is busy, the looks become rarer until somebody
 * stirs, since an idle daemon must cost next to nothing.
 */
export function watchMemory(
  ports: { clock: ClockPort; process: ProcessPort },
  observe: (rows: readonly ProcessRow[]) => Sight,
): MemoryWatch {
  const { clock, process } = ports;
  let stopped = false;
  let looking: Promise<unknown> | null = null;
  let dueMs = 0;
  let cancel: Cancel = () => {};
  let before = 0;
  let quiet = 0;
  const lookIn = (waitMs: number) => {
    cancel();
    dueMs = clock.monotonicMs() + waitMs;
    cancel = clock.after(waitMs, look);
  };
  const look = () => {
    looking = process.table().then((rows) => {
      looking = null;
      if (stopped) return;
      const { share, busy } = observe(rows);
      const still = !busy && share < SMALL_SHARE && Math.abs(share - before) < SAME_SHARE;
      quiet = still ? Math.min(quiet + 1, QUIET_DOUBLINGS_MAX) : 0;
      before = share;
      lookIn(share > 0.5 ? MEMORY_INTERVAL_MS / 8 : MEMORY_INTERVAL_MS * 2 * 2 ** quiet);
    });
  };
  lookIn(MEMORY_INTERVAL_MS / 2);
  return {
    stir() {
      quiet = 0;
      if (stopped || looking !== null) return;
      if (dueMs - clock.monotonicMs() > MEMORY_INTERVAL_MS) lookIn(MEMORY_INTERVAL_MS);
    },
    stop() {
      stopped = true;
      cancel();
      return looking === null ? Promise.resolve() : within(clock, PROCESS_TABLE_WAIT_MS, looking);
    },
  };
}
