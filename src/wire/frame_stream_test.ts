import assert from "node:assert/strict";
import fc from "fast-check";
import { readLines } from "./frame_stream.ts";
import type { LineEvent } from "./lines.ts";

/** A stream of these chunks: one that fills its reader's buffer, as the system's do, or a plain one. */
function streamOf(chunks: readonly Uint8Array[], bytes: boolean) {
  const left = chunks.filter((chunk) => chunk.length > 0);
  const state = { cancelled: false };
  const cancel = () => void (state.cancelled = true);
  if (!bytes) {
    const stream = new ReadableStream<Uint8Array>({
      pull(controller) {
        const next = left.shift();
        next === undefined ? controller.close() : controller.enqueue(next);
      },
      cancel,
    });
    return { stream, state };
  }
  const stream = new ReadableStream({
    type: "bytes",
    pull(controller) {
      const request = controller.byobRequest as ReadableStreamBYOBRequest;
      const next = left.shift();
      if (next === undefined) {
        controller.close();
        return request.respond(0);
      }
      const view = new Uint8Array(
        request.view!.buffer,
        request.view!.byteOffset,
        request.view!.byteLength,
      );
      const part = next.subarray(0, view.length);
      view.set(part);
      if (part.length < next.length) left.unshift(next.subarray(part.length));
      request.respond(part.length);
    },
    cancel,
  });
  return { stream: stream as ReadableStream<Uint8Array>, state };
}

async function read(
  chunks: readonly Uint8Array[],
  bytes: boolean,
  bytesMax = 1000,
): Promise<LineEvent[]> {
  const events: LineEvent[] = [];
  await readLines(streamOf(chunks, bytes).stream, bytesMax, (event) => events.push(event) > 0);
  return events;
}

const encode = (text: string) => new TextEncoder().encode(text);
const texts = (events: LineEvent[]) => events.map((event) => event.type === "line" && event.text);

Deno.test("readLines: over any cut, from either kind of stream, the lines are the text's", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.string({ unit: "grapheme", maxLength: 40 }).map((text) => text.replace(/[\r\n]/g, "")),
      ),
      fc.array(fc.nat(60), { maxLength: 20 }),
      async (lines, cuts) => {
        const whole = encode(lines.map((line) => line + "\n").join(""));
        const chunks: Uint8Array[] = [];
        let at = 0;
        for (const size of [...cuts, whole.length]) chunks.push(whole.slice(at, at += size));
        for (const bytes of [true, false]) {
          assert.deepEqual(texts(await read(chunks, bytes)), lines);
        }
      },
    ),
    { numRuns: 60 },
  );
});

Deno.test("readLines: a line longer than the buffer is one line", async () => {
  const line = "long ".repeat(20_000);
  for (const bytes of [true, false]) {
    assert.deepEqual(texts(await read([encode(`${line}\nnext\n`)], bytes, 1_000_000)), [
      line,
      "next",
    ]);
  }
});

Deno.test("readLines: a line over the bound ends the reading, at the bound it does not", async () => {
  for (const bytes of [true, false]) {
    assert.deepEqual(texts(await read([encode("x".repeat(1000) + "\nok\n")], bytes)), [
      "x".repeat(1000),
      "ok",
    ]);
    const events = await read([encode("x".repeat(1001)), encode("\nok\n")], bytes);
    assert.deepEqual(events.map(({ type }) => type), ["oversized"]);
  }
});

Deno.test("readLines: who has heard enough cancels the stream", async () => {
  for (const bytes of [true, false]) {
    const { stream, state } = streamOf([encode("one\ntwo\n"), encode("three\n")], bytes);
    const seen: string[] = [];
    await readLines(stream, 100, (event) => event.type === "line" && seen.push(event.text) < 2);
    assert.deepEqual([seen, state.cancelled], [["one", "two"], true]);
  }
});
