import assert from "node:assert/strict";
import { type MachineRun, okText, runMachine, type Script } from "../../tests/fakes/machine_run.ts";
import { fnv64 } from "../core/hash.ts";
import type { JsonObject } from "../core/json.ts";
import { VERSION } from "../core/version.ts";
import { systemClock } from "../sys/clock.ts";
import { systemFiles } from "../sys/files.ts";
import { systemLock } from "../sys/lock.ts";
import { sampleEnd } from "../../tests/fakes/sample_run.ts";
import { configurationChanges, forkRun, planResume } from "./fork.ts";
import { replayCommand, replayRecord } from "./replay.ts";
import { runLockPath, type RunPlace } from "./runs.ts";
import { appendTerminal } from "./terminal.ts";

/** Reads file after file, writes one, then says it is done: `turns` turns in all. */
function job(turns: number): Script {
  return {
    reply: (step) =>
      step >= turns ? { text: "All is done.", calls: [] } : {
        text: `turn ${step}`,
        calls: step % 3 === 0
          ? [{ tool: "fs/write", arguments: { path: `out/${step}`, text: "x" } }]
          : [
            { tool: "fs/read", arguments: { path: `docs/${step}` } },
            { tool: "fs/list", arguments: { path: `docs/${step}` } },
          ],
      },
    observe: (call) => okText(`${call.tool.name} ${JSON.stringify(call.arguments)} `.repeat(20)),
  };
}

const stuck: Script = {
  reply: () => ({ text: "again", calls: [{ tool: "fs/read", arguments: { path: "a" } }] }),
  observe: () => okText("the same"),
};

async function withRun(
  run: MachineRun | Omit<MachineRun, "directory">,
  test: (place: RunPlace, root: string) => void | Promise<void>,
): Promise<void> {
  const root = await Deno.makeTempDir({ prefix: "agentd-replay-" });
  try {
    const directory = `${root}/one`;
    runMachine({ ...run, directory });
    await test({ id: "one", directory, record: `${directory}/record.jsonl` }, root);
  } finally {
    await Deno.remove(root, { recursive: true });
  }
}

/** Changes lines and makes the chain whole again: a lie that only a replay finds. */
function rewrite(path: string, edit: (line: JsonObject) => JsonObject | null): void {
  let prev = "0000000000000000";
  let seq = 0;
  const out: string[] = [];
  for (const text of Deno.readTextFileSync(path).split("\n").slice(0, -1)) {
    const line = edit(JSON.parse(text));
    if (line === null) continue;
    out.push(JSON.stringify({ ...line, seq: ++seq, prev }));
    prev = fnv64(out.at(-1)!);
  }
  Deno.writeTextFileSync(path, out.join("\n") + "\n");
}

const quiet = { output: "text", until: null, showContext: false } as const;

Deno.test("replayCommand: runs of every kind replay identically", async () => {
  const rows: [string, Omit<MachineRun, "directory">][] = [
    ["completed", { script: job(12) }],
    ["stalled", { script: stuck }],
    ["exhausted_steps", { script: job(99), limits: { maxSteps: 7 } }],
    ["exhausted_tokens", { script: job(99), limits: { maxTokens: 5000 } }],
    ["compacted", { script: job(40), contextWindow: 3500, limits: { maxSteps: 60 } }],
    ["checked", {
      script: {
        ...job(3),
        checks: () => [{
          kind: "check",
          name: "check 0",
          passed: true,
          detail: "",
          digest: "d",
          progress: null,
          ms: 1,
        }],
      },
      checks: 1,
    }],
  ];
  for (const [name, run] of rows) {
    await withRun(run, (place) => {
      const output = replayCommand(systemFiles, place, quiet);
      assert.equal(output.exitCode, 0, `${name}: ${output.stdout}`);
      assert.match(output.stdout, /^one: replayed identically: .*; no model call, no tool call\n$/);
      const json = JSON.parse(
        replayCommand(systemFiles, place, { ...quiet, output: "json" }).stdout,
      );
      assert.equal(json.identical, true);
      assert.ok(json.decisions > 5, name);
      const text = Deno.readTextFileSync(place.record);
      if (name === "compacted") assert.match(text, /"type":"context.compacted"/);
      else if (name === "checked") assert.match(text, /"type":"verify.judged"/);
      else assert.match(text, new RegExp(`"run.ended","status":"${name}"`));
    });
  }
});

Deno.test("replayCommand: a changed decision is shown side by side, at its line", () =>
  withRun({ script: job(6) }, (place) => {
    rewrite(
      place.record,
      (line) =>
        line.type === "turn.judged" && line.step === 3
          ? { ...line, verdict: "repeated", delta: 0 }
          : line,
    );
    const output = replayCommand(systemFiles, place, quiet);
    assert.equal(output.exitCode, 1);
    const lines = Deno.readTextFileSync(place.record).split("\n");
    const at = lines.findIndex((line) => line.includes('"verdict":"repeated"')) + 1;
    assert.ok(
      output.stdout.startsWith(
        `one: first divergence at line ${at}: turn.judged differs in verdict, delta\n` +
          '  verdict\n    recorded: "repeated"\n    replayed: "advanced"\n' +
          "  delta\n    recorded: 0\n    replayed: 1\n",
      ),
      output.stdout,
    );
  }));

Deno.test("replayRecord: changed events, missing and added decisions, impossible events", async () => {
  const rows: [string, (line: JsonObject) => JsonObject | null, RegExp][] = [
    [
      "another answer",
      (line) =>
        line.call === "c2-1" && line.type === "call.observed" ? { ...line, digest: "f" } : line,
      /turn\.judged differs in signature/,
    ],
    [
      "another text",
      (line) =>
        line.type === "model.answered" && line.text === "turn 2" ? { ...line, text: "?" } : line,
      /model\.requested differs in context_hash/,
    ],
    [
      "a decision left out",
      (line) => line.type === "turn.judged" && line.step === 2 ? null : line,
      /the record decides model\.requested here, the machine turn\.judged/,
    ],
    [
      "the last decisions of an event left out",
      (line) => line.type === "model.requested" && line.step === 3 ? null : line,
      /the machine decides model\.requested here, the record goes on without it/,
    ],
    [
      "an event that cannot be",
      (line) => line.type === "tools.listed" ? { ...line, type: "summary.made", text: "" } : line,
      /summary\.made cannot happen while starting/,
    ],
    [
      "the end changed",
      (line) => line.type === "run.ended" ? { ...line, status: "refused" } : line,
      /run\.ended differs in status/,
    ],
  ];
  for (const [name, edit, why] of rows) {
    await withRun({ script: job(5) }, (place) => {
      rewrite(place.record, edit);
      const { divergence } = replayRecord(systemFiles, place.record);
      assert.match(divergence?.why ?? "identical", why, name);
    });
  }
});

Deno.test("replayCommand: a record of another program says so, one of this program does not", () =>
  withRun({ script: job(3) }, (place) => {
    const show = () => replayCommand(systemFiles, place, quiet);
    assert.equal(show().stderr, "");
    rewrite(
      place.record,
      (line) => line.type === "run.started" ? { ...line, program: "0.0.9" } : line,
    );
    assert.equal(show().exitCode, 0);
    assert.equal(show().stderr, `agentd: recorded by agentd 0.0.9, replayed by ${VERSION}\n`);
    rewrite(
      place.record,
      (line) => line.type === "run.started" ? { ...line, program: VERSION } : line,
    );
    assert.equal(show().stderr, "");
    const json = JSON.parse(replayCommand(systemFiles, place, { ...quiet, output: "json" }).stdout);
    assert.deepEqual([json.recorded_by, json.replayed_by], [[VERSION], VERSION]);
  }));

Deno.test("replayCommand: damage is the divergence, and replay goes up to it", () =>
  withRun({ script: job(6) }, (place) => {
    const lines = Deno.readTextFileSync(place.record).split("\n");
    lines[9] = "{";
    Deno.writeTextFileSync(place.record, lines.join("\n"));
    const output = replayCommand(systemFiles, place, quiet);
    assert.equal(output.exitCode, 1);
    assert.match(output.stdout, /^one: first divergence at line 10: line 10: it is not JSON\n/);
    assert.match(output.stdout, /Replayed up to there: 9 lines/);
  }));

Deno.test("replay and resume: a run killed before any event, resumed, replays identically", async () => {
  const undisturbed = await countEvents();
  assert.ok(undisturbed > 20);
  for (let at = 1; at < undisturbed; at++) {
    let count = 0;
    const written: string[] = [];
    const script: Script = {
      ...job(8),
      observe: (call) => {
        if (call.tool.name === "fs/write") written.push(String(call.arguments.path));
        return job(8).observe(call);
      },
    };
    await withRun({ script, kill: () => count++ === at }, async (place) => {
      const files = systemFiles;
      const lock = {
        tryLock: () => Promise.resolve({ ok: true as const, value: { release() {} } }),
        isHeld: () => Promise.resolve(false),
      };
      const plan = await planResume({ files, lock }, place);
      assert.ok(plan.ok, `killed at ${at}: ${JSON.stringify(plan)}`);
      const state = runMachine({ script, directory: place.directory, resume: true });
      assert.equal(state.phase.tag === "stopped" && state.phase.result.status, "completed");
      const { divergence, resumed } = replayRecord(files, place.record);
      assert.equal(divergence, null, `killed at ${at}: ${divergence?.why}`);
      assert.equal(resumed, 1);
      assert.equal(state.counters.steps, 8);
      assert.equal(
        new Set(written).size,
        written.length,
        `killed at ${at}: a write happened twice`,
      );
      const again = await planResume({ files, lock }, place);
      assert.match(again.ok ? "" : again.failure, /ended completed, and nothing is left to do$/);
    });
  }
});

Deno.test("replay and resume: a record cut behind any of its lines goes on to the same end", () =>
  withRun({ script: job(6) }, (place) => {
    const whole = Deno.readTextFileSync(place.record);
    const lines = whole.split("\n").slice(0, -1);
    assert.ok(lines.length > 25);
    for (let kept = 1; kept < lines.length; kept++) {
      Deno.writeTextFileSync(place.record, lines.slice(0, kept).join("\n") + "\n");
      assert.equal(replayRecord(systemFiles, place.record).divergence, null, `${kept} lines`);
      const state = runMachine({ script: job(6), directory: place.directory, resume: true });
      assert.equal(state.phase.tag === "stopped" && state.phase.result.result, "All is done.");
      assert.ok(Math.abs(state.counters.steps - 6) <= 1, `${kept} lines: ${state.counters.steps}`);
      assert.equal(replayRecord(systemFiles, place.record).divergence, null, `${kept} lines`);
    }
  }));

async function countEvents(): Promise<number> {
  let count = 0;
  await withRun({ script: job(8), kill: () => (count++, false) }, () => {});
  return count;
}

Deno.test("replayRecord: an end that the supervisor wrote is no divergence, nor what comes after it", () =>
  withRun({ script: job(6), kill: (event) => event.type === "call.observed" }, (place) => {
    const ended = appendTerminal({
      files: systemFiles,
      clock: systemClock,
      directory: place.directory,
      mask: (text) => text,
    }, sampleEnd({ status: "crashed", reason: "killed" }));
    assert.ok(ended.ok);
    assert.equal(replayRecord(systemFiles, place.record).divergence, null);
    runMachine({ script: job(6), directory: place.directory, resume: true });
    assert.equal(replayRecord(systemFiles, place.record).divergence, null);
  }));

Deno.test("replayCommand --until --show context: exactly what the model saw", () =>
  withRun({ script: job(6) }, (place) => {
    const requested = Deno.readTextFileSync(place.record).split("\n").filter((line) =>
      line.includes('"model.requested","step":3')
    ).map((line) =>
      JSON.parse(line)
    )[0];
    const options = { output: "json", until: 3, showContext: true } as const;
    const shown = JSON.parse(replayCommand(systemFiles, place, options).stdout);
    assert.equal(shown.context_hash, requested.context_hash);
    assert.equal(shown.messages.length, requested.messages);
    assert.deepEqual(shown.messages[0].parts[0], { type: "text", text: "Summarise ./docs" });
    const text = replayCommand(systemFiles, place, { ...options, output: "text" });
    assert.match(text.stdout, /^context [0-9a-f]{16} of iteration 3\n=== system\n/);
    assert.match(
      text.stdout,
      /=== assistant\nturn 2\n-> fs__read \{"path":"docs\/2"\} \(call_2_0\)/,
    );
    assert.match(text.stdout, /=== tool fs__list \(call_2_1\)\n\[ok\]\nfs\/list/);
    assert.doesNotMatch(text.stdout, /turn 3/);
    const beyond = replayCommand(systemFiles, place, { ...options, until: 99 });
    assert.equal(beyond.exitCode, 2);
    assert.match(beyond.stderr, /Cannot show the context of iteration 99: the run made 6\n$/);
    const part = replayCommand(systemFiles, place, { ...quiet, until: 3 });
    assert.match(part.stdout, /2 steps/);
  }));

Deno.test("forkRun: a new run that goes on from an iteration; the old one stays as it was", () =>
  withRun({ script: job(6) }, (place, root) => {
    const before = Deno.readTextFileSync(place.record);
    Deno.mkdirSync(`${place.directory}/artifacts`);
    Deno.writeTextFileSync(`${place.directory}/artifacts/c1-1`, "kept");
    const deps = { files: systemFiles, clock: systemClock, runDirectory: root };
    const forked = forkRun(deps, place, 4, "two");
    assert.ok(forked.ok, JSON.stringify(forked));
    const script: Script = { ...job(5), reply: () => ({ text: "Another end.", calls: [] }) };
    const state = runMachine({ script, directory: forked.value.directory, resume: true });
    assert.equal(state.phase.tag === "stopped" && state.phase.result.result, "Another end.");
    assert.equal(state.counters.steps, 4);
    assert.equal(state.identity?.runId, "two");
    assert.equal(replayRecord(systemFiles, forked.value.record).divergence, null);
    assert.equal(Deno.readTextFileSync(`${root}/two/artifacts/c1-1`), "kept");
    assert.equal(Deno.readTextFileSync(place.record), before);
    const again = forkRun(deps, place, 4, "two");
    assert.match(again.ok ? "" : again.failure, /^Cannot fork run one at iteration 4: /);
    Deno.mkdirSync(`${root}/mine`);
    Deno.writeTextFileSync(`${root}/mine/data`, "x");
    const mine = forkRun(deps, place, 50, "mine");
    assert.match(mine.ok ? "" : mine.failure, /exists already$/);
    assert.equal(Deno.readTextFileSync(`${root}/mine/data`), "x");
    const beyond = forkRun(deps, place, 50, "three");
    assert.match(beyond.ok ? "" : beyond.failure, /it made 6 iterations$/);
    assert.throws(() => Deno.statSync(`${root}/three`));
  }));

Deno.test("planResume: says why a run cannot go on, and what was open", async () => {
  const files = systemFiles;
  const lock = systemLock;
  await withRun(
    { script: job(8), kill: (event) => event.type === "call.observed" && event.call === "c3-1" },
    async (place) => {
      const plan = await planResume({ files, lock }, place);
      assert.ok(plan.ok);
      assert.deepEqual(plan.value.openCalls, ["c3-1"]);
      assert.equal(plan.value.steps, 2);
      assert.equal(plan.value.end, null);
      assert.equal(plan.value.limits.maxSteps, 40);
      assert.deepEqual(plan.value.started.configuration, { mode: "once" });
      const held = await lock.tryLock(runLockPath(place.directory));
      assert.ok(held.ok);
      const running = await planResume({ files, lock }, place);
      held.value.release();
      assert.equal(running.ok ? "" : running.failure, "Cannot resume run one: it is still running");
      Deno.writeTextFileSync(place.record, "x\n" + Deno.readTextFileSync(place.record));
      const damaged = await planResume({ files, lock }, place);
      assert.match(
        damaged.ok ? "" : damaged.failure,
        /its record is damaged: line 1: it is not JSON/,
      );
    },
  );
});

Deno.test("configurationChanges: names each key that differs", () => {
  const before = { mode: "once", limits: { max_steps: 40, max_tokens: 9 }, tools: ["a"] };
  const after = {
    mode: "once",
    limits: { max_steps: 60, max_tokens: 9 },
    tools: ["b"],
    notes: true,
  };
  assert.deepEqual(configurationChanges(before, after), [
    "limits.max_steps: 40 -> 60",
    "notes: (unset) -> true",
    'tools: ["a"] -> ["b"]',
  ]);
  assert.deepEqual(configurationChanges(before, before), []);
});
