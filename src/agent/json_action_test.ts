import assert from "node:assert/strict";
import { findAction, findJsonValue } from "./json_action.ts";

const ACTIONS: [string, unknown][] = [
  ['{"action":"tool","tool":"a","arguments":{"x":1}}', {
    kind: "tool",
    tool: "a",
    arguments: { x: 1 },
  }],
  ['Sure! {"action":"tool","tool":"a"} done', { kind: "tool", tool: "a", arguments: {} }],
  ['```json\n{"action":"final","result":"ok"}\n```', { kind: "final", result: "ok" }],
  ['{"action":"final","result":"a } in a \\" string {"}', {
    kind: "final",
    result: 'a } in a " string {',
  }],
  ['{"action":"final","status":"refused","reason":"no"}', { kind: "refused", reason: "no" }],
  ['{"note":1} {"action":"final","result":null}', { kind: "final", result: null }],
  ['{ broken {"action":"final","result":1}', { kind: "final", result: 1 }],
  ["no object", null],
  ['{"action":"dance"}', null],
  ['{"action":"final"}', { kind: "final", result: null }],
  ["{{{{{{{{{{{{", null],
];

Deno.test("findAction: the first action object, by balanced braces, string-aware", () => {
  for (const [text, action] of ACTIONS) {
    assert.deepEqual(findAction(text)?.action ?? null, action, text);
  }
});

Deno.test("findAction: actions behind the first are counted, whatever stands between", () => {
  const tool = '{"action":"tool","tool":"a"}';
  const final = '{"action":"final","result":1}';
  const rows: [text: string, more: number][] = [
    [tool, 0],
    [`${tool}\n${tool}`, 1],
    [`${tool} Result: {"x":1} ${tool} and so ${final}`, 2],
    [`${tool} {"action":"dance"} {"note":"final"}`, 0],
    [tool.repeat(1_000), 63],
  ];
  for (const [text, more] of rows) assert.equal(findAction(text)?.more, more, text.slice(0, 200));
});

Deno.test("findAction: a megabyte of opening braces is given up on", () => {
  assert.equal(findAction("{".repeat(1_000_000)), null);
});

const VALUES: [string, unknown][] = [
  ["[1,2]", [1, 2]],
  ["```\n[1]\n```", [1]],
  ['first ```json\n{"a":1}\n``` then ```json\n{"a":2}\n```', { a: 2 }],
  ['The result is {"a":1}.', { a: 1 }],
  ['"text"', "text"],
  ["nothing", undefined],
];

Deno.test("findJsonValue: whole, fenced, or in prose", () => {
  for (const [text, value] of VALUES) assert.deepEqual(findJsonValue(text), value, text);
});

Deno.test("findJsonValue: a fence that opens on a megabyte of blanks is passed over at once", () => {
  assert.equal(findJsonValue("```\n" + " \t".repeat(500_000) + "x"), undefined);
});
