import assert from "node:assert/strict";
import fc from "fast-check";
import { splitWords } from "./words.ts";

const rows: [text: string, words: string[]][] = [
  ["deno task test", ["deno", "task", "test"]],
  ["  a\t b\n c  ", ["a", "b", "c"]],
  [`a 'b c' "d e"`, ["a", "b c", "d e"]],
  [`a''b`, ["ab"]],
  [`a '' ""`, ["a", "", ""]],
  [`a\\ b`, ["a b"]],
  [`a\\\nb`, ["ab"]],
  [`'a\\b'`, ["a\\b"]],
  [`"a\\b"`, ["a\\b"]],
  [`"a\\"b\\\\c\\$d\\\`e"`, [`a"b\\c$d\`e`]],
  [`"a\\\nb"`, ["ab"]],
  [`$HOME/*.txt | tee > out && b; c &`, [
    "$HOME/*.txt",
    "|",
    "tee",
    ">",
    "out",
    "&&",
    "b;",
    "c",
    "&",
  ]],
  [`it"'"s`, ["it's"]],
];

Deno.test("splitWords: words are split as a POSIX shell would, and nothing is expanded", () => {
  for (const [text, words] of rows) {
    assert.deepEqual(splitWords(text), { ok: true, value: words }, text);
  }
});

Deno.test("splitWords: agrees with a real shell where nothing is expanded", async () => {
  for (const [text, words] of rows) {
    // A bare line feed would end the command.
    if (/[$|;&>`]/.test(text) || text.includes("\n c")) continue;
    const { stdout } = await new Deno.Command("sh", {
      args: ["-c", `printf '%s\\0' ${text}`],
    }).output();
    assert.deepEqual(new TextDecoder().decode(stdout).split("\0").slice(0, -1), words, text);
  }
});

Deno.test("splitWords: what cannot be split says why", () => {
  const faults: [text: string, why: string][] = [
    ["", "it is empty"],
    ["  \t", "it is empty"],
    ["a 'b", "the single quote at character 3 is not closed"],
    [`a "b`, "the double quote at character 3 is not closed"],
    [`a "b\\`, "the double quote at character 3 is not closed"],
    ["a \\", "it ends with a lone backslash"],
    ["'' a", "its program is an empty word"],
    ["a \0", "it has a NUL character"],
  ];
  for (const [text, why] of faults) {
    assert.deepEqual(splitWords(text), { ok: false, failure: why }, JSON.stringify(text));
  }
});

/** Words as a shell user would quote them. */
function quoteWords(words: readonly string[]): string {
  return words.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(" ");
}

Deno.test("splitWords: undoes the quoting of any words", () => {
  const word = fc.string({ unit: "binary" }).filter((text) => !text.includes("\0"));
  fc.assert(
    fc.property(fc.tuple(fc.string({ minLength: 1 }), fc.array(word)), ([program, rest]) => {
      const words = [program.replaceAll("\0", "x"), ...rest];
      assert.deepEqual(splitWords(quoteWords(words)), { ok: true, value: words });
    }),
  );
});
