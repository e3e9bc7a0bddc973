/**
 * Arguments that a tool wants mirrored in HTTP headers (`x-mcp-header`, revision 2026-07-28): a
 * client must leave out tools whose declarations break the rules.
 */

import { isObject, type Json, type JsonObject } from "../core/json.ts";

const KEY = "x-mcp-header";
/** A header's name (RFC 9110, 5.6.2). */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const TYPES: ReadonlySet<Json | undefined> = new Set(["string", "integer", "boolean"]);

/** Whether every declaration is one that a client may follow. */
export function hasSoundHeaders(schema: JsonObject): boolean {
  const names = new Set<string>();
  const sound = collect(schema, true, names);
  return sound !== null && sound === count(schema);
}

/** Sound declarations reached through `properties` alone; null if one is not sound. */
function collect(schema: JsonObject, root: boolean, names: Set<string>): number | null {
  let found = 0;
  if (Object.hasOwn(schema, KEY)) {
    const name = schema[KEY];
    if (root || typeof name !== "string" || !TOKEN.test(name)) return null;
    if (!TYPES.has(schema.type) || names.has(name.toLowerCase())) return null;
    names.add(name.toLowerCase());
    found++;
  }
  if (!isObject(schema.properties)) return found;
  for (const member of Object.values(schema.properties)) {
    if (!isObject(member)) continue;
    const inner = collect(member, false, names);
    if (inner === null) return null;
    found += inner;
  }
  return found;
}

/** Declarations anywhere in the schema. */
function count(schema: Json): number {
  if (Array.isArray(schema)) return schema.reduce<number>((sum, item) => sum + count(item), 0);
  if (!isObject(schema)) return 0;
  return Object.entries(schema).reduce(
    (sum, [key, value]) => sum + (key === KEY ? 1 : 0) + count(value),
    0,
  );
}
