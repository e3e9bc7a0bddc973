/** The streams of a run, from outside: those whose readers are slow, stuck or gone. */

import assert from "node:assert/strict";
import { type Program, programs } from "../program.ts";
import { type Script, startModelServer } from "../fakes/model_server_process.ts";
import { survivors, withDirectory } from "./harness.ts";

const LIBRARY = decodeURIComponent(new URL("../fakes/library.mjs", import.meta.url).pathname);
/** Far more telemetry than a pipe holds. */
const TURNS = 150;
const PATIENCE_MS = 60_000;

const TALKATIVE: Script = {
  by: "turn",
  replies: [
    ...Array.from({ length: TURNS }, () => ({ calls: [{ name: "lib__count", arguments: {} }] })),
    { text: "counted" },
  ],
};
const ARGS = ["--mcp", `lib=node ${LIBRARY}`, "--max-steps", "500", "--log-level", "debug"];

/** Starts the program with both streams piped and nobody at their other ends. */
function start(program: Program, args: readonly string[], cwd: string): Deno.ChildProcess {
  return new Deno.Command(program.command, {
    args: [...program.args, "run", ...args],
    cwd,
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
}

/** The exit code, or null if the program does not end by itself. */
async function ended(child: Deno.ChildProcess): Promise<number | null> {
  let killed = false;
  const timer = setTimeout(() => {
    killed = true;
    child.kill("SIGKILL");
  }, PATIENCE_MS);
  const { code } = await child.status;
  clearTimeout(timer);
  return killed ? null : code;
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = performance.now() + PATIENCE_MS; !await condition();) {
    assert.ok(performance.now() < end, "it did not come to that");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function readRest(stream: ReadableStream<Uint8Array>): Promise<string> {
  return await new Response(stream).text();
}

for (const program of programs()) {
  Deno.test(`stderr (${program.name}): a reader that does not read holds up no run`, () =>
    withDirectory(async ({ project, runs }) => {
      await using server = await startModelServer(TALKATIVE);
      const child = start(program, [
        "Count",
        ...ARGS,
        "--intelligence",
        server.url,
        "--run-dir",
        runs,
      ], project);
      const [code, stdout] = [await ended(child), await readRest(child.stdout)];
      await child.stderr.cancel();
      assert.equal(code, 0);
      assert.equal(stdout, "counted\n");
      assert.equal((await server.completions()).length, TURNS + 1);
      assert.deepEqual(await survivors([child.pid]), []);
    }));

  Deno.test(`stderr (${program.name}): a reader that does not read holds up no signal`, () =>
    withDirectory(async ({ project, runs }) => {
      await using server = await startModelServer({
        ...TALKATIVE,
        replies: [...TALKATIVE.replies!.slice(0, -1), { hang: true }],
      });
      const child = start(program, [
        "Count",
        ...ARGS,
        "--intelligence",
        server.url,
        "--run-dir",
        runs,
      ], project);
      await until(async () => (await server.completions()).length === TURNS + 1);
      child.kill("SIGTERM");
      const code = await ended(child);
      await Promise.all([child.stdout.cancel(), child.stderr.cancel()]);
      assert.equal(code, 143);
    }));

  Deno.test(`stderr (${program.name}): a reader that comes late finds what a queue holds`, () =>
    withDirectory(async ({ project, runs }) => {
      await using server = await startModelServer({
        ...TALKATIVE,
        replies: [...TALKATIVE.replies!.slice(0, -1), { text: "late", delayMs: 1_000 }],
      });
      const args = [...ARGS, "--intelligence", server.url, "--run-dir", runs];
      const child = start(program, ["Count", ...args], project);
      await until(async () => (await server.completions()).length === TURNS + 1);
      const [stderr, stdout] = await Promise.all([readRest(child.stderr), readRest(child.stdout)]);
      assert.equal(await ended(child), 0);
      assert.equal(stdout, "late\n");
      const events = stderr.trimEnd().split("\n").map((line) => JSON.parse(line).event);
      assert.equal(events.filter((event) => event === "loop.step").length, TURNS + 1);
      assert.equal(events.at(-1), "proc.exit");
    }));

  Deno.test(`stdout (${program.name}): a daemon whose results nobody reads still ends`, () =>
    withDirectory(async ({ project, runs }) => {
      const words = Array.from({ length: 20_000 }, (_, i) => `word${i}`).join(" ");
      await using server = await startModelServer({ replies: [{ text: words }], loop: true });
      const child = start(program, [
        ...["Tell", "--mode", "loop", "--interval", "50ms", "--intelligence", server.url],
        ...["--run-dir", runs, "--state-dir", `${runs}-state`],
      ], project);
      const stderr = readRest(child.stderr);
      await until(async () => (await server.completions()).length >= 4);
      child.kill("SIGTERM");
      const code = await ended(child);
      await child.stdout.cancel();
      assert.equal(code, 0, await stderr);
      assert.deepEqual(await survivors([child.pid]), []);
    }));

  Deno.test({
    name: `stdout (${program.name}): what a model says does not steer a terminal`,
    ignore: Deno.build.os !== "linux",
    fn: () =>
      withDirectory(async ({ project, runs }) => {
        const text = "red \x1b[31m and \x1b]0;title\x07, \u009b2J\tand\r\nback\rto é";
        await using server = await startModelServer({ replies: [{ text }], loop: true });
        const words = [program.command, ...program.args, "run", "Tell", "--intelligence"];
        const run = [...words, server.url, "--run-dir", runs, "--quiet"];
        const shown = await new Deno.Command("script", {
          args: ["-qec", run.map((word) => `'${word}'`).join(" "), "/dev/null"],
          cwd: project,
          stdin: "null",
        }).output();
        assert.equal(
          new TextDecoder().decode(shown.stdout).replaceAll("\r\n", "\n"),
          "red \ufffd[31m and \ufffd]0;title\ufffd, \ufffd2J\tand\r\nback\ufffdto é\n",
        );
        // A pipe gets it as it is.
        const piped = await new Deno.Command(run[0]!, { args: run.slice(1), cwd: project })
          .output();
        assert.equal(new TextDecoder().decode(piped.stdout), text + "\n");
      }),
  });

  Deno.test({
    name: `stdout (${program.name}): a result that is not taken is a failure, and says so`,
    ignore: Deno.build.os !== "linux",
    fn: () =>
      withDirectory(async ({ project, runs }) => {
        await using server = await startModelServer({ replies: [{ text: "42" }], loop: true });
        const words = [program.command, ...program.args, "run", "Tell", "--intelligence"];
        const { code, stderr } = await new Deno.Command("sh", {
          args: ["-c", 'exec "$@" >/dev/full', "sh", ...words, server.url, "--run-dir", runs],
          cwd: project,
          stdin: "null",
        }).output();
        assert.equal(code, 1);
        const said = new TextDecoder().decode(stderr);
        assert.match(
          said,
          /agentd: Cannot write the result to stdout; agentd inspect \w+ shows it/,
        );
      }),
  });
}
