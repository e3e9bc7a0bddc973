import assert from "node:assert/strict";
import fc from "fast-check";
import { failed, success } from "../core/outcome.ts";
import { systemFiles } from "../sys/files.ts";
import type { RecordLine } from "../wire/record.ts";
import { Artifacts, observationText } from "./artifacts.ts";

async function withArtifacts(
  run: (artifacts: Artifacts, directory: string) => void,
): Promise<void> {
  const directory = await Deno.makeTempDir({ prefix: "agentd-artifacts-" });
  const observed = {
    v: 1,
    seq: 7,
    ts: "",
    at: 0,
    prev: "",
    type: "call.observed",
    observation: { class: "ok", parts: [{ type: "text", text: "old words" }], structured: null },
  } as unknown as RecordLine;
  const cut = {
    ...observed,
    observation: {
      class: "truncated",
      parts: [{ type: "text", text: "some" }],
      excerpt: { kept: 4, total: 9, artifact: "c4-1" },
    },
  } as unknown as RecordLine;
  try {
    const artifacts = new Artifacts({
      files: systemFiles,
      directory,
      readObserved: (call) =>
        call === "c3-1"
          ? success(observed)
          : call === "c4-1"
          ? success(cut)
          : failed({ message: "none" }),
    });
    run(artifacts, directory);
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}

Deno.test("Artifacts.read: the pages of any text are the text, whatever their length", () =>
  withArtifacts((artifacts) => {
    let count = 0;
    fc.assert(
      fc.property(
        fc.string({ unit: "binary", maxLength: 200 }),
        fc.integer({ min: 1, max: 50 }),
        (raw, length) => {
          const text = raw.toWellFormed();
          const id = `a${++count}`;
          assert.ok(artifacts.write(id, text).ok);
          let read = "";
          let at: number | null = 0;
          for (let pages = 0; at !== null; pages++) {
            assert.ok(pages <= 1000);
            const page = artifacts.read(id, at, length);
            assert.ok(page.ok);
            assert.equal(page.value.offset, at);
            read += page.value.text;
            at = page.value.next;
          }
          assert.equal(read, text);
        },
      ),
      { numRuns: 50 },
    );
  }));

Deno.test("Artifacts.read: offsets out of bounds or inside a character are brought back", () =>
  withArtifacts((artifacts) => {
    artifacts.write("e", "a€b");
    const rows: [number, number, string, number | null][] = [
      [0, 2, "a", 1],
      [2, 1, "€", 4],
      [3, 2, "€b", null],
      [-5, 1, "a", 1],
      [99, 10, "", null],
    ];
    for (const [offset, length, text, next] of rows) {
      const page = artifacts.read("e", offset, length);
      assert.deepEqual(page.ok && [page.value.text, page.value.next], [text, next], `${offset}`);
    }
  }));

Deno.test("Artifacts.read: a page is bounded", () =>
  withArtifacts((artifacts) => {
    artifacts.write("big", new Uint8Array(70_000).fill(97));
    const page = artifacts.read("big", 0, 1e9);
    assert.deepEqual(page.ok && [page.value.bytes, page.value.total], [65_536, 70_000]);
  }));

Deno.test("Artifacts.search: lines with their number and offset, bounded", () =>
  withArtifacts((artifacts) => {
    const text = "eins\r\nzwölf Fehler\n" + "x".repeat(2000) + "FEHLER\n" + "fehler\n".repeat(200);
    artifacts.write("log", text);
    const found = artifacts.search("log", "Fehler");
    assert.ok(found.ok);
    assert.equal(found.value.found, 202);
    assert.equal(found.value.matches.length, 100);
    assert.deepEqual(found.value.matches[0], { line: 2, offset: 6, text: "zwölf Fehler" });
    const [, second, third] = found.value.matches;
    assert.match(second!.text, /^…x+FEHLER$/);
    assert.ok(second!.text.length <= 401);
    const page = artifacts.read("log", third!.offset, 6);
    assert.equal(page.ok && page.value.text, "fehler");
    // An expression is text like any other.
    const literal = artifacts.search("log", "(x+)+$");
    assert.equal(literal.ok && literal.value.found, 0);
  }));

Deno.test("Artifacts: ids cannot leave the directory, contents cannot be replaced", () =>
  withArtifacts((artifacts, directory) => {
    for (const id of ["", ".", "..", "../x", "a/b", "/etc/passwd", "a\0", ".hidden"]) {
      const written = artifacts.write(id, "x");
      assert.equal(!written.ok && written.failure.class, "bad_id", id);
    }
    const away = artifacts.read("../record.jsonl");
    assert.equal(!away.ok && away.failure.class, "bad_id");
    assert.ok(artifacts.write("once", "1").ok);
    const again = artifacts.write("once", "2");
    assert.equal(!again.ok && again.failure.class, "exists");
    const none = artifacts.read("none");
    assert.equal(!none.ok && none.failure.message, "There is no artifact none");
    if (Deno.build.os !== "windows") {
      Deno.symlinkSync("/etc/passwd", `${directory}/artifacts/link`);
      assert.equal(artifacts.read("link").ok, false);
      assert.equal(Deno.statSync(`${directory}/artifacts/once`).mode! & 0o777, 0o600);
    }
  }));

Deno.test("Artifacts: an old observation is read from the record", () =>
  withArtifacts((artifacts) => {
    const page = artifacts.read("c3-1");
    assert.equal(page.ok && page.value.text, "old words");
    const found = artifacts.search("c3-1", "WORDS");
    assert.equal(found.ok && found.value.found, 1);
    assert.equal(artifacts.read("c3-2").ok, false);
    const gone = artifacts.read("c4-1");
    assert.equal(
      !gone.ok && gone.failure.message,
      "The file of artifact c4-1 is missing; what was shown of it, 4 of 9 bytes, is all there is",
    );
    artifacts.write("c3-1", "the whole of it");
    const whole = artifacts.read("c3-1");
    assert.equal(whole.ok && whole.value.text, "the whole of it");
  }));

Deno.test("observationText: parts, structure, or the message", () => {
  const rows: [unknown, string][] = [
    [{ class: "ok", parts: [{ type: "text", text: "a" }, { type: "text", text: "b" }] }, "a\nb"],
    [
      { class: "ok", parts: [{ type: "image", mimeType: "image/png", data: "AAAA" }] },
      "[image image/png, 3 bytes]",
    ],
    [{ class: "ok", parts: [], structured: { a: 1 } }, '{"a":1}'],
    [{ class: "error", message: "no" }, "no"],
    [{ class: "unknown", why: "lost" }, "lost"],
  ];
  for (const [observation, text] of rows) assert.equal(observationText(observation), text);
});
