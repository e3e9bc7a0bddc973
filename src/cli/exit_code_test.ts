import assert from "node:assert/strict";
import { STATUSES } from "../wire/result.ts";
import { type End, exitCode } from "./exit_code.ts";

const once: End = {
  mode: "once",
  status: null,
  abort: null,
  partial: false,
  signal: null,
  forced: false,
};

const rows: [end: Partial<End>, code: number][] = [
  [{ status: "completed" }, 0],
  [{ status: "completed", signal: "SIGTERM" }, 0],
  [{ status: "refused" }, 5],
  [{ status: "exhausted_steps", partial: true }, 3],
  [{ status: "exhausted_steps" }, 7],
  [{ status: "exhausted_tokens", partial: true }, 3],
  [{ status: "exhausted_tokens" }, 7],
  [{ status: "deadline" }, 124],
  [{ status: "deadline", partial: true }, 124],
  [{ status: "stalled", partial: true }, 3],
  [{ status: "stalled" }, 1],
  [{ status: "loop_detected", partial: true }, 3],
  [{ status: "loop_detected" }, 1],
  [{ status: "cancelled", signal: "SIGINT" }, 130],
  [{ status: "cancelled", signal: "SIGTERM" }, 143],
  [{ status: "cancelled", partial: true, signal: "SIGINT" }, 130],
  [{ status: "cancelled" }, 143],
  [{ status: "crashed" }, 1],
  [{ status: "crashed", partial: true }, 1],
  [{ abort: "intelligence" }, 4],
  [{ abort: "intelligence", partial: true }, 4],
  [{ abort: "intelligence", noModel: true }, 2],
  [{ abort: "mcp" }, 6],
  [{ status: "crashed", signal: "SIGINT", forced: true }, 130],
  [{ status: "completed", signal: "SIGTERM", forced: true }, 143],
];

Deno.test("exitCode: mode once, as the README has it", () => {
  for (const [end, code] of rows) {
    assert.equal(exitCode({ ...once, ...end }), code, JSON.stringify(end));
  }
  for (const status of STATUSES) {
    assert.ok(rows.some(([end]) => end.status === status), status);
  }
});

Deno.test("exitCode: a daemon ends well, but for its bounds and what it cannot do without", () => {
  const daemon: [end: Partial<End>, code: number][] = [
    [{}, 0],
    [{ signal: "SIGTERM" }, 0],
    [{ status: "crashed" }, 0],
    [{ bound: "lifetime" }, 124],
    [{ bound: "lifetime_tokens" }, 7],
    [{ abort: "intelligence" }, 4],
    [{ abort: "mcp" }, 6],
    [{ forced: true, signal: "SIGINT" }, 130],
    [{ forced: true, signal: "SIGTERM" }, 143],
  ];
  for (const mode of ["loop", "reactive", "schedule"] as const) {
    for (const [end, code] of daemon) {
      assert.equal(exitCode({ ...once, mode, ...end }), code, `${mode} ${JSON.stringify(end)}`);
    }
  }
});
