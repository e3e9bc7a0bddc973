import assert from "node:assert/strict";
import { LIST_PAGES_MAX } from "../core/limits.ts";
import { readList } from "./listing.ts";

Deno.test("readList: every page, to the bound of pages and of entries and one past each", async () => {
  const pages = (count: number) => (params: { cursor?: unknown } | undefined) => {
    const page = Number(params?.cursor ?? 0);
    return Promise.resolve({
      items: [page],
      ...(page + 1 < count ? { nextCursor: String(page + 1) } : {}),
    });
  };
  const rows: [count: number, itemsMax: number, length: number, cut: string | null][] = [
    [1, 500, 1, null],
    [LIST_PAGES_MAX, 500, LIST_PAGES_MAX, null],
    [LIST_PAGES_MAX + 1, 500, LIST_PAGES_MAX, "pages"],
    [5, 5, 5, null],
    [6, 5, 5, "items"],
  ];
  for (const [count, itemsMax, length, cut] of rows) {
    const list = await readList(pages(count), "items", itemsMax);
    assert.deepEqual([list.items.length, list.cut], [length, cut]);
  }
});

Deno.test("readList: a cursor that comes back ends the list, an empty one is none", async () => {
  let asked = 0;
  const circle = await readList(
    () => Promise.resolve({ items: [asked++], nextCursor: ["a", "b", "a"][asked - 1] }),
    "items",
    10,
  );
  assert.deepEqual(circle, { items: [0, 1, 2], cut: "cursor" });
  const empty = await readList(() => Promise.resolve({ items: [], nextCursor: "" }), "items", 10);
  assert.deepEqual(empty, { items: [], cut: null });
  await assert.rejects(readList(() => Promise.resolve({ items: {} }), "items", 10), /malformed/);
});
