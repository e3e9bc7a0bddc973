import assert from "node:assert/strict";
import fc from "fast-check";
import { chain, Fnv64, fnv64 } from "./hash.ts";

Deno.test("fnv64: the published test vectors", () => {
  const rows: [string, string][] = [
    ["", "cbf29ce484222325"],
    ["a", "af63dc4c8601ec8c"],
    ["b", "af63df4c8601f1a5"],
    ["foobar", "85944171f73967e8"],
    ["chongo was here!\n", "46810940eff5f915"],
  ];
  for (const [text, digest] of rows) assert.equal(fnv64(text), digest, text);
});

Deno.test("Fnv64: agrees with arithmetic on big integers, in any split", () => {
  fc.assert(fc.property(
    fc.uint8Array({ maxLength: 300 }),
    fc.nat(300),
    (bytes, at) => {
      let expected = 0xcbf29ce484222325n;
      for (const byte of bytes) {
        expected = ((expected ^ BigInt(byte)) * 0x100000001b3n) & 0xffffffffffffffffn;
      }
      const split = Math.min(at, bytes.length);
      const digest = new Fnv64().writeBytes(bytes.subarray(0, split)).writeBytes(
        bytes.subarray(split),
      );
      assert.equal(digest.hex(), expected.toString(16).padStart(16, "0"));
    },
  ));
});

Deno.test("chain: depends on the previous link and on the text", () => {
  assert.notEqual(chain("a", "x"), chain("b", "x"));
  assert.notEqual(chain("a", "x"), chain("a", "y"));
  assert.equal(chain("a", "x"), fnv64("a\nx"));
});

Deno.test("Fnv64.write: a text is its UTF-8 bytes, wherever its first other character stands", () => {
  const encoder = new TextEncoder();
  fc.assert(fc.property(
    fc.array(fc.oneof(fc.string(), fc.string({ unit: "binary" }), fc.constant("\ud83c")), {
      maxLength: 4,
    }),
    (texts) => {
      const asText = new Fnv64();
      const asBytes = new Fnv64();
      for (const text of texts) {
        asText.write(text);
        asBytes.writeBytes(encoder.encode(text));
      }
      assert.equal(asText.hex(), asBytes.hex());
    },
  ));
});
