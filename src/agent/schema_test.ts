import assert from "node:assert/strict";
import type { Json, JsonObject } from "../core/json.ts";
import {
  SCHEMA_MATCHED_NAMES_MAX,
  SCHEMA_PATTERN_STEPS_MAX,
  SCHEMA_PATTERNS_MAX,
  SCHEMA_UNIQUE_ITEMS_MAX,
} from "../core/limits.ts";
import { patternSteps } from "./pattern_cost.ts";
import { schemaFaults } from "./schema.ts";

const inProperty = (schema: JsonObject): JsonObject => ({
  type: "object",
  properties: { s: schema },
});

/** Schema, a value that satisfies it, one that does not. */
const ROWS: [JsonObject, Json, Json][] = [
  [{ pattern: "^[a-z]+$" }, "abc", "Abc"],
  [{ pattern: "b" }, "abc", "ac"],
  [{ pattern: "^.*$" }, "one line", "two\rlines"],
  [{ pattern: "^(?!\\s*$).+" }, "text", "  "],
  [{ pattern: "^(a|b)\\1$" }, "aa", "ab"],
  [{ pattern: "^\\p{Lu}" }, "Über", "über"],
  [{ pattern: "^a", format: "date" }, 3, "b"],
  [{ anyOf: [{ pattern: "^a" }, { type: "integer" }] }, "ab", "b"],
  [{ not: { pattern: "^a" } }, "b", "a"],
  [{ enum: ["x"], pattern: "^x" }, "x", "xx"],
  [inProperty({ pattern: "^a" }), { s: "a" }, { s: "b" }],
  [{ properties: { pattern: { type: "string" } } }, { pattern: "(" }, { pattern: 1 }],
  [{ $defs: { id: { pattern: "^i-" } }, properties: { a: { $ref: "#/$defs/id" } } }, { a: "i-1" }, {
    a: "1",
  }],
  [{ patternProperties: { "^x-": { type: "integer" } } }, { "x-a": 1, y: "z" }, { "x-a": "1" }],
  [
    { patternProperties: { "^(a+)+$": { type: "integer" } }, additionalProperties: false },
    { aa: 1 },
    { aa: "1" },
  ],
  [
    { patternProperties: { "^(a+)+$": { type: "integer" } }, additionalProperties: false },
    { a: 1, aaa: 2 },
    { ab: 1 },
  ],
  [
    { patternProperties: { "(a+)+$": { minimum: 1 }, "^(a|b)*$": { maximum: 5 } } },
    { aa: 3, c: "x" },
    { aa: 9 },
  ],
  [
    { properties: { aa: { minimum: 2 } }, patternProperties: { "(a+)+$": { maximum: 5 } } },
    { aa: 3 },
    { aa: 1 },
  ],
  [
    { properties: { aa: { minimum: 2 } }, patternProperties: { "(a+)+$": { maximum: 5 } } },
    { aa: 2, ba: 5 },
    { aa: 6 },
  ],
  [{ propertyNames: { pattern: "^([a-z]+-)*[a-z]+$" } }, { "a-b": 1 }, { "a--b": 1 }],
  [{ uniqueItems: true }, [1, 2], [1, 1]],
];

Deno.test("schemaFaults: patterns mean what they mean, wherever they stand", () => {
  for (const [schema, good, bad] of ROWS) {
    for (const isOwn of [false, true]) {
      assert.deepEqual(schemaFaults(schema, good, isOwn), [], JSON.stringify([schema, good]));
      assert.notDeepEqual(schemaFaults(schema, bad, isOwn), [], JSON.stringify([schema, bad]));
    }
  }
  assert.deepEqual(schemaFaults(inProperty({ pattern: "^a" }), { s: "b" }), [
    "s: String does not match pattern.",
  ]);
});

Deno.test("schemaFaults: a format is asserted in the task's own schema, and a server's note", () => {
  const rows: [JsonObject, string, string][] = [
    [{ pattern: "^\\d", format: "date" }, "2026-06-25", "2026-06-99"],
    [{ format: "date-time" }, "2026-06-25T10:11:12Z", "2026-06-25T10:11:12"],
    [{ format: "url" }, "https://example.org/a", "example"],
  ];
  for (const [schema, good, bad] of rows) {
    assert.deepEqual(schemaFaults(schema, good, true), []);
    assert.notDeepEqual(schemaFaults(schema, bad, true), [], bad);
    assert.deepEqual(schemaFaults(schema, bad), [], bad);
  }
});

Deno.test("schemaFaults: a schema is not changed, and a pattern that is none harms only who asks it", () => {
  const schema = inProperty({ pattern: "^a(" });
  const before = JSON.stringify(schema);
  assert.deepEqual(schemaFaults(schema, {}), []);
  assert.match(schemaFaults(schema, { s: "a" })[0]!, /cannot be applied/);
  assert.equal(JSON.stringify(schema), before);
});

Deno.test("schemaFaults: no pattern of a server holds the loop, whatever a model writes", () => {
  const long = "a".repeat(100_000);
  const hostile: JsonObject[] = [
    { pattern: "^(a+)+$" },
    { pattern: "(a|a)*$" },
    { pattern: "a*a*a*a*b" },
    { pattern: "^(?=x?)(a+)+$" },
    { pattern: "^(a?){60}a{60}(?!b)$" },
    { pattern: "^(a*)*\\1b$" },
    { patternProperties: { "^(a+)+$": { type: "integer" } } },
    { patternProperties: { "a*a*a*b": { type: "integer" } } },
    { propertyNames: { pattern: "^(a|aa)+$" } },
    { format: "url" },
  ];
  for (const schema of hostile) {
    for (const text of [`${long}!`, `http://${long}!`]) {
      schemaFaults(schema, text);
      schemaFaults(schema, { [text]: "x" });
    }
  }
  const items = Array.from({ length: SCHEMA_UNIQUE_ITEMS_MAX + 1 }, (_, index) => index);
  assert.deepEqual(schemaFaults({ uniqueItems: true }, items.slice(1)), []);
  assert.match(schemaFaults({ uniqueItems: true }, items)[0]!, /10001 cannot be told apart/);
});

Deno.test("schemaFaults: names that a hard pattern matches, at the bound and one past it", () => {
  const schema = { patternProperties: { "^(n\\d+)+$": { type: "integer" } } };
  const of = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`n${index}`, 1]));
  assert.deepEqual(schemaFaults(schema, of(SCHEMA_MATCHED_NAMES_MAX)), []);
  assert.match(
    schemaFaults(schema, of(SCHEMA_MATCHED_NAMES_MAX + 1))[0]!,
    /more than 10000 properties/,
  );
});

Deno.test("schemaFaults: patterns that are held, at the bound and one past it", () => {
  const faults: string[] = [];
  for (let n = 0; n <= SCHEMA_PATTERNS_MAX && faults.length === 0; n++) {
    faults.push(...schemaFaults({ pattern: `^never asked before ${n}|x` }, "x"));
  }
  assert.match(faults[0]!, /there are more than 4096 patterns/);
});

Deno.test("patternSteps: what cannot take long is told from what can", () => {
  const rows: [source: string, length: number, short: boolean][] = [
    ["^(?!\\s*$).+$", 100_000, true],
    ["^(?=.*\\d)(?=.*[a-z]).{8,64}$", 100_000, true],
    ["^\\p{L}+$", 1_000_000, true],
    ["\\p{L}+x", 1_000, true],
    ["\\p{L}+x", 1_000_000, false],
    ["^(?=x)(a+)+$", 30, false],
    ["^(?=x)(a|aa)+$", 60, false],
    ["^(?=x)a*a*a*a*b$", 1_000, false],
    ["^(?=x)(a?){40}a{40}$", 40, false],
    ["^(a*)\\1$", 1_000, true],
    ["(", 10, false],
  ];
  for (const [source, length, short] of rows) {
    assert.equal(patternSteps(source, length) <= SCHEMA_PATTERN_STEPS_MAX, short, source);
  }
});
