/** What servers say of their tools and resources: a stranger's words, bounded and cleaned. */

import {
  canonicalJson,
  isNestedDeeper,
  isObject,
  type Json,
  type JsonObject,
} from "../core/json.ts";
import { TOOL_DESCRIPTION_CHARS_MAX, TOOL_SCHEMA_BYTES_MAX } from "../core/limits.ts";
import { byteLength, clip, withoutControls } from "../core/text.ts";
import type { Resource } from "../ports/tools.ts";

/** A tool as its server lists it, cleaned. */
export interface ListedTool {
  remoteName: string;
  description: string;
  inputSchema: JsonObject;
  /** `readOnlyHint` of its annotations. */
  readOnlyHint: boolean;
  /** Whether its schema asks for arguments to be mirrored in HTTP headers (`x-mcp-header`). */
  mirrorsHeaders: boolean;
  /** Changes when what the model is shown, or what is believed of the tool, changes. */
  fingerprint: string;
}

/** A tool that is not offered, and why. */
export interface LeftOut {
  name: string;
  why: string;
}

const NAME_CHARS_MAX = 256;
const URI_CHARS_MAX = 2_048;
const RESOURCE_NAME_CHARS_MAX = 200;
const RESOURCE_DESCRIPTION_CHARS_MAX = 300;
const SHORT_CHARS_MAX = 100;
const SCHEMA_DEPTH_MAX = 64;

/** Keys of a schema that only people and models read. */
const PROSE_KEYS: ReadonlySet<string> = new Set(["description", "title", "$comment"]);
/** What a schema that is too large can lose without a change of meaning. */
const DISPENSABLE_KEYS: ReadonlySet<string> = new Set([...PROSE_KEYS, "examples", "default"]);
/** Keys whose members are named by the server: not keywords. */
const MAP_KEYS: ReadonlySet<string> = new Set([
  "properties",
  "patternProperties",
  "$defs",
  "definitions",
  "dependentSchemas",
]);
/** Keys whose values are data, not schemas. */
const DATA_KEYS: ReadonlySet<string> = new Set([
  "enum",
  "const",
  "examples",
  "default",
  "required",
]);

/** A tool of `tools/list`, or why it is left out. */
export function readTool(raw: unknown): ListedTool | LeftOut {
  if (!isObject(raw) || typeof raw.name !== "string" || raw.name === "") {
    return { name: "", why: "it has no name" };
  }
  const name = raw.name;
  if (name.length > NAME_CHARS_MAX || withoutControls(name) !== name || /[\t\n]/.test(name)) {
    return { name: cleanLine(name, SHORT_CHARS_MAX), why: "its name is too long or unprintable" };
  }
  const schema = readSchema(raw.inputSchema);
  if (typeof schema === "string") return { name, why: schema };
  const annotations = isObject(raw.annotations) ? raw.annotations : {};
  const words = typeof raw.description === "string" && raw.description !== ""
    ? raw.description
    : typeof raw.title === "string"
    ? raw.title
    : "";
  const description = clip(withoutControls(words), TOOL_DESCRIPTION_CHARS_MAX);
  const readOnlyHint = annotations.readOnlyHint === true;
  const schemaText = canonicalJson(schema);
  return {
    remoteName: name,
    description,
    inputSchema: schema,
    readOnlyHint,
    mirrorsHeaders: schemaText.includes('"x-mcp-header"'),
    fingerprint: `${readOnlyHint}\n${schemaText}\n${description}`,
  };
}

/** The cleaned schema, or why there is none. */
function readSchema(raw: Json | undefined): JsonObject | string {
  if (!isObject(raw)) return "its input schema is no object schema";
  // A schema that names properties but no type is taken at its word.
  if (raw.type !== "object" && !(raw.type === undefined && isObject(raw.properties))) {
    return "its input schema is no object schema";
  }
  const cleaned = cleanSchema({ ...raw, type: "object" }, false, 0);
  if (!isObject(cleaned)) return "its input schema is nested too deeply";
  if (schemaBytes(cleaned) <= TOOL_SCHEMA_BYTES_MAX) return cleaned;
  const bare = cleanSchema(cleaned, true, 0);
  if (isObject(bare) && schemaBytes(bare) <= TOOL_SCHEMA_BYTES_MAX) return bare;
  return `its input schema is over ${TOOL_SCHEMA_BYTES_MAX} bytes`;
}

function schemaBytes(schema: JsonObject): number {
  return byteLength(JSON.stringify(schema));
}

/** Without control characters in prose; `bare`: without prose. Undefined: nested too deeply. */
function cleanSchema(schema: Json, bare: boolean, depth: number): Json | undefined {
  if (depth > SCHEMA_DEPTH_MAX) return undefined;
  if (Array.isArray(schema)) {
    const items: Json[] = [];
    for (const item of schema) {
      const cleaned = cleanSchema(item, bare, depth + 1);
      if (cleaned === undefined) return undefined;
      items.push(cleaned);
    }
    return items;
  }
  if (!isObject(schema)) return schema;
  const out: JsonObject = {};
  for (const [key, value] of Object.entries(schema)) {
    if (bare && DISPENSABLE_KEYS.has(key)) continue;
    const cleaned = cleanMember(key, value, bare, depth);
    if (cleaned === undefined) return undefined;
    define(out, key, cleaned);
  }
  return out;
}

function cleanMember(key: string, value: Json, bare: boolean, depth: number): Json | undefined {
  if (PROSE_KEYS.has(key) && typeof value === "string") {
    return clip(withoutControls(value), TOOL_DESCRIPTION_CHARS_MAX);
  }
  // Data is not cleaned, and no deeper than the rest.
  if (DATA_KEYS.has(key)) {
    return isNestedDeeper(value, SCHEMA_DEPTH_MAX - depth) ? undefined : value;
  }
  if (!MAP_KEYS.has(key) || !isObject(value)) return cleanSchema(value, bare, depth + 1);
  const out: JsonObject = {};
  for (const [name, member] of Object.entries(value)) {
    const cleaned = cleanSchema(member, bare, depth + 2);
    if (cleaned === undefined) return undefined;
    define(out, name, cleaned);
  }
  return out;
}

/** Sets a member, also one named `__proto__`, as data. */
function define(target: JsonObject, key: string, value: Json): void {
  if (key === "__proto__") {
    Object.defineProperty(target, key, {
      value,
      enumerable: true,
      configurable: true,
      writable: true,
    });
  } else target[key] = value;
}

/** A resource or a template of a listing, cleaned; undefined if it cannot be used. */
export function readResource(
  server: string,
  raw: unknown,
  template: boolean,
): Resource | undefined {
  if (!isObject(raw)) return undefined;
  const uri = template ? raw.uriTemplate : raw.uri;
  if (typeof uri !== "string" || !isUri(uri)) return undefined;
  const annotations = isObject(raw.annotations) ? raw.annotations : {};
  const meta = isObject(raw._meta) ? raw._meta : {};
  const etag = typeof meta.etag === "string" ? meta.etag : annotations.lastModified;
  const title = typeof raw.title === "string" ? raw.title : "";
  return {
    server,
    uri,
    name: line(raw.name, RESOURCE_NAME_CHARS_MAX) || cleanLine(title, RESOURCE_NAME_CHARS_MAX),
    description: line(raw.description, RESOURCE_DESCRIPTION_CHARS_MAX),
    mimeType: line(raw.mimeType, SHORT_CHARS_MAX) || null,
    bytes: typeof raw.size === "number" && raw.size >= 0 ? Math.floor(raw.size) : null,
    etag: line(etag, SHORT_CHARS_MAX) || null,
    template,
  };
}

/** Whether a stranger's URI may be handled: of bounded length, without control characters. */
export function isUri(uri: string): boolean {
  return uri !== "" && uri.length <= URI_CHARS_MAX && withoutControls(uri) === uri &&
    !/[\t\n]/.test(uri);
}

function line(value: Json | undefined, charsMax: number): string {
  return typeof value === "string" ? cleanLine(value, charsMax) : "";
}

function cleanLine(text: string, charsMax: number): string {
  return clip(withoutControls(text).replace(/\s+/g, " ").trim(), charsMax);
}
