import assert from "node:assert/strict";
import fc from "fast-check";
import { coversTools, grantsTool, grantsTools, matchesTool, overlapTools } from "./glob.ts";

const part = fc.array(fc.constantFrom("a", "b", "*", "?", "**", "a*"), {
  minLength: 1,
  maxLength: 4,
}).map((pieces) => pieces.join(""));
const glob = fc.tuple(part, fc.constantFrom("", "/", "/"), part)
  .map(([server, slash, tool]) => server + slash + (slash && tool));
const text = fc.array(fc.constantFrom("a", "b", "c"), { minLength: 1, maxLength: 4 })
  .map((pieces) => pieces.join(""));
const name = fc.tuple(text, text, fc.constantFrom("", "/x")).map(([server, tool, more]) =>
  `${server}/${tool}${more}`
);

Deno.test("matchesTool: part by part, as a regular expression would", () => {
  const source = (part: string) => part.replace(/\*+/g, ".*").replace(/\?/g, ".");
  const expected = (glob: string, name: string): boolean => {
    if (glob === "*" || glob === "**") return true;
    const [server, tool] = glob.includes("/") ? glob.split("/") : [glob, "*"];
    return new RegExp(`^${source(server!).replaceAll(".", "[^/]")}/${source(tool!)}$`).test(name);
  };
  fc.assert(
    fc.property(glob, name, (glob, name) => {
      assert.equal(matchesTool(glob, name), expected(glob, name), `${glob} ${name}`);
    }),
    { numRuns: 5_000 },
  );
});

Deno.test("coversTools: where it says so, every name of the one is a name of the other", () => {
  let covered = 0;
  const names = fc.array(name, { minLength: 10, maxLength: 10 });
  fc.assert(
    fc.property(glob, glob, names, (outer, inner, names) => {
      if (!coversTools(outer, inner)) return;
      covered++;
      for (const name of names) {
        if (matchesTool(inner, name)) {
          assert.ok(matchesTool(outer, name), `${outer} ${inner} ${name}`);
        }
      }
    }),
    { numRuns: 5_000 },
  );
  assert.ok(covered > 100);
});

Deno.test("coversTools, grantsTools: one way to write a glob covers another", () => {
  const rows: [outer: string, inner: string, covers: boolean][] = [
    ["*", "a/b", true],
    ["a", "a/**", true],
    ["a/*", "a", true],
    ["a/?*", "a/*?", true],
    ["a/?", "a/*", false],
    ["a/b*", "a/*", false],
    ["a/*", "*", false],
    ["a/*x*", "a/*x?", true],
  ];
  for (const [outer, inner, covers] of rows) {
    assert.equal(coversTools(outer, inner), covers, `${outer} ${inner}`);
  }
  assert.equal(grantsTools(["a/*", "!a/x*"], "a/*"), true, "some are left");
  assert.equal(grantsTools(["a/*", "!a/x*"], "a/xy*"), false);
  assert.equal(grantsTool(["a/*", "!a/x*"], "a/get/x"), true);
});

Deno.test("overlapTools: true exactly where two globs have a name in common", () => {
  const rows: [string, string, boolean][] = [
    ["*", "a/b", true],
    ["a", "*/b", true],
    ["a/b", "a/c", false],
    ["a/b", "b/b", false],
    ["a/?b", "a/a?", true],
    ["a/??", "a/?", false],
    ["a/a*b", "a/ab", true],
    ["a/a*b*c", "a/*d*", true],
    ["a/a*", "a/*?a", true],
    ["a/a*", "a/b*", false],
    ["a/*a", "a/*b", false],
    ["a/?*", "a/", false],
    ["a/*", "a/", true],
  ];
  for (const [one, other, overlap] of rows) {
    assert.equal(overlapTools(one, other), overlap, `${one} and ${other}`);
    assert.equal(overlapTools(other, one), overlap, `${other} and ${one}`);
  }
});
