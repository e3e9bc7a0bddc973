import assert from "node:assert/strict";
import fc from "fast-check";
import { fnv64 } from "../core/hash.ts";
import type { JsonObject } from "../core/json.ts";
import { failed } from "../core/outcome.ts";
import { Vault } from "../core/secret.ts";
import type { FilesPort } from "../ports/files.ts";
import { systemClock } from "../sys/clock.ts";
import { systemFiles } from "../sys/files.ts";
import { openRecord, type RecordDeps, type RecordMode, type RecordWriter } from "./append.ts";
import { readRecord } from "./read.ts";

function deps(directory: string, more: Partial<RecordDeps> = {}): RecordDeps {
  return {
    files: systemFiles,
    clock: systemClock,
    directory,
    durability: "intents",
    mask: (text) => text,
    ...more,
  };
}

function open(directory: string, mode: RecordMode, more: Partial<RecordDeps> = {}): RecordWriter {
  const opened = openRecord(deps(directory, more), mode);
  assert.ok(opened.ok, JSON.stringify(opened));
  return opened.value;
}

async function inTemporary(run: (directory: string) => void | Promise<void>): Promise<void> {
  const directory = await Deno.makeTempDir({ prefix: "agentd-record-" });
  try {
    await run(directory);
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}

function lines(directory: string): JsonObject[] {
  const text = Deno.readTextFileSync(`${directory}/record.jsonl`);
  return text.split("\n").slice(0, -1).map((line) => JSON.parse(line));
}

Deno.test("RecordWriter: lines are numbered, chained over the whole line, keys in their order", () =>
  inTemporary((directory) => {
    const writer = open(`${directory}/a/b`, "new");
    assert.equal(writer.append("run.started", { at: 99, type: "x", task: "ä\u2028" }, 1.5), 1);
    assert.equal(writer.append("tools.listed", { tools: [] }, 2), 2);
    assert.equal(writer.append("empty", {}, 3), 3);
    assert.ok(writer.close().ok);
    const raw = Deno.readTextFileSync(`${directory}/a/b/record.jsonl`).split("\n");
    assert.equal(raw.length, 4);
    assert.equal(raw[3], "");
    const parsed = raw.slice(0, 3).map((line) => JSON.parse(line));
    assert.deepEqual(Object.keys(parsed[0]), ["v", "seq", "ts", "at", "type", "task", "prev"]);
    assert.deepEqual(Object.keys(parsed[2]), ["v", "seq", "ts", "at", "type", "prev"]);
    assert.equal(parsed[0].prev, "0000000000000000");
    assert.equal(parsed[1].prev, fnv64(raw[0]!));
    assert.equal(parsed[2].prev, fnv64(raw[1]!));
    assert.equal(parsed[0].type, "run.started");
    assert.equal(parsed[0].at, 1.5);
    assert.equal(parsed[0].task, "ä\u2028");
  }));

Deno.test("RecordWriter.flush: nothing is on disk before it, everything after it", () =>
  inTemporary((directory) => {
    const writer = open(directory, "new");
    writer.append("a", {}, 0);
    writer.append("b", {}, 0);
    assert.equal(Deno.statSync(writer.path).size, 0);
    assert.ok(writer.flush().ok);
    assert.equal(lines(directory).length, 2);
    writer.append("c", {}, 0);
    assert.equal(lines(directory).length, 2);
    assert.ok(writer.sync().ok);
    assert.equal(lines(directory).length, 3);
    writer.close();
  }));

Deno.test("openRecord: the record has mode 0600, its directories 0700", {
  ignore: Deno.build.os === "windows",
}, () =>
  inTemporary((directory) => {
    open(`${directory}/run/agents/0.1`, "new").close();
    const mode = (path: string) => Deno.statSync(path).mode! & 0o777;
    assert.equal(mode(`${directory}/run`), 0o700);
    assert.equal(mode(`${directory}/run/agents/0.1`), 0o700);
    assert.equal(mode(`${directory}/run/agents/0.1/record.jsonl`), 0o600);
  }));

Deno.test("openRecord: a new record must not exist, one to go on with must", () =>
  inTemporary((directory) => {
    const missing = openRecord(deps(directory), "append");
    assert.equal(!missing.ok && missing.failure.class, "missing");
    open(directory, "new").close();
    const again = openRecord(deps(directory), "new");
    assert.equal(!again.ok && again.failure.class, "exists");
  }));

Deno.test("openRecord append: numbers and chain go on, every line is handed over", () =>
  inTemporary((directory) => {
    const first = open(directory, "new");
    first.append("a", { n: 1 }, 0);
    first.append("b", { n: 2 }, 0);
    first.close();
    const seen: number[] = [];
    const second = open(directory, "append", { onLine: (line) => seen.push(line.seq) });
    assert.deepEqual(seen, [1, 2]);
    assert.equal(second.tornBytes, 0);
    assert.equal(second.lastType, "b");
    assert.equal(second.append("c", { n: 3 }, 0), 3);
    second.close();
    const items = [...readRecord(systemFiles, second.path)];
    assert.deepEqual(items.map((item) => item.kind), ["line", "line", "line"]);
  }));

Deno.test("openRecord append: the last three lines cut at every byte", () =>
  inTemporary((directory) => {
    const writer = open(directory, "new");
    for (let n = 1; n <= 5; n++) writer.append("turn", { n, text: "zwölf € 🙂" }, n);
    writer.close();
    const whole = Deno.readFileSync(writer.path);
    const ends: number[] = [];
    whole.forEach((byte, at) => byte === 10 && ends.push(at + 1));
    for (let cut = ends[1]!; cut < whole.length; cut++) {
      Deno.writeFileSync(writer.path, whole.subarray(0, cut));
      const kept = ends.filter((end) => end <= cut).length;
      const items = [...readRecord(systemFiles, writer.path)];
      assert.equal(items.filter((item) => item.kind === "line").length, kept, `cut at ${cut}`);
      const torn = cut - ends[kept - 1]!;
      const last = items.at(-1)!;
      assert.equal(last.kind === "torn" ? last.bytes : 0, torn, `cut at ${cut}`);
      const resumed = open(directory, "append");
      assert.equal(resumed.tornBytes, torn);
      assert.equal(resumed.append("turn", {}, 9), kept + 1);
      resumed.close();
      const after = [...readRecord(systemFiles, writer.path)];
      assert.deepEqual(after.map((item) => item.kind), Array(kept + 1).fill("line"));
    }
  }));

Deno.test("RecordWriter.readLine: gives held lines, written lines and lines of before", () =>
  inTemporary((directory) => {
    const first = open(directory, "new");
    first.append("old", { n: 1 }, 0);
    first.close();
    const writer = open(directory, "append");
    writer.append("written", { text: "é".repeat(40_000) }, 0);
    writer.flush();
    writer.append("held", { n: 3 }, 0);
    writer.append("held", { n: 4 }, 0);
    const types = [1, 2, 3, 4].map((seq) => {
      const line = writer.readLine(seq);
      return line.ok ? [line.value.seq, line.value.type] : null;
    });
    assert.deepEqual(types, [[1, "old"], [2, "written"], [3, "held"], [4, "held"]]);
    assert.equal(writer.readObserved("c1-1").ok, false);
    writer.append("call.observed", { call: "c1-1", n: 5 }, 0);
    writer.append("call.observed", { call: "c1-2", n: 6 }, 0);
    writer.append("other", { call: "c1-1" }, 0);
    const observed = writer.readObserved("c1-1");
    assert.equal(observed.ok && observed.value.n, 5);
    assert.equal(writer.readLine(0).ok, false);
    assert.equal(writer.readLine(8).ok, false);
    writer.close();
    const again = open(directory, "append");
    const kept = again.readObserved("c1-2");
    assert.equal(kept.ok && kept.value.n, 6);
    again.close();
  }));

Deno.test("RecordWriter: any payload is read back as it was, whatever is flushed when", () =>
  inTemporary((directory) => {
    let run = 0;
    fc.assert(
      fc.property(
        fc.array(
          fc.tuple(
            fc.dictionary(fc.stringMatching(/^[a-u]\w{0,8}$/), fc.jsonValue()),
            fc.boolean(),
          ),
          { maxLength: 20 },
        ),
        (steps) => {
          const place = `${directory}/${++run}`;
          const writer = open(place, "new");
          for (const [payload, flush] of steps) {
            writer.append("t", { payload }, 0);
            if (flush) writer.flush();
          }
          writer.close();
          const read = [...readRecord(systemFiles, writer.path)].map((item) => {
            assert.equal(item.kind, "line");
            return item.kind === "line" && item.line.payload;
          });
          assert.deepEqual(read, steps.map(([payload]) => JSON.parse(JSON.stringify(payload))));
        },
      ),
      { numRuns: 60 },
    );
  }));

Deno.test("RecordWriter: a secret is masked in values and keys, and never breaks the line", () =>
  inTemporary((directory) => {
    const vault = Vault.from({
      "env:A": "hunter22",
      "env:B": '"n":',
      "env:C": 'qu"ote\n\\',
      "env:D": "123456789012",
    });
    const writer = open(directory, "new", { mask: (text) => vault.mask(text) });
    const payload = {
      n: 1,
      text: 'a hunter22 b "n": c qu"ote\n\\ d',
      arguments: { hunter22: ["x hunter22"], id: 123456789012 },
    };
    writer.append("call.intended", payload, 0);
    writer.append("plain", { n: 2 }, 0);
    writer.close();
    const [line, plain] = lines(directory);
    assert.equal(line!.n, 1);
    assert.equal(line!.text, "a *** b *** c *** d");
    assert.deepEqual(line!.arguments, { "***": ["x ***"], id: "***" });
    assert.equal(plain!.n, 2);
    assert.equal(payload.arguments.hunter22[0], "x hunter22");
  }));

Deno.test("RecordWriter.admit: the machine gets what the record holds", () =>
  inTemporary((directory) => {
    const vault = Vault.from({ "env:A": "hunter22" });
    const writer = open(directory, "new", { mask: (text) => vault.mask(text) });
    const plain = { type: "a", at: 3, list: ["nothing"] };
    assert.equal(writer.admit(plain), plain);
    const secret = { type: "b", at: 4, list: ["say hunter22"], n: 1 };
    const admitted = writer.admit(secret);
    assert.deepEqual(admitted, { list: ["say ***"], n: 1, type: "b", at: 4 });
    assert.deepEqual(secret.list, ["say hunter22"]);
    writer.close();
    const [, line] = lines(directory);
    assert.deepEqual([line!.type, line!.at, line!.list], ["b", 4, ["say ***"]]);
  }));

/** The real file system with only so much room left: what fits of a write is written. */
function withRoom(room: { bytes: number }): FilesPort {
  return {
    ...systemFiles,
    openAppend(path) {
      const opened = systemFiles.openAppend(path);
      if (!opened.ok) return opened;
      const handle = opened.value;
      return {
        ok: true,
        value: {
          ...handle,
          append(bytes) {
            const fits = bytes.subarray(0, Math.max(0, room.bytes));
            const written = handle.append(fits);
            room.bytes -= fits.length;
            return fits.length === bytes.length
              ? written
              : failed({ class: "full", message: "No space left on device (os error 28)" });
          },
        },
      };
    },
    truncate(path, bytes) {
      room.bytes += Deno.statSync(path).size - bytes;
      return systemFiles.truncate(path, bytes);
    },
  };
}

Deno.test("RecordWriter.flush: on a full disk it fails as full, and the record stays readable", () =>
  inTemporary((directory) => {
    const files = withRoom({ bytes: 1000 });
    const writer = open(directory, "new", { files });
    writer.append("a", { n: 1 }, 0);
    assert.ok(writer.flush().ok);
    writer.append("b", { text: "x".repeat(2000) }, 0);
    const full = writer.flush();
    assert.equal(!full.ok && full.failure.class, "full");
    assert.match(full.ok ? "" : full.failure.message, /no space left/);
    assert.equal(writer.nextSeq, 2);
    assert.equal(writer.lastType, "a");
    writer.append("run.ended", { status: "crashed" }, 0);
    assert.ok(writer.close().ok);
    const items = [...readRecord(systemFiles, writer.path)];
    assert.deepEqual(
      items.map((item) => item.kind === "line" && item.line.type),
      ["a", "run.ended"],
    );
  }));

Deno.test("openRecord append: damage before the end is refused with its line number", () =>
  inTemporary((directory) => {
    const writer = open(directory, "new");
    for (let n = 1; n <= 4; n++) writer.append("turn", { n }, n);
    writer.close();
    const text = Deno.readTextFileSync(writer.path);
    Deno.writeTextFileSync(writer.path, text.replace('"n":2', '"n":7'));
    const opened = openRecord(deps(directory), "append");
    assert.ok(!opened.ok);
    assert.equal(opened.failure.class, "corrupt");
    assert.equal(opened.failure.fault?.line, 2);
    assert.equal(Deno.readTextFileSync(writer.path), text.replace('"n":2', '"n":7'));
  }));
