import assert from "node:assert/strict";
import { didYouMean, editDistance, nearest } from "./suggest.ts";

Deno.test("editDistance: insertions, deletions, replacements and swapped neighbours count one", () => {
  const rows: [string, string, number][] = [
    ["", "", 0],
    ["abc", "", 3],
    ["", "abc", 3],
    ["abc", "abc", 0],
    ["abc", "abd", 1],
    ["abc", "acb", 1],
    ["kitten", "sitting", 3],
    ["ca", "abc", 3],
  ];
  for (const [left, right, distance] of rows) {
    assert.equal(editDistance(left, right), distance, `${left} ${right}`);
  }
});

Deno.test("nearest: near names are found, far ones are not, whatever the case", () => {
  const known = ["--max-steps", "--max-calls", "--mode", "run"];
  const rows: [string, string | undefined][] = [
    ["--max-stepz", "--max-steps"],
    ["--MAX-STEPS", "--max-steps"],
    ["--max-setps", "--max-steps"],
    ["--mdoe", "--mode"],
    ["rum", "run"],
    ["ruXX", undefined],
    ["--colour", undefined],
    ["", undefined],
    ["x".repeat(65), undefined],
  ];
  for (const [written, found] of rows) assert.equal(nearest(written, known), found, written);
});

Deno.test("didYouMean: a question, or nothing", () => {
  assert.equal(didYouMean("onec", ["once", "loop"]), "did you mean once?");
  assert.equal(didYouMean("x", ["once", "loop"]), "");
});
