/** Looks at the process table from time to time: resident sizes, and who left an agent's group. */

import { MEMORY_INTERVAL_MS } from "../core/limits.ts";
import type { Cancel, ClockPort } from "../ports/clock.ts";
import type { ProcessPort, ProcessRow } from "../ports/process.ts";

/** Shares of the bound that need no hurry, and that count as unchanged. */
const SMALL_SHARE = 0.25;
const SAME_SHARE = 0.02;
/** From every 4 s to every 32 s. */
const QUIET_DOUBLINGS_MAX = 3;

/** A watch over the process table. */
export interface MemoryWatch {
  /** Somebody is at work: the next look is near again. */
  stir(): void;
  stop: Cancel;
}

/**
 * Shows the table to `observe`, which answers with the largest share that an agent has of its
 * bound: the nearer one is to it, the sooner the next look; while it is small and stays the same,
 * the looks become rarer until somebody stirs, since an idle daemon must cost next to nothing.
 */
export function watchMemory(
  ports: { clock: ClockPort; process: ProcessPort },
  observe: (rows: readonly ProcessRow[]) => number,
): MemoryWatch {
  const { clock, process } = ports;
  let stopped = false;
  let looking = false;
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
    looking = true;
    void process.table().then((rows) => {
      looking = false;
      if (stopped) return;
      const share = observe(rows);
      const still = share < SMALL_SHARE && Math.abs(share - before) < SAME_SHARE;
      quiet = still ? Math.min(quiet + 1, QUIET_DOUBLINGS_MAX) : 0;
      before = share;
      lookIn(share > 0.5 ? MEMORY_INTERVAL_MS / 8 : MEMORY_INTERVAL_MS * 2 * 2 ** quiet);
    });
  };
  lookIn(MEMORY_INTERVAL_MS / 2);
  return {
    stir() {
      quiet = 0;
      if (stopped || looking) return;
      if (dueMs - clock.monotonicMs() > MEMORY_INTERVAL_MS) lookIn(MEMORY_INTERVAL_MS);
    },
    stop() {
      stopped = true;
      cancel();
    },
  };
}
