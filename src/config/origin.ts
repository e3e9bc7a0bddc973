/** Where each value of the effective configuration came from, so that messages can say so. */

/** Names the place of a value whose path continues below the key that was given. */
export type Locate = (below: readonly string[]) => string;

/** Origins by path. The longest known prefix of a path answers for it. */
export class Origins {
  readonly #byPath = new Map<string, { level: Level; locate: Locate }>();

  set(path: readonly string[], level: Level, locate: Locate): void {
    this.#byPath.set(path.join("\n"), { level, locate });
  }

  /** The place of a value as its author wrote it; for a default, its key in a file. */
  where(path: readonly string[]): string {
    const found = this.#find(path);
    return found ? found.entry.locate(path.slice(found.length)) : path.join(".");
  }

  level(path: readonly string[]): Level {
    return this.#find(path)?.entry.level ?? "default";
  }

  #find(
    path: readonly string[],
  ): { length: number; entry: { level: Level; locate: Locate } } | null {
    for (let length = path.length; length > 0; length--) {
      const entry = this.#byPath.get(path.slice(0, length).join("\n"));
      if (entry) return { length, entry };
    }
    return null;
  }
}

/** Levels of precedence, lowest first. `record`: what a resumed run was recorded with. */
export const LEVELS = ["default", "record", "file", "env", "flag"] as const;

/** One of {@link LEVELS}. */
export type Level = (typeof LEVELS)[number];
