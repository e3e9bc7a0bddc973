import assert from "node:assert/strict";
import { TOOL_DESCRIPTION_CHARS_MAX, TOOL_SCHEMA_BYTES_MAX } from "../core/limits.ts";
import { isUri, readResource, readTool } from "./metadata.ts";

const SCHEMA = { type: "object", properties: { a: { type: "string" } } };

Deno.test("readTool: what is no tool is left out, with the reason", () => {
  const deep = { type: "object", properties: {} } as Record<string, unknown>;
  let inner = deep;
  for (let level = 0; level < 70; level++) inner = inner.not = {} as Record<string, unknown>;
  const enumOf = (bytes: number) => ({ type: "object", enum: ["x".repeat(bytes)] });
  const overhead = JSON.stringify(enumOf(0)).length;
  const rows: [raw: unknown, why: RegExp | null][] = [
    [null, /no name/],
    [[], /no name/],
    [{ name: 7, inputSchema: SCHEMA }, /no name/],
    [{ name: "", inputSchema: SCHEMA }, /no name/],
    [{ name: "n".repeat(257), inputSchema: SCHEMA }, /too long/],
    [{ name: "a\tb", inputSchema: SCHEMA }, /unprintable/],
    [{ name: "a\u200bb", inputSchema: SCHEMA }, /unprintable/],
    [{ name: "t" }, /no object schema/],
    [{ name: "t", inputSchema: true }, /no object schema/],
    [{ name: "t", inputSchema: [] }, /no object schema/],
    [{ name: "t", inputSchema: {} }, /no object schema/],
    [{ name: "t", inputSchema: { type: "array" } }, /no object schema/],
    [{ name: "t", inputSchema: deep }, /nested too deeply/],
    [{ name: "t", inputSchema: enumOf(TOOL_SCHEMA_BYTES_MAX - overhead) }, null],
    [{ name: "t", inputSchema: enumOf(TOOL_SCHEMA_BYTES_MAX - overhead + 1) }, /over 65536 bytes/],
    [{ name: "t", inputSchema: SCHEMA }, null],
    [{ name: "t", inputSchema: { properties: {} } }, null],
  ];
  for (const [raw, why] of rows) {
    const tool = readTool(raw);
    if (why === null) assert.ok(!("why" in tool), JSON.stringify(tool));
    else assert.ok("why" in tool && why.test(tool.why), JSON.stringify(raw)?.slice(0, 80));
  }
});

Deno.test("readTool: words are cleaned and bounded, data and names in a schema are not touched", () => {
  const tool = readTool({
    name: "t",
    title: "T",
    description: "\u001b[31mred\u202e" + "d".repeat(5_000),
    annotations: { readOnlyHint: true },
    inputSchema: {
      type: "object",
      description: "all\u0000",
      properties: {
        description: { type: "string", title: "x\u0007", enum: ["\u0007"], default: "\u0007" },
        title: { const: "\u200b" },
      },
      $defs: { description: { description: "y\u0007" } },
      required: ["description"],
    },
  });
  assert.ok(!("why" in tool));
  assert.equal(tool.readOnlyHint, true);
  assert.ok(tool.description.startsWith("[31mredddd"));
  assert.equal(tool.description.length, TOOL_DESCRIPTION_CHARS_MAX);
  assert.deepEqual(tool.inputSchema, {
    type: "object",
    description: "all",
    properties: {
      description: { type: "string", title: "x", enum: ["\u0007"], default: "\u0007" },
      title: { const: "\u200b" },
    },
    $defs: { description: { description: "y" } },
    required: ["description"],
  });
});

Deno.test("readTool: __proto__ is a name like any other", () => {
  const raw = JSON.parse(
    '{"name":"t","inputSchema":{"type":"object","properties":{"__proto__":{"type":"string"}}}}',
  );
  const tool = readTool(raw);
  assert.ok(!("why" in tool));
  assert.equal(JSON.stringify(tool.inputSchema), JSON.stringify(raw.inputSchema));
});

Deno.test("readTool: the fingerprint changes with what is shown or believed, and with nothing else", () => {
  const base = { name: "t", description: "d", inputSchema: SCHEMA };
  const print = (raw: object) => {
    const tool = readTool(raw);
    assert.ok(!("why" in tool));
    return tool.fingerprint;
  };
  const same = print(base);
  assert.equal(print({ ...base, title: "T", _meta: {}, icons: [] }), same);
  assert.equal(
    print({
      inputSchema: { properties: { a: { type: "string" } }, type: "object" },
      description: "d",
      name: "t",
    }),
    same,
  );
  for (
    const other of [
      { ...base, description: "e" },
      { ...base, annotations: { readOnlyHint: true } },
      { ...base, inputSchema: { ...SCHEMA, required: ["a"] } },
    ]
  ) assert.notEqual(print(other), same);
});

Deno.test("readResource: bounded, cleaned, or left out", () => {
  assert.deepEqual(
    readResource("s", {
      uri: "mem://a",
      name: "A\nB\u0007",
      description: "x".repeat(400),
      mimeType: "text/plain",
      size: 12.7,
      annotations: { lastModified: "2026-01-01" },
    }, false),
    {
      server: "s",
      uri: "mem://a",
      name: "A B",
      description: "x".repeat(299) + "…",
      mimeType: "text/plain",
      bytes: 12,
      etag: "2026-01-01",
      template: false,
    },
  );
  const template = readResource("s", {
    uriTemplate: "mem://{id}",
    title: "T",
    _meta: { etag: "e" },
  }, true);
  assert.deepEqual([template?.uri, template?.name, template?.etag, template?.template], [
    "mem://{id}",
    "T",
    "e",
    true,
  ]);
  for (const raw of [null, {}, { uri: "" }, { uri: "a\u0000" }, { uri: 5 }]) {
    assert.equal(readResource("s", raw, false), undefined);
  }
});

Deno.test("isUri: at the bound and one past it", () => {
  assert.equal(isUri("u".repeat(2_048)), true);
  assert.equal(isUri("u".repeat(2_049)), false);
});
