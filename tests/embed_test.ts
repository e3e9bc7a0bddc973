/** The library (mod.ts) as its users have it: both drivers, their events, results and ends. */

import assert from "node:assert/strict";
import {
  type AgentRun,
  ConfigurationError,
  type ModelPort,
  type ModelReply,
  type ModelRequest,
  type RecordLine,
  runAgent,
  type RunAgentOptions,
  type RunResult,
} from "../mod.ts";
import { startModelServer } from "./fakes/model_server_process.ts";
import { withDirectory } from "./spec/harness.ts";

type Reply = Partial<ModelReply>;

/** A model that answers by a list, the last for ever; an endless reply ends with its signal. */
function scriptedModel(replies: (Reply | "endless")[]): ModelPort & { requests: ModelRequest[] } {
  const requests: ModelRequest[] = [];
  return {
    requests,
    async complete(request, signal) {
      const reply = replies[Math.min(requests.length, replies.length - 1)]!;
      requests.push(request);
      if (reply === "endless") {
        await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
        const failure = { class: "cancelled", message: "", retryable: false } as const;
        return { ok: false, failure: { ...failure, endpoint: "test", attempts: 1 } };
      }
      return {
        ok: true,
        value: {
          text: "",
          calls: [],
          finish: reply.calls?.length ? "tool_calls" : "stop",
          refusal: null,
          opaque: null,
          usage: { tokensIn: 100, tokensOut: 10, tokensCached: 0, estimated: false },
          model: "scripted",
          endpoint: "test",
          attempts: 1,
          ...reply,
        },
      };
    },
  };
}

const call = (name: string, args: object): Reply => ({
  calls: [{ id: "x1", name, arguments: JSON.stringify(args) }],
});

async function collect(run: AgentRun): Promise<{ lines: RecordLine[]; result: RunResult }> {
  const lines: RecordLine[] = [];
  for await (const line of run.events) lines.push(line);
  return { lines, result: await run.result };
}

/** The stream is the record, from its first to its last line. */
function assertWhole(lines: RecordLine[], result: RunResult): void {
  assert.deepEqual(lines.map((line) => line.seq), lines.map((_line, index) => index + 1));
  assert.deepEqual([lines[0]!.type, lines.at(-1)!.type], ["run.started", "run.ended"]);
  const text = Deno.readTextFileSync(result.record).trimEnd();
  assert.deepEqual(lines, text.split("\n").map((line) => JSON.parse(line)));
}

async function rejection(run: AgentRun): Promise<ConfigurationError> {
  const error = await run.result.then(() => null, (reason: unknown) => reason);
  assert.ok(error instanceof ConfigurationError, String(error));
  assert.deepEqual(await Array.fromAsync(run.events), []);
  return error;
}

Deno.test("runAgent in processes: result and every event, nothing left running", () =>
  withDirectory(async ({ project, runs }) => {
    await using server = await startModelServer({
      replies: [
        { calls: [{ name: "fs__write", arguments: { path: "a.txt", content: "a\n" } }] },
        { text: "Written." },
      ],
    });
    const { lines, result } = await collect(runAgent({
      instruction: "Write a",
      options: {
        intelligence: server.url,
        "allow-write": ["."],
        "--require": "a.txt",
        check: ["test -s a.txt", "true"],
        run_dir: runs,
      },
      cwd: project,
    }));
    assert.equal(result.status, "completed");
    assert.deepEqual([result.exit_code, result.result], [0, "Written."]);
    assert.equal((result.verification as { items: unknown[] }).items.length, 3);
    assert.equal(Deno.readTextFileSync(`${project}/a.txt`), "a\n");
    assertWhole(lines, result);
    assert.deepEqual(await agentsLeft(runs), []);
  }));

/** Agents of these runs that this process has started and that still live; other tests have theirs. */
async function agentsLeft(runs: string): Promise<string[]> {
  const { stdout } = await new Deno.Command("ps", { args: ["-eo", "ppid=,stat=,args="] }).output();
  return new TextDecoder().decode(stdout).split("\n").filter((line) => {
    const [parent, stat] = line.trim().split(/\s+/);
    return Number(parent) === Deno.pid && !stat!.startsWith("Z") && line.includes("__agent") &&
      line.includes(runs);
  });
}

Deno.test("runAgent in this process: tools, checks, hooks and record as in processes", () =>
  withDirectory(async ({ project, runs }) => {
    await Deno.writeTextFile(`${project}/a.txt`, "the letter a\n");
    const model = scriptedModel([
      call("fs__read", { path: "a.txt" }),
      { text: "Too early." },
      call("fs__write", { path: "b.txt", content: "b" }),
      { text: "Done." },
    ]);
    const { lines, result } = await collect(runAgent({
      instruction: "Read a, write b",
      options: {
        "allow-read": ".",
        "allow-write": ".",
        check: "test -e b.txt",
        hook: 'after_observation=sed \'s/.*/{"text":"seen"}/\'',
        run_dir: runs,
        "run-id": "mine",
      },
      cwd: project,
      driver: { model },
    }));
    assert.equal(result.status, "completed", result.reason);
    assert.deepEqual([result.run_id, result.exit_code, result.usage.steps], ["mine", 0, 4]);
    assert.equal(result.record, `${runs}/mine/record.jsonl`);
    assert.match(JSON.stringify(model.requests[1]!.messages), /seen/);
    assert.match(JSON.stringify(model.requests[2]!.messages), /check `test -e b.txt` failed/);
    assertWhole(lines, result);
  }));

for (const driver of ["process", "inside"] as const) {
  Deno.test(`runAgent (${driver}): an abort cancels, before it began and in the middle`, () =>
    withDirectory(async ({ project, runs }) => {
      await using server = await startModelServer({ replies: [{ hang: true, repeat: 2 }] });
      const options: RunAgentOptions = {
        instruction: "Wait",
        options: { intelligence: server.url, run_dir: runs },
        cwd: project,
        ...(driver === "inside" ? { driver: { model: scriptedModel(["endless"]) } } : {}),
      };
      const early = await collect(runAgent({ ...options, signal: AbortSignal.abort() }));
      assert.deepEqual([early.result.status, early.result.exit_code], ["cancelled", 143]);

      const stop = new AbortController();
      const run = runAgent({ ...options, signal: stop.signal });
      const types: string[] = [];
      for await (const line of run.events) {
        types.push(line.type);
        if (line.type === "model.requested") stop.abort();
      }
      const late = await run.result;
      assert.deepEqual([late.status, late.exit_code, late.resumable], ["cancelled", 143, true]);
      assert.deepEqual(types.slice(-2), ["cancel.requested", "run.ended"]);
    }));

  Deno.test(`runAgent (${driver}): an end that is none of success is a result, not an error`, () =>
    withDirectory(async ({ project, runs }) => {
      const reason = { reason: "I must not" };
      await using server = await startModelServer({
        replies: [{ calls: [{ name: "task_refuse", arguments: reason }] }],
      });
      const { result } = await collect(runAgent({
        instruction: "Do it",
        options: { intelligence: server.url, run_dir: runs },
        cwd: project,
        ...(driver === "inside"
          ? { driver: { model: scriptedModel([call("task_refuse", reason)]) } }
          : {}),
      }));
      assert.deepEqual([result.status, result.exit_code, result.reason], [
        "refused",
        5,
        "I must not",
      ]);
    }));
}

Deno.test("runAgent: result alone is enough, and so are events alone", () =>
  withDirectory(async ({ project, runs }) => {
    const start = () =>
      runAgent({
        instruction: "Say it",
        options: { run_dir: runs },
        cwd: project,
        driver: { model: scriptedModel([{ text: "It." }]) },
      });
    assert.equal((await start().result).result, "It.");
    const run = start();
    for await (const line of run.events) if (line.type === "run.started") break;
    assert.equal((await run.result).status, "completed");
  }));

Deno.test("runAgent: two at once keep apart; a run id that is taken is a mistake", () =>
  withDirectory(async ({ project, runs }) => {
    const start = (text: string, runId: string) =>
      runAgent({
        instruction: text,
        options: { run_dir: runs, run_id: runId },
        cwd: project,
        driver: { model: scriptedModel([{ text }]) },
      });
    const both = await Promise.all([collect(start("One", "a")), collect(start("Two", "b"))]);
    assert.deepEqual(both.map(({ result }) => result.result), ["One", "Two"]);
    for (const { lines, result } of both) assertWhole(lines, result);
    const { problems } = await rejection(start("Three", "a"));
    assert.match(problems.join(), /the run a exists already/);
  }));

Deno.test("runAgent: every mistake of its options at once, and nothing is started", () =>
  withDirectory(async ({ project, runs }) => {
    const error = await rejection(runAgent({
      instruction: "Do it",
      options: {
        max_step: "3",
        "max-tokens": "many",
        "-o": "out.txt",
        output_file: "out.txt",
        instruction: "twice",
        mode: "loop",
        run_dir: runs,
      },
      cwd: project,
    }));
    assert.deepEqual(error.problems.map((line) => line.split("; ")[0]), [
      "max_step: there is no such option",
      "-o: there is no such option",
      "output_file: it has no effect in an embedded run",
      "instruction: it is an option of its own",
      '--max-tokens: "many" is not a whole number, 1 or more',
    ]);
    assert.match(error.problems[0]!, /did you mean max_steps\?$/);
    const looped = await rejection(
      runAgent({ instruction: "x", options: { mode: "loop", run_dir: runs }, cwd: project }),
    );
    assert.match(looped.message, /^Cannot run: .*mode is once/);
    await assert.rejects(Deno.stat(runs), Deno.errors.NotFound);
  }));

Deno.test("runAgent: nothing of the environment counts but what is given", () =>
  withDirectory(async ({ project, runs }) => {
    const token = "tok-123456";
    await using server = await startModelServer({ replies: [{ text: "Yes." }], token });
    await Deno.writeTextFile(
      `${project}/mcp.json`,
      JSON.stringify({ mcpServers: { x: { command: "true", env: { X: "${env:PATH}" } } } }),
    );
    const start = (more: Record<string, string>, env?: Record<string, string>) =>
      runAgent({
        instruction: "Do it",
        options: { intelligence: server.url, run_dir: runs, ...more },
        cwd: project,
        ...(env ? { env } : {}),
      });
    // PATH is set where this runs, and that does not count.
    const { message } = await rejection(start({ "mcp-config": "mcp.json" }));
    assert.match(message, /the environment variable PATH is not set/);
    const without = await start({}).result;
    assert.deepEqual([without.abort, without.exit_code], ["intelligence", 4]);
    const given = await start({}, { AGENT_INTELLIGENCE_TOKEN: token }).result;
    assert.equal(given.result, "Yes.");
    assert.ok(!Deno.readTextFileSync(given.record).includes(token));
  }));
