/** Whether a document is a JSON Schema: what can be known before anything is validated against it. */

import { SCHEMA_DEPTH_MAX, SCHEMA_FAULTS_MAX } from "../core/config_limits.ts";
import { isObject, type Json, type JsonObject } from "../core/json.ts";

/** One fault of a schema: where, as a JSON Pointer, and what. */
export interface SchemaFault {
  pointer: string;
  message: string;
}

const TYPES = ["null", "boolean", "object", "array", "number", "string", "integer"];

type Check = (value: Json, pointer: string, state: State) => void;

interface State {
  faults: SchemaFault[];
  references: { reference: string; base: string; pointer: string }[];
  /** Absolute URIs (with anchors) of the schemas in the document. */
  known: Map<string, Json>;
}

/**
 * Every fault of a schema, at most 20. Drafts 4 to 2020-12 are taken together: a keyword must have
 * a form that one of them gives it. References must lead to a place in the document itself, since
 * nothing is ever fetched; patterns must compile.
 */
export function findSchemaFaults(schema: Json): SchemaFault[] {
  if (!isObject(schema)) return [{ pointer: "#", message: "a schema must be an object" }];
  const state: State = { faults: [], references: [], known: new Map() };
  const keys = Object.keys(schema);
  if (keys.length > 0 && !keys.some((key) => Object.hasOwn(KEYWORDS, key))) {
    fault(state, "#", `has no keyword of JSON Schema (found ${keys.slice(0, 5).join(", ")})`);
  }
  state.known.set(ROOT, schema);
  visit(schema, "#", ROOT, state, 0);
  for (const { reference, base, pointer } of state.references) {
    if (!resolves(reference, base, state)) {
      fault(state, pointer, `the reference ${JSON.stringify(reference)} leads nowhere`);
    }
  }
  return state.faults;
}

const ROOT = "schema:///";

function fault(state: State, pointer: string, message: string): void {
  if (state.faults.length < SCHEMA_FAULTS_MAX) state.faults.push({ pointer, message });
}

function visit(schema: Json, pointer: string, base: string, state: State, depth: number): void {
  if (typeof schema === "boolean") return;
  if (!isObject(schema)) return fault(state, pointer, "a schema must be an object or a boolean");
  if (depth > SCHEMA_DEPTH_MAX) {
    return fault(state, pointer, `nested deeper than ${SCHEMA_DEPTH_MAX} schemas`);
  }
  const here = identify(schema, base, state);
  for (const [key, value] of Object.entries(schema)) {
    if (!Object.hasOwn(KEYWORDS, key)) continue;
    const below = `${pointer}/${escapePointer(key)}`;
    const keyword = KEYWORDS[key]!;
    if (typeof keyword === "function") keyword(value, below, state);
    else visitBelow(keyword, value, below, here, state, depth + 1);
  }
  for (const key of ["$ref", "$dynamicRef", "$recursiveRef"]) {
    const reference = schema[key];
    if (typeof reference === "string") {
      state.references.push({ reference, base: here, pointer: `${pointer}/${key}` });
    }
  }
}

/** Notes the names that a schema gives itself; returns the base of what is below. */
function identify(schema: JsonObject, base: string, state: State): string {
  let here = base;
  const id = schema.$id ?? schema.id;
  if (typeof id === "string" && URL.canParse(id, base)) {
    here = new URL(id, base).href.replace(/#$/, "");
    state.known.set(here, schema);
  }
  for (const anchor of [schema.$anchor, schema.$dynamicAnchor]) {
    if (typeof anchor === "string") state.known.set(`${here}#${anchor}`, schema);
  }
  return here;
}

function resolves(reference: string, base: string, state: State): boolean {
  if (!URL.canParse(reference, base)) return false;
  const url = new URL(reference, base).href;
  const [document, fragment = ""] = url.split("#") as [string, string?];
  if (state.known.has(url) || (fragment === "" && state.known.has(document))) return true;
  const root = state.known.get(document);
  if (root === undefined || (fragment !== "" && !fragment.startsWith("/"))) return false;
  let node: Json | undefined = root;
  for (const raw of fragment.split("/").slice(1)) {
    const key = decodeFragment(raw).replaceAll("~1", "/").replaceAll("~0", "~");
    if (Array.isArray(node)) node = node[Number(key)];
    else if (isObject(node) && Object.hasOwn(node, key)) node = node[key];
    else return false;
  }
  return isObject(node) || typeof node === "boolean";
}

function decodeFragment(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function escapePointer(key: string): string {
  return key.replaceAll("~", "~0").replaceAll("/", "~1");
}

/** How schemas stand below a keyword. */
type Below = "schema" | "schemas" | "map" | "patterns" | "schema_or_list" | "dependencies";

function visitBelow(
  kind: Below,
  value: Json,
  pointer: string,
  base: string,
  state: State,
  depth: number,
): void {
  if (kind === "schema" || (kind === "schema_or_list" && !Array.isArray(value))) {
    return visit(value, pointer, base, state, depth);
  }
  if (kind === "schemas" || kind === "schema_or_list") {
    if (!Array.isArray(value)) return fault(state, pointer, "must be a list of schemas");
    if (kind === "schemas" && value.length === 0) fault(state, pointer, "must not be empty");
    value.forEach((item, index) => visit(item, `${pointer}/${index}`, base, state, depth));
    return;
  }
  if (!isObject(value)) return fault(state, pointer, "must be an object of schemas");
  for (const [key, member] of Object.entries(value)) {
    const below = `${pointer}/${escapePointer(key)}`;
    if (kind === "patterns") checkPattern(key, below, state);
    if (kind === "dependencies" && Array.isArray(member)) checkNames(member, below, state);
    else visit(member, below, base, state, depth);
  }
}

const checkPattern: Check = (value, pointer, state) => {
  if (typeof value !== "string") return fault(state, pointer, "must be a text");
  try {
    new RegExp(value, "u");
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    fault(state, pointer, message.replace(/^Invalid regular expression/, "invalid pattern"));
  }
};

const checkNames: Check = (value, pointer, state) => {
  if (!Array.isArray(value) || value.some((item) => typeof item !== "string")) {
    fault(state, pointer, "must be a list of texts");
  } else if (new Set(value).size !== value.length) fault(state, pointer, "names one twice");
};

const checkType: Check = (value, pointer, state) => {
  const list = Array.isArray(value) ? value : [value];
  if (list.length === 0) fault(state, pointer, "must not be empty");
  for (const item of list) {
    if (typeof item !== "string" || !TYPES.includes(item)) {
      fault(state, pointer, `${JSON.stringify(item)} is no type (${TYPES.join(", ")})`);
    }
  }
};

function must(expects: string, holds: (value: Json) => boolean): Check {
  return (value, pointer, state) => {
    if (!holds(value)) fault(state, pointer, `${JSON.stringify(value)} must be ${expects}`);
  };
}

const TEXT = must("a text", (value) => typeof value === "string");
const NUMBER = must("a number", (value) => typeof value === "number");
const COUNT = must(
  "a whole number, 0 or more",
  (value) => Number.isSafeInteger(value) && (value as number) >= 0,
);
const SWITCH = must("true or false", (value) => typeof value === "boolean");
const LIST = must("a list", (value) => Array.isArray(value));

const KEYWORDS: Readonly<Record<string, Check | Below>> = {
  $schema: must(
    "the URI of a draft of JSON Schema",
    (value) =>
      typeof value === "string" &&
      /^https?:\/\/json-schema\.org\/(draft-0[3-9]|draft\/20\d\d-\d\d|schema)/.test(value),
  ),
  $id: TEXT,
  $ref: TEXT,
  $anchor: TEXT,
  $dynamicRef: TEXT,
  $dynamicAnchor: TEXT,
  $comment: TEXT,
  $defs: "map",
  definitions: "map",
  title: TEXT,
  description: TEXT,
  type: checkType,
  enum: must("a list that is not empty", (value) => Array.isArray(value) && value.length > 0),
  const: () => {},
  default: () => {},
  examples: LIST,
  format: TEXT,
  pattern: checkPattern,
  minLength: COUNT,
  maxLength: COUNT,
  minimum: NUMBER,
  maximum: NUMBER,
  // Draft 4 has booleans here.
  exclusiveMinimum: must("a number", (value) => ["number", "boolean"].includes(typeof value)),
  exclusiveMaximum: must("a number", (value) => ["number", "boolean"].includes(typeof value)),
  multipleOf: must("a number above 0", (value) => typeof value === "number" && value > 0),
  properties: "map",
  patternProperties: "patterns",
  additionalProperties: "schema",
  unevaluatedProperties: "schema",
  propertyNames: "schema",
  required: checkNames,
  minProperties: COUNT,
  maxProperties: COUNT,
  dependentRequired: (value, pointer, state) => {
    if (!isObject(value)) return fault(state, pointer, "must be an object");
    for (const [key, names] of Object.entries(value)) {
      checkNames(names, `${pointer}/${escapePointer(key)}`, state);
    }
  },
  dependentSchemas: "map",
  dependencies: "dependencies",
  items: "schema_or_list",
  prefixItems: "schemas",
  additionalItems: "schema",
  unevaluatedItems: "schema",
  contains: "schema",
  minContains: COUNT,
  maxContains: COUNT,
  minItems: COUNT,
  maxItems: COUNT,
  uniqueItems: SWITCH,
  allOf: "schemas",
  anyOf: "schemas",
  oneOf: "schemas",
  not: "schema",
  if: "schema",
  then: "schema",
  else: "schema",
  readOnly: SWITCH,
  writeOnly: SWITCH,
  deprecated: SWITCH,
  contentEncoding: TEXT,
  contentMediaType: TEXT,
  contentSchema: "schema",
};
