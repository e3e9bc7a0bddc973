import assert from "node:assert/strict";
import { runProgram, withDirectory } from "../tests/spec/harness.ts";
import { startModelServer } from "../tests/fakes/model_server_process.ts";

const EMBED = decodeURIComponent(new URL("./embed.ts", import.meta.url).pathname);
const FLAGS = ["read", "write", "net", "env", "run", "sys"].map((kind) => `--allow-${kind}`);
const program = {
  name: "source",
  command: Deno.execPath(),
  args: ["run", "--no-prompt", ...FLAGS, EMBED],
} as const;

Deno.test("embed.ts: asks side by side, tells each turn, prints the answers in order", () =>
  withDirectory(async ({ project }) => {
    const read = { calls: [{ name: "fs__read", arguments: { path: "a.txt" } }] };
    await using server = await startModelServer({
      routes: ["One?", "Two?"].map((when) => ({
        when,
        replies: [read, { text: `The answer to ${when}` }],
      })),
    });
    await Deno.writeTextFile(`${project}/a.txt`, "a\n");
    const env = { AGENT_INTELLIGENCE: server.url };
    const ran = await runProgram(program, { args: ["One?", "Two?"], cwd: project, env });
    assert.equal(ran.code, 0, ran.stderr);
    assert.equal(ran.stdout, "The answer to One?\nThe answer to Two?\n");
    for (const question of ["One?", "Two?"]) {
      assert.deepEqual(
        ran.stderr.split("\n").filter((line) => line.startsWith(question)),
        [`${question}: turn 1 advanced`, `${question}: turn 2 answered`],
      );
    }
  }));

Deno.test("embed.ts: a mistake in the options is told, and nothing starts", () =>
  withDirectory(async ({ project }) => {
    const env = { AGENT_INTELLIGENCE: "ftp://nowhere" };
    const ran = await runProgram(program, { args: ["One?"], cwd: project, env });
    assert.equal(ran.code, 2);
    assert.match(ran.stderr, /^AGENT_INTELLIGENCE: .*ftp:\/\/nowhere/);
    assert.deepEqual([...Deno.readDirSync(project)], []);
  }));
