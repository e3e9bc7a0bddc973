/**
 * Regular expressions as trees. The syntax is that of JavaScript without what no automaton can do in
 * linear time (look-around, back references).
 */

import {
  type CharacterSet,
  CODE_POINT_MAX,
  complement,
  DIGIT,
  foldCase,
  normalizeSet,
  SPACE,
  WORD,
} from "./character_set.ts";
import { NESTING_MAX, PatternError, type PatternNode } from "./pattern_tree.ts";

const REPEAT_MAX = 1_000;

/** Parses a regular expression in which `.` is `any`; throws a {@link PatternError}. */
export function parseExpression(
  source: string,
  ignoreCase: boolean,
  any: CharacterSet,
): PatternNode {
  return new ExpressionParser(source, ignoreCase, any).parse();
}

class ExpressionParser {
  readonly #source: string[];
  #at = 0;
  #depth = 0;
  #ignoreCase: boolean;
  readonly #any: CharacterSet;

  constructor(source: string, ignoreCase: boolean, any: CharacterSet) {
    this.#ignoreCase = ignoreCase;
    this.#any = any;
    let text = source;
    if (text.startsWith("(?i)")) {
      this.#ignoreCase = true;
      text = text.slice(4);
    }
    this.#source = [...text];
  }

  parse(): PatternNode {
    const node = this.#either();
    if (this.#at < this.#source.length) this.#fail('there is a ")" without "("');
    return node;
  }

  #either(): PatternNode {
    if (++this.#depth > NESTING_MAX) this.#fail(`groups are nested deeper than ${NESTING_MAX}`);
    const parts = [this.#sequence()];
    while (this.#take("|")) parts.push(this.#sequence());
    this.#depth--;
    return parts.length === 1 ? parts[0]! : { type: "either", parts };
  }

  #sequence(): PatternNode {
    const parts: PatternNode[] = [];
    for (;;) {
      const next = this.#source[this.#at];
      if (next === undefined || next === "|" || next === ")") break;
      parts.push(this.#repeated());
    }
    return parts.length === 1 ? parts[0]! : { type: "sequence", parts };
  }

  #repeated(): PatternNode {
    let node = this.#atom();
    for (let count = 0;; count++) {
      const bounds = this.#bounds();
      if (bounds === undefined) return node;
      if (count > 0) this.#fail("nothing is left to repeat");
      if (node.type === "assert") this.#fail("an assertion cannot be repeated");
      if (this.#source[this.#at] === "+") this.#fail("possessive repetition is not supported");
      // Lazy or greedy is one to an automaton that only says whether a line matches.
      this.#take("?");
      node = { type: "repeat", part: node, ...bounds };
    }
  }

  #bounds(): { min: number; max: number | null } | undefined {
    if (this.#take("*")) return { min: 0, max: null };
    if (this.#take("+")) return { min: 1, max: null };
    if (this.#take("?")) return { min: 0, max: 1 };
    if (this.#source[this.#at] !== "{") return undefined;
    const close = this.#source.indexOf("}", this.#at);
    const inner = close === -1 ? "" : this.#source.slice(this.#at + 1, close).join("");
    const match = /^(\d{1,6})(,)?(\d{1,6})?$/.exec(inner);
    // A brace that is no repetition stands for itself, as in `function f() {`.
    if (!match || (match[2] === undefined && match[3] !== undefined)) return undefined;
    this.#at = close + 1;
    const min = Number(match[1]);
    const max = match[3] !== undefined ? Number(match[3]) : match[2] === undefined ? min : null;
    if (min > REPEAT_MAX || (max ?? 0) > REPEAT_MAX) {
      this.#fail(`a repetition is limited to ${REPEAT_MAX}`);
    }
    if (max !== null && max < min) this.#fail(`{${inner}} has its numbers in the wrong order`);
    return { min, max };
  }

  #atom(): PatternNode {
    const character = this.#source[this.#at++]!;
    switch (character) {
      case "^":
        return { type: "assert", what: "start" };
      case "$":
        return { type: "assert", what: "end" };
      case ".":
        return { type: "set", set: this.#any };
      case "(":
        return this.#group();
      case "[":
        return this.#class();
      case "*":
      case "+":
      case "?":
        return this.#fail(`there is nothing that "${character}" could repeat`);
      case "\\":
        return this.#escape();
      default:
        return this.#literal(character.codePointAt(0)!);
    }
  }

  #group(): PatternNode {
    if (this.#take("?")) {
      const kind = this.#source.slice(this.#at, this.#at + 2).join("");
      if (kind.startsWith(":")) this.#at++;
      else if (/^(?:[=!]|<[=!])/.test(kind)) this.#fail("look-around is not supported");
      else if (kind.startsWith("<") || kind.startsWith("P<")) {
        const end = this.#source.indexOf(">", this.#at);
        if (end === -1) this.#fail("the name of a group does not end");
        this.#at = end + 1;
      } else this.#fail(`"(?${kind}" is not supported; (?i) may stand at the start`);
    }
    const node = this.#either();
    if (!this.#take(")")) this.#fail('a "(" is not closed');
    return node;
  }

  #class(): PatternNode {
    const negated = this.#take("^");
    const ranges: CharacterSet = [];
    for (;;) {
      if (this.#at >= this.#source.length) this.#fail('a "[" is not closed');
      if (this.#take("]")) break;
      const low = this.#classItem();
      if (typeof low !== "number") {
        ranges.push(...low);
        continue;
      }
      const dash = this.#source[this.#at] === "-" && this.#source[this.#at + 1] !== "]" &&
        this.#at + 1 < this.#source.length;
      if (!dash) {
        ranges.push([low, low]);
        continue;
      }
      this.#at++;
      const high = this.#classItem();
      if (typeof high !== "number") {
        ranges.push([low, low], [45, 45], ...high);
      } else {
        if (high < low) this.#fail("a range in [] runs backwards");
        ranges.push([low, high]);
      }
    }
    let set = normalizeSet(ranges);
    if (this.#ignoreCase) set = foldCase(set);
    return { type: "set", set: negated ? complement(set) : set };
  }

  #classItem(): number | CharacterSet {
    const character = this.#source[this.#at++]!;
    if (character !== "\\") return character.codePointAt(0)!;
    const next = this.#source[this.#at];
    if (next === "b") {
      this.#at++;
      return 8;
    }
    return this.#escaped();
  }

  #escape(): PatternNode {
    if (this.#take("b")) return { type: "assert", what: "border" };
    if (this.#take("B")) return { type: "assert", what: "no_border" };
    const escaped = this.#escaped();
    return typeof escaped === "number" ? this.#literal(escaped) : { type: "set", set: escaped };
  }

  #escaped(): number | CharacterSet {
    const character = this.#source[this.#at++];
    switch (character) {
      case undefined:
        return this.#fail('a "\\" ends the pattern');
      case "d":
        return DIGIT;
      case "D":
        return complement(DIGIT);
      case "w":
        return WORD;
      case "W":
        return complement(WORD);
      case "s":
        return SPACE;
      case "S":
        return complement(SPACE);
      case "t":
        return 9;
      case "n":
        return 10;
      case "v":
        return 11;
      case "f":
        return 12;
      case "r":
        return 13;
      case "0":
        return 0;
      case "x":
        return this.#hex(2);
      case "u":
        if (this.#take("{")) {
          const end = this.#source.indexOf("}", this.#at);
          if (end === -1) this.#fail('a "\\u{" is not closed');
          return this.#hex(end - this.#at, true);
        }
        return this.#hex(4);
    }
    if (/[1-9]/.test(character)) this.#fail("back references are not supported");
    if (/[A-Za-z]/.test(character)) this.#fail(`"\\${character}" is not supported`);
    return character.codePointAt(0)!;
  }

  #hex(digits: number, braced = false): number {
    const text = this.#source.slice(this.#at, this.#at + digits).join("");
    const code = /^[0-9A-Fa-f]+$/.test(text) && text.length === digits
      ? Number.parseInt(text, 16)
      : NaN;
    if (!(code <= CODE_POINT_MAX)) this.#fail("a hexadecimal escape is wrong");
    this.#at += digits + (braced ? 1 : 0);
    return code;
  }

  #literal(code: number): PatternNode {
    const set: CharacterSet = [[code, code]];
    return { type: "set", set: this.#ignoreCase ? foldCase(set) : set };
  }

  #take(character: string): boolean {
    if (this.#source[this.#at] !== character) return false;
    this.#at++;
    return true;
  }

  #fail(why: string): never {
    throw new PatternError(why);
  }
}

/** A text that stands for itself. */
export function parseLiteral(text: string, ignoreCase: boolean): PatternNode {
  const parts = [...text].map((character): PatternNode => {
    const code = character.codePointAt(0)!;
    const set: CharacterSet = [[code, code]];
    return { type: "set", set: ignoreCase ? foldCase(set) : set };
  });
  return { type: "sequence", parts };
}
