/** Globs as trees, of the same kind as regular expressions. */

import { type CharacterSet, CODE_POINT_MAX, complement, normalizeSet } from "./character_set.ts";
import { NESTING_MAX, PatternError, type PatternNode } from "./pattern_tree.ts";

const NO_SLASH = complement([[47, 47]]);
const EVERYTHING: CharacterSet = [[0, CODE_POINT_MAX]];

/**
 * Parses a glob over relative paths: `*` and `?` within a name, `**` across directories, `[abc]`,
 * `[a-z]`, `[!a]`, and `{one,two}`. It matches whole paths.
 */
export function parseGlob(glob: string): PatternNode {
  const parser = new GlobParser([...glob]);
  const node = parser.parse(false);
  return {
    type: "sequence",
    parts: [{ type: "assert", what: "start" }, node, { type: "assert", what: "end" }],
  };
}

class GlobParser {
  readonly #source: string[];
  #at = 0;
  #depth = 0;

  constructor(source: string[]) {
    this.#source = source;
  }

  parse(inBraces: boolean): PatternNode {
    if (++this.#depth > NESTING_MAX) throw new PatternError("braces are nested too deep");
    const options: PatternNode[] = [];
    let parts: PatternNode[] = [];
    for (;;) {
      const character = this.#source[this.#at];
      if (character === undefined) {
        if (inBraces) throw new PatternError('a "{" is not closed');
        break;
      }
      this.#at++;
      if (inBraces && character === "}") break;
      if (inBraces && character === ",") {
        options.push({ type: "sequence", parts });
        parts = [];
      } else parts.push(this.#part(character));
    }
    this.#depth--;
    const last: PatternNode = { type: "sequence", parts };
    return options.length === 0 ? last : { type: "either", parts: [...options, last] };
  }

  #part(character: string): PatternNode {
    switch (character) {
      case "*":
        return this.#stars();
      case "?":
        return { type: "set", set: NO_SLASH };
      case "[":
        return this.#class();
      case "{":
        return this.parse(true);
      case "\\": {
        const next = this.#source[this.#at++];
        if (next === undefined) throw new PatternError('a "\\" ends the pattern');
        return single(next);
      }
      default:
        return single(character);
    }
  }

  #stars(): PatternNode {
    if (this.#source[this.#at] !== "*") {
      return { type: "repeat", part: { type: "set", set: NO_SLASH }, min: 0, max: null };
    }
    while (this.#source[this.#at] === "*") this.#at++;
    const all: PatternNode = {
      type: "repeat",
      part: { type: "set", set: EVERYTHING },
      min: 0,
      max: null,
    };
    const before = this.#source.slice(0, this.#at).join("").replace(/\*+$/, "");
    if (this.#source[this.#at] !== "/" || !/(?:^|[/{,])$/.test(before)) return all;
    // `**/` also stands for no directory at all.
    this.#at++;
    const directories: PatternNode = { type: "sequence", parts: [all, single("/")] };
    return { type: "either", parts: [{ type: "empty" }, directories] };
  }

  #class(): PatternNode {
    const negated = this.#source[this.#at] === "!" || this.#source[this.#at] === "^";
    if (negated) this.#at++;
    const ranges: CharacterSet = [];
    for (let first = true;; first = false) {
      const low = this.#source[this.#at++];
      if (low === undefined) throw new PatternError('a "[" is not closed');
      if (low === "]" && !first) break;
      const from = low.codePointAt(0)!;
      const high = this.#source[this.#at + 1];
      if (this.#source[this.#at] === "-" && high !== undefined && high !== "]") {
        this.#at += 2;
        if (high.codePointAt(0)! < from) throw new PatternError("a range in [] runs backwards");
        ranges.push([from, high.codePointAt(0)!]);
      } else ranges.push([from, from]);
    }
    const set = normalizeSet(ranges);
    return { type: "set", set: negated ? complement(normalizeSet([...set, [47, 47]])) : set };
  }
}

function single(character: string): PatternNode {
  const code = character.codePointAt(0)!;
  return { type: "set", set: [[code, code]] };
}
