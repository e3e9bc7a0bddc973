import assert from "node:assert/strict";
import type { OnceEnd } from "../supervisor/run.ts";
import { NO_USAGE } from "../wire/result.ts";
import { resultObject, resultText } from "./output.ts";

const end: OnceEnd = {
  run_id: "R",
  status: "completed",
  abort: null,
  retryable: false,
  resumable: false,
  partial: false,
  result: { a: 1 },
  reason: "done",
  verification: "none declared",
  usage: { ...NO_USAGE },
  started_at: "s",
  ended_at: "e",
  record: "/r/R/record.jsonl",
  signal: null,
  forced: false,
  artifact: "result-1",
  directory: "/r/R",
};

Deno.test("resultObject: its keys in their order, and no other", () => {
  assert.deepEqual(Object.keys(resultObject(end, 0)), [
    "run_id",
    "status",
    "abort",
    "exit_code",
    "retryable",
    "resumable",
    "partial",
    "result",
    "reason",
    "verification",
    "usage",
    "started_at",
    "ended_at",
    "record",
  ]);
  assert.deepEqual(Object.keys(resultObject(end, 0).usage), [
    "steps",
    "model_calls",
    "tool_calls",
    "tokens_in",
    "tokens_out",
    "tokens_cached",
    "tokens_estimated",
    "cost",
  ]);
});

Deno.test("resultText: a text as it is, another value as JSON, nothing for none", () => {
  assert.equal(resultText("hello"), "hello\n");
  assert.equal(resultText("hello\n"), "hello\n");
  assert.equal(resultText(""), "");
  assert.equal(resultText(null), "");
  assert.equal(resultText({ a: [1] }), '{\n  "a": [\n    1\n  ]\n}\n');
  assert.equal(resultText(5), "5\n");
});
