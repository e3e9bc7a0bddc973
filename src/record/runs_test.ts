import assert from "node:assert/strict";
import type { LockHandle } from "../ports/lock.ts";
import { sampleClock, writeSampleRun } from "../../tests/fakes/sample_run.ts";
import { systemFiles } from "../sys/files.ts";
import { systemClock } from "../sys/clock.ts";
import { systemLock } from "../sys/lock.ts";
import { holdRun, isRunning, listRuns, resolveRun, runsCommand, type RunsDeps } from "./runs.ts";

const DAY_MS = 86_400_000;
const NOW = Date.UTC(2026, 1, 28);

/** Runs in a directory of their own; `hold` takes a run's lock, as its supervisor does. */
async function withRuns(
  run: (deps: RunsDeps, hold: (id: string) => Promise<LockHandle>) => Promise<void>,
): Promise<void> {
  const runDirectory = await Deno.makeTempDir({ prefix: "agentd-runs-" });
  const held: LockHandle[] = [];
  const hold = async (id: string): Promise<LockHandle> => {
    const taken = await holdRun({ lock: systemLock, clock: systemClock }, `${runDirectory}/${id}`);
    assert.ok(taken.ok);
    held.push(taken.value);
    return taken.value;
  };
  try {
    await run(
      { files: systemFiles, clock: sampleClock(NOW), lock: systemLock, runDirectory },
      hold,
    );
  } finally {
    for (const handle of held) handle.release();
    await Deno.remove(runDirectory, { recursive: true });
  }
}

const advanced = { verdict: "advanced", delta: 1, tool: "fs/read" } as const;

function add(deps: RunsDeps, id: string, daysAgo: number, end: object | null = {}): void {
  writeSampleRun({
    directory: `${deps.runDirectory}/${id}`,
    runId: id,
    instruction: `do ${id}\n\u001b[31mnow`,
    turns: [advanced, advanced],
    end,
    clock: sampleClock(NOW - daysAgo * DAY_MS),
  });
}

Deno.test("listRuns: newest first, with what each used and how it stands", () =>
  withRuns(async (deps, hold) => {
    add(deps, "old", 3);
    add(deps, "new", 1, { status: "stalled", reason: "idle" });
    add(deps, "aborted", 2, { status: null, abort: "mcp" });
    add(deps, "cut", 5, null);
    add(deps, "live", 4, null);
    await hold("live");
    (await hold("cut")).release();
    add(deps, "hurt", 6, null);
    Deno.writeTextFileSync(`${deps.runDirectory}/hurt/record.jsonl`, "nonsense\n");
    Deno.mkdirSync(`${deps.runDirectory}/no-run`);
    Deno.writeTextFileSync(`${deps.runDirectory}/file`, "");
    Deno.symlinkSync(`${deps.runDirectory}/old`, `${deps.runDirectory}/link`);
    const runs = await listRuns(deps);
    assert.deepEqual(
      runs.map((run) => [run.run_id, run.state, run.status ?? run.abort, run.steps, run.tokens]),
      [
        ["new", "ended", "stalled", 2, 2020],
        ["aborted", "ended", "mcp", 2, 2020],
        ["old", "ended", "completed", 2, 2020],
        ["live", "running", null, 2, 2020],
        ["cut", "interrupted", null, 2, 2020],
        ["hurt", "damaged", null, 0, 0],
      ],
    );
    assert.equal(runs[0]!.instruction, "do new [31mnow");
    assert.equal(runs[0]!.cost, 0.25);
    assert.equal(runs[3]!.cost, 0.02);
    assert.ok(runs[0]!.bytes > 1000);
  }));

Deno.test("runsCommand: a table, the same as JSON, nothing for an empty directory", () =>
  withRuns(async (deps, hold) => {
    const empty = await runsCommand(deps, { output: "text", prune: null });
    assert.deepEqual([empty.exitCode, empty.stdout], [0, ""]);
    const none = { ...deps, runDirectory: `${deps.runDirectory}/none` };
    assert.equal((await runsCommand(none, { output: "json", prune: null })).stdout, "[]\n");
    add(deps, "a", 1);
    add(deps, "b", 2, null);
    await hold("b");
    const text = await runsCommand(deps, { output: "text", prune: null });
    const [head, a, b] = text.stdout.split("\n");
    assert.match(head!, /^RUN +STARTED +STATUS +STEPS +TOKENS +COST +SIZE +INSTRUCTION$/);
    assert.match(a!, /^a +2026-02-27 00:00:00 +completed +2 +2,020 +\$0\.25 +[\d.]+KiB +do a/);
    assert.match(b!, /^b +.* \* running +2 /);
    const json = await runsCommand(deps, { output: "json", prune: null });
    assert.deepEqual(JSON.parse(json.stdout).map((run: { run_id: string }) => run.run_id), [
      "a",
      "b",
    ]);
  }));

Deno.test("resolveRun: id, unique prefix, path, last; else one line that says why not", () =>
  withRuns(async (deps) => {
    add(deps, "01AB", 3);
    add(deps, "01AC", 1);
    add(deps, "02", 2);
    add(deps, "02X", 2);
    const rows: [string, string | RegExp][] = [
      ["01AB", "01AB"],
      ["02", "02"],
      ["01AC", "01AC"],
      ["02X", "02X"],
      ["last", "01AC"],
      [`${deps.runDirectory}/01AB`, "01AB"],
      [`${deps.runDirectory}/01AB/`, "01AB"],
      [`${deps.runDirectory}/01AB/record.jsonl`, "01AB"],
      ["01A", /^Cannot tell which run "01A" means: 01AB, 01AC$/],
      ["", /^Cannot find the run ""/],
      ["zz\u001b[0m", /^Cannot find the run "zz\[0m": there is none of that id in/],
      [`${deps.runDirectory}/zz`, /^Cannot find a run at ".*zz": no record\.jsonl there$/],
      ["../01AB", /^Cannot find a run at/],
    ];
    for (const [text, expected] of rows) {
      const found = resolveRun(deps, text);
      if (typeof expected === "string") assert.equal(found.ok && found.value.id, expected, text);
      else assert.match(found.ok ? "found" : found.failure, expected);
    }
    // The newest is the last one, readable or not: nobody goes on with an older one unawares.
    for (const [id, hours] of [["old", -100], ["new", -1]] as const) {
      add(deps, id, 0);
      const path = `${deps.runDirectory}/${id}/record.jsonl`;
      await Deno.writeTextFile(path, "garbage\n");
      const at = new Date(NOW + hours * 3_600_000);
      await Deno.utime(path, at, at);
    }
    const last = resolveRun(deps, "last");
    assert.equal(last.ok && last.value.id, "new");
    await Deno.remove(deps.runDirectory, { recursive: true });
    const none = resolveRun(deps, "last");
    assert.match(none.ok ? "" : none.failure, /^Cannot find the last run: there is none in/);
    await Deno.mkdir(deps.runDirectory);
  }));

Deno.test("runsCommand --prune: by age or number, sizes shown, never a running run", () =>
  withRuns(async (deps, hold) => {
    const ids = async () => (await listRuns(deps)).map((run) => run.run_id);
    for (const [id, days] of [["a", 1], ["b", 20], ["c", 31], ["d", 90]] as const) {
      add(deps, id, days);
    }
    add(deps, "live", 100, null);
    const live = await hold("live");
    const byAge = await runsCommand(deps, { output: "text", prune: { keep: "30d" } });
    assert.equal(byAge.exitCode, 0);
    assert.match(
      byAge.stdout,
      /^removed c \(.*KiB\)\nremoved d .*\n2 of 5 runs removed, .* freed\n$/,
    );
    assert.deepEqual(await ids(), ["a", "b", "live"]);
    const byCount = await runsCommand(deps, { output: "json", prune: { keep: "1" } });
    assert.deepEqual(JSON.parse(byCount.stdout).removed, ["b"]);
    assert.deepEqual(await ids(), ["a", "live"]);
    const wrong = await runsCommand(deps, { output: "text", prune: { keep: "some" } });
    assert.deepEqual([wrong.exitCode, wrong.stdout], [2, ""]);
    assert.match(wrong.stderr, /^agentd: --keep is "some": give an age such as 30d or a number/);
    live.release();
    const all = await runsCommand(deps, { output: "text", prune: { keep: "0" } });
    assert.match(all.stdout, /2 of 2 runs removed/);
    assert.deepEqual(await ids(), []);
  }));

Deno.test("runsCommand --prune: what cannot be read is kept, and said", () =>
  withRuns(async (deps) => {
    for (const id of ["head", "tail", "middle", "later", "sound"]) add(deps, id, 90);
    add(deps, "cut", 90, null);
    const change = (id: string, edit: (text: string) => string) => {
      const path = `${deps.runDirectory}/${id}/record.jsonl`;
      Deno.writeTextFileSync(path, edit(Deno.readTextFileSync(path)));
    };
    change("head", () => "garbage\n");
    change("tail", (text) => `${text}garbage\n`);
    change("cut", (text) => text.replace('"seq":2', '"seq":9'));
    change("later", (text) => text.replaceAll(/^\{"v":1/gm, '{"v":9'));
    const { exitCode, stdout, stderr } = await runsCommand(deps, {
      output: "text",
      prune: { keep: "30d" },
    });
    assert.equal(exitCode, 0);
    assert.match(stdout, /^removed sound .*\nremoved middle .*\n2 of 6 runs removed, /);
    const kept = ["later", "cut", "tail", "head"];
    const said = stderr.trimEnd().split("\n").sort();
    const why = "is kept: its record cannot be read";
    assert.deepEqual(said, kept.map((id) => `agentd: run ${id} ${why}`).sort());
    assert.deepEqual((await listRuns(deps)).map((run) => run.run_id).sort(), kept.sort());
  }));

Deno.test("holdRun: one supervisor a run; the next is told, and may when the first is gone", () =>
  withRuns(async (deps, hold) => {
    add(deps, "a", 1, null);
    const directory = `${deps.runDirectory}/a`;
    assert.equal(await isRunning(deps, directory), false);
    const first = await hold("a");
    assert.equal(await isRunning(deps, directory), true);
    const second = await holdRun({ ...deps, clock: systemClock }, directory);
    assert.equal(second.ok ? "" : second.failure.class, "running");
    const why = second.ok ? "" : second.failure.message;
    assert.match(why, /^Cannot work on the run in .*: it is running$/);
    first.release();
    assert.equal(await isRunning(deps, directory), false);
    (await hold("a")).release();
  }));

Deno.test("holdRun: whoever only asked for a moment keeps no supervisor out", () =>
  withRuns(async (deps, hold) => {
    add(deps, "a", 1, null);
    const asking = await hold("a");
    const taking = holdRun({ ...deps, clock: systemClock }, `${deps.runDirectory}/a`);
    setTimeout(() => asking.release(), 60);
    const taken = await taking;
    assert.ok(taken.ok);
    taken.value.release();
  }));
