/** Excess from outside: what is out of all proportion, or stands where nobody expects it. */

import assert from "node:assert/strict";
import { programs } from "../program.ts";
import { type Script, type ScriptReply, startModelServer } from "../fakes/model_server_process.ts";
import { type Ran, runProgram, withDirectory } from "./harness.ts";

// deno-lint-ignore no-explicit-any
type Loose = any;

const SERVER = decodeURIComponent(new URL("../hostile/bottomless.mjs", import.meta.url).pathname);
const LEVELS = 20_000;
const DEEP = "[".repeat(LEVELS) + "]".repeat(LEVELS);
const WITH_SERVER = ["--mcp", `deep=node ${SERVER} ${LEVELS}`];
const NOISE = Array.from({ length: 30_000 }, (_, i) => `noise${i * 7919 % 10_007}`).join(" ");

interface Case {
  name: string;
  script: Script;
  args?: string[];
  check: (facts: { ran: Ran; bodies: Loose[] }) => void;
}

const call = (name: string, args: unknown): ScriptReply => ({
  calls: [{ name: `deep__${name}`, arguments: args as string }],
});
const lastMessage = (bodies: Loose[]): string => bodies.at(-1).messages.at(-1).content;
const completed = ({ ran }: { ran: Ran }, result: unknown = "done"): void => {
  assert.deepEqual([ran.code, ran.json.status, ran.json.result], [0, "completed", result]);
};

const CASES: Case[] = [
  {
    name: "arguments nested without bottom are invalid",
    script: {
      replies: [{ ...call("structured", `{"value":${DEEP}}`), whole: true }, { text: "done" }],
    },
    args: WITH_SERVER,
    check: (facts) => {
      completed(facts);
      assert.match(lastMessage(facts.bodies), /^\[invalid\] the arguments are not JSON \(nested/);
      assert.equal(facts.ran.json.usage.tool_calls, 0);
    },
  },
  {
    name: "an action nested without bottom is none",
    script: {
      replies: [
        // Whole: in a stream it would be cut off for repeating itself.
        { text: `{"action":"final","result":${DEEP}}`, whole: true },
        { text: '{"action":"final","result":"done"}' },
      ],
    },
    args: ["--tool-mode", "json"],
    check: (facts) => {
      completed(facts);
      assert.match(lastMessage(facts.bodies), /the reply held no action/);
    },
  },
  {
    name: "structured content nested without bottom is left out, its text is not",
    script: { replies: [call("structured", {}), { text: "done" }] },
    args: WITH_SERVER,
    check: (facts) => {
      completed(facts);
      assert.match(lastMessage(facts.bodies), /shallow\n\[structured content nested in more than/);
    },
  },
  {
    name: "structured content nested without bottom, also as text, breaks nothing",
    script: { replies: [call("text", {}), call("meta", {}), { text: "done" }] },
    args: WITH_SERVER,
    check: (facts) => {
      completed(facts);
      assert.match(lastMessage(facts.bodies), /^\[ok\]\nshallow$/);
    },
  },
  {
    name: "a schema nested without bottom costs its tool, not the server",
    script: { replies: [call("schema", {}), { text: "done" }] },
    args: WITH_SERVER,
    check: (facts) => {
      completed(facts);
      const offered = facts.bodies[0].tools.map((tool: Loose) => tool.function.name);
      assert.deepEqual(offered.filter((name: string) => name.startsWith("deep__")).sort(), [
        "deep__meta",
        "deep__structured",
        "deep__text",
      ]);
    },
  },
  {
    name: "counts of tokens that no reply can have are estimated",
    script: { replies: [{ text: "done", usage: { prompt_tokens: 1e300, completion_tokens: 1 } }] },
    check: (facts) => {
      completed(facts);
      assert.equal(facts.ran.json.usage.tokens_estimated, true);
      assert.ok(facts.ran.json.usage.tokens_in < 100_000);
    },
  },
  {
    name: "arguments that break the schema and would fill the window are left out",
    script: { replies: [call("structured", { name: [NOISE] }), { text: "done" }] },
    args: [...WITH_SERVER, "--context-window", "40000"],
    check: (facts) => {
      completed(facts);
      const [, , assistant, result] = facts.bodies.at(-1).messages;
      assert.equal(assistant.tool_calls[0].function.arguments, "{}");
      assert.match(result.content, /^\[invalid\] the arguments do not fit .* are left out above/);
    },
  },
];

for (const program of programs()) {
  for (const { name, script, args = [], check } of CASES) {
    Deno.test(`excess (${program.name}): ${name}`, () =>
      withDirectory(async ({ project, runs }) => {
        await using server = await startModelServer(script);
        const ran = await runProgram(program, {
          args: [
            ...["run", "Do it", "--intelligence", server.url, "--model", "m", "--run-dir", runs],
            ...["--output", "json", ...args],
          ],
          cwd: project,
        });
        const bodies = (await server.completions()).map((request) => request.body);
        check({ ran, bodies });
      }));
  }

  Deno.test(`output (${program.name}): names for streams, links and what is no file`, () =>
    withDirectory(async ({ project, runs }) => {
      await using server = await startModelServer({ replies: [{ text: "new" }], loop: true });
      const run = (file: string, ...more: string[]) =>
        runProgram(program, {
          args: [
            ...["run", "Do it", "--intelligence", server.url, "--model", "m", "--run-dir", runs],
            ...["-o", file, ...more],
          ],
          cwd: project,
        });
      for (const file of ["-", "/dev/stdout"]) {
        const ran = await run(file);
        assert.deepEqual([ran.code, ran.stdout], [0, "new\n"], file);
      }
      const nowhere = await run("/dev/null");
      assert.deepEqual([nowhere.code, nowhere.stdout], [0, ""]);
      await Deno.writeTextFile(`${project}/real.txt`, "old");
      await Deno.symlink("real.txt", `${project}/link.txt`);
      assert.equal((await run("link.txt")).code, 0);
      assert.equal(await Deno.readTextFile(`${project}/real.txt`), "new\n");
      assert.ok((await Deno.lstat(`${project}/link.txt`)).isSymlink);
      const before = (await server.completions()).length;
      await new Deno.Command("mkfifo", { args: [`${project}/fifo`] }).output();
      for (const [file, why] of [["fifo", /no regular file/], [".", /a directory/]] as const) {
        const ran = await run(file);
        assert.equal(ran.code, 2);
        assert.match(ran.stderr, why);
      }
      const blocked = await run("out.txt", "--run-dir", `${project}/real.txt/runs`);
      assert.equal(blocked.code, 2);
      assert.match(blocked.stderr, /--run-dir: Cannot record runs in .*real.txt is no directory/);
      const unused = await run("out.txt", "--listen", "127.0.0.1:0", "--overlap", "queue");
      assert.equal(unused.code, 0);
      assert.match(unused.stderr, /--listen has no use in mode once; did you mean --mode\?/);
      assert.match(unused.stderr, /--overlap has no use in mode once/);
      assert.equal((await server.completions()).length, before + 1);
    }));
}
