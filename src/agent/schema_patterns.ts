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
import {
  SCHEMA_MATCHED_NAMES_MAX,
  SCHEMA_PATTERN_STEPS_MAX,
  SCHEMA_PATTERNS_MAX,
  SCHEMA_UNIQUE_ITEMS_MAX,
} from "../core/limits.ts";
import { compilePattern } from "../toolserver/pattern.ts";
import { PatternError } from "../toolserver/pattern_tree.ts";
import { patternSteps } from "./pattern_cost.ts";

/** How the format that stands for a pattern is named. */
const PREFIX = "agentd-pattern:";
/** A name longer than any that a model will write. */
const NAME_CHARS = 1_000_000;

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
  if (tamed.asksUnique && itemsMax > SCHEMA_UNIQUE_ITEMS_MAX) {
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
  const named: [string, Json][] = [];
  for (const [key, value] of Object.entries(node)) {
    if (key === "pattern" && typeof value === "string") continue;
    // A server's format is a note (JSON Schema 2020-12, validation 7.2.1): what it takes, it says.
    if (key === "format" && !found.isOwn) continue;
    if (DATA.has(key)) out[key] = value;
    else if (key === "patternProperties" && isObject(value)) {
      const told = tamePatternProperties(value, found, names);
      out[key] = told.plain;
      named.push(...told.named);
    } else if (MAPS.has(key) && isObject(value)) {
      const members: JsonObject = Object.create(null);
      for (const [name, member] of Object.entries(value)) {
        members[name] = tame(member, found, names);
      }
      out[key] = members;
    } else out[key] = tame(value, found, names);
  }
  addNamed(out, named);
  if (node["uniqueItems"] === true) found.asksUnique = true;
  const { pattern } = node;
  if (typeof pattern !== "string") return out;
  const name = formatOf(pattern, found.isOwn);
  if (out["format"] === undefined) out["format"] = name;
  else out["allOf"] = [...(Array.isArray(out["allOf"]) ? out["allOf"] : []), { format: name }];
  return out;
}

/** What is asked of properties by name, beside what a schema asks of them already. */
function addNamed(schema: JsonObject, named: readonly [string, Json][]): void {
  if (named.length === 0) return;
  const before = isObject(schema["properties"]) ? schema["properties"] : Object.create(null);
  const properties: JsonObject = Object.assign(Object.create(null), before);
  for (const [name, member] of named) {
    const known = properties[name];
    properties[name] = known === undefined ? member : { allOf: [known, member] };
  }
  schema["properties"] = properties;
}

/**
 * Patterns of names that are matched at once stay. What a hard one matches is told by name instead,
 * beside what `properties` says of it: that is the same, and takes no expression.
 */
function tamePatternProperties(
  properties: JsonObject,
  found: TamedSchema,
  names: readonly string[] | null,
): { plain: JsonObject; named: [string, Json][] } {
  const plain: JsonObject = Object.create(null);
  const named: [string, Json][] = [];
  for (const [pattern, member] of Object.entries(properties)) {
    const schema = tame(member, found, names);
    if (isPlain(pattern)) {
      plain[pattern] = schema;
      continue;
    }
    found.perValue = true;
    const matches = (names ?? []).filter(matcherOf(pattern, found.isOwn));
    if (matches.length > SCHEMA_MATCHED_NAMES_MAX) {
      throw new Error(
        `more than ${SCHEMA_MATCHED_NAMES_MAX} properties match ${JSON.stringify(pattern)}`,
      );
    }
    for (const name of matches) named.push([name, schema]);
  }
  return { plain, named };
}

/** Whether matching any name is a matter of one pass. */
function isPlain(pattern: string): boolean {
  return patternSteps(pattern, NAME_CHARS) <= SCHEMA_PATTERN_STEPS_MAX;
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
    (!isOwn && patternSteps(source, text.length) > SCHEMA_PATTERN_STEPS_MAX) ||
    expression.test(text);
}
