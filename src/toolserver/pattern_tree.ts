/** What patterns are parsed to, and how they fail. */

import type { CharacterSet } from "./character_set.ts";

/** A pattern as a tree. */
export type PatternNode =
  | { type: "empty" }
  | { type: "set"; set: CharacterSet }
  | { type: "sequence"; parts: PatternNode[] }
  | { type: "either"; parts: PatternNode[] }
  | { type: "repeat"; part: PatternNode; min: number; max: number | null }
  | { type: "assert"; what: "start" | "end" | "border" | "no_border" };

/** A pattern that cannot be used; the message is for the one who wrote it. */
export class PatternError extends Error {
  override name = "PatternError";
}

/** Groups or braces within each other. */
export const NESTING_MAX = 100;
