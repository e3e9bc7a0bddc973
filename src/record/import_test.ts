import assert from "node:assert/strict";
import { okText, runMachine, type Script } from "../../tests/fakes/machine_run.ts";
import { DEFAULT_LIMITS, type Limits } from "../core/limits.ts";
import { systemDigest } from "../sys/digest.ts";
import { systemFiles } from "../sys/files.ts";
import { toAtif } from "./atif.ts";
import { readForeign } from "./foreign.ts";
import { importCommand, type ImportResult, judgeForeign } from "./import.ts";
import { toOpenai } from "./openai.ts";
import { readTranscripts } from "./transcript.ts";

async function judge(value: unknown, limits: Partial<Limits> = {}): Promise<ImportResult> {
  const trajectory = readForeign(typeof value === "string" ? value : JSON.stringify(value));
  assert.ok(trajectory.ok, JSON.stringify(trajectory));
  return await judgeForeign(trajectory.value, { ...DEFAULT_LIMITS, ...limits }, systemDigest);
}

/** Messages of turns, each a call and its result. */
function messages(turns: [tool: string, args: object, result: string][]): object[] {
  return [
    { role: "user", content: "do it" },
    ...turns.flatMap(([name, args, content], i) => [
      {
        role: "assistant",
        content: null,
        tool_calls: [{
          id: `t${i}`,
          type: "function",
          function: { name, arguments: JSON.stringify(args) },
        }],
      },
      { role: "tool", tool_call_id: `t${i}`, content },
    ]),
  ];
}

function at(result: ImportResult, check: string): number | null | undefined {
  return result.stops.find((stop) => stop.check === check)?.step;
}

Deno.test("judgeForeign: four identical failing calls are stalled at the fourth turn", async () => {
  const result = await judge(messages(Array(9).fill(["run", { cmd: "x" }, "Error: no x"])));
  assert.deepEqual(result.turns.map((turn) => turn.verdict).slice(0, 3), [
    "failed",
    "repeated",
    "repeated",
  ]);
  assert.deepEqual(result.turns.map((turn) => turn.delta).slice(0, 3), [1, 0, 0]);
  assert.equal(at(result, "idle"), 4);
  assert.equal(at(result, "failing"), 8);
  assert.equal(at(result, "repeat"), 7);
  assert.equal(at(result, "steps"), null);
  assert.equal(result.first_non_advancing, 2);
  assert.deepEqual(result.turns[3]!.stops, ["idle"]);
  assert.equal(result.turns[3]!.refused, 1);
});

Deno.test("judgeForeign: A, B, A, B, A with unchanged answers is stalled at the fifth", async () => {
  const turns = Array.from({ length: 6 }, (_, i): [string, object, string] => [
    i % 2 ? "b" : "a",
    {},
    i % 2 ? "answer b" : "answer a",
  ]);
  assert.equal(at(await judge(messages(turns)), "idle"), 5);
});

Deno.test("judgeForeign: time is no news, key order is no other call, honest work is never flagged", async () => {
  const noisy = await judge(messages([
    ["status", { a: 1, b: 2 }, "up since 2026-01-01T10:00:00Z"],
    ["status", { b: 2, a: 1 }, "up since 2026-01-01T10:00:05Z"],
  ]));
  assert.deepEqual(noisy.turns.map((turn) => turn.delta), [1, 0]);
  const honest = await judge(messages(
    Array.from({ length: 39 }, (_, i) => ["read", { offset: i * 100 }, `part ${i}`]),
  ));
  assert.equal(honest.first_non_advancing, null);
  assert.deepEqual(honest.stops.filter((stop) => stop.step !== null), []);
});

Deno.test("judgeForeign: budgets fire where they would have been used up", async () => {
  const step = (i: number) => ({
    step_id: i,
    source: "agent",
    message: "",
    timestamp: `2026-01-01T00:0${i}:00.000Z`,
    tool_calls: [{ tool_call_id: `c${i}`, function_name: "f", arguments: { i } }],
    observation: { results: [{ source_call_id: `c${i}`, content: `r${i}` }] },
    metrics: { prompt_tokens: 900, completion_tokens: 100, cost_usd: 0.5 },
  });
  const atif = {
    schema_version: "ATIF-v1.8",
    agent: { name: "x", version: "1" },
    steps: [1, 2, 3, 4, 5].map(step),
  };
  const limits = { maxSteps: 4, maxTokens: 3000, maxCost: 1, deadlineMs: 60_000 };
  const result = await judge(atif, limits);
  assert.deepEqual(
    result.stops.map((stop) => [stop.check, stop.step, stop.status]),
    [
      ["deadline", 2, "deadline"],
      ["tokens", 3, "exhausted_tokens"],
      ["cost", 2, "exhausted_tokens"],
      ["steps", 4, "exhausted_steps"],
      ["idle", null, null],
      ["failing", null, null],
      ["repeat", null, null],
    ],
  );
});

Deno.test("judgeForeign: a run of our own, exported either way, is judged as it was", async () => {
  const directory = await Deno.makeTempDir();
  const script: Script = {
    reply: (step) =>
      step === 14 ? { text: "Done.", calls: [] } : {
        text: "t",
        calls: [{ tool: "fs/read", arguments: { path: step % 2 === 0 ? "same" : step } }],
      },
    observe: (call) => okText(`content of ${call.arguments.path}`),
  };
  try {
    runMachine({ directory, script });
    const agents = readTranscripts(systemFiles, directory);
    const [root] = agents;
    const own = root!.entries.map((entry) => entry.kind === "turn" && [entry.verdict, entry.delta]);
    for (const exported of [toAtif(agents), toOpenai(agents)]) {
      const result = await judge(exported);
      const judged = result.turns.map((turn) => [turn.verdict, turn.delta]);
      assert.deepEqual(judged, own);
      // Repeats, notes of the harness about them, and refusals beyond the cap are among them.
      const verdicts = judged.map(([verdict]) => verdict);
      assert.ok(verdicts.includes("repeated") && verdicts.includes("refused"));
    }
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
});

Deno.test("readForeign: lists, documents, lines, older call forms; broken arguments", async () => {
  const list = messages([["f", { a: 1 }, "x"]]);
  for (const value of [list, { messages: list }, list.map((m) => JSON.stringify(m)).join("\n")]) {
    const result = await judge(value);
    assert.deepEqual(result.turns.map((turn) => turn.verdict), ["advanced"]);
  }
  const legacy = await judge([
    { role: "assistant", content: "", function_call: { name: "f", arguments: "{}" } },
    { role: "function", name: "f", content: [{ type: "text", text: "x" }] },
    {
      role: "assistant",
      content: "",
      tool_calls: [{ id: "a", function: { name: "f", arguments: "[" } }],
    },
    {
      role: "assistant",
      content: "",
      tool_calls: [{ id: "b", function: { name: "g", arguments: "{}" } }],
    },
    { role: "assistant", content: "" },
  ]);
  assert.deepEqual(legacy.turns.map((turn) => turn.verdict), [
    "advanced",
    "invalid",
    "unknown",
    "invalid",
  ]);
});

Deno.test("importCommand: what cannot be imported is one line, exit 2", async () => {
  const directory = await Deno.makeTempDir();
  const deps = { files: systemFiles, digest: systemDigest };
  const rows: [string, RegExp][] = [
    ["{", /it is not JSON \(line 1, column 2/],
    ["7", /neither an ATIF document nor a list of messages/],
    ["[]", /neither/],
    ['{"steps":[]}', /neither/],
    ['{"schema_version":"ATIF-v2.0","steps":[]}', /its version is ATIF-v2\.0; ATIF-v1\.x is read/],
    ['{"schema_version":"ATIF-v1.8"}', /an ATIF document without steps/],
    ['[{"role":"user","content":"x"}]', /it holds no reply of a model/],
  ];
  try {
    for (const [text, why] of rows) {
      Deno.writeTextFileSync(`${directory}/file`, text);
      const output = await importCommand(deps, `${directory}/file`, { json: false });
      assert.equal(output.exitCode, 2, text);
      assert.match(output.stderr, why);
      assert.match(output.stderr, /^agentd: Cannot import .*\n$/);
    }
    const none = await importCommand(deps, `${directory}/none`, { json: false });
    assert.equal(none.exitCode, 2);
    Deno.writeTextFileSync(
      `${directory}/file`,
      JSON.stringify(messages(Array(5).fill(["f", {}, "x"]))),
    );
    const shown = await importCommand(deps, `${directory}/file`, { json: false });
    assert.match(shown.stdout, /^5 turns \(openai\)\n\nSTEP +ACTIONS +VERDICT/);
    assert.match(shown.stdout, /^4 +f +\w+ +0 +3 .*STOP idle$/m);
    assert.match(shown.stdout, /^idle: step 4, stalled \(idle: 3 turns in a row/m);
    assert.match(shown.stdout, /^steps: would not have fired \(limit 40\)$/m);
    const json = JSON.parse(
      (await importCommand(deps, `${directory}/file`, { json: true })).stdout,
    );
    assert.equal(json.first_non_advancing, 2);
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
});
