/** JSON Schema, interpreted: no code is made from a stranger's schema. */

import { type Schema, Validator } from "@cfworker/json-schema";
import type { Json, JsonObject } from "../core/json.ts";
import { clip } from "../core/text.ts";
import {
  checkItems,
  measureValue,
  patternFault,
  type TamedSchema,
  tameSchema,
} from "./schema_patterns.ts";

interface Prepared {
  tamed: TamedSchema;
  validator: Validator;
}

/** The task's own schemas, and those of servers. */
const prepared = {
  own: new WeakMap<JsonObject, Prepared>(),
  servers: new WeakMap<JsonObject, Prepared>(),
};

/** How many faults of one value are named. */
const FAULTS_MAX = 8;

/**
 * What is wrong with a value, one fault a string; empty if it satisfies the schema. `isOwn`: the
 * schema is the task's, not a server's.
 */
export function schemaFaults(schema: JsonObject, value: Json, isOwn = false): string[] {
  let result;
  try {
    result = validate(schema, value, isOwn);
  } catch (error) {
    return [
      `the schema itself cannot be applied: ${error instanceof Error ? error.message : error}`,
    ];
  }
  if (result.valid) return [];
  const faults: string[] = [];
  for (const { error, instanceLocation, keyword } of result.errors) {
    // An applicator only repeats that something below it failed.
    if (APPLICATORS.has(keyword) || keyword === "false") continue;
    const place = instanceLocation.replace(/^#\/?/, "");
    const words = patternFault(error);
    faults.push(clip(place === "" ? words : `${place}: ${words}`, 300));
    if (faults.length === FAULTS_MAX) break;
  }
  return faults.length > 0 ? faults : [clip(result.errors[0]?.error ?? "does not match", 300)];
}

function validate(
  schema: JsonObject,
  value: Json,
  isOwn: boolean,
): ReturnType<Validator["validate"]> {
  const memory = isOwn ? prepared.own : prepared.servers;
  let known = memory.get(schema);
  if (known === undefined) memory.set(schema, known = prepare(schema, isOwn, null));
  const { tamed, validator } = known;
  if (!tamed.perValue && !tamed.asksUnique) return validator.validate(value);
  const { names, itemsMax } = measureValue(value);
  checkItems(tamed, itemsMax);
  return (tamed.perValue ? prepare(schema, isOwn, names).validator : validator).validate(value);
}

function prepare(schema: JsonObject, isOwn: boolean, names: readonly string[] | null): Prepared {
  const tamed = tameSchema(schema, isOwn, names);
  return { tamed, validator: new Validator(tamed.schema as Schema, draftOf(schema), false) };
}

const APPLICATORS = new Set([
  "properties",
  "items",
  "prefixItems",
  "additionalItems",
  "allOf",
  "anyOf",
  "oneOf",
  "$ref",
  "if",
  "then",
  "else",
  "dependentSchemas",
  "patternProperties",
]);

function draftOf(schema: JsonObject): "4" | "7" | "2019-09" | "2020-12" {
  const uri = typeof schema.$schema === "string" ? schema.$schema : "";
  if (uri.includes("draft-04")) return "4";
  if (uri.includes("draft-07") || uri.includes("draft-06")) return "7";
  if (uri.includes("2019-09")) return "2019-09";
  return "2020-12";
}
