import assert from "node:assert/strict";
import type { Json } from "../core/json.ts";
import { findSchemaFaults } from "./json_schema.ts";

const sound: Json[] = [
  {},
  { type: "object" },
  {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: ["object", "null"],
    properties: { a: { $ref: "#/$defs/text" }, b: true, c: { $ref: "#" } },
    required: ["a"],
    additionalProperties: false,
    $defs: { text: { type: "string", minLength: 1, pattern: "^\\p{L}+$", format: "email" } },
  },
  { items: [{ type: "string" }], additionalItems: false },
  { items: { type: "string" }, uniqueItems: true, minItems: 1 },
  { $defs: { a: { $anchor: "x", type: "string" } }, $ref: "#x" },
  {
    $id: "https://a.example/s",
    $defs: { a: { $id: "t", type: "string" } },
    anyOf: [{ $ref: "t" }],
  },
  { $ref: "#/definitions/a~1b~0c", definitions: { "a/b~c": { type: "integer" } } },
  { $ref: "#/properties/x%20y", properties: { "x y": { type: "number" } } },
  { exclusiveMinimum: true, minimum: 0 },
  { dependencies: { a: ["b"], c: { required: ["d"] } } },
  { dependentRequired: { a: ["b"] }, patternProperties: { "^x-": {} } },
  { type: "string", "x-own": { type: 5 } },
  { enum: [1, "a", null] },
  { properties: { type: { type: "string" }, $ref: { type: "string" } } },
];

Deno.test("findSchemaFaults: what is a schema has no fault", () => {
  for (const schema of sound) {
    assert.deepEqual(findSchemaFaults(schema), [], JSON.stringify(schema));
  }
});

Deno.test("findSchemaFaults: every fault is named with its place", () => {
  const rows: [schema: Json, pointer: string, message: RegExp][] = [
    [[], "#", /must be an object/],
    ["x", "#", /must be an object/],
    [true, "#", /must be an object/],
    [{ name: "string", age: "number" }, "#", /no keyword of JSON Schema \(found name, age\)/],
    [{ type: "objet" }, "#/type", /"objet" is no type/],
    [{ type: [] }, "#/type", /must not be empty/],
    [{ type: 5 }, "#/type", /5 is no type/],
    [{ properties: [] }, "#/properties", /object of schemas/],
    [{ properties: { a: "string" } }, "#/properties/a", /an object or a boolean/],
    [{ properties: { "a/b": 1 } }, "#/properties/a~1b", /an object or a boolean/],
    [{ required: "a" }, "#/required", /list of texts/],
    [{ required: ["a", "a"] }, "#/required", /twice/],
    [{ required: [1] }, "#/required", /list of texts/],
    [{ pattern: "(" }, "#/pattern", /invalid pattern/],
    [{ pattern: "\\-" }, "#/pattern", /invalid pattern/],
    [{ patternProperties: { "[": {} } }, "#/patternProperties/[", /invalid pattern/],
    [{ minLength: -1 }, "#/minLength", /whole number, 0 or more/],
    [{ minimum: "0" }, "#/minimum", /must be a number/],
    [{ multipleOf: 0 }, "#/multipleOf", /above 0/],
    [{ enum: [] }, "#/enum", /not empty/],
    [{ anyOf: [] }, "#/anyOf", /must not be empty/],
    [{ anyOf: {} }, "#/anyOf", /list of schemas/],
    [{ allOf: [{ type: "x" }] }, "#/allOf/0/type", /no type/],
    [{ $ref: "#/$defs/none" }, "#/$ref", /leads nowhere/],
    [{ $ref: "https://other.example/schema" }, "#/$ref", /leads nowhere/],
    [{ $ref: "#none" }, "#/$ref", /leads nowhere/],
    [{ $ref: 5 }, "#/$ref", /must be a text/],
    [{ $ref: "#/title", title: "x" }, "#/$ref", /leads nowhere/],
    [{ $schema: "http://example.org/x" }, "#/$schema", /draft of JSON Schema/],
    [{ uniqueItems: 1 }, "#/uniqueItems", /true or false/],
    [{ dependentRequired: { a: "b" } }, "#/dependentRequired/a", /list of texts/],
  ];
  for (const [schema, pointer, message] of rows) {
    const faults = findSchemaFaults(schema);
    assert.equal(faults.length, 1, `${JSON.stringify(schema)} ${JSON.stringify(faults)}`);
    assert.equal(faults[0]!.pointer, pointer);
    assert.match(faults[0]!.message, message);
  }
});

Deno.test("findSchemaFaults: depth and number of faults are bounded", () => {
  let deep: Json = { type: "string" };
  for (let i = 0; i < 128; i++) deep = { not: deep };
  assert.deepEqual(findSchemaFaults(deep), []);
  assert.match(findSchemaFaults({ not: deep })[0]!.message, /nested deeper than 128/);
  const many = { allOf: Array.from({ length: 50 }, () => ({ type: "x" })) };
  assert.equal(findSchemaFaults(many).length, 20);
});
