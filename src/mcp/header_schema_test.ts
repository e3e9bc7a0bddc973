import assert from "node:assert/strict";
import type { JsonObject } from "../core/json.ts";
import { hasSoundHeaders } from "./header_schema.ts";

Deno.test("hasSoundHeaders: only unique tokens on primitive properties reached by properties alone", () => {
  const field = (extra: JsonObject): JsonObject => ({ type: "string", ...extra });
  const rows: [schema: JsonObject, sound: boolean][] = [
    [{ type: "object" }, true],
    [{ properties: { a: field({ "x-mcp-header": "Region" }) } }, true],
    [{ properties: { a: { properties: { b: field({ "x-mcp-header": "Region" }) } } } }, true],
    [{
      properties: {
        a: { type: "boolean", "x-mcp-header": "A" },
        b: { type: "integer", "x-mcp-header": "B" },
      },
    }, true],
    [{ "x-mcp-header": "Root", type: "string" }, false],
    [{ properties: { a: field({ "x-mcp-header": "" }) } }, false],
    [{ properties: { a: field({ "x-mcp-header": "two words" }) } }, false],
    [{ properties: { a: field({ "x-mcp-header": "a\r\nb" }) } }, false],
    [{ properties: { a: field({ "x-mcp-header": 7 }) } }, false],
    [{ properties: { a: { type: "number", "x-mcp-header": "A" } } }, false],
    [{ properties: { a: { "x-mcp-header": "A" } } }, false],
    [
      { properties: { a: field({ "x-mcp-header": "A" }), b: field({ "x-mcp-header": "a" }) } },
      false,
    ],
    [{ properties: { a: { type: "array", items: field({ "x-mcp-header": "A" }) } } }, false],
    [{ $defs: { a: { properties: { b: field({ "x-mcp-header": "A" }) } } } }, false],
    [{ anyOf: [{ properties: { b: field({ "x-mcp-header": "A" }) } }] }, false],
  ];
  for (const [schema, sound] of rows) {
    assert.equal(hasSoundHeaders(schema), sound, JSON.stringify(schema));
  }
});
