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
      message: error.message.split("\n")[0]!.replace(/ at line \d+, column \d+:?$/, ""),
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
  let at = 0;
  const STOP = Symbol();
  const stop = (): never => {
    throw STOP;
  };
  const blank = (): void => {
    while (at < text.length && " \t\n\r".includes(text[at]!)) at++;
  };
  const word = (expected: string): void => {
    for (const c of expected) {
      if (text[at] !== c) stop();
      at++;
    }
  };
  const string = (): void => {
    at++;
    while (at < text.length && text[at] !== '"') {
      if (text.charCodeAt(at) < 0x20) stop();
      if (text[at] === "\\") {
        at++;
        if (text[at] === "u") {
          for (let i = 0; i < 4; i++) {
            at++;
            if (!/[0-9a-fA-F]/.test(text[at] ?? "")) stop();
          }
        } else if (!'"\\/bfnrt'.includes(text[at] ?? "x")) stop();
      }
      at++;
    }
    if (at >= text.length) stop();
    at++;
  };
  const members = (close: string, keyed: boolean): void => {
    at++;
    blank();
    if (text[at] === close) return void at++;
    for (;;) {
      blank();
      if (keyed) {
        if (text[at] !== '"') stop();
        string();
        blank();
        if (text[at] !== ":") stop();
        at++;
      }
      value();
      blank();
      if (text[at] === close) return void at++;
      if (text[at] !== ",") stop();
      at++;
    }
  };
  const value = (): void => {
    blank();
    const c = text[at] ?? "";
    if (c === "{") members("}", true);
    else if (c === "[") members("]", false);
    else if (c === '"') string();
    else if (c === "t") word("true");
    else if (c === "f") word("false");
    else if (c === "n") word("null");
    else {
      const number = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/.exec(text.slice(at, at + 400));
      if (!number) stop();
      at += number![0].length;
    }
  };
  try {
    value();
    blank();
  } catch (error) {
    if (error !== STOP && !(error instanceof RangeError)) throw error;
  }
  return Math.min(at, text.length);
}
