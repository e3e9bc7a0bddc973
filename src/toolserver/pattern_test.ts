import assert from "node:assert/strict";
import fc from "fast-check";
import { PATTERN_CHARS_MAX } from "../core/tool_limits.ts";
import { compileGlob, compilePattern } from "./pattern.ts";
import { PatternError } from "./pattern_tree.ts";

function matches(source: string, text: string, options = {}): boolean {
  return compilePattern(source, { literal: false, ignoreCase: false, ...options }).search(text) !==
    -1;
}

Deno.test("compilePattern: agrees with RegExp", () => {
  const patterns = [
    "abc",
    "a.c",
    "^abc$",
    "^$",
    "a*b",
    "(ab|cd)+e?",
    "[a-c]{2,3}x",
    "[^a-z]",
    "\\bfoo\\b",
    "\\Boo",
    "fo{2}",
    "fo{0}x",
    "x{2,}",
    "(?:a|b)*?c",
    "(?<name>a)b",
    "\\d+\\.\\d+",
    "\\w+@\\w+",
    "\\s$",
    "[\\d_-]+",
    "[]a]",
    "[^]b",
    "a{,3}",
    "f() {",
    "\\x41\\u0042",
    "\\u{1F600}",
    "😀.",
    "a||b",
    "()",
    "\\$\\^\\.",
    "[\\b]",
    "(a*)*b",
    "(a|a)*b",
    "ab?c??d",
  ];
  const texts = [
    "",
    "abc",
    "xabcx",
    "aaab",
    "ababe",
    "cde",
    "abx",
    "bcax",
    "foo",
    "a foo b",
    "food",
    "xfoo",
    "xx",
    "3.14",
    "me@here",
    "end ",
    "ABC",
    "function f() {",
    "a{,3}",
    "AB",
    "😀!",
    "\b",
    "$^.",
    "acd",
    "ad",
    "]",
    "é",
  ];
  for (const pattern of patterns) {
    // What Annex B reads in its own way without the flag u is tried without it.
    const flags = /\{1F600\}|😀/.test(pattern) ? "u" : "";
    // An empty class is a mistake elsewhere: here "]" first in a class is not itself, as in RegExp.
    const expected = new RegExp(pattern, flags);
    for (const text of texts) {
      assert.equal(matches(pattern, text), expected.test(text), `${pattern} on ${text}`);
    }
  }
});

Deno.test("compilePattern: agrees with RegExp on random patterns and texts", () => {
  const atom = fc.constantFrom(
    "a",
    "b",
    "c",
    ".",
    "[ab]",
    "[^a]",
    "\\w",
    "\\b",
    "^",
    "$",
    "(a|bc)",
  );
  const piece = fc.tuple(atom, fc.constantFrom("", "", "*", "+", "?", "{2}", "{1,2}"))
    .map(([one, times]) => /^(?:\\b|\^|\$)$/.test(one) ? one : one + times);
  const group = fc.array(piece, { minLength: 1, maxLength: 5 }).map((parts) => parts.join(""));
  const pattern = fc.array(group, { minLength: 1, maxLength: 3 }).map((parts) => parts.join("|"));
  const text = fc.string({ unit: fc.constantFrom("a", "b", "c", " ", "-"), maxLength: 12 });
  fc.assert(
    fc.property(pattern, text, (source, subject) => {
      assert.equal(matches(source, subject), new RegExp(source).test(subject), source);
    }),
    { numRuns: 2_000 },
  );
});

Deno.test("compilePattern: ignores case where asked", () => {
  assert.ok(matches("straße", "STRAßE", { ignoreCase: true }));
  assert.ok(matches("(?i)hello [A-Z]", "HeLLo x"));
  assert.ok(!matches("hello", "HELLO"));
  assert.ok(matches("a.b(", "xA.B(x", { literal: true, ignoreCase: true }));
});

Deno.test("compilePattern: a literal means itself", () => {
  assert.ok(matches("a.*b(", "see a.*b( here", { literal: true }));
  assert.ok(!matches("a.*b(", "a123b(", { literal: true }));
  assert.equal(
    compilePattern("needle", { literal: true, ignoreCase: false }).search("a needle!"),
    8,
  );
});

Deno.test("compilePattern: patterns that make backtracking explode stay linear", () => {
  const text = "a".repeat(50_000);
  for (
    const source of [
      "(a+)+b",
      "(a|a)*b",
      "(a*)*b",
      "a*a*a*a*a*a*a*b",
      "(.*)(.*)(.*)(.*)x",
      "(a?){50}a{50}b",
    ]
  ) assert.equal(matches(source, text), false, source);
});

Deno.test("compilePattern: refuses what it cannot do, with the reason", () => {
  const rows: [string, RegExp][] = [
    ["(a", /not closed/],
    ["a)", /without/],
    ["[a", /not closed/],
    ["*a", /nothing/],
    ["a**", /nothing is left/],
    ["a\\", /ends the pattern/],
    ["(?=a)", /look-around/],
    ["(?<!a)b", /look-around/],
    ["(a)\\1", /back references/],
    ["\\pL", /not supported/],
    ["a{5,2}", /wrong order/],
    ["a{2000}", /limited/],
    ["[z-a]", /backwards/],
    ["", /empty/],
    ["(((a{100}){100}){100})", /too large/],
    ["(".repeat(200) + "a" + ")".repeat(200), /deeper/],
    ["a".repeat(PATTERN_CHARS_MAX + 1), /characters long/],
  ];
  for (const [source, reason] of rows) {
    assert.throws(
      () => matches(source, ""),
      (error) => error instanceof PatternError && reason.test(error.message),
      source.slice(0, 20),
    );
  }
  assert.equal(matches("a".repeat(PATTERN_CHARS_MAX), ""), false);
});

Deno.test("compilePattern: required is a text that every match has", () => {
  const required = (source: string) =>
    compilePattern(source, { literal: false, ignoreCase: false }).required;
  assert.equal(required("foo.*barbaz"), "barbaz");
  assert.equal(required("foo|bar"), "");
  assert.equal(required("(foo)?b"), "b");
  assert.equal(required("\\bword\\b"), "word");
  assert.equal(required("(abc)+d"), "abc");
});

Deno.test("compileGlob: matches whole relative paths", () => {
  const rows: [string, string[], string[]][] = [
    ["*.ts", ["a.ts", ".ts"], ["a/b.ts", "a.tsx"]],
    ["**/*.ts", ["a.ts", "a/b.ts", "a/b/c.ts"], ["a.js"]],
    ["src/**", ["src/a", "src/a/b"], ["src", "lib/src/a"]],
    ["src/**/x", ["src/x", "src/a/x", "src/a/b/x"], ["src/ax"]],
    ["a?c", ["abc"], ["a/c", "ac"]],
    ["[ab]*", ["a", "bcd"], ["cab", "a/b"]],
    ["[!ab]", ["c"], ["a", "/"]],
    ["{a,b/*}.md", ["a.md", "b/x.md"], ["b.md"]],
    ["**", ["a", "a/b"], []],
    ["a\\*b", ["a*b"], ["axb"]],
    ["x.+(y)", ["x.+(y)"], ["x++y"]],
  ];
  for (const [glob, hits, misses] of rows) {
    const pattern = compileGlob(glob);
    for (const hit of hits) assert.notEqual(pattern.search(hit), -1, `${glob} matches ${hit}`);
    for (const miss of misses) assert.equal(pattern.search(miss), -1, `${glob} not ${miss}`);
  }
  assert.throws(() => compileGlob("{a"), PatternError);
  assert.throws(() => compileGlob("[a"), PatternError);
  assert.equal(compileGlob("**/**/**/**/**/**/x").search("a/".repeat(2_000)), -1);
});
