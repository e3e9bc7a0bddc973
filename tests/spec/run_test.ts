/** Runs from outside: each end of a run, by its exit code, status and streams. */

import assert from "node:assert/strict";
import { programs } from "../program.ts";
import { type Script, type ScriptReply, startModelServer } from "../fakes/model_server_process.ts";
import {
  type Ran,
  readOnlyRecord,
  runProgram,
  type RunSpec,
  survivors,
  withDirectory,
} from "./harness.ts";

interface Case {
  name: string;
  script: Script;
  args?: (project: string) => string[];
  files?: Record<string, string>;
  on?: RunSpec["on"];
  env?: Record<string, string>;
  code: number;
  status?: string | null;
  abort?: string | null;
  more?: (ran: Ran, facts: { runs: string; project: string; url: string }) => void | Promise<void>;
}

const reply = (text: string): ScriptReply => ({ text });
const read = (path: string): ScriptReply => ({
  calls: [{ name: "fs__read", arguments: { path } }],
});
const READ = (): string[] => ["--allow-read=."];

const CASES: Case[] = [
  {
    name: "completed: the result alone on stdout",
    script: { replies: [reply("42")] },
    code: 0,
    status: "completed",
    more: (ran) => {
      assert.equal(ran.json.result, "42");
      assert.equal(ran.json.verification, "none declared");
      assert.deepEqual(Object.keys(ran.json), [
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
    },
  },
  {
    name: "completed: a tool is called and its result is read",
    script: { replies: [read("a.txt"), reply("{{last}}")] },
    files: { "a.txt": "the content of a\n" },
    args: READ,
    code: 0,
    status: "completed",
    more: (ran) => assert.match(ran.json.result, /the content of a/),
  },
  {
    name: "refused: by the self tool",
    script: {
      replies: [{ calls: [{ name: "task_refuse", arguments: { reason: "not possible" } }] }],
    },
    code: 5,
    status: "refused",
    more: (ran) => assert.equal(ran.json.reason, "not possible"),
  },
  {
    name: "exhausted_steps: with a partial it is 3",
    script: {
      replies: [{ text: "so far", calls: [{ name: "fs__list", arguments: { path: "." } }] }],
      loop: true,
    },
    args: (project) => [...READ(), "--max-steps", "2", project && "--quiet"],
    code: 3,
    status: "exhausted_steps",
    more: (ran) => {
      assert.equal(ran.json.partial, true);
      assert.equal(ran.json.result, "so far");
      assert.equal(ran.json.resumable, true);
      assert.equal(ran.json.usage.steps, 2);
    },
  },
  {
    name: "exhausted_steps: without a partial it is 7",
    script: { replies: [read("a.txt")], loop: true },
    files: { "a.txt": "x" },
    args: () => [...READ(), "--max-steps", "2"],
    code: 7,
    status: "exhausted_steps",
  },
  {
    name: "exhausted_tokens: before the call that would exceed them",
    script: {
      replies: [{ ...read("a.txt"), usage: { prompt_tokens: 9_000, completion_tokens: 500 } }],
      loop: true,
    },
    files: { "a.txt": "x" },
    args: () => [...READ(), "--max-tokens", "12000"],
    code: 7,
    status: "exhausted_tokens",
    more: (ran) => assert.ok(ran.json.usage.tokens_in + ran.json.usage.tokens_out < 12_000),
  },
  {
    name: "deadline: a model that never answers",
    script: { replies: [{ hang: true }] },
    args: () => ["--deadline", "1s"],
    code: 124,
    status: "deadline",
  },
  {
    name: "stalled: four identical failing calls",
    script: { replies: [read("config.yaml")], loop: true },
    args: READ,
    code: 1,
    status: "stalled",
    more: (ran) => assert.equal(ran.json.usage.steps, 4),
  },
  {
    name: "loop_detected: one call among real progress",
    script: {
      replies: Array.from(
        { length: 20 },
        (_, turn) => read(turn % 2 === 0 ? `f${turn}.txt` : "same.txt"),
      ),
    },
    files: Object.fromEntries([
      ["same.txt", "same"],
      ...Array.from({ length: 20 }, (_, n) => [`f${n}.txt`, `content ${n}`]),
    ]),
    args: READ,
    code: 1,
    status: "loop_detected",
    more: (ran) => assert.equal(ran.json.usage.steps, 14),
  },
  {
    name: "cancelled: SIGINT is 130",
    script: { replies: [{ hang: true }] },
    on: { event: "loop.start", act: (started) => started.signal("SIGINT") },
    code: 130,
    status: "cancelled",
  },
  {
    name: "cancelled: SIGTERM is 143",
    script: { replies: [{ hang: true }] },
    on: { event: "loop.start", act: (started) => started.signal("SIGTERM") },
    code: 143,
    status: "cancelled",
  },
  {
    name: "crashed: the agent is killed, the supervisor writes its terminal line",
    script: { replies: [{ hang: true }] },
    on: { event: "loop.start", act: (started) => Deno.kill(started.agents[0]!, "SIGKILL") },
    code: 1,
    status: "crashed",
    more: async (_ran, { runs }) => {
      const lines = await readOnlyRecord(runs);
      assert.equal(lines.at(-1).type, "run.ended");
      assert.equal(lines.at(-1).status, "crashed");
    },
  },
  {
    name: "crashed: an agent that is killed at once cannot be resumed, and that is said",
    script: { replies: [{ hang: true }] },
    on: { event: "subagent.spawn", act: (started) => Deno.kill(started.agents[0]!, "SIGKILL") },
    code: 1,
    status: "crashed",
    more: async (ran, { runs }) => {
      const lines = await readOnlyRecord(runs);
      const started = lines.some((line) => line.type === "run.started");
      assert.equal(ran.json.resumable, started);
      assert.equal(lines.at(-1).resumable, started);
    },
  },
  {
    name: "intelligence: refused credentials, within a second, not to be retried",
    script: {
      replies: [{ status: 401, body: { error: { message: "bad key sk-canary-secret" } } }],
    },
    env: { OPENAI_API_KEY: "sk-canary-secret" },
    code: 4,
    status: null,
    abort: "intelligence",
    more: (ran) => {
      assert.equal(ran.json.retryable, false);
      assert.doesNotMatch(ran.stderr + ran.stdout, /sk-canary-secret/);
    },
  },
  {
    name: "intelligence: an unknown model names the endpoint's own list",
    script: {
      replies: [{
        status: 404,
        body: { error: { message: "model nope not found", code: "model_not_found" } },
      }],
      models: ["alpha", "beta"],
    },
    args: () => ["--model", "nope"],
    code: 4,
    abort: "intelligence",
    more: (ran) => assert.match(ran.json.reason, /nope.*alpha, beta/s),
  },
  {
    name: "mcp: a server whose command does not exist",
    script: { replies: [reply("never")] },
    args: () => ["--mcp", "docs=/nonexistent/server"],
    code: 6,
    abort: "mcp",
  },
  {
    name: "mcp: a server that exits at once shows its last words",
    script: { replies: [reply("never")] },
    args: () => ["--mcp", "docs=sh -c 'echo no license >&2; exit 3'"],
    code: 6,
    abort: "mcp",
    more: (ran) => assert.match(ran.json.reason, /docs.*no license/s),
  },
  {
    name: "verification: a failing check is fed back, mended, accepted",
    script: {
      replies: [
        reply('{"file":"out.txt"}'),
        { calls: [{ name: "fs__write", arguments: { path: "out.txt", content: "done\n" } }] },
        reply('```json\n{"file":"out.txt"}\n```'),
      ],
    },
    files: {
      "schema.json":
        '{"type":"object","required":["file"],"properties":{"file":{"type":"string"}}}',
    },
    args: () => [
      "--allow-read=.",
      "--allow-write=.",
      "--require",
      "out.txt",
      "--check",
      "grep -q done out.txt",
      "--output-schema",
      "schema.json",
    ],
    code: 0,
    status: "completed",
    more: (ran) => {
      assert.deepEqual(ran.json.result, { file: "out.txt" });
      assert.equal(ran.json.verification.passed, true);
      assert.equal(ran.json.verification.items.length, 3);
      assert.equal(ran.json.usage.steps, 3);
    },
  },
  {
    name: "verification: the same failing claim is stalled with its partial",
    script: { replies: [reply("all done")], loop: true },
    args: () => ["--require", "never.txt"],
    code: 3,
    status: "stalled",
    more: (ran) => {
      assert.equal(ran.json.usage.steps, 4);
      assert.equal(ran.json.result, "all done");
      assert.equal(ran.json.verification.passed, false);
    },
  },
  {
    name: "proposals: broken arguments, unknown tools and duplicate ids never crash",
    script: {
      replies: [
        {
          calls: [{ id: "a", name: "fs__read", arguments: "[1" }, {
            id: "a",
            name: "nosuch",
            arguments: {},
          }],
        },
        { text: "" },
        reply("fine"),
      ],
    },
    args: READ,
    code: 0,
    status: "completed",
    more: (ran) => assert.equal(ran.json.usage.tool_calls, 0),
  },
  {
    name: "a context-length error is compacted and sent once more, then ends by name",
    script: {
      replies: [{
        status: 400,
        body: { error: { code: "context_length_exceeded", message: "maximum context length" } },
      }],
      loop: true,
    },
    code: 7,
    status: "exhausted_tokens",
    more: (ran) => assert.match(ran.json.reason, /^context/),
  },
];

for (const program of programs()) {
  for (const each of CASES) {
    Deno.test(`run (${program.name}): ${each.name}`, async () => {
      await using server = await startModelServer(each.script);
      await withDirectory(async ({ project, runs }) => {
        for (const [name, content] of Object.entries(each.files ?? {})) {
          await Deno.writeTextFile(`${project}/${name}`, content);
        }
        const args = [
          "run",
          "do it",
          "--intelligence",
          server.url,
          "--run-dir",
          runs,
          "--output",
          "json",
        ];
        const ran = await runProgram(program, {
          args: [...args, ...(each.args?.(project) ?? [])],
          cwd: project,
          ...(each.env === undefined ? {} : { env: each.env }),
          ...(each.on === undefined ? {} : { on: each.on }),
        });
        assert.equal(ran.code, each.code, ran.stderr.slice(-2_000) + ran.stdout);
        assert.equal(ran.json.status, each.status ?? null);
        assert.equal(ran.json.abort, each.abort ?? null);
        assert.equal(ran.json.exit_code, each.code);
        await each.more?.(ran, { runs, project, url: server.url });
        const record = await readOnlyRecord(runs);
        assert.equal(record.filter((line) => line.type === "run.ended").length, 1);
        const groups = ran.lines.filter((line) => line.event === "subagent.spawn").map((line) =>
          Number(line.child_pid)
        );
        assert.deepEqual(await survivors(groups), []);
      });
    });
  }
}
