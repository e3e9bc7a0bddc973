import assert from "node:assert/strict";
import { EVENTS, type TelemetryLine } from "./telemetry.ts";
import { formatText } from "./telemetry_text.ts";

const line = (
  event: TelemetryLine["event"],
  fields: Record<string, unknown> = {},
): TelemetryLine => ({
  ts: "2026-01-01T00:00:00.000Z",
  level: "info",
  event,
  run_id: "R1",
  agent_id: "A1",
  agent_path: "0",
  comp: "loop",
  pid: 1,
  trace_id: null,
  span_id: null,
  parent_span_id: null,
  ...fields,
});

const rows: [given: TelemetryLine, text: string | null][] = [
  [line("loop.start", { max_steps: 40 }), "run R1, at most 40 turns"],
  [line("loop.start", { resumed: true, max_steps: 40 }), "run R1 goes on, at most 40 turns"],
  [
    line("loop.step", {
      step: 3,
      verdict: "advanced",
      delta: 2,
      actions: ["docs/read:ok", "fs/write:error"],
      tokens_in: 1204,
      tokens_out: 56,
      model_ms: 2000,
      tools_ms: 300,
    }),
    "turn  3  advanced +2   docs/read, fs/write (error)  1,204 in, 56 out  2.3 s",
  ],
  [
    line("loop.step", {
      step: 12,
      verdict: "repeated",
      delta: 0,
      actions: Array(8).fill("a/b:ok"),
    }),
    "turn 12  repeated      a/b, a/b, a/b, a/b, a/b, a/b and 2 more",
  ],
  [
    line("loop.step", {
      step: 1,
      verdict: "answered",
      delta: 1,
      actions: [],
      agent_path: "0.2",
    }),
    "[0.2] turn  1  answered +1",
  ],
  [
    line("loop.final", { status: "completed", steps: 1, reason: "done" }),
    "completed after 1 turn: done",
  ],
  [
    line("loop.final", { status: "stalled", steps: 4, reason: "no new evidence", partial: true }),
    "stalled after 4 turns: no new evidence; the result is partial",
  ],
  [line("loop.final", { abort: "mcp", status: null, reason: "x" }), "aborted (mcp): x"],
  [
    line("mcp.connect", { server: "docs", tools: 5, resources: 1 }),
    "connected docs, 5 tools, 1 resource",
  ],
  [line("mcp.connect", { server: "docs", stderr: "Listening\u001b[2J" }), "docs: Listening[2J"],
  [line("mcp.connect", { server: "docs", stderr: "  " }), null],
  [
    line("mcp.connect", { server: "docs", stderr_suppressed: 3 }),
    "docs: 3 more lines on its stderr",
  ],
  [
    line("mcp.connect", { server: "docs", stderr_suppressed: 1 }),
    "docs: 1 more line on its stderr",
  ],
  [
    line("mcp.connect.fail", { server: "docs", err: { message: "exited 1" }, level: "error" }),
    "error: cannot connect docs: exited 1",
  ],
  [line("mcp.disconnect", { server: "docs", reason: "closed" }), null],
  [
    line("mcp.disconnect", { server: "docs", reason: "died", level: "warn" }),
    "warning: lost docs: died",
  ],
  [line("verify.result", { passed: true }), "verified"],
  [
    line("verify.result", { passed: false, failed: ["check test", "schema"] }),
    "not verified: check test, schema",
  ],
  [
    line("context.compacted", { tokens_before: 100_000, tokens_after: 20_000 }),
    "compacted the context from 100,000 to 20,000 tokens",
  ],
  [
    line("intel.retry", { reason: "429", wait_ms: 1500 }),
    "retrying the model: 429 in 1.5 s",
  ],
  [line("subagent.spawn", { child_path: "0" }), null],
  [line("subagent.spawn", { child_path: "0.1" }), "subagent 0.1 started"],
  [
    line("subagent.exit", { child_path: "0.1", status: "completed" }),
    "subagent 0.1 ended: completed",
  ],
  [line("config.loaded", { file: null }), null],
  [
    line("config.loaded", { notice: "agentd.yaml is not used", level: "warn" }),
    "warning: agentd.yaml is not used",
  ],
  [line("proc.start"), null],
  [line("proc.shutdown", { reason: "sigint" }), "stopping: sigint"],
  [line("tool.call", { tool: "a/b" }), null],
  [line("hook.result", { verdict: "continue" }), null],
  [
    line("hook.result", { verdict: "block", hook: "before_action", reason: "no" }),
    "hook before_action block: no",
  ],
  [line("tool.result", { level: "error", err: { message: "bad" } }), "error: tool.result: bad"],
];

Deno.test("formatText: short lines for what people follow, nothing for the rest", () => {
  for (const [given, text] of rows) assert.equal(formatText(given), text);
});

Deno.test("formatText: every event is taken, whatever its fields are", () => {
  const odd = [{}, { err: null }, { err: "x" }, {
    actions: [{ tool: "a/b", class: "ok" }, 5, null],
  }];
  for (const event of EVENTS) {
    for (const fields of odd) {
      for (const level of ["info", "warn", "error"] as const) {
        const text = formatText({ ...line(event, fields), level });
        assert.ok(text === null || (text !== "" && !text.includes("\n")), event);
      }
    }
  }
});

Deno.test("formatText: one line, bounded, without control characters", () => {
  const text = formatText(line("loop.final", {
    status: "completed",
    reason: `a\nb\x1b[31m\u202e${"x".repeat(1000)}`,
  }))!;
  assert.equal(text.length, 400);
  // deno-lint-ignore no-control-regex
  assert.doesNotMatch(text, /[\x00-\x1f\u202e]/);
});
