import assert from "node:assert/strict";
import { BoundedOutput } from "./bounded_output.ts";

const encoder = new TextEncoder();

async function collect(bytesMax: number, chunks: string[]): Promise<BoundedOutput> {
  const output = new BoundedOutput(bytesMax);
  await output.read(ReadableStream.from(chunks.map((chunk) => encoder.encode(chunk))), "stdout");
  return output;
}

const rows: [string, number, string[], string][] = [
  ["nothing", 8, [], ""],
  ["less than the bound", 8, ["abc", "def"], "abcdef"],
  ["exactly the bound", 8, ["abcd", "efgh"], "abcdefgh"],
  ["one past the bound", 8, ["abcdefghi"], "ab\n[… 1 bytes left out …]\ndefghi"],
  ["one past it, byte by byte", 8, [..."abcdefghi"], "ab\n[… 1 bytes left out …]\ndefghi"],
  [
    "a long tail in one chunk",
    8,
    ["ab", "x".repeat(50) + "theend"],
    "ab\n[… 50 bytes left out …]\ntheend",
  ],
];

for (const [name, bytesMax, chunks, text] of rows) {
  Deno.test(`BoundedOutput: ${name}`, async () => {
    const output = await collect(bytesMax, chunks);
    assert.equal(output.text("both"), text);
    assert.equal(output.text("stdout"), text);
    assert.equal(output.text("stderr"), "");
    assert.equal(output.totalBytes, chunks.join("").length);
  });
}
