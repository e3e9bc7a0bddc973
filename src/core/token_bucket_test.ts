import assert from "node:assert/strict";
import { TokenBucket } from "./token_bucket.ts";

Deno.test("TokenBucket: a burst at once, then one by one, and never more than the burst saved up", () => {
  const bucket = new TokenBucket(2, 500, 0);
  const rows: [nowMs: number, waitMs: number][] = [
    [0, 0],
    [0, 0],
    [0, 500],
    [1, 499],
    [499.5, 1],
    [500, 0],
    [500, 500],
    [100_000, 0],
    [100_000, 0],
    [100_000, 500],
  ];
  for (const [nowMs, waitMs] of rows) {
    assert.equal(bucket.waitMs(1, nowMs), waitMs, `at ${nowMs}`);
    if (waitMs === 0) assert.equal(bucket.take(1, nowMs), 0, `taken at ${nowMs}`);
  }
});

Deno.test("TokenBucket: what is taken in advance is waited for, and by whoever comes after", () => {
  const bucket = new TokenBucket(10, 100, 0);
  assert.equal(bucket.take(15, 0), 500);
  assert.equal(bucket.take(1, 0), 600);
  assert.equal(bucket.waitMs(0, 599), 1);
  assert.equal(bucket.waitMs(0, 600), 0);
});

Deno.test("TokenBucket: what is given back is there again, up to the burst", () => {
  const bucket = new TokenBucket(2, 500, 0);
  bucket.take(2, 0);
  bucket.giveBack(1);
  assert.equal(bucket.take(1, 0), 0);
  bucket.giveBack(99);
  assert.equal(bucket.take(2, 0), 0);
  assert.equal(bucket.take(1, 0), 500);
});
