/** The command line from outside: what it says, where, and how it exits. */

import assert from "node:assert/strict";
import { startModelServer } from "../fakes/model_server_process.ts";
import { type Program, programs } from "../program.ts";
import { type Ran, runProgram, withDirectory } from "./harness.ts";

/** What exists below a directory, sorted. */
async function namesIn(directory: string): Promise<string[]> {
  const names: string[] = [];
  for await (const entry of Deno.readDir(directory)) names.push(entry.name);
  return names.sort();
}

interface Case {
  name: string;
  args: string[];
  files?: Record<string, string>;
  env?: Record<string, string>;
  stdin?: string;
  code: number;
  stdout?: RegExp;
  stderr?: RegExp[];
  /** Names in the project afterwards; left out: as before. */
  left?: string[];
}

const TOKEN = "canary-5ecret-value";

const CASES: Case[] = [
  { name: "--version", args: ["--version"], code: 0, stdout: /^agentd \d+\.\d+\.\d+\n$/ },
  { name: "-V behind a command", args: ["run", "-V"], code: 0, stdout: /^agentd \d/ },
  { name: "--help", args: ["--help"], code: 0, stdout: /commands:\n {2}run \[INSTRUCTION\]/ },
  {
    name: "run --help",
    args: ["run", "--help"],
    code: 0,
    stdout: /--max-steps N[^]*file limits\.max_steps · env AGENT_MAX_STEPS · default 40/,
  },
  { name: "nothing to do", args: [], code: 2, stdout: /usage: agentd "do this"/ },
  {
    name: "an unknown option",
    args: ["run", "--max-stepz", "3", "x"],
    code: 2,
    stdout: /^$/,
    stderr: [/--max-stepz: unknown option; did you mean --max-steps\?/, /nothing was started/],
  },
  {
    name: "a device as a configuration",
    args: ["validate", "--config", "/dev/zero", "x"],
    code: 2,
    stdout: /^--config: Cannot read it: (.*: over \d+ bytes|there is no file \/dev\/zero)$/m,
  },
  {
    name: "an unreadable number of start times",
    args: ["validate", "--next", "many", "--intelligence", "http://127.0.0.1:1/v1", "x"],
    code: 2,
    stdout: /^--next: "many" is not a whole number from 1 to 1000\n$/,
  },
  {
    name: "start times where there are none",
    args: ["validate", "--next", "2", "--intelligence", "http://127.0.0.1:1/v1", "x"],
    code: 0,
    stdout: /^note: --next has no use in mode once: only a schedule has start times$/m,
  },
  {
    name: "problems as JSON, wherever that is asked for",
    args: ["validate", "--max-steps", "many", "x"],
    files: { "agentd.yaml": "output: json\n" },
    code: 2,
    stdout: /^\{"valid":false,"problems":\[\{"where":"--max-steps"[^\n]*\}\n$/,
  },
  {
    name: "a page without a name",
    args: ["inspect", "x", "--html", ""],
    code: 2,
    stderr: [/--html: "" is not a path/],
  },
  {
    name: "an unknown command",
    args: ["validte"],
    code: 2,
    stderr: [/"validte": unknown command; did you mean validate\?/],
  },
  {
    name: "an unknown key, with its line",
    args: ["x"],
    files: { "agentd.yaml": "limits:\n  max_stepz: 3\n" },
    code: 2,
    stderr: [
      /agentd\.yaml:2: limits\.max_stepz: unknown key "max_stepz"; did you mean limits\.max_steps\?/,
    ],
  },
  {
    name: "every problem at once, of arguments and configuration",
    args: ["run", "--colour", "--mode", "onec", "--system", "none.md"],
    files: { "agentd.yaml": "limits: { deadline: soon }\n" },
    env: { AGENT_MAX_CALLS: "many" },
    code: 2,
    stdout: /^$/,
    stderr: [
      /6 problems with the command line/,
      /--colour: unknown option/,
      /--mode: "onec".*did you mean once\?/,
      /--system: Cannot read the system text: there is no file none\.md/,
      /agentd\.yaml:1: limits\.deadline: "soon" is not a duration/,
      /AGENT_MAX_CALLS: "many" is not a whole number/,
      /INSTRUCTION: no instruction was given/,
    ],
  },
  {
    name: "malformed YAML, with line and column",
    args: ["x"],
    files: { "agentd.yaml": 'limits:\n  max_steps: "3\n' },
    code: 2,
    stderr: [/agentd\.yaml:\d+:\d+: Cannot read it as YAML: Missing closing/],
  },
  {
    name: "malformed JSON, with line and column",
    args: ["x", "--config", "c.json"],
    files: { "c.json": '{\n  "mode": once\n}\n' },
    code: 2,
    stderr: [/c\.json:2:11: Cannot read it as JSON/],
  },
  {
    name: "a schema that is none",
    args: ["x", "--output-schema", "s.json"],
    files: { "s.json": '{"type": "objet"}' },
    code: 2,
    stderr: [/--output-schema: s\.json is no JSON Schema: at #\/type: "objet" is no type/],
  },
  {
    name: "credentials in a URL, hidden",
    args: ["x", "--intelligence", `https://u:${TOKEN}@h.example/v1`],
    code: 2,
    stderr: [/https:\/\/\*\*\*@h\.example\/v1" has credentials in it/],
  },
  {
    name: "http to a remote host",
    args: ["x", "--intelligence", "http://h.example/v1"],
    code: 2,
    stderr: [/not encrypted and not on this machine; use https:\/\/, or --allow-insecure/],
  },
  { name: "an empty instruction", args: [""], code: 2, stderr: [/the instruction is empty/] },
  {
    name: "an empty instruction from stdin",
    args: ["-"],
    stdin: "  \n",
    code: 2,
    stderr: [/the instruction is empty/],
  },
  {
    name: "a run id that is none",
    args: ["x", "--run-id", "../up"],
    code: 2,
    stderr: [/--run-id: "\.\.\/up" is not a run id/],
  },
  {
    name: "problems as telemetry where it is asked for",
    args: ["x", "--mode", "onec", "--log-format", "json"],
    code: 2,
    stderr: [/^\{"ts":.*"event":"config\.invalid".*did you mean once\?.*\}\n$/],
  },
  {
    name: "validate: valid, without a side effect",
    args: ["validate", "x", "--allow-read=.", "--run-dir", "runs"],
    code: 0,
    stdout: /^valid\n[^]*tools +fs\n/,
    stderr: [/^$/],
  },
  {
    name: "validate: invalid, every problem on stdout",
    args: ["validate", "--mode", "onec", "--max-steps", "0"],
    code: 2,
    stdout: /--max-steps: 0 is not.*\n--mode: "onec".*\nINSTRUCTION: .*\n$/,
  },
  {
    name: "validate --next: the coming start times",
    args: ["validate", "x", "--mode", "schedule", "--cron", "0 3 * * *", "--next", "2"],
    code: 0,
    stdout: /\nnext \d{4}-\d\d-\d\dT03:00:00\.000Z\nnext \d{4}-\d\d-\d\dT03:00:00\.000Z\n$/,
  },
  {
    name: "validate: a secret is never shown",
    args: ["validate", "x", "--output", "json"],
    files: {
      "agentd.yaml": JSON.stringify({
        model: { intelligence: ["https://h.example/v1"], token: "${env:LLM}" },
        mcp_servers: { a: { command: "true", env: { API_TOKEN: TOKEN } } },
        tools: { "a/*": { legs: ["sensitive"] } },
      }),
    },
    env: { LLM: TOKEN },
    code: 0,
    stdout: /"API_TOKEN":"\*\*\*"/,
  },
  {
    name: "permissions: the table and the verdict",
    args: ["permissions", "--allow-read=docs"],
    code: 0,
    stdout: /tool server fs[^]*Rule of Two/,
  },
  {
    name: "the Rule of Two refuses before anything starts",
    args: ["x", "--allow-read=.", "--allow-net=h.example", "--run-dir", "runs"],
    code: 2,
    stderr: [/Cannot grant all three[^]*--allow-trifecta/],
  },
  {
    name: "init writes a file for its user alone",
    args: ["init"],
    code: 0,
    stdout: /^$/,
    left: ["agentd.yaml"],
  },
  {
    name: "init leaves a file that is there",
    args: ["init"],
    files: { "agentd.yaml": "# mine\n" },
    code: 2,
    stderr: [/agentd\.yaml exists already; it was left as it is/],
  },
  {
    name: "completions bash",
    args: ["completions", "bash"],
    code: 0,
    stdout: /complete .*agentd\n$/,
  },
  {
    name: "completions for an unknown shell",
    args: ["completions", "bsh"],
    code: 2,
    stderr: [/bash, zsh, fish; did you mean bash\?/],
  },
  { name: "runs: none yet", args: ["runs", "--run-dir", "runs"], code: 0, stdout: /^$/ },
  {
    name: "inspect: a run that is not there",
    args: ["inspect", "nothing", "--run-dir", "runs"],
    code: 2,
    stderr: [/Cannot find the run "nothing"/],
  },
  { name: "resume without RUN", args: ["resume"], code: 2, stderr: [/resume needs a RUN/] },
  {
    name: "mcp behind an option",
    args: ["--quiet", "mcp", "fs"],
    code: 2,
    stderr: [/mcp must be the first argument/],
  },
];

async function check(program: Program, each: Case): Promise<void> {
  await withDirectory(async ({ project }) => {
    for (const [name, content] of Object.entries(each.files ?? {})) {
      await Deno.writeTextFile(`${project}/${name}`, content, { mode: 0o600 });
    }
    const ran = await runProgram(program, {
      args: each.args,
      cwd: project,
      env: each.env,
      stdin: each.stdin,
    });
    const all = `${ran.stdout}\n${ran.stderr}`;
    assert.equal(ran.code, each.code, all);
    if (each.stdout) assert.match(ran.stdout, each.stdout);
    for (const pattern of each.stderr ?? []) assert.match(ran.stderr, pattern);
    assert.doesNotMatch(all, /\n\s+at |\.ts:\d+:\d+|Stack backtrace/);
    assert.ok(!all.includes(TOKEN), "no secret is shown");
    assert.deepEqual(await namesIn(project), each.left ?? Object.keys(each.files ?? {}).sort());
  });
}

for (const program of programs()) {
  for (const each of CASES) {
    Deno.test(`cli (${program.name}): ${each.name}`, () => check(program, each));
  }

  Deno.test(`cli (${program.name}): the file of init has mode 0600 and is valid`, async () => {
    await withDirectory(async ({ project }) => {
      assert.equal((await runProgram(program, { args: ["init"], cwd: project })).code, 0);
      const { mode } = await Deno.stat(`${project}/agentd.yaml`);
      assert.equal(mode! & 0o777, 0o600);
      const validated = await runProgram(program, { args: ["validate"], cwd: project });
      assert.equal(validated.code, 0, validated.stdout);
      assert.match(validated.stdout, /file +\S+\/agentd\.yaml/);
    });
  });

  Deno.test(`cli (${program.name}): the result goes where it is wanted, and a gone reader is no crash`, async () => {
    await using model = await startModelServer();
    await withDirectory(async ({ project, runs }) => {
      const run = async (...args: string[]): Promise<Ran> => {
        await model.script({ replies: [{ text: "the answer" }] });
        return await runProgram(program, {
          args: [...args, "--intelligence", model.url, "--model", "m", "--run-dir", runs],
          cwd: project,
        });
      };
      const plain = await run("do it");
      assert.deepEqual([plain.code, plain.stdout], [0, "the answer\n"]);
      assert.ok(plain.stderr.split("\n").every((line) => line === "" || line.startsWith("{")));
      const filed = await run("do it", "-o", "out.txt");
      assert.deepEqual([filed.code, filed.stdout], [0, ""]);
      assert.equal(await Deno.readTextFile(`${project}/out.txt`), "the answer\n");
      const text = await run("do it", "--log-format", "text");
      assert.match(text.stderr, /^run \S+, at most 40 turns\nturn {2}1 {2}answered/);
      const quiet = await run("do it", "--quiet");
      assert.equal(quiet.stderr, "");
      await model.script({ replies: [{ text: "the answer" }] });
      const piped = await new Deno.Command("bash", {
        args: [
          "-c",
          'set -o pipefail; "$@" 2> >(true) | true; echo "${PIPESTATUS[0]}"',
          "bash",
          program.command,
          ...program.args,
          ...["do it", "--intelligence", model.url, "--model", "m", "--run-dir", runs],
        ],
        cwd: project,
      }).output();
      assert.equal(new TextDecoder().decode(piped.stdout), "0\n");
    });
  });

  Deno.test(`cli (${program.name}): a run that exists is neither repeated nor touched`, async () => {
    await using model = await startModelServer({ replies: [{ text: "one" }] });
    await withDirectory(async ({ project, runs }) => {
      const args = ["do it", "--run-id", "r1", "--run-dir", runs, "--intelligence", model.url];
      const first = await runProgram(program, { args: [...args, "--model", "m"], cwd: project });
      assert.equal(first.code, 0, first.stderr);
      const before = await Deno.readTextFile(`${runs}/r1/record.jsonl`);
      const second = await runProgram(program, { args: [...args, "--model", "m"], cwd: project });
      assert.equal(second.code, 2);
      assert.match(
        second.stderr,
        /--run-id: the run r1 exists already in .*; choose another id, or go on with it: agentd resume r1/,
      );
      assert.equal(await Deno.readTextFile(`${runs}/r1/record.jsonl`), before);
      assert.equal((await model.completions()).length, 1);
    });
  });

  Deno.test(`cli (${program.name}): why a run was aborted is said, and not again and again`, () =>
    withDirectory(async ({ project, runs }) => {
      await using server = await startModelServer({ token: "good", replies: [{ text: "x" }] });
      for (const log of [[], ["-q"], ["--log-level", "error"]]) {
        const ran = await runProgram(program, {
          args: [
            "x",
            "--intelligence",
            server.url,
            "--run-dir",
            runs,
            "--log-format",
            "text",
            ...log,
          ],
          cwd: project,
        });
        assert.deepEqual([ran.code, ran.stdout], [4, ""]);
        // As an error when it happens, and as the end of the run.
        assert.equal(ran.stderr.split("refused the credentials").length - 1, 2, ran.stderr);
      }
    }));

  Deno.test(`cli (${program.name}): a quiet run that fails still says why, once`, () =>
    withDirectory(async ({ project, runs }) => {
      await using server = await startModelServer();
      const refusal = { calls: [{ name: "task_refuse", arguments: { reason: "no such file" } }] };
      const rows = [
        [5, refusal, [], "agentd: the run ended as refused (no such file)\n"],
        [
          1,
          { text: "" },
          [],
          "agentd: the run ended as stalled (idle: 3 turns in a row brought no ",
        ],
        [
          124,
          { hang: true },
          ["--deadline", "300ms"],
          "agentd: the run ended as deadline (deadline",
        ],
        [0, { text: "done" }, [], ""],
      ] as const;
      for (const [code, reply, more, said] of rows) {
        await server.script({ replies: [reply], loop: true });
        const args = ["x", "--intelligence", server.url, "--run-dir", runs, "-q", ...more];
        const ran = await runProgram(program, { args, cwd: project });
        assert.equal(ran.code, code, ran.stderr);
        assert.ok(ran.stderr.startsWith(said), ran.stderr);
        assert.equal(ran.stderr.split("\n").length, said === "" ? 1 : 2, ran.stderr);
      }
    }));

  Deno.test(`cli (${program.name}): without any model it says what to set, exit 2`, async () => {
    await withDirectory(async ({ project, runs }) => {
      const ran = await runProgram(program, { args: ["do it", "--run-dir", runs], cwd: project });
      // A machine with a local model server answers for itself.
      if (ran.code === 0) return;
      assert.equal(ran.code, 2, ran.stderr);
      assert.match(ran.stderr, /no model found/);
      assert.match(ran.stderr, /OPENAI_API_KEY[^]*--intelligence URL/);
      assert.equal(ran.stdout, "");
      assert.ok(!ran.stderr.includes("proc.start"), "nothing was started");
      assert.equal(await Deno.stat(runs).catch(() => null), null);
    });
  });

  Deno.test(`cli (${program.name}): a file that the run itself may write is not used, and it says why`, async () => {
    await using model = await startModelServer({ replies: [{ text: "one" }] });
    await withDirectory(async ({ project, runs }) => {
      const evil = "hooks: { before_action: [./evil.sh] }\nlimits: { max_steps: 7 }\n";
      await Deno.writeTextFile(`${project}/agentd.yaml`, evil, { mode: 0o600 });
      const ran = await runProgram(program, {
        args: [
          "do it",
          ...["--allow-write=.", "--allow-read=out", "--tools", "fs/write"],
          ...["--run-dir", runs, "--intelligence", model.url, "--model", "m"],
        ],
        cwd: project,
      });
      assert.equal(ran.code, 0, ran.stderr);
      const notice = ran.lines.find((line) => typeof line.notice === "string");
      assert.match(String(notice?.notice), /agentd\.yaml is not used: this run may write \./);
      assert.equal(notice?.level, "warn");
      assert.equal(ran.lines.find((line) => line.event === "loop.start")?.max_steps, 40);
    });
  });
}
