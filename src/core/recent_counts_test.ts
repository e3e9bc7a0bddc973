import assert from "node:assert/strict";
import fc from "fast-check";
import { RecentCounts } from "./recent_counts.ts";

Deno.test("RecentCounts: within its bound it is a map", () => {
  fc.assert(fc.property(
    fc.array(fc.tuple(fc.string(), fc.integer({ min: 1, max: 2 ** 32 - 1 })), { maxLength: 600 }),
    (writes) => {
      const counts = new RecentCounts(1_000);
      const map = new Map<string, number>();
      for (const [key, count] of writes) {
        assert.equal(counts.get(key), map.get(key) ?? 0);
        counts.set(key, count);
        map.set(key, count);
      }
      for (const [key, count] of map) assert.equal(counts.get(key), count);
      assert.equal(counts.get("never written \0"), 0);
      counts.clear();
      for (const key of map.keys()) assert.equal(counts.get(key), 0);
    },
  ));
});

Deno.test("RecentCounts: the last entriesMax keys are there, one at twice as many is forgotten", () => {
  const entriesMax = 1_000;
  const counts = new RecentCounts(entriesMax);
  for (let i = 0; i < 10 * entriesMax; i++) {
    counts.set(`key ${i}`, i + 1);
    if (i >= entriesMax - 1 && i % 97 === 0) {
      const oldest = i - entriesMax + 1;
      // Looked at without being asked for: asking would keep it in use.
      const seen = new RecentCounts(entriesMax);
      for (let k = 0; k <= i; k++) seen.set(`key ${k}`, k + 1);
      assert.equal(seen.get(`key ${oldest}`), oldest + 1);
    }
  }
  assert.equal(counts.get(`key ${8 * entriesMax - 1}`), 0);
});

Deno.test("RecentCounts: what is asked for stays, however much comes after it", () => {
  const counts = new RecentCounts(100);
  counts.set("kept", 7);
  for (let i = 0; i < 10_000; i++) {
    counts.set(`other ${i}`, 1);
    if (i % 50 === 0) assert.equal(counts.get("kept"), 7);
  }
});

Deno.test("RecentCounts: keys that are alike are kept apart", () => {
  const counts = new RecentCounts(1_000_000);
  const digest = "0123456789abcdef".repeat(2);
  for (let i = 0; i < 200_000; i++) {
    const key = `${i.toString(16).padStart(16, "0")}:${digest}`;
    assert.equal(counts.get(key), 0);
    counts.set(key, 1);
  }
});
