import assert from "node:assert/strict";
import { MODEL_REPLY_BYTES_MAX } from "../core/limits.ts";
import { SseFeed } from "./sse.ts";

const encoder = new TextEncoder();

function feed(text: string, piece: number, stopAt?: string): string[] {
  const seen: string[] = [];
  const sse = new SseFeed((data) => {
    seen.push(data);
    return data === stopAt;
  });
  const bytes = encoder.encode(text);
  for (let at = 0; at < bytes.length; at += piece) sse.push(bytes.subarray(at, at + piece));
  sse.end();
  return seen;
}

Deno.test("SseFeed: data of events, whatever the borders, line ends, comments and fields", () => {
  const rows: [string, string[]][] = [
    ["data: a\n\ndata: b\n\n", ["a", "b"]],
    ["data: a\r\n\r\ndata: b\r\n\r\n", ["a", "b"]],
    [": ping\n\nevent: x\nid: 1\nretry: 5\ndata: é\u{1F600}\n\n", ["é\u{1F600}"]],
    ["data: one\ndata: two\n\n", ["one\ntwo"]],
    ["garbage\n\ndata:a\n\n", ["a"]],
    ["data: \n\ndata: a\n\n", ["a"]],
    ["\uFEFFdata: a\n\n", ["a"]],
    ["data: last", ["last"]],
  ];
  for (const [text, expected] of rows) {
    for (const piece of [1, 2, 3, 1000]) {
      assert.deepEqual(feed(text, piece), expected, `${text} ${piece}`);
    }
  }
});

Deno.test("SseFeed: hands out nothing after it was told to stop", () => {
  assert.deepEqual(feed("data: a\n\ndata: stop\n\ndata: b\n\n", 4, "stop"), ["a", "stop"]);
  assert.deepEqual(feed("data: a\n\ndata: stop\n\ndata: b\n\n", 1000, "stop"), ["a", "stop"]);
});

Deno.test("SseFeed: one event over its bound ends the reading and is not held", () => {
  const sse = new SseFeed(() => false);
  const chunk = encoder.encode("x".repeat(1024 * 1024));
  sse.push(encoder.encode("data: "));
  let pushed = 0;
  while (!sse.push(chunk) && pushed < 4 * MODEL_REPLY_BYTES_MAX) pushed += chunk.length;
  assert.ok(sse.oversized);
  assert.ok(pushed <= 2 * MODEL_REPLY_BYTES_MAX);
});
