/** JSON Schema, interpreted: no code is made from a stranger's schema. */

import { type Schema, Validator } from "@cfworker/json-schema";
import type { Json, JsonObject } from "../core/json.ts";
import { clip } from "../core/text.ts";

const validators = new WeakMap<JsonObject, Validator>();

/** How many faults of one value are named. */
const FAULTS_MAX = 8;

/** What is wrong with a value, one fault a string; empty if it satisfies the schema. */
export function schemaFaults(schema: JsonObject, value: Json): string[] {
  let validator = validators.get(schema);
  if (validator === undefined) {
    validator = new Validator(schema as Schema, draftOf(schema), false);
    validators.set(schema, validator);
  }
  let result;
  try {
    result = validator.validate(value);
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
    faults.push(clip(place === "" ? error : `${place}: ${error}`, 300));
    if (faults.length === FAULTS_MAX) break;
  }
  return faults.length > 0 ? faults : [clip(result.errors[0]?.error ?? "does not match", 300)];
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
