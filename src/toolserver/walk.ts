/** Walks a granted directory tree: in order, bounded, following no link. */

import {
  DIRECTORY_NAMES_MAX,
  SLICE_MS,
  WALK_DEPTH_MAX,
  WALK_ENTRIES_MAX,
  WALK_TIME_MS,
} from "../core/tool_limits.ts";
import type { ClockPort } from "../ports/clock.ts";
import type { TreeKind, TreePort } from "../ports/tree.ts";
import type { GrantedPath } from "./grant.ts";
import { join } from "./paths.ts";

/** Directories that are not entered unless asked: large, and seldom what is looked for. */
export const IGNORED: readonly string[] = [".git", "node_modules"];

/** Something found below the start. */
export interface Found {
  /** Relative to the start, with `/`. */
  relative: string;
  path: string;
  kind: TreeKind | "other";
}

/** What a walk left out, in words; empty if nothing. */
export class LeftOut {
  readonly #counts = new Map<string, number>();
  /** Why it ended early, if it did. */
  stopped: string | null = null;

  add(what: string): void {
    this.#counts.set(what, (this.#counts.get(what) ?? 0) + 1);
  }

  describe(): string[] {
    return [...this.#counts].map(([what, count]) => `${count} ${what}`);
  }
}

/** Gives up the thread now and then, so that cancellations and other calls are seen. */
export class Breather {
  readonly #clock: ClockPort;
  readonly #startMs: number;
  #sliceMs: number;

  constructor(clock: ClockPort) {
    this.#clock = clock;
    this.#startMs = this.#sliceMs = clock.monotonicMs();
  }

  /** Milliseconds since the start. */
  elapsedMs(): number {
    return this.#clock.monotonicMs() - this.#startMs;
  }

  async breathe(): Promise<void> {
    if (this.#clock.monotonicMs() - this.#sliceMs < SLICE_MS) return;
    await new Promise<void>((resolve) => this.#clock.after(0, resolve));
    this.#sliceMs = this.#clock.monotonicMs();
  }
}

/**
 * Everything below a directory, depth first, by name; a directory comes before what is in it.
 * Symbolic links are found, never followed.
 */
export async function* walk(
  deps: { tree: TreePort; clock: ClockPort },
  start: GrantedPath,
  options: { all: boolean },
  leftOut: LeftOut,
  signal: AbortSignal,
): AsyncGenerator<Found> {
  const breather = new Breather(deps.clock);
  const pending: { relative: string; path: string; depth: number; found: Found | null }[] = [
    { relative: "", path: start.path, depth: 0, found: null },
  ];
  let entries = 0;
  while (pending.length > 0) {
    const next = pending.pop()!;
    if (next.found !== null) yield next.found;
    if (next.found !== null && next.found.kind !== "directory") continue;
    if (signal.aborted) return;
    if (breather.elapsedMs() > WALK_TIME_MS) {
      leftOut.stopped = `after ${WALK_TIME_MS / 1000} s; narrow the path`;
      return;
    }
    await breather.breathe();
    if (next.depth > WALK_DEPTH_MAX) {
      leftOut.add(`directories deeper than ${WALK_DEPTH_MAX}`);
      continue;
    }
    const listed = deps.tree.names(next.path, DIRECTORY_NAMES_MAX);
    if (!listed.ok) {
      leftOut.add("unreadable directories");
      continue;
    }
    if (listed.value.more) leftOut.add(`directories with over ${DIRECTORY_NAMES_MAX} names, cut`);
    entries += listed.value.names.length;
    if (entries > WALK_ENTRIES_MAX) {
      leftOut.stopped = `after ${WALK_ENTRIES_MAX} entries; narrow the path`;
      return;
    }
    const inside = listed.value.names.filter((entry) => {
      const ignored = !options.all && entry.kind === "directory" && IGNORED.includes(entry.name);
      if (ignored) leftOut.add(`${entry.name} directories (all: true enters them)`);
      return !ignored;
    });
    inside.sort((a, b) => a.name < b.name ? 1 : a.name > b.name ? -1 : 0);
    for (const { name, kind } of inside) {
      const relative = next.relative === "" ? name : `${next.relative}/${name}`;
      const path = join(next.path, name);
      pending.push({ relative, path, depth: next.depth + 1, found: { relative, path, kind } });
    }
  }
}
