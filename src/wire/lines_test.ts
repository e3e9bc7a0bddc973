import assert from "node:assert/strict";
import { LineSplitter } from "./lines.ts";

const encode = (text: string) => new TextEncoder().encode(text);

Deno.test("LineSplitter: holds the unfinished line, not the buffers that it came in", () => {
  const splitter = new LineSplitter(10_000);
  const buffer = encode("ab".repeat(5_000));
  for (let at = 0; at < buffer.length; at++) {
    assert.deepEqual(splitter.push(buffer.subarray(at, at + 1)), []);
  }
  buffer.fill(0x21);
  assert.equal(splitter.overBound, false);
  assert.deepEqual(splitter.push(encode("\nnext\n")), [
    { type: "line", text: "ab".repeat(5_000) },
    { type: "line", text: "next" },
  ]);
});

Deno.test("LineSplitter: of a line over the bound both ends are known, however it came", () => {
  const line = `head${"x".repeat(2_000)}tail`;
  for (const size of [1, 7, 300, 999, 1_000, 1_001, 5_000]) {
    const splitter = new LineSplitter(1_000);
    const bytes = encode(`short\n${line}\n\nlast`);
    const events = [];
    for (let at = 0; at < bytes.length; at += size) {
      events.push(...splitter.push(bytes.subarray(at, at + size)));
    }
    events.push(...splitter.end());
    assert.deepEqual(
      events.map((event) =>
        event.type === "oversized"
          ? [event.bytes, event.head.slice(0, 5), event.head.length, event.tail.slice(-5)]
          : event
      ),
      [
        { type: "line", text: "short" },
        [2_008, "headx", 256, "xtail"],
        { type: "line", text: "" },
        { type: "line", text: "last" },
      ],
      `${size} bytes at a time`,
    );
  }
});
