import assert from "node:assert/strict";
import { failingPart, readProgress } from "./failing_part.ts";

Deno.test("failingPart: a short output is shown whole", () => {
  assert.equal(failingPart("one\ntwo\n", 100), "one\ntwo");
});

Deno.test("failingPart: the failing lines are shown from the middle of much noise", () => {
  const noise = (n: number) => Array.from({ length: n }, (_, i) => `test case number ${i} ... ok`);
  const output = [
    ...noise(400),
    "AssertionError: expected 3 to equal 4",
    "  at sum_test.ts:12",
    ...noise(400),
    "1 failed",
  ];
  const part = failingPart(output.join("\n"), 1_500);
  assert.match(part, /expected 3 to equal 4\n {2}at sum_test.ts:12/);
  assert.match(part, /1 failed$/);
  assert.match(part, /lines left out/);
  assert.ok(part.length <= 1_700, `${part.length}`);
});

const SIGNALS: [string, unknown][] = [
  ["all\nPROGRESS 3/10\n", { done: 3, total: 10 }],
  ["PROGRESS 3/10\nmore", null],
  ["PROGRESS 3 / 10", { done: 3, total: 10 }],
  ["progress 3/10", null],
  ["", null],
];

Deno.test("readProgress: only a last line counts", () => {
  for (const [output, signal] of SIGNALS) assert.deepEqual(readProgress(output), signal, output);
});
