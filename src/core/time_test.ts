import assert from "node:assert/strict";
import fc from "fast-check";
import { formatIso, parseIso } from "./time.ts";

Deno.test("formatIso: agrees with the runtime for every moment from year 0 to 9999", () => {
  fc.assert(fc.property(
    fc.integer({ min: -62_167_219_200_000, max: 253_402_300_799_999 }),
    (ms) => {
      const text = new Date(ms).toISOString();
      assert.equal(formatIso(ms), text);
      assert.equal(parseIso(text), ms);
    },
  ));
});

Deno.test("formatIso: drops fractions of a millisecond", () => {
  assert.equal(formatIso(1.9), "1970-01-01T00:00:00.001Z");
});

Deno.test("parseIso: refuses what is no moment in UTC", () => {
  for (const text of ["", "yesterday", "2026-01-01", "2026-01-01T00:00:00+01:00", "12"]) {
    assert.equal(parseIso(text), undefined, text);
  }
});
