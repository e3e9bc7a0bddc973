import assert from "node:assert/strict";
import { Vault } from "../core/secret.ts";
import type { LogSettings } from "./payload.ts";
import { EVENTS, type TelemetryContext } from "./telemetry.ts";
import { createTelemetry } from "./telemetry_writer.ts";

const context: TelemetryContext = {
  run_id: "R1",
  agent_id: "A1",
  agent_path: "0",
  comp: "loop",
  pid: 7,
  trace_id: "t",
  span_id: "s",
  parent_span_id: null,
};
const clock = { wallMs: () => 0, monotonicMs: () => 0, after: () => () => {} };

function open(log: Partial<LogSettings>, vault = new Vault()) {
  const lines: string[] = [];
  const settings: LogSettings = {
    level: "info",
    format: "json",
    content: false,
    quiet: false,
    ...log,
  };
  return {
    lines,
    telemetry: createTelemetry(context, settings, vault, (text) => lines.push(text), clock),
  };
}

Deno.test("createTelemetry: JSON lines, the fixed keys first and in their order", () => {
  const { lines, telemetry } = open({});
  telemetry.emit("loop.step", { step: 1, dur_ms: 5 });
  assert.equal(lines.length, 1);
  assert.ok(lines[0]!.endsWith("\n"));
  assert.deepEqual(Object.entries(JSON.parse(lines[0]!)), [
    ["ts", "1970-01-01T00:00:00.000Z"],
    ["level", "info"],
    ["event", "loop.step"],
    ["run_id", "R1"],
    ["agent_id", "A1"],
    ["agent_path", "0"],
    ["comp", "loop"],
    ["pid", 7],
    ["trace_id", "t"],
    ["span_id", "s"],
    ["parent_span_id", null],
    ["step", 1],
    ["dur_ms", 5],
  ]);
});

Deno.test("createTelemetry: levels are kept; all events are info but two", () => {
  const rows: [log: Partial<LogSettings>, events: number][] = [
    [{ level: "debug" }, EVENTS.length],
    [{ level: "info" }, EVENTS.length - 2],
    [{ level: "warn" }, 0],
    [{ level: "debug", quiet: true }, 0],
  ];
  for (const [log, count] of rows) {
    const { lines, telemetry } = open(log);
    for (const event of EVENTS) telemetry.emit(event);
    assert.equal(lines.length, count, JSON.stringify(log));
  }
  for (const log of [{ level: "error" }, { quiet: true }] as const) {
    const { lines, telemetry } = open(log);
    telemetry.emit("loop.error", {}, "error");
    telemetry.emit("loop.error", {}, "warn");
    assert.equal(lines.length, 1);
  }
});

Deno.test("createTelemetry: content only where it was asked for, at any depth", () => {
  const fields = {
    tool: "a/b",
    arguments: { path: "x" },
    content: "said",
    text: "said",
    deep: { text: "said", other: [{ content: "said", kept: 1 }] },
  };
  const without = open({});
  without.telemetry.emit("tool.call", fields);
  assert.doesNotMatch(without.lines[0]!, /said|"path"/);
  assert.deepEqual(JSON.parse(without.lines[0]!).deep, { other: [{ kept: 1 }] });
  const withContent = open({ content: true });
  withContent.telemetry.emit("tool.call", fields);
  const line = JSON.parse(withContent.lines[0]!);
  assert.deepEqual({ ...fields, deep: line.deep }, { ...fields });
  assert.deepEqual(line.arguments, { path: "x" });
});

Deno.test("createTelemetry: secrets are masked in every form, and the line stays JSON", () => {
  const vault = new Vault();
  vault.add("env:T", 'can"ary-5ecret');
  vault.add("env:U", "true");
  for (const format of ["json", "text"] as const) {
    const { lines, telemetry } = open({ content: true, format }, vault);
    telemetry.emit("loop.error", {
      err: { type: "x", message: 'got can"ary-5ecret' },
      text: JSON.stringify({ token: 'can"ary-5ecret' }),
      url: encodeURIComponent('can"ary-5ecret'),
      passed: true,
    }, "error");
    assert.doesNotMatch(lines.join(""), /ary-5ecret/);
    assert.match(lines.join(""), /got \*\*\*/);
    if (format === "json") assert.equal(JSON.parse(lines[0]!).passed, true);
  }
});

Deno.test("createTelemetry: texts are cut at their bound, longer ones where content is asked for", () => {
  for (const [content, charsMax] of [[false, 2000], [true, 16_384]] as const) {
    const { lines, telemetry } = open({ content });
    telemetry.emit("loop.error", { at: "x".repeat(charsMax), over: "x".repeat(charsMax + 1) });
    const line = JSON.parse(lines[0]!);
    assert.equal(line.at, "x".repeat(charsMax));
    assert.equal(line.over, "x".repeat(charsMax - 1) + "…");
  }
});

Deno.test("createTelemetry: nothing that fails reaches the run", () => {
  const cyclic: Record<string, unknown> = {};
  cyclic.self = cyclic;
  const { lines, telemetry } = open({});
  telemetry.emit("loop.error", cyclic);
  telemetry.emit("loop.error", { big: 5n });
  assert.equal(lines.length, 1);
  const broken = createTelemetry(
    context,
    { level: "info", format: "json", content: false, quiet: false },
    new Vault(),
    () => {
      throw new Error("closed pipe");
    },
    clock,
  );
  broken.emit("loop.step");
});

Deno.test("createTelemetry: fields may set the span anew", () => {
  const { lines, telemetry } = open({});
  telemetry.emit("tool.call", { span_id: "other" });
  assert.equal(JSON.parse(lines[0]!).span_id, "other");
});

Deno.test("createTelemetry: lines that are not taken are counted before the next one", () => {
  const lines: string[] = [];
  let takes = true;
  const telemetry = createTelemetry(
    context,
    { level: "info", format: "json", content: false, quiet: false },
    new Vault(),
    (line) => takes && lines.push(line) > 0,
    clock,
  );
  telemetry.emit("loop.start");
  takes = false;
  for (let i = 0; i < 3; i++) telemetry.emit("loop.step");
  takes = true;
  telemetry.emit("loop.final");
  telemetry.emit("proc.exit");
  const told = lines.map((line) => JSON.parse(line));
  assert.deepEqual(told.map((line) => line.event), [
    "loop.start",
    "limit.exceeded",
    "loop.final",
    "proc.exit",
  ]);
  assert.deepEqual([told[1].level, told[1].limit, told[1].lost], ["warn", "stderr_bytes", 3]);
});
