import assert from "node:assert/strict";
import { below, isWithin, join, parentOf, resolvePath } from "./paths.ts";
import { withRealPaths } from "./real_paths.ts";

Deno.test("withRealPaths: adds where links lead, also for what does not exist yet", () => {
  const real: Record<string, string> = {
    "/": "/",
    "/tmp": "/private/tmp",
    "/tmp/a": "/private/tmp/a",
  };
  const realPath = (path: string) => real[path];
  assert.deepEqual(withRealPaths(["/tmp/a"], realPath), ["/tmp/a", "/private/tmp/a"]);
  assert.deepEqual(withRealPaths(["/tmp/b/c"], realPath), ["/tmp/b/c", "/private/tmp/b/c"]);
  assert.deepEqual(withRealPaths(["/other"], realPath), ["/other"]);
  assert.deepEqual(withRealPaths(["/x/y"], () => undefined), ["/x/y"]);
  assert.equal(withRealPaths(true, realPath), true);
  assert.equal(withRealPaths(false, realPath), false);
});

Deno.test("resolvePath: as text, on both kinds of systems", () => {
  const rows: [string, string, string][] = [
    ["/w", "a", "/w/a"],
    ["/w", "./a//b/../c/", "/w/a/c"],
    ["/w", "../../..", "/"],
    ["/w", "/a/../../b", "/b"],
    ["/", ".", "/"],
    ["/w", "a\\b", "/w/a\\b"],
    ["C:\\w", "a\\b", "C:/w/a/b"],
    ["C:\\w", "..\\..\\x", "C:/x"],
    ["/w", "D:\\x\\..\\y", "D:/y"],
    ["\\\\host\\share", "a", "//host/share/a"],
  ];
  for (const [base, path, wanted] of rows) assert.equal(resolvePath(base, path), wanted, path);
});

Deno.test("isWithin, below, join, parentOf: a name is not a prefix", () => {
  assert.ok(isWithin("/a/b", "/a"));
  assert.ok(isWithin("/a", "/a"));
  assert.ok(isWithin("/a", "/"));
  assert.ok(!isWithin("/ab", "/a"));
  assert.equal(below("/a/b/c", "/a"), "b/c");
  assert.equal(below("/a", "/"), "a");
  assert.equal(join("/", "a"), "/a");
  assert.equal(join("/a", ""), "/a");
  assert.equal(parentOf("/a/b"), "/a");
  assert.equal(parentOf("/a"), "/");
  assert.equal(parentOf("C:/a"), "C:/");
});
