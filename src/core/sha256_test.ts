import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { sha256 } from "./sha256.ts";

Deno.test("sha256: the same as the platform's, around every border of a block", () => {
  for (let length = 0; length <= 300; length++) {
    const content = Uint8Array.from({ length }, (_, i) => i * 31 + length & 0xff);
    assert.equal(
      sha256(content),
      createHash("sha256").update(content).digest("hex"),
      `${length} bytes`,
    );
  }
  const long = new Uint8Array(1_000_003).fill(0x61);
  assert.equal(sha256(long), createHash("sha256").update(long).digest("hex"));
});
