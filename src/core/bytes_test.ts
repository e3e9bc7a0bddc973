import assert from "node:assert/strict";
import { joinBytes } from "./bytes.ts";

Deno.test("joinBytes: the pieces in their order, as a copy", () => {
  const first = new Uint8Array([1, 2]);
  const whole = joinBytes([first, new Uint8Array(0), new Uint8Array([3])]);
  first[0] = 9;
  assert.deepEqual([...whole], [1, 2, 3]);
  assert.equal(joinBytes([]).length, 0);
});
