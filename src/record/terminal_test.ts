import assert from "node:assert/strict";
import { sampleClock, sampleEnd, writeSampleRun } from "../../tests/fakes/sample_run.ts";
import { Vault } from "../core/secret.ts";
import { systemFiles } from "../sys/files.ts";
import { readRecord } from "./read.ts";
import { appendTerminal, type TerminalDeps } from "./terminal.ts";

const crashed = sampleEnd({ status: "crashed", reason: "killed: signal SIGKILL token s3cret" });

async function check(
  run: (deps: TerminalDeps, path: string) => void,
): Promise<void> {
  const root = await Deno.makeTempDir({ prefix: "agentd-terminal-" });
  try {
    const directory = `${root}/run/agents/0.1`;
    const vault = Vault.from({ "env:T": "s3cret" });
    const clock = sampleClock();
    run(
      { files: systemFiles, clock, directory, mask: (text) => vault.mask(text) },
      `${directory}/record.jsonl`,
    );
  } finally {
    await Deno.remove(root, { recursive: true });
  }
}

function types(path: string): string[] {
  return [...readRecord(systemFiles, path)].map((item) =>
    item.kind === "line" ? item.line.type : item.kind
  );
}

Deno.test("appendTerminal: ends a record that has no end, once", () =>
  check((deps, path) => {
    const clock = sampleClock();
    writeSampleRun({ directory: deps.directory, turns: [], end: null, clock });
    const later = { ...deps, clock: sampleClock(clock.now + 5000) };
    assert.deepEqual(appendTerminal(later, crashed), { ok: true, value: "written" });
    assert.deepEqual(appendTerminal(later, crashed), { ok: true, value: "present" });
    assert.deepEqual(types(path), ["run.started", "tools.listed", "run.ended"]);
    const end = [...readRecord(systemFiles, path)].at(-1)!;
    assert.ok(end.kind === "line");
    assert.equal(end.line.status, "crashed");
    assert.equal(end.line.by, "supervisor");
    assert.equal(end.line.at, 5001);
    assert.equal(end.line.reason, "killed: signal SIGKILL token ***");
  }));

Deno.test("appendTerminal: leaves an ended record alone", () =>
  check((deps, path) => {
    writeSampleRun({ directory: deps.directory, turns: [], end: {} });
    const before = Deno.readTextFileSync(path);
    assert.deepEqual(appendTerminal(deps, crashed), { ok: true, value: "present" });
    assert.equal(Deno.readTextFileSync(path), before);
  }));

Deno.test("appendTerminal: drops a torn line wherever it was cut, and begins a missing record", () =>
  check((deps, path) => {
    assert.deepEqual(appendTerminal(deps, crashed), { ok: true, value: "begun" });
    assert.deepEqual(types(path), ["run.ended"]);
    // What holds no start cannot be gone on with.
    const [begun] = [...readRecord(systemFiles, path)];
    assert.ok(begun?.kind === "line" && begun.line.resumable === false);
    const whole = Deno.readFileSync(path);
    for (let cut = 0; cut < whole.length; cut += 7) {
      Deno.writeFileSync(path, whole.subarray(0, cut));
      assert.deepEqual(appendTerminal(deps, crashed), { ok: true, value: "begun" });
      assert.deepEqual(types(path), ["run.ended"], `cut at ${cut}`);
    }
  }));

Deno.test("appendTerminal: does not touch a record whose end is no line", () =>
  check((deps, path) => {
    writeSampleRun({ directory: deps.directory, turns: [], end: null });
    Deno.writeTextFileSync(path, "garbage\n", { append: true });
    const before = Deno.readTextFileSync(path);
    const ended = appendTerminal(deps, crashed);
    assert.equal(!ended.ok && ended.failure.class, "corrupt");
    assert.equal(Deno.readTextFileSync(path), before);
  }));
