/** Configuration documents: YAML or JSON into plain data, with the place of every key. */

import { CONFIG_ALIASES_MAX, CONFIG_DEPTH_MAX } from "../core/config_limits.ts";
import { isObject, type Json } from "../core/json.ts";
import { failed, type Outcome, success } from "../core/outcome.ts";

/** A place in a text; both count from 1. */
export interface Place {
  line: number;
  column: number;
}

/** A parsed document. `placeOf` finds a key by its path from the top, or the nearest above it. */
export interface Document {
  value: Json;
  placeOf(path: readonly string[]): Place | undefined;
}

/** Why a text is no document. */
export interface DocumentFault extends Place {
  message: string;
}

/** Parses YAML 1.2 (core schema) or, if `json`, strict JSON. Every fault found is reported. */
export async function parseDocument(
  text: string,
  json: boolean,
): Promise<Outcome<Document, DocumentFault[]>> {
  if (json) {
    const fault = findJsonFault(text);
    if (fault) return failed([fault]);
  }
  // Loaded here and not above: most runs have no configuration file.
  const yaml = await import("yaml");
  const lines = new yaml.LineCounter();
  const parsed = yaml.parseDocument(text, { lineCounter: lines, prettyErrors: false });
  if (parsed.errors.length > 0) {
    return failed(parsed.errors.map((error) => ({
      message: inOurWords(error.message),
      ...placeAt(lines.linePos(error.pos[0])),
    })));
  }
  const places = new Map<string, Place>();
  const walk = (node: unknown, path: string[], depth: number): void => {
    if (depth > CONFIG_DEPTH_MAX) return;
    if (yaml.isMap(node)) {
      for (const pair of node.items) {
        const key = yaml.isScalar(pair.key) ? String(pair.key.value) : String(pair.key);
        const at = yaml.isNode(pair.key) ? pair.key.range?.[0] : undefined;
        if (at !== undefined) places.set(keyOf([...path, key]), placeAt(lines.linePos(at)));
        walk(pair.value, [...path, key], depth + 1);
      }
    } else if (yaml.isSeq(node)) {
      node.items.forEach((item, index) => {
        const at = yaml.isNode(item) ? item.range?.[0] : undefined;
        const below = [...path, String(index)];
        if (at !== undefined) places.set(keyOf(below), placeAt(lines.linePos(at)));
        walk(item, below, depth + 1);
      });
    }
  };
  walk(parsed.contents, [], 0);
  let value: unknown;
  try {
    value = parsed.toJS({ maxAliasCount: CONFIG_ALIASES_MAX });
  } catch (error) {
    return failed([{ message: error instanceof Error ? error.message : String(error), ...START }]);
  }
  const fault = findForeign(value, []);
  if (fault) {
    return failed([{ message: fault.message, ...(places.get(keyOf(fault.path)) ?? START) }]);
  }
  return success({ value: (value ?? null) as Json, placeOf: (path) => findPlace(places, path) });
}

/** What the parser says, without its places, and without what only its callers can use. */
function inOurWords(message: string): string {
  if (/multiple documents/.test(message)) return "it holds several documents, where one is taken";
  if (/call stack|stack overflow/i.test(message)) return `nested deeper than ${CONFIG_DEPTH_MAX}`;
  return message.split("\n")[0]!.replace(/ at line \d+, column \d+:?$/, "");
}

/** Digits of one number that are looked at. */
const NUMBER_CHARS_MAX = 400;

const START: Place = { line: 1, column: 1 };

function placeAt(position: { line: number; col: number }): Place {
  return { line: Math.max(1, position.line), column: Math.max(1, position.col) };
}

function keyOf(path: readonly string[]): string {
  return path.join("\n");
}

function findPlace(places: Map<string, Place>, path: readonly string[]): Place | undefined {
  for (let length = path.length; length > 0; length--) {
    const place = places.get(keyOf(path.slice(0, length)));
    if (place) return place;
  }
  return undefined;
}

/** The first value that JSON does not have (YAML has more), or nesting beyond reason. */
function findForeign(value: unknown, path: string[]): { message: string; path: string[] } | null {
  if (path.length > CONFIG_DEPTH_MAX) {
    return { message: `nested deeper than ${CONFIG_DEPTH_MAX}`, path };
  }
  if (value === null || typeof value === "string" || typeof value === "boolean") return null;
  if (typeof value === "number") {
    return Number.isFinite(value) ? null : { message: `${value} is not a number JSON has`, path };
  }
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const fault = findForeign(value[i], [...path, String(i)]);
      if (fault) return fault;
    }
    return null;
  }
  if (isObject(value) && Object.getPrototypeOf(value) === Object.prototype) {
    for (const [key, member] of Object.entries(value)) {
      const fault = findForeign(member, [...path, key]);
      if (fault) return fault;
    }
    return null;
  }
  return { message: "a value that JSON does not have", path };
}

/**
 * The first place where a text stops being JSON (RFC 8259), or null if it is JSON. The runtime's own
 * messages do not always say where.
 */
export function findJsonFault(text: string): DocumentFault | null {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    const offset = faultOffset(text);
    const before = text.slice(0, offset).split("\n");
    const found = offset >= text.length ? "the text ends" : `found ${JSON.stringify(text[offset])}`;
    const raw = error instanceof Error ? error.message : String(error);
    const reason = /^(Unexpected|Expected|Bad|Unterminated|Duplicate|Exponent|No number)/.test(raw)
      ? raw.replace(/,? (".*|\.\.\.".*)is not valid JSON$/s, "").replace(
        / in JSON at position \d+( \(line \d+ column \d+\))?$/,
        "",
      )
      : "not JSON";
    return {
      message: `${reason.split("\n")[0]} (${found})`,
      line: before.length,
      column: before.at(-1)!.length + 1,
    };
  }
}

/** Where a strict reader of JSON stops: the offset of the character that cannot stand there. */
function faultOffset(text: string): number {
  const reader = new StrictReader(text);
  try {
    reader.readValue();
    reader.skipBlanks();
  } catch (error) {
    // Nesting that the stack does not hold stops the reader where it is.
    if (error !== STOP && !(error instanceof RangeError)) throw error;
  }
  return Math.min(reader.at, text.length);
}

const STOP = Symbol("stop");

/** Reads RFC 8259 to the letter, and throws {@link STOP} at the first character that is not. */
class StrictReader {
  at = 0;

  constructor(readonly text: string) {}

  readValue(): void {
    this.skipBlanks();
    switch (this.text[this.at]) {
      case "{":
        return this.#readMembers("}", true);
      case "[":
        return this.#readMembers("]", false);
      case '"':
        return this.#readString();
      case "t":
        return this.#readWord("true");
      case "f":
        return this.#readWord("false");
      case "n":
        return this.#readWord("null");
    }
    const number = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/.exec(
      this.text.slice(this.at, this.at + NUMBER_CHARS_MAX),
    );
    if (!number) throw STOP;
    this.at += number[0].length;
  }

  skipBlanks(): void {
    while (this.at < this.text.length && " \t\n\r".includes(this.text[this.at]!)) this.at++;
  }

  #readWord(expected: string): void {
    for (const character of expected) this.#take(character);
  }

  #take(character: string): void {
    if (this.text[this.at] !== character) throw STOP;
    this.at++;
  }

  #readMembers(close: string, keyed: boolean): void {
    this.at++;
    this.skipBlanks();
    if (this.text[this.at] === close) return void this.at++;
    for (;;) {
      if (keyed) {
        this.skipBlanks();
        if (this.text[this.at] !== '"') throw STOP;
        this.#readString();
        this.skipBlanks();
        this.#take(":");
      }
      this.readValue();
      this.skipBlanks();
      if (this.text[this.at] === close) return void this.at++;
      this.#take(",");
    }
  }

  #readString(): void {
    this.at++;
    while (this.at < this.text.length && this.text[this.at] !== '"') {
      if (this.text.charCodeAt(this.at) < 0x20) throw STOP;
      if (this.text[this.at] === "\\") this.#readEscape();
      this.at++;
    }
    this.#take('"');
  }

  #readEscape(): void {
    this.at++;
    if (this.text[this.at] !== "u") {
      if (!'"\\/bfnrt'.includes(this.text[this.at] ?? "x")) throw STOP;
      return;
    }
    for (let i = 0; i < 4; i++) {
      this.at++;
      if (!/[0-9a-fA-F]/.test(this.text[this.at] ?? "")) throw STOP;
    }
  }
}
