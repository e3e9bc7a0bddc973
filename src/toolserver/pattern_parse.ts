/**
 * Patterns as trees. The syntax is that of JavaScript's regular expressions without what no automaton
 * can do in linear time (look-around, back references); globs make the same trees.
 */

/** Sorted code-point ranges, both ends included. */
export type CharacterSet = [number, number][];

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

const CODE_POINT_MAX = 0x10ffff;
export const WORD: CharacterSet = [[48, 57], [65, 90], [95, 95], [97, 122]];
const DIGIT: CharacterSet = [[48, 57]];
const SPACE: CharacterSet = [
  [9, 13],
  [32, 32],
  [0xa0, 0xa0],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
  [0xfeff, 0xfeff],
];
const ANY: CharacterSet = [[0, 9], [11, CODE_POINT_MAX]];
const REPEAT_MAX = 1_000;
const NESTING_MAX = 100;

/** Every code point that is not in a set. */
export function complement(set: CharacterSet): CharacterSet {
  const out: CharacterSet = [];
  let from = 0;
  for (const [start, end] of set) {
    if (start > from) out.push([from, start - 1]);
    from = end + 1;
  }
  if (from <= CODE_POINT_MAX) out.push([from, CODE_POINT_MAX]);
  return out;
}

/** Sorts ranges and joins those that touch. */
export function normalizeSet(ranges: CharacterSet): CharacterSet {
  const sorted = [...ranges].sort((a, b) => a[0] - b[0]);
  const out: CharacterSet = [];
  for (const [start, end] of sorted) {
    const last = out.at(-1);
    if (last !== undefined && start <= last[1] + 1) last[1] = Math.max(last[1], end);
    else out.push([start, end]);
  }
  return out;
}

/** A set with the other case of each letter added. */
function foldCase(set: CharacterSet): CharacterSet {
  const out: CharacterSet = [...set];
  for (const [start, end] of set) {
    // Beyond this a range is a class of its own such as "anything but x", which has both cases.
    if (end - start > 2_000) continue;
    for (let code = start; code <= end; code++) {
      const character = String.fromCodePoint(code);
      for (const other of [character.toLowerCase(), character.toUpperCase()]) {
        const point = other.codePointAt(0)!;
        if (point !== code && String.fromCodePoint(point) === other) out.push([point, point]);
      }
    }
  }
  return normalizeSet(out);
}

/** Parses a regular expression; throws a {@link PatternError}. */
export function parseExpression(source: string, ignoreCase: boolean): PatternNode {
  return new ExpressionParser(source, ignoreCase).parse();
}

class ExpressionParser {
  readonly #source: string[];
  #at = 0;
  #depth = 0;
  #ignoreCase: boolean;

  constructor(source: string, ignoreCase: boolean) {
    this.#ignoreCase = ignoreCase;
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
        return { type: "set", set: ANY };
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
