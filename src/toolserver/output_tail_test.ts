import assert from "node:assert/strict";
import fc from "fast-check";
import { OutputTail } from "./output_tail.ts";

Deno.test("OutputTail: keeps all of what fits, head and tail of what does not", () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.uint8Array({ maxLength: 40 }).map((bytes) => bytes.map((byte) => 97 + byte % 26)),
      ),
      fc.integer({ min: 6, max: 60 }),
      (chunks, max) => {
        const output = new OutputTail(max);
        for (const chunk of chunks) output.add(chunk);
        const whole = new TextDecoder().decode(
          Uint8Array.from(chunks.flatMap((chunk) => [...chunk])),
        );
        assert.equal(output.totalBytes, whole.length);
        const shown = output.render();
        if (whole.length <= max) return assert.equal(shown, whole);
        const head = Math.floor(max * 2 / 3);
        const parts = /^([a-z]*)\n\[… (\d+) of (\d+) bytes left out …\]\n([a-z]*)$/.exec(shown)!;
        assert.equal(parts[1], whole.slice(0, head));
        assert.equal(parts[4], whole.slice(whole.length - (max - head)));
        assert.equal(Number(parts[2]), whole.length - max);
        assert.equal(Number(parts[3]), whole.length);
      },
    ),
  );
});

Deno.test("OutputTail: cuts no character in two", () => {
  const output = new OutputTail(20);
  output.add(new TextEncoder().encode("é".repeat(100)));
  assert.doesNotMatch(output.render(), /\uFFFD/);
});
