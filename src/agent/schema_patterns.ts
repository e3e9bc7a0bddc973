/**
 * Expressions in a stranger's JSON Schema, matched in bounded time. The validator hands them to
 * JavaScript's own engine, which `^(a+)+$` holds for ever and with it the loop. Here every `pattern`
 * becomes a format of our own, matched by an automaton where it can be; what no automaton does
 * (look-around, back references) goes to the engine if its form says that it cannot take long, else it
 * is left to the server, which judges its arguments itself. A schema of the task's own is held to in
 * full.
 */

import { format } from "@cfworker/json-schema";
import { isObject, type Json, type JsonObject } from "../core/json.ts";
import { compilePattern } from "../toolserver/pattern.ts";
import { PatternError } from "../toolserver/pattern_tree.ts";
import { patternSteps } from "./pattern_cost.ts";

/** How the format that stands for a pattern is named. */
const PREFIX = "agentd-pattern:";
/** Patterns that are held at once; a server that sends ever new ones gets no more of them applied. */
export const SCHEMA_PATTERNS_MAX = 4_096;
/** Steps of the backtracking engine for one text. */
const STEPS_MAX = 20_000_000;
/** A name longer than any that a model will write. */
const NAME_CHARS = 1_000_000;
/** Properties that one hard pattern may match. */
const MATCHED_KEYS_MAX = 1_000;
/** Items of an array whose uniqueness is asked for: each is held against each. */
const UNIQUE_ITEMS_MAX = 10_000;

/** Members of a schema whose members are schemas under names of their own. */
const MAPS: ReadonlySet<string> = new Set([
  "properties",
  "patternProperties",
  "$defs",
  "definitions",
  "dependentSchemas",
  "dependencies",
]);
/** Members of a schema that are data. */
const DATA: ReadonlySet<string> = new Set(["enum", "const", "default", "examples", "required"]);

type Matcher = (text: string) => boolean;

const matchers = new Map<string, Matcher>();

/** A schema as the validator takes it. */
export interface TamedSchema {
  schema: JsonObject;
  /** It must be tamed anew for each value: its hard patterns are told by the names that they match. */
  perValue: boolean;
  asksUnique: boolean;
  /** It is the task's, not a server's. */
  isOwn: boolean;
}

/** The schema with its patterns tamed, for values with properties of these names, at any depth. */
export function tameSchema(
  schema: JsonObject,
  isOwn: boolean,
  names: readonly string[] | null,
): TamedSchema {
  const tamed: TamedSchema = { schema: {}, perValue: false, asksUnique: false, isOwn };
  // The validator's own expression for it goes back without end.
  format["url"] = isUrl;
  tamed.schema = tame(schema, tamed, names) as JsonObject;
  return tamed;
}

function isUrl(text: string): boolean {
  return /^(?:https?|ftp):/i.test(text) && URL.canParse(text);
}

/** The names of all properties in a value, and the length of its longest array. */
export function measureValue(value: Json): { names: string[]; itemsMax: number } {
  const names = new Set<string>();
  let itemsMax = 0;
  const open: Json[] = [value];
  while (open.length > 0) {
    const next = open.pop()!;
    if (Array.isArray(next)) {
      itemsMax = Math.max(itemsMax, next.length);
      for (const item of next) if (typeof item === "object") open.push(item);
    } else if (isObject(next)) {
      for (const [name, member] of Object.entries(next)) {
        names.add(name);
        if (typeof member === "object") open.push(member);
      }
    }
  }
  return { names: [...names], itemsMax };
}

/** Throws if a value asks for more comparisons than are made. */
export function checkItems(tamed: TamedSchema, itemsMax: number): void {
  if (tamed.asksUnique && itemsMax > UNIQUE_ITEMS_MAX) {
    throw new Error(`the items of an array of ${itemsMax} cannot be told apart, it is too long`);
  }
}

/** The validator's word for a format that stands for a pattern, as it words patterns. */
export function patternFault(error: string): string {
  return error.startsWith(`String does not match format "${PREFIX}`)
    ? "String does not match pattern."
    : error;
}

function tame(node: Json, found: TamedSchema, names: readonly string[] | null): Json {
  if (Array.isArray(node)) return node.map((item) => tame(item, found, names));
  if (!isObject(node)) return node;
  const out: JsonObject = Object.create(null);
  for (const [key, value] of Object.entries(node)) {
    if (key === "pattern" && typeof value === "string") continue;
    if (DATA.has(key)) out[key] = value;
    else if (key === "patternProperties" && isObject(value)) {
      out[key] = tamePatternProperties(value, found, names);
    } else if (MAPS.has(key) && isObject(value)) {
      const members: JsonObject = Object.create(null);
      for (const [name, member] of Object.entries(value)) {
        members[name] = tame(member, found, names);
      }
      out[key] = members;
    } else out[key] = tame(value, found, names);
  }
  if (node["uniqueItems"] === true) found.asksUnique = true;
  const { pattern } = node;
  if (typeof pattern !== "string") return out;
  const name = formatOf(pattern, found.isOwn);
  if (out["format"] === undefined) out["format"] = name;
  else out["allOf"] = [...(Array.isArray(out["allOf"]) ? out["allOf"] : []), { format: name }];
  return out;
}

/** Patterns of names that may take long become the names that they match. */
function tamePatternProperties(
  properties: JsonObject,
  found: TamedSchema,
  names: readonly string[] | null,
): JsonObject {
  const out: JsonObject = Object.create(null);
  for (const [pattern, member] of Object.entries(properties)) {
    const schema = tame(member, found, names);
    if (isPlain(pattern)) {
      out[pattern] = schema;
      continue;
    }
    found.perValue = true;
    if (names === null) continue;
    const matches = names.filter(matcherOf(pattern, found.isOwn));
    if (matches.length > MATCHED_KEYS_MAX) {
      throw new Error(`more than ${MATCHED_KEYS_MAX} properties match ${JSON.stringify(pattern)}`);
    }
    const literals = matches.map((name) => name.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"));
    // Two patterns may match the same names: each keeps a key of its own.
    out[`^(?:${literals.join("|") || "(?!)"})$${"(?:)".repeat(Object.keys(out).length)}`] = schema;
  }
  return out;
}

/** Whether matching any name is a matter of one pass. */
function isPlain(pattern: string): boolean {
  return patternSteps(pattern, NAME_CHARS) <= STEPS_MAX;
}

function formatOf(pattern: string, isOwn: boolean): string {
  const name = `${PREFIX}${isOwn ? "own " : ""}${pattern}`;
  format[name] ??= matcherOf(pattern, isOwn);
  return name;
}

/** Compiled when it is first asked: what is never asked may be as wrong as it likes. */
function matcherOf(source: string, isOwn: boolean): Matcher {
  const key = `${isOwn} ${source}`;
  const known = matchers.get(key);
  if (known !== undefined) return known;
  let compiled: Matcher | null = null;
  const matcher: Matcher = (text) => (compiled ??= makeMatcher(source, isOwn))(text);
  if (matchers.size >= SCHEMA_PATTERNS_MAX) return refusePattern;
  matchers.set(key, matcher);
  return matcher;
}

function refusePattern(): never {
  throw new Error(`there are more than ${SCHEMA_PATTERNS_MAX} patterns`);
}

function makeMatcher(source: string, isOwn: boolean): Matcher {
  try {
    const options = { literal: false, ignoreCase: false, wholeText: true };
    const compiled = compilePattern(source, options);
    return (text) => compiled.search(text) !== -1;
  } catch (error) {
    if (!(error instanceof PatternError)) throw error;
  }
  const expression = new RegExp(source, "u");
  return (text) =>
    (!isOwn && patternSteps(source, text.length) > STEPS_MAX) || expression.test(text);
}
