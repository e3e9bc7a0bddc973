import assert from "node:assert/strict";
import { findJsonFault, parseDocument } from "./document.ts";

Deno.test("findJsonFault: names line and column of the first character that cannot stand there", () => {
  const rows: [text: string, line: number, column: number, found: RegExp][] = [
    ["", 1, 1, /the text ends/],
    ["{", 1, 2, /the text ends/],
    ['{"a": 1,\n "b": x}', 2, 7, /found "x"/],
    ["[1,]", 1, 4, /found "]"/],
    ['{"a":1,}', 1, 8, /found "}"/],
    ['{"a" 1}', 1, 6, /found "1"/],
    ["{a: 1}", 1, 2, /found "a"/],
    ['{"a": 1} x', 1, 10, /found "x"/],
    ['["a\nb"]', 1, 4, /found "\\n"/],
    ['["\\x"]', 1, 4, /found "x"/],
    ['["\\u12g4"]', 1, 7, /found "g"/],
    ['["abc', 1, 6, /the text ends/],
    ["[01]", 1, 3, /found "1"/],
    ["[-]", 1, 2, /found "-"/],
    ["[tru]", 1, 5, /found "]"/],
    ["[1 2]", 1, 4, /found "2"/],
    ["\n\n  nul", 3, 6, /the text ends/],
  ];
  for (const [text, line, column, found] of rows) {
    const fault = findJsonFault(text);
    assert.ok(fault, JSON.stringify(text));
    assert.deepEqual([fault.line, fault.column], [line, column], JSON.stringify(text));
    assert.match(fault.message, found);
    assert.doesNotMatch(fault.message, /undefined|\n/);
  }
  for (const text of ["0", '"x"', ' { "a" : [ 1.5e-3 , null , true, "\\u00e9\\n" ] } ', "[]"]) {
    assert.equal(findJsonFault(text), null, text);
  }
});

Deno.test("parseDocument: YAML and JSON give the same data and the places of their keys", async () => {
  const yaml = await parseDocument("a: 1\nb:\n  c: [x, y]\n  d: {e: null}\n", false);
  assert.ok(yaml.ok);
  assert.deepEqual(yaml.value.value, { a: 1, b: { c: ["x", "y"], d: { e: null } } });
  assert.deepEqual(yaml.value.placeOf(["b", "d", "e"]), { line: 4, column: 7 });
  assert.deepEqual(yaml.value.placeOf(["b", "c", "1"]), { line: 3, column: 10 });
  assert.deepEqual(yaml.value.placeOf(["b", "c", "7"]), { line: 3, column: 3 });
  assert.equal(yaml.value.placeOf(["z"]), undefined);
  const json = await parseDocument('{\n  "a": 1,\n  "b": {"c": 2}\n}', true);
  assert.ok(json.ok);
  assert.deepEqual(json.value.value, { a: 1, b: { c: 2 } });
  assert.deepEqual(json.value.placeOf(["b", "c"]), { line: 3, column: 9 });
  const empty = await parseDocument("# nothing\n", false);
  assert.ok(empty.ok);
  assert.equal(empty.value.value, null);
});

Deno.test("parseDocument: faults carry line and column", async () => {
  const deep = `${"[".repeat(70)}${"]".repeat(70)}`;
  const rows: [text: string, json: boolean, line: number, message: RegExp][] = [
    ["a: 1\na: 2\n", false, 2, /unique/],
    ["a:\n\t- b\n", false, 2, /tab/i],
    ['a: "x\n', false, 2, /quote/],
    ["a: .inf\n", false, 1, /not a number JSON has/],
    ["a: 1\n---\na: 2\n", false, 2, /^it holds several documents, where one is taken$/],
    [`a: ${"[".repeat(20_000)}`, false, 1, /^nested deeper than 64$/],
    [`a: ${deep}`, false, 1, /nested deeper than 64/],
    ["a: 1\nb: @x\n", false, 2, /reserved|Plain value/i],
    ['{"a": 1,}', true, 1, /found "}"/],
    ["a: 1", true, 1, /found "a"/],
  ];
  for (const [text, json, line, message] of rows) {
    const parsed = await parseDocument(text, json);
    assert.ok(!parsed.ok, text);
    assert.equal(parsed.failure[0]!.line, line, text);
    assert.ok(parsed.failure[0]!.column >= 1);
    assert.match(parsed.failure[0]!.message, message, text);
  }
});

Deno.test("parseDocument: aliases are bounded", async () => {
  const bomb = [
    "a: &a [1,1,1,1,1,1,1,1,1,1]",
    ..."bcdefghi".split("").map((name, index) => {
      const before = "abcdefghi"[index];
      return `${name}: &${name} [${Array(10).fill(`*${before}`).join(",")}]`;
    }),
  ].join("\n");
  const parsed = await parseDocument(bomb, false);
  assert.ok(!parsed.ok);
  assert.match(parsed.failure[0]!.message, /alias/i);
});
