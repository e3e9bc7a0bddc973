import assert from "node:assert/strict";
import { sumSummaries, type Tally } from "./gate.ts";

Deno.test("sumSummaries: adds up what deno test printed, and knows when it printed nothing", () => {
  const rows: [output: string, tally: Tally | undefined][] = [
    ["", undefined],
    ["error: No test modules found", undefined],
    ["ok | 3 passed | 0 failed (7ms)\n", { passed: 3, failed: 0, ignored: 0 }],
    [
      "x ... ok (3ms)\n\nFAILED | 12 passed (4 steps) | 2 failed (1 step) | 1 ignored (2s)\n",
      { passed: 12, failed: 2, ignored: 1 },
    ],
    [
      "ok | 3 passed | 0 failed (7ms)\nok | 1 passed | 0 failed | 2 ignored | 5 filtered out (1ms)\n",
      { passed: 4, failed: 0, ignored: 2 },
    ],
    // A test that prints such a line in the middle of another does not count.
    ["it said ok | 3 passed | 0 failed (7ms)\n", undefined],
  ];
  for (const [output, tally] of rows) assert.deepEqual(sumSummaries(output), tally, output);
});
