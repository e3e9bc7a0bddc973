import assert from "node:assert/strict";
import { fnv64 } from "../core/hash.ts";
import { systemFiles } from "../sys/files.ts";
import { systemClock } from "../sys/clock.ts";
import { openRecord } from "./append.ts";
import { cursorAfter, readRecord, readTail, type RecordItem } from "./read.ts";

/** Lines with a valid chain, changed by `edit` on the way. */
function build(count: number, edit: (line: Record<string, unknown>) => unknown = (line) => line) {
  let prev = "0000000000000000";
  const out: string[] = [];
  for (let seq = 1; seq <= count; seq++) {
    const line = { v: 1, seq, ts: "2026-01-01T00:00:00.000Z", at: seq, type: "t", n: seq, prev };
    const edited = edit(line);
    const text = typeof edited === "string" ? edited : JSON.stringify(edited);
    out.push(text);
    prev = fnv64(text);
  }
  return out;
}

async function readText(text: string): Promise<RecordItem[]> {
  const path = await Deno.makeTempFile();
  try {
    await Deno.writeTextFile(path, text);
    return [...readRecord(systemFiles, path)];
  } finally {
    await Deno.remove(path);
  }
}

async function check(text: string, lines: number, fault: [number, string] | null): Promise<void> {
  const items = await readText(text);
  assert.equal(items.filter((item) => item.kind === "line").length, lines, text.slice(0, 300));
  const last = items.at(-1);
  assert.deepEqual(last?.kind === "fault" ? [last.fault.line, last.fault.kind] : null, fault);
}

Deno.test("readRecord: a fault names its line and kind, and nothing untrusted is handed out", async () => {
  const whole = build(5);
  const at = (index: number, text: string) => whole.map((line, i) => i === index ? text : line);
  const rows: [string, string[], number, [number, string] | null][] = [
    ["sound", whole, 5, null],
    ["not JSON", at(2, "{nope"), 2, [3, "broken_json"]],
    ["a number", at(2, "7"), 2, [3, "broken_json"]],
    ["zeros", at(2, "\0\0\0"), 2, [3, "broken_json"]],
    ["changed", at(2, whole[2]!.replace('"n":3', '"n":4')), 2, [3, "broken_chain"]],
    ["removed", whole.filter((_, i) => i !== 2), 2, [3, "gap"]],
    ["head removed", whole.slice(1), 0, [1, "gap"]],
    ["doubled", [...whole.slice(0, 3), whole[2]!, ...whole.slice(3)], 3, [4, "gap"]],
    ["newer", build(5, (line) => line.seq === 3 ? { ...line, v: 2 } : line), 2, [
      3,
      "newer_version",
    ]],
    ["version 0", build(1, (line) => ({ ...line, v: 0 })), 0, [1, "unknown_version"]],
    ["chains elsewhere", build(1, (line) => ({ ...line, prev: "ffffffffffffffff" })), 0, [
      1,
      "broken_chain",
    ]],
  ];
  for (const [name, lines, count, fault] of rows) {
    await check(lines.join("\n") + "\n", count, fault).catch((error) => {
      throw new Error(`${name}: ${error.message}`, { cause: error });
    });
  }
});

Deno.test("readRecord: the version is named", async () => {
  const items = await readText(JSON.stringify({ v: 7, seq: 1, type: "t" }) + "\n");
  const fault = items[0]!;
  assert.match(fault.kind === "fault" ? fault.fault.detail : "", /version 7; .* up to 1/);
});

Deno.test("readRecord: a missing file is one fault, an empty one is no line", async () => {
  const items = [...readRecord(systemFiles, "/nonexistent/record.jsonl")];
  assert.equal(items.length, 1);
  assert.equal(items[0]!.kind === "fault" && items[0]!.fault.kind, "unreadable");
  assert.deepEqual(await readText(""), []);
});

Deno.test("readRecord: lines longer than a chunk, with characters across its border", async () => {
  const lines = build(4, (line) => ({ ...line, text: "€".repeat(200_000 + Number(line.seq)) }));
  const items = await readText(lines.join("\n") + "\n");
  assert.equal(items.length, 4);
  for (const item of items) {
    assert.ok(item.kind === "line");
    assert.equal(item.line.text, "€".repeat(200_000 + item.line.seq));
  }
});

Deno.test("readRecord: goes on from a cursor, and still checks the link to the line before", async () => {
  const path = await Deno.makeTempFile();
  try {
    const lines = build(6);
    await Deno.writeTextFile(path, lines.slice(0, 3).join("\n") + "\n");
    const first = [...readRecord(systemFiles, path)];
    const last = first.at(-1)!;
    assert.ok(last.kind === "line");
    await Deno.writeTextFile(path, lines.join("\n") + "\n");
    const rest = [...readRecord(systemFiles, path, cursorAfter(last))];
    assert.deepEqual(rest.map((item) => item.kind === "line" && item.line.seq), [4, 5, 6]);
    const wrong = [...readRecord(systemFiles, path, { ...cursorAfter(last), hash: "0" })];
    assert.equal(wrong[0]!.kind, "fault");
  } finally {
    await Deno.remove(path);
  }
});

Deno.test("readTail: the last whole line of records of any size, cut anywhere", async () => {
  const directory = await Deno.makeTempDir();
  try {
    for (const chars of [10, 16 * 1024 - 200, 40_000, 300_000]) {
      const place = `${directory}/${chars}`;
      const opened = openRecord({
        files: systemFiles,
        clock: systemClock,
        directory: place,
        durability: "none",
        mask: (text) => text,
      }, "new");
      assert.ok(opened.ok);
      for (let n = 1; n <= 3; n++) opened.value.append("t", { n, text: "x".repeat(chars) }, n);
      opened.value.close();
      const path = opened.value.path;
      const whole = await Deno.readFile(path);
      const items = [...readRecord(systemFiles, path)];
      for (const cut of [whole.length, whole.length - 1, whole.length - 40, whole.length - chars]) {
        await Deno.writeFile(path, whole.subarray(0, cut));
        const kept = cut === whole.length ? 3 : 2;
        const tail = readTail(systemFiles, path);
        const item = items[kept - 1]!;
        assert.ok(tail && item.kind === "line");
        assert.equal(tail.last?.seq, kept);
        assert.equal(tail.hash, item.hash);
        assert.equal(tail.bytes, item.offset + item.bytes + 1);
        assert.equal(tail.tornBytes, cut - tail.bytes);
      }
      await Deno.writeFile(path, whole.subarray(0, 20));
      assert.equal(readTail(systemFiles, path)?.last, null);
    }
    assert.equal(readTail(systemFiles, `${directory}/none`), undefined);
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
});
