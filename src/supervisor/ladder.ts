/** When each level of a tree is asked, told and made to go: deepest first, bounded as a whole. */

import { KILL_RUNG_MS, TERM_RUNG_MS } from "../core/limits.ts";

/** One level's turn: asked at `atMs`, told with SIGTERM `rungMs` later if it is still there. */
export interface LevelTurn {
  depth: number;
  atMs: number;
  rungMs: number;
}

/**
 * The turns of the levels present, deepest first. Times count from the start of the drain. SIGTERM
 * and SIGKILL of the last level end within `drainMs`, or as soon as these two rungs alone allow.
 */
export function planLadder(depths: readonly number[], drainMs: number): LevelTurn[] {
  const levels = [...new Set(depths)].sort((a, b) => b - a);
  const askMs = Math.max(0, drainMs - TERM_RUNG_MS - KILL_RUNG_MS);
  const rungMs = levels.length === 0 ? 0 : Math.floor(askMs / levels.length);
  return levels.map((depth, index) => ({ depth, atMs: index * rungMs, rungMs }));
}
