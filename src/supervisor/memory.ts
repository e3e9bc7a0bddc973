/** Looks at the process table from time to time: resident sizes, and who left an agent's group. */

import { MEMORY_INTERVAL_MS } from "../core/limits.ts";
import type { Cancel, ClockPort } from "../ports/clock.ts";
import type { ProcessPort, ProcessRow } from "../ports/process.ts";

/** Shares of the bound that need no hurry, and that count as unchanged. */
const SMALL_SHARE = 0.25;
const SAME_SHARE = 0.02;
/** From every 4 s to every 32 s. */
const QUIET_DOUBLINGS_MAX = 3;

/**
 * Shows the table to `observe`, which answers with the largest share that an agent has of its
 * bound: the nearer one is to it, the sooner the next look; while it is small and stays the same,
 * the looks become rarer, since an idle daemon must cost next to nothing.
 */
export function watchMemory(
  ports: { clock: ClockPort; process: ProcessPort },
  observe: (rows: readonly ProcessRow[]) => number,
): Cancel {
  let stopped = false;
  let cancel: Cancel = () => {};
  let before = 0;
  let quiet = 0;
  const look = () => {
    void ports.process.table().then((rows) => {
      if (stopped) return;
      const share = observe(rows);
      const still = share < SMALL_SHARE && Math.abs(share - before) < SAME_SHARE;
      quiet = still ? Math.min(quiet + 1, QUIET_DOUBLINGS_MAX) : 0;
      before = share;
      cancel = ports.clock.after(
        share > 0.5 ? MEMORY_INTERVAL_MS / 8 : MEMORY_INTERVAL_MS * 2 * 2 ** quiet,
        look,
      );
    });
  };
  cancel = ports.clock.after(MEMORY_INTERVAL_MS / 2, look);
  return () => {
    stopped = true;
    cancel();
  };
}
