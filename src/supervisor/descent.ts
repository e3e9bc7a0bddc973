/** The ladder over a tree: each level is asked when everyone deeper is over, or their time is. */

import type { Cancel, ClockPort } from "../ports/clock.ts";
import type { CancelReason } from "../wire/control.ts";
import type { Agent } from "./agent.ts";
import type { LevelTurn } from "./ladder.ts";

/** A level of the tree with the agents on it, and its turn. */
export interface Level extends LevelTurn {
  agents: readonly Agent[];
}

/** Starts the descent; the cancels of the timers that it armed. `levels` are deepest first. */
export function descend(
  clock: ClockPort,
  levels: readonly Level[],
  reason: CancelReason,
): Cancel[] {
  const cancels: Cancel[] = [];
  const deeper: Promise<unknown>[] = [];
  for (const { agents, atMs, rungMs } of levels) {
    const ask = () => agents.forEach((agent) => agent.stop(reason, rungMs));
    if (deeper.length === 0) ask();
    else {
      let done = false;
      const once = () => {
        if (done) return;
        done = true;
        cancel();
        ask();
      };
      const cancel = clock.after(atMs, once);
      cancels.push(cancel);
      void Promise.all([...deeper]).then(once);
    }
    deeper.push(...agents.map((agent) => agent.ended));
  }
  return cancels;
}
