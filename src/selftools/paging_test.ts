import assert from "node:assert/strict";
import { byteLength } from "../core/text.ts";
import {
  fitLines,
  matchesInText,
  pageBytes,
  pageOfText,
  renderMatches,
  renderPage,
} from "./paging.ts";

Deno.test("pageOfText: pages of any size put together are the whole, on borders of characters", () => {
  const whole = "\uFEFFaé😀\n".repeat(50);
  for (const length of [1, 2, 3, 5, 17, 100, 1_000]) {
    let read = "";
    let offset = 0;
    for (;;) {
      const page = pageOfText(whole, offset, length);
      assert.equal(page.total, byteLength(whole));
      assert.equal(page.offset, offset);
      assert.ok(page.bytes <= Math.max(length, 4));
      assert.ok(page.text.isWellFormed() && !page.text.includes("\uFFFD"));
      read += page.text;
      if (page.next === null) break;
      assert.equal(page.next, offset + page.bytes);
      offset = page.next;
    }
    assert.equal(read, whole);
  }
});

Deno.test("pageOfText: an offset inside a character or behind the end is brought to a border", () => {
  assert.equal(pageOfText("aé", 2, 10).offset, 1);
  const end = pageOfText("abc", 99, 10);
  assert.deepEqual([end.text, end.offset, end.next], ["", 3, null]);
});

Deno.test("renderPage, renderMatches: what is rendered fits what will be shown", () => {
  const whole = Array.from({ length: 2_000 }, (_, n) => `line ${n} of ünïcode`).join("\n");
  for (const showBytesMax of [256, 1_000, 4_096, 16_384]) {
    const length = pageBytes(showBytesMax, 100_000);
    assert.ok(byteLength(renderPage(pageOfText(whole, 12, length))) <= showBytesMax);
    const found = renderMatches(matchesInText(whole, "LINE 1"), showBytesMax);
    assert.ok(byteLength(found) <= showBytesMax, `${byteLength(found)} of ${showBytesMax}`);
    assert.match(
      found,
      /^1111 of its lines match \(\d+ bytes in all\)\nline 2, offset 20: line 1 /,
    );
    assert.match(found, /\d+ more lines match$/);
  }
  assert.equal(pageBytes(16_384, 10), 10);
});

Deno.test("fitLines: one line at the least, and none over the bound after it", () => {
  assert.deepEqual(fitLines(["x".repeat(50), "y"], 10), ["x".repeat(50)]);
  assert.deepEqual(fitLines(["1234", "5678", "9"], 10), ["1234", "5678"]);
  assert.deepEqual(fitLines([], 10), []);
});
