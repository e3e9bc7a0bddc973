/** Resume, from outside: every end that can be resumed is, with what the model is told of it. */

import assert from "node:assert/strict";
import { programs } from "../program.ts";
import type { ScriptReply } from "../fakes/model_server_process.ts";
import { runProgram, type RunSpec } from "./harness.ts";
import { withPlace } from "./recorded_run.ts";

// deno-lint-ignore no-explicit-any
type Loose = any;

interface End {
  name: string;
  replies: ScriptReply[];
  args?: string[];
  on?: RunSpec["on"];
  code: number;
  status: string | null;
  /** Options of the resume. */
  raised?: string[];
  /** What the model reads when the run goes on. */
  told: RegExp;
}

const HOSTILE = decodeURIComponent(new URL("../hostile/", import.meta.url).pathname);
const read = (path: string): ScriptReply => ({
  calls: [{ name: "fs__read", arguments: { path } }],
});
const SAME = Array.from({ length: 12 }, () => read("a.txt"));

const ENDS: End[] = [
  {
    name: "exhausted_steps",
    replies: [read("a.txt"), { text: "So far.", ...read("b.txt") }],
    args: ["--max-steps", "2"],
    code: 3,
    status: "exhausted_steps",
    raised: ["--max-steps", "+5"],
    told: /The turns were used up while you were working: go on, more directly/,
  },
  {
    name: "exhausted_tokens",
    replies: [read("a.txt"), read("b.txt"), read("c.txt"), read("d.txt")],
    args: ["--max-tokens", "9000"],
    code: 7,
    status: "exhausted_tokens",
    raised: ["--max-tokens", "+100000"],
    told: /The token budget was used up: change your strategy and spend less per turn/,
  },
  {
    name: "deadline",
    replies: [read("a.txt"), { hang: true }],
    args: ["--deadline", "4s"],
    code: 124,
    status: "deadline",
    raised: ["--deadline", "+30s"],
    told: /The time was used up. The slow part was: fs\/read \d+ ms/,
  },
  {
    name: "stalled",
    replies: SAME,
    code: 1,
    status: "stalled",
    told: /You were going in circles: take another way than before/,
  },
  {
    name: "loop_detected",
    replies: SAME,
    args: ["--idle-limit", "50", "--fail-limit", "50"],
    code: 1,
    status: "loop_detected",
    told: /You were going in circles: take another way than before/,
  },
  {
    name: "cancelled",
    replies: [read("a.txt"), { hang: true }],
    on: { event: "loop.step", act: (started) => started.signal("SIGTERM") },
    code: 143,
    status: "cancelled",
    told: /The run was interrupted and goes on here/,
  },
  {
    name: "crashed",
    replies: [read("a.txt"), { hang: true }],
    on: {
      event: "loop.step",
      act: (started) => started.agents.forEach((agent) => Deno.kill(-agent, "SIGKILL")),
    },
    code: 1,
    status: "crashed",
    told: /The run was interrupted and goes on here/,
  },
  {
    name: "abort intelligence",
    replies: [read("a.txt"), { status: 401, body: { error: { message: "no" } } }],
    code: 4,
    status: null,
    told: /The run was interrupted and goes on here/,
  },
  {
    name: "abort mcp",
    replies: [],
    args: [
      "--mcp",
      `broken=${Deno.execPath()} run --no-prompt ${HOSTILE}mcp_server.ts dies-at-once`,
    ],
    code: 6,
    status: null,
    raised: ["--mcp", `broken=${Deno.execPath()} run --no-prompt ${HOSTILE}mcp_server.ts good`],
    told: /The run was interrupted and goes on here/,
  },
];

function linesOf(runs: string): Loose[] {
  return Deno.readTextFileSync(`${runs}/job/record.jsonl`).trimEnd().split("\n")
    .map((line) => JSON.parse(line));
}

for (const program of programs()) {
  for (const [index, end] of ENDS.entries()) {
    const dialect = index % 2 === 0 ? "anthropic" : "openai";
    Deno.test(`resume (${program.name}): after ${end.name}, ${dialect}`, () =>
      withPlace(program, { replies: end.replies }, async (place) => {
        const { agentd, completions, project, runs, script, url } = place;
        for (const name of "bcd") {
          await Deno.writeTextFile(`${project}/${name}.txt`, `the letter ${name}\n`);
        }
        const ran = await runProgram(program, {
          args: [
            ...["run", "Work", "--intelligence", url, "--dialect", dialect, "--model", "m"],
            ...["--allow-read=.", "--allow-trifecta", "--run-dir", runs, "--run-id", "job"],
            ...["--output", "json", "--log-format", "json", ...end.args ?? []],
          ],
          cwd: project,
          ...(end.on ? { on: end.on } : {}),
        });
        assert.equal(ran.code, end.code, ran.stderr.slice(-2_000));
        assert.deepEqual([ran.json.status, ran.json.resumable], [end.status, true]);
        const before = Deno.readTextFileSync(`${runs}/job/record.jsonl`);
        // A turn counts when its reply is there: a kill may come before it is judged.
        const made = linesOf(runs).filter((line) => line.type === "model.answered").length;

        // It goes on under the same id, and may be cut short and resumed once more.
        await script({ replies: [read("b.txt")] });
        const raised = end.raised ?? [];
        const once = await agentd(4, "resume", "job", ...raised, "--output", "json");
        assert.equal(once.json.run_id, "job");
        const told = JSON.stringify((await completions())[0]!.body.messages.at(-1));
        assert.match(told, end.told);
        await script({ replies: [{ text: "At last." }] });
        const twice = await agentd(0, "resume", "job", "--output", "json");
        assert.deepEqual([twice.json.status, twice.json.result], ["completed", "At last."]);
        assert.equal(twice.json.usage.steps, made + 2);

        const text = Deno.readTextFileSync(`${runs}/job/record.jsonl`);
        assert.ok(text.startsWith(before), "the record only grows");
        const resumed = linesOf(runs).filter((line) => line.type === "run.resumed");
        assert.equal(resumed.length, 2);
        // What one resume raised, the next finds raised.
        assert.deepEqual(resumed[1].limits, resumed[0].limits);
        assert.deepEqual(resumed[1].changes, []);
        await agentd(0, "replay", "job");
        const refused = await agentd(2, "resume", "job");
        assert.match(
          refused.stderr,
          /^agentd: Cannot resume run job: it ended completed, and nothing/m,
        );
        assert.equal(Deno.readTextFileSync(`${runs}/job/record.jsonl`), text);
      }));
  }

  Deno.test(`resume (${program.name}): shows what differs, raises by +N, and works where the run did`, () =>
    withPlace(program, { replies: [read("a.txt")] }, async ({ project, runs, url, script }) => {
      await script({ replies: [read("a.txt"), { text: "So far.", ...read("a.txt") }] });
      const run = (cwd: string, ...args: string[]) =>
        runProgram(program, { args: [...args, "--run-dir", runs, "--log-format", "json"], cwd });
      const model = ["--intelligence", url];
      const limits = ["--max-steps", "2", "--run-id", "job"];
      const first = await run(project, "run", "Work", ...model, "--allow-read=.", ...limits);
      assert.equal(first.code, 3, first.stderr);
      await script({ replies: [read("a.txt"), { text: "At last." }] });
      const resumed = await run("/", "resume", "job", "--max-steps", "+5", "--idle-limit", "7");
      assert.equal(resumed.code, 0, resumed.stderr);
      assert.ok(
        resumed.stderr.includes(`agentd: going on in ${project}, where the run was started`),
      );
      const notices = resumed.lines.map((line) => line.notice).filter(Boolean);
      assert.deepEqual(notices, [
        "resumed with limits.idle_limit: 3 -> 7",
        "resumed with limits.max_steps: 2 -> 7",
      ]);
      const lines = linesOf(runs);
      assert.equal(lines.findLast((line) => line.type === "run.resumed").limits.maxSteps, 7);
      assert.equal(lines.findLast((line) => line.type === "call.observed").observation.class, "ok");
      await Deno.remove(`${runs}/job`, { recursive: true });

      await run(project, "run", "Work", ...model, ...limits);
      await Deno.mkdir(`${project}/gone`);
      await script({ replies: [{ calls: [{ name: "nothing", arguments: {} }] }] });
      const gone = ["run", "Work", ...model, "--max-steps", "1", "--run-id", "gone"];
      await run(`${project}/gone`, ...gone);
      await Deno.remove(`${project}/gone`);
      const where = await run(project, "resume", "gone");
      assert.equal(where.code, 2);
      assert.match(
        where.stderr,
        /^agentd: Cannot go on with run gone: its working directory .* is gone$/m,
      );
      const fixed = await run(project, "resume", "job", "--run-id", "x", "--instruction", "y");
      assert.equal(fixed.code, 2);
      for (const flag of ["--run-id", "--instruction"]) {
        assert.ok(fixed.stderr.includes(`${flag}: a run that goes on keeps its own; leave it out`));
      }
    }));

  Deno.test(`resume (${program.name}): a check and a hook that are added hold for the rest`, () =>
    withPlace(program, { replies: [read("a.txt")] }, async ({ agentd, project, script, url }) => {
      const model = ["--intelligence", url, "--run-id", "job"];
      const job = ["--allow-read=.", "--allow-write=.", "--max-steps", "1"];
      await agentd(7, "run", "Work", ...model, ...job);
      const write = { calls: [{ name: "fs__write", arguments: { path: "x.txt", content: "x" } }] };
      await script({ replies: [{ text: "Done?" }, write, { text: "Done." }] });
      const raised = ["--max-steps", "+9", "--check", "test -e x.txt"];
      const hook = ["--hook", "on_stop=sh -c 'cat >> hooked.log'"];
      const resumed = await agentd(0, "resume", "job", ...raised, ...hook, "--output", "json");
      const { items } = resumed.json.verification;
      assert.deepEqual(items.map((item: Loose) => [item.kind, item.passed]), [
        ["check", true],
        ["hook", true],
      ]);
      assert.equal(resumed.json.usage.steps, 4);
      assert.match(Deno.readTextFileSync(`${project}/hooked.log`), /"status":"completed"/);
      await agentd(0, "replay", "job");
    }));
}
