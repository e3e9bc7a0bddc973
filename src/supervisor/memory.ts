/** Looks at the process table from time to time: resident sizes, and who left an agent's group. */

import { MEMORY_INTERVAL_MS } from "../core/limits.ts";
import type { Cancel, ClockPort } from "../ports/clock.ts";
import type { ProcessPort, ProcessRow } from "../ports/process.ts";

/**
 * Shows the table to `observe`, which answers with the largest share that an agent has of its
 * bound: the nearer one is to it, the sooner the next look.
 */
export function watchMemory(
  ports: { clock: ClockPort; process: ProcessPort },
  observe: (rows: readonly ProcessRow[]) => number,
): Cancel {
  let stopped = false;
  let cancel: Cancel = () => {};
  const look = () => {
    void ports.process.table().then((rows) => {
      if (stopped) return;
      const share = observe(rows);
      cancel = ports.clock.after(
        share > 0.5 ? MEMORY_INTERVAL_MS / 8 : MEMORY_INTERVAL_MS * 2,
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
