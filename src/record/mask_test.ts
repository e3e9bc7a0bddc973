import assert from "node:assert/strict";
import { maskDeep } from "./mask.ts";

const mask = (text: string) => text.replaceAll("token", "***").replaceAll("sk-12345", "***");

Deno.test("maskDeep: strings and strange keys lose secrets, our own names stay", () => {
  assert.deepEqual(
    maskDeep({
      usage: { tokensIn: 3, tokens_out: 4 },
      args: { "sk-12345": "a token", x: ["sk-12345"] },
    }, mask),
    { usage: { tokensIn: 3, tokens_out: 4 }, args: { "***": "a ***", x: ["***"] } },
  );
});
