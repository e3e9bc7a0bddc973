/**
 * Patterns that match in time linear in the text, whatever the pattern: an automaton whose states are
 * made as they are met and kept in a bounded cache. JavaScript's own engine backtracks, so that a
 * pattern such as `(a+)+b` would hold the server for ever.
 */

import {
  PATTERN_CHARS_MAX,
  PATTERN_NODES_MAX,
  PATTERN_STATES_MAX,
  PATTERN_WORK_MAX,
} from "../core/tool_limits.ts";
import { ANY, type CharacterSet, complement, NO_LINE_END, WORD } from "./character_set.ts";
import { parseGlob } from "./glob_parse.ts";
import { parseExpression, parseLiteral } from "./pattern_parse.ts";
import { PatternError, type PatternNode } from "./pattern_tree.ts";

/** A compiled pattern. */
export interface Pattern {
  /**
   * Where the first match that ends within `text` ends, -1 if there is none. Throws a
   * {@link PatternError} if the pattern takes too much work.
   */
  search(text: string): number;
  /** A text that every match contains; empty if none is known. */
  required: string;
}

type Instruction =
  | { op: "set"; set: CharacterSet; next: number }
  | { op: "fork"; nexts: number[] }
  | { op: "assert"; what: "start" | "end" | "border" | "no_border"; next: number }
  | { op: "match" };

/** What stands before a place: nothing, a word character, another one. */
type Before = 0 | 1 | 2;

interface State {
  starts: number[];
  before: Before;
  /** By class of the next character, the last one for the end of the text; undefined: not known. */
  nexts: (State | typeof MATCHED | undefined)[];
}

const MATCHED = Symbol("matched");

/**
 * Compiles a regular expression, or with `literal` a text; throws a {@link PatternError}. `.` is
 * everything but a line feed, with `wholeText` everything but what ends a line to JavaScript.
 */
export function compilePattern(
  source: string,
  options: { literal: boolean; ignoreCase: boolean; wholeText?: boolean },
): Pattern {
  checkLength(source);
  const { literal, ignoreCase, wholeText } = options;
  return new Automaton(
    literal
      ? parseLiteral(source, ignoreCase)
      : parseExpression(source, ignoreCase, wholeText ? NO_LINE_END : ANY),
  );
}

/** Compiles a glob over relative paths; throws a {@link PatternError}. */
export function compileGlob(glob: string): Pattern {
  checkLength(glob);
  return new Automaton(parseGlob(glob));
}

function checkLength(source: string): void {
  if (source === "") throw new PatternError("it is empty");
  if (source.length > PATTERN_CHARS_MAX) {
    throw new PatternError(
      `it is ${source.length} characters long, at most ${PATTERN_CHARS_MAX} are taken`,
    );
  }
}

class Automaton implements Pattern {
  readonly required: string;
  readonly #program: Instruction[] = [];
  readonly #entry: number;
  /** Starts of the classes of characters that no set tells apart, ascending from 0. */
  readonly #borders: number[];
  readonly #asciiClass = new Uint16Array(128);
  readonly #wordClass: boolean[];
  readonly #memberships = new Map<CharacterSet, Uint8Array>();
  readonly #seen: Uint32Array;
  #mark = 0;
  #work = 0;
  #states = new Map<string, State>();
  #first: State;

  constructor(node: PatternNode) {
    this.required = requiredText(node);
    const match = this.#emit({ op: "match" });
    this.#entry = this.#compile(node, match);
    this.#borders = this.#findBorders();
    for (let code = 0; code < 128; code++) this.#asciiClass[code] = this.#findClass(code);
    this.#wordClass = this.#borders.map((code) => contains(WORD, code));
    this.#seen = new Uint32Array(this.#program.length);
    this.#first = this.#state([], 0);
  }

  search(text: string): number {
    let state = this.#first;
    let at = 0;
    this.#work = 0;
    while (at < text.length) {
      let code = text.charCodeAt(at++);
      let kind: number;
      if (code < 128) kind = this.#asciiClass[code]!;
      else {
        if ((code & 0xfc00) === 0xd800 && (text.charCodeAt(at) & 0xfc00) === 0xdc00) {
          code = text.codePointAt(at - 1)!;
          at++;
        }
        kind = this.#findClass(code);
      }
      const next = state.nexts[kind] ?? this.#advance(state, kind);
      if (next === MATCHED) return at - (code > 0xffff ? 2 : 1);
      state = next;
    }
    const end = this.#borders.length;
    return (state.nexts[end] ?? this.#advance(state, end)) === MATCHED ? at : -1;
  }

  /** The state after a character of class `kind`; a match is one that ended before it. */
  #advance(state: State, kind: number): State | typeof MATCHED {
    const atEnd = kind === this.#borders.length;
    const wordNext = !atEnd && this.#wordClass[kind]!;
    if (this.#work > PATTERN_WORK_MAX) {
      throw new PatternError("it takes too much work on one line; make it simpler");
    }
    const mark = ++this.#mark;
    const stack = [...state.starts, this.#entry];
    const nexts: number[] = [];
    let result: State | typeof MATCHED | undefined;
    while (stack.length > 0) {
      const at = stack.pop()!;
      this.#work++;
      if (this.#seen[at] === mark) continue;
      this.#seen[at] = mark;
      const instruction = this.#program[at]!;
      if (instruction.op === "match") {
        result = MATCHED;
        break;
      }
      if (instruction.op === "fork") stack.push(...instruction.nexts);
      else if (instruction.op === "set") {
        if (!atEnd && this.#members(instruction.set)[kind] === 1) nexts.push(instruction.next);
      } else if (holds(instruction.what, state.before, wordNext, atEnd)) {
        stack.push(instruction.next);
      }
    }
    result ??= this.#state(nexts, wordNext ? 1 : 2);
    state.nexts[kind] = result;
    this.#work += nexts.length + 1;
    return result;
  }

  #state(starts: number[], before: Before): State {
    const sorted = [...new Set(starts)].sort((a, b) => a - b);
    const key = `${before}:${sorted.join()}`;
    const known = this.#states.get(key);
    if (known !== undefined) return known;
    if (this.#states.size >= PATTERN_STATES_MAX) {
      // Starting anew bounds memory; time stays linear, since each step costs at most the program.
      for (const old of this.#states.values()) old.nexts = [];
      this.#states = new Map();
      this.#first = { starts: [], before: 0, nexts: [] };
      this.#states.set("0:", this.#first);
    }
    const made: State = { starts: sorted, before, nexts: [] };
    this.#states.set(key, made);
    return made;
  }

  #emit(instruction: Instruction): number {
    if (this.#program.length >= PATTERN_NODES_MAX) {
      throw new PatternError("it is too large; use fewer or smaller repetitions");
    }
    return this.#program.push(instruction) - 1;
  }

  /** Compiles a tree so that it goes on at `next`; where it begins. */
  #compile(node: PatternNode, next: number): number {
    switch (node.type) {
      case "empty":
        return next;
      case "set":
        return this.#emit({ op: "set", set: node.set, next });
      case "assert":
        return this.#emit({ op: "assert", what: node.what, next });
      case "sequence":
        return node.parts.reduceRight((after, part) => this.#compile(part, after), next);
      case "either":
        return this.#emit({
          op: "fork",
          nexts: node.parts.map((part) => this.#compile(part, next)),
        });
      case "repeat": {
        let at = next;
        if (node.max === null) {
          const loop: Instruction = { op: "fork", nexts: [next] };
          at = this.#emit(loop);
          loop.nexts.push(this.#compile(node.part, at));
        } else {
          for (let extra = node.max - node.min; extra > 0; extra--) {
            at = this.#emit({ op: "fork", nexts: [next, this.#compile(node.part, at)] });
          }
        }
        for (let count = node.min; count > 0; count--) at = this.#compile(node.part, at);
        return at;
      }
    }
  }

  #findBorders(): number[] {
    const borders = new Set([0]);
    const sets = [WORD, complement(WORD)];
    for (const instruction of this.#program) {
      if (instruction.op === "set") sets.push(instruction.set);
    }
    for (const set of sets) {
      for (const [start, end] of set) borders.add(start).add(end + 1);
    }
    borders.delete(0x110000);
    return [...borders].sort((a, b) => a - b);
  }

  #findClass(code: number): number {
    let low = 0;
    let high = this.#borders.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#borders[middle]! <= code) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  #members(set: CharacterSet): Uint8Array {
    let members = this.#memberships.get(set);
    if (members === undefined) {
      members = Uint8Array.from(this.#borders, (code) => contains(set, code) ? 1 : 0);
      this.#memberships.set(set, members);
    }
    return members;
  }
}

function contains(set: CharacterSet, code: number): boolean {
  return set.some(([start, end]) => code >= start && code <= end);
}

function holds(
  what: "start" | "end" | "border" | "no_border",
  before: Before,
  wordNext: boolean,
  atEnd: boolean,
): boolean {
  if (what === "start") return before === 0;
  if (what === "end") return atEnd;
  return ((before === 1) !== wordNext) === (what === "border");
}

/** The longest text that every match of a tree contains. */
function requiredText(node: PatternNode): string {
  if (node.type === "repeat") return node.min > 0 ? requiredText(node.part) : "";
  const parts = node.type === "sequence" ? node.parts : [node];
  let best = "";
  let run = "";
  for (const part of parts) {
    const code = part.type === "set" && part.set.length === 1 && part.set[0]![0] === part.set[0]![1]
      ? part.set[0]![0]
      : undefined;
    if (code !== undefined) run += String.fromCodePoint(code);
    else {
      // Assertions take no room: the text before and after them is one.
      if (part.type === "assert") continue;
      run = "";
      const inner = part === node ? "" : requiredText(part);
      if (inner.length > best.length) best = inner;
    }
    if (run.length > best.length) best = run;
  }
  return best;
}
