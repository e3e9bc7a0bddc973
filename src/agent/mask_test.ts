import assert from "node:assert/strict";
import { maskTime } from "./mask.ts";

const SAME: [string, string][] = [
  ["at 2026-06-25T10:11:12.123Z", "at 2027-01-02T03:04:05Z"],
  ["at 2026-06-25 10:11:12 +02:00", "at 2026-06-26 11:00:00 +02:00"],
  ["Thu, 25 Jun 2026 10:11:12 GMT", "Fri, 26 Jun 2026 01:00:00 GMT"],
  ["[10:11:12] ready", "[23:59:59.999] ready"],
  ['{"timestamp": 1750000000, "state": "up"}', '{"timestamp": 1750000999, "state": "up"}'],
  ["uptime=12.5 load", "uptime=99 load"],
  ["took 12ms", "took 4.7 s"],
  ["elapsed: 1h30m, 3 items", "elapsed: 2h01m, 3 items"],
  ["elapsed: 90 s", "elapsed: 7 s"],
  ["since 1750000000123", "since 1760000000456"],
  ['"started_at": 17, "duration_ms": 3', '"started_at": 17, "duration_ms": 88'],
];

const DIFFERENT: [string, string][] = [
  ["count 1", "count 2"],
  ["3 of 30 done", "4 of 30 done"],
  ["order 1000000001", "order 1000000002"],
  ["version 1.2.3", "version 1.2.4"],
  ["line 12: x", "line 13: x"],
  ['{"timeout": 30}', '{"timeout": 60}'],
  ["v2s1", "v3s1"],
  ["12 errors", "11 errors"],
];

Deno.test("maskTime: what differs only in time is the same", () => {
  for (const [a, b] of SAME) assert.equal(maskTime(a), maskTime(b), `${a} | ${b}`);
});

Deno.test("maskTime: what differs in more is not", () => {
  for (const [a, b] of DIFFERENT) assert.notEqual(maskTime(a), maskTime(b), `${a} | ${b}`);
});

Deno.test("maskTime: text without time is left as it is", () => {
  const text = "plain words, x = 12, a.b-c/d";
  assert.equal(maskTime(text), text);
});
