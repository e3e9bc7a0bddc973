import { RECORD_FULL } from "./append.ts";
import assert from "node:assert/strict";
import { sampleClock, sampleEnd, writeSampleRun } from "../../tests/fakes/sample_run.ts";
import { systemClock } from "../sys/clock.ts";
import type { LockHandle } from "../ports/lock.ts";
import { systemFiles } from "../sys/files.ts";
import { systemLock } from "../sys/lock.ts";
import type { AgentResult } from "../wire/result.ts";
import { endAdvice, endSentence } from "./advice.ts";
import { followCommand, inspectCommand, type InspectDeps, readRunTrace } from "./inspect.ts";
import { runLockPath, type RunPlace } from "./runs.ts";
import { appendTerminal } from "./terminal.ts";
import { comparePaths } from "./trace.ts";

const T0 = Date.UTC(2026, 0, 31, 12);

async function withRun(
  run: (deps: InspectDeps, place: RunPlace, hold: () => Promise<LockHandle>) => Promise<void>,
): Promise<void> {
  const directory = await Deno.makeTempDir({ prefix: "agentd-inspect-" });
  let held: LockHandle | null = null;
  const hold = async (): Promise<LockHandle> => {
    const taken = await systemLock.tryLock(runLockPath(directory));
    assert.ok(taken.ok);
    return held = taken.value;
  };
  const deps: InspectDeps = { files: systemFiles, clock: systemClock, lock: systemLock };
  try {
    await run(deps, { id: "R", directory, record: `${directory}/record.jsonl` }, hold);
  } finally {
    (held as LockHandle | null)?.release();
    await Deno.remove(directory, { recursive: true });
  }
}

function writeTree(directory: string): void {
  writeSampleRun({
    directory,
    instruction: "Do it\u001b[2J now",
    turns: [
      { verdict: "advanced", delta: 1, tool: "fs/list" },
      { verdict: "advanced", delta: 1, tool: "fs/read" },
      { verdict: "repeated", delta: 0, idle: 1, tool: "fs/read" },
      { verdict: "repeated", delta: 0, idle: 2, tool: "fs/read" },
    ],
    end: { status: "stalled", reason: "idle: 3 turns in a row", resumable: true },
    clock: sampleClock(T0),
  });
  writeSampleRun({
    directory: `${directory}/agents/0.1`,
    path: "0.1",
    turns: [{ verdict: "answered", delta: 1, text: "done", cost: null }],
    end: {},
    clock: sampleClock(T0 + 2500),
  });
  writeSampleRun({
    directory: `${directory}/agents/0.1.1`,
    path: "0.1.1",
    turns: [{
      verdict: "failed",
      delta: 1,
      tool: "web/get",
      observation: {
        class: "error",
        error: "tool",
        message: "no",
        retryable: false,
        excerpt: null,
      },
    }],
    end: {},
    clock: sampleClock(T0 + 3600),
  });
}

Deno.test("inspectCommand: a row per iteration, subagents indented where they began, a footer", () =>
  withRun(async (deps, place) => {
    writeTree(place.directory);
    const { exitCode, stdout, stderr } = await inspectCommand(deps, place, { json: false });
    assert.deepEqual([exitCode, stderr], [0, ""]);
    const lines = stdout.split("\n");
    assert.equal(lines[0], "R · stalled · model some-model · started 2026-01-31 12:00:00");
    assert.equal(lines[1], "Do it[2J now");
    const table = lines.slice(3, 10).map((line) => line.replace(/ +/g, " "));
    assert.deepEqual(table, [
      "STEP ACTIONS OBSERVED VERDICT DELTA IDLE TOKENS CACHED MODEL TOOLS",
      "1 fs/list ok 120B advanced 1 0 1,010 500 300ms 99ms",
      "2 fs/read ok 120B advanced 1 0 1,010 500 300ms 99ms",
      " 0.1 #1 (answer) – answered 1 0 1,010 500 300ms 0ms",
      " 0.1.1 #1 web/get error 120B failed 1 0 1,010 500 300ms 99ms",
      "3 fs/read ok 120B repeated 0 1 1,010 500 300ms 99ms <- first without new evidence",
      "4 fs/read ok 120B repeated 0 2 1,010 500 300ms 99ms",
    ]);
    assert.match(lines[11]!, /^Total: 6 steps in 3 agents, 6 model calls, 5 tool calls, 6,060 /);
    assert.match(lines[11]!, /\(3,000 cached\), cost –, 4\.0s$/);
    assert.equal(lines[12], "Ended stalled: idle: 3 turns in a row.");
    assert.match(lines[13]!, /Look at step 3, .* then: agentd resume R$/);
  }));

Deno.test("inspectCommand --json: everything, with the first non-advancing iteration", () =>
  withRun(async (deps, place) => {
    writeTree(place.directory);
    const { stdout } = await inspectCommand(deps, place, { json: true });
    const trace = JSON.parse(stdout);
    assert.equal(trace.first_non_advancing, 3);
    assert.equal(trace.status, "stalled");
    assert.deepEqual(
      trace.agents.map((agent: { path: string }) => agent.path),
      ["0", "0.1", "0.1.1"],
    );
    assert.deepEqual(trace.agents[1].first_non_advancing, null);
    const [iteration] = trace.agents[0].iterations;
    assert.deepEqual(iteration.actions, [{
      call: "call-1",
      tool: "fs/list",
      class: "ok",
      bytes: 120,
      fresh: true,
      attempts: 1,
      ms: 99,
    }]);
    assert.equal(iteration.context_hash, "0000000000000001");
    assert.equal(trace.agents[0].spans.length, 8);
    assert.deepEqual(Object.keys(trace.agents[0].end), Object.keys(sampleEnd()));
  }));

Deno.test("inspectCommand: damage is one line and exit 1, a torn tail one line", () =>
  withRun(async (deps, place) => {
    writeTree(place.directory);
    const text = Deno.readTextFileSync(place.record);
    Deno.writeTextFileSync(place.record, text.slice(0, -5));
    const torn = await inspectCommand(deps, place, { json: false });
    assert.equal(torn.exitCode, 0);
    assert.match(
      torn.stderr,
      /^agentd: .*record\.jsonl: a torn last line of \d+ bytes was dropped\n$/,
    );
    assert.match(torn.stdout, /interrupted: its record has no terminal line/);
    const lines = text.split("\n");
    lines[6] = lines[6]!.replace("advanced", "repeated");
    Deno.writeTextFileSync(place.record, lines.join("\n"));
    const hurt = await inspectCommand(deps, place, { json: false });
    assert.equal(hurt.exitCode, 1);
    assert.match(hurt.stderr, /line 7: .*it was changed\n$/);
    assert.match(hurt.stdout, /^R · damaged/);
  }));

Deno.test("followCommand: shows iterations as they are judged and ends with the run", () =>
  withRun(async (deps, place, hold) => {
    const lock = await hold();
    writeSampleRun({
      directory: place.directory,
      turns: [{ verdict: "advanced", delta: 1, tool: "fs/list" }],
      end: null,
    });
    let shown = "";
    const firstShown = Promise.withResolvers<void>();
    const follow = followCommand(deps, place, { json: false }, (text) => {
      shown += text;
      if (text.includes("fs/list")) firstShown.resolve();
    }, new AbortController().signal);
    await firstShown.promise;
    assert.ok(!shown.includes("Ended"));
    const ended = appendTerminal({
      files: systemFiles,
      clock: systemClock,
      directory: place.directory,
      mask: (text) => text,
    }, sampleEnd());
    assert.ok(ended.ok);
    lock.release();
    assert.equal((await follow).exitCode, 0);
    assert.match(shown, /1 +fs\/list .*\n\nTotal: 1 step, .*\nEnded completed: /);
  }));

Deno.test("followCommand: stops when it is told to", () =>
  withRun(async (deps, place, hold) => {
    await hold();
    writeSampleRun({ directory: place.directory, turns: [], end: null });
    const controller = new AbortController();
    const lines: string[] = [];
    const follow = followCommand(
      deps,
      place,
      { json: true },
      (text) => lines.push(text),
      controller.signal,
    );
    controller.abort();
    await follow;
    assert.equal(JSON.parse(lines.at(-1)!).state, "running");
  }));

Deno.test("endSentence, endAdvice: every end has a reason and something to do", () =>
  withRun(async (deps, place) => {
    writeTree(place.directory);
    const root = (await readRunTrace(deps, place)).agents[0]!;
    const rows: [Partial<AgentResult>, RegExp][] = [
      [{ status: "completed" }, /Nothing was declared/],
      [
        { status: "completed", verification: { passed: true, items: [] } },
        /^Nothing is left to do: /,
      ],
      [{ status: "refused" }, /new run/],
      [{ status: "exhausted_steps" }, /resume R --max-steps \+20/],
      [{ status: "exhausted_tokens", reason: "tokens: 9" }, /--max-tokens/],
      [{ status: "exhausted_tokens", reason: "cost: 9" }, /--max-cost/],
      [{ status: "exhausted_tokens", reason: "context: 9" }, /--context-window/],
      [{ status: "exhausted_tokens", reason: "tree: 9" }, /--tree-tokens/],
      [{ status: "deadline" }, /slowest part was the model \(1\.2s in all\)/],
      [{ status: "stalled", reason: "failing: 8" }, /calls fail/],
      [{ status: "loop_detected" }, /step 3/],
      [{ status: "cancelled" }, /stopped from outside/],
      [{ status: "crashed" }, /telemetry/],
      [
        { status: "crashed", reason: `${RECORD_FULL} (x)` },
        /^Make room on that disk, then: agentd/,
      ],
      [{ status: null, abort: "mcp" }, /tool server/],
      [{ status: null, abort: "intelligence" }, /credentials/],
    ];
    for (const [end, advice] of rows) {
      const result = sampleEnd(end);
      assert.match(endAdvice({ ...root, end: result }, "ended", "R"), advice);
      assert.ok(
        endSentence(result, "ended").startsWith(`Ended ${end.status ?? `abort ${end.abort}`}: `),
      );
    }
    for (const state of ["running", "interrupted", "damaged"] as const) {
      assert.match(
        endAdvice({ ...root, end: null }, state, "R"),
        /agentd (inspect|resume|replay) R/,
      );
      assert.match(endSentence(null, state), /\.$/);
    }
  }));

Deno.test("comparePaths: as a tree is read", () => {
  const paths = ["0.10", "0.2.1", "0", "0.2", "0.1.1.1", "0.1"];
  assert.deepEqual(paths.sort(comparePaths), ["0", "0.1", "0.1.1.1", "0.2", "0.2.1", "0.10"]);
});
