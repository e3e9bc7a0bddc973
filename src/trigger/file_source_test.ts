import assert from "node:assert/strict";
import { systemFileWatch } from "../sys/file_watch.ts";
import { systemFiles } from "../sys/files.ts";
import { absoluteMatch, listMatches, parseFileGlob, watchFiles } from "./file_source.ts";

Deno.test("parseFileGlob: the directory to watch, and whether below it too", () => {
  const rows: [string, string, string, boolean][] = [
    ["./in/*.txt", "/w/in/*.txt", "/w/in", false],
    ["in/a.txt", "/w/in/a.txt", "/w/in", false],
    ["/abs/**", "/abs/**", "/abs", true],
    ["/abs/*/x", "/abs/*/x", "/abs", true],
    ["/abs/pre*", "/abs/pre*", "/abs", false],
    ["*", "/w/*", "/w", false],
    ["/*", "/*", "/", false],
  ];
  for (const [text, glob, directory, recursive] of rows) {
    const parsed = parseFileGlob(text, "/w");
    assert.deepEqual([parsed.glob, parsed.directory, parsed.recursive], [
      glob,
      directory,
      recursive,
    ]);
  }
  assert.equal(absoluteMatch("file:./in/*", "/w"), "file:/w/in/*");
  assert.equal(absoluteMatch("mem://x", "/w"), "mem://x");
});

Deno.test("watchFiles: real changes that a glob matches, through a link too; listMatches", async () => {
  const root = await Deno.realPath(await Deno.makeTempDir());
  try {
    await Deno.mkdir(`${root}/in/deep`, { recursive: true });
    await Deno.symlink(`${root}/in`, `${root}/link`);
    await Deno.writeTextFile(`${root}/in/old.txt`, "x");
    await Deno.writeTextFile(`${root}/in/deep/old.txt`, "x");
    const flat = parseFileGlob(`${root}/in/*.txt`, "/");
    const deep = parseFileGlob(`${root}/in/**.txt`, "/");
    assert.deepEqual(listMatches(systemFiles, flat), [`${root}/in/old.txt`]);
    assert.deepEqual(listMatches(systemFiles, deep).sort(), [
      `${root}/in/deep/old.txt`,
      `${root}/in/old.txt`,
    ]);
    const seen = new Set<string>();
    let news = Promise.withResolvers<void>();
    const watching = watchFiles(
      { files: systemFiles, fileWatch: systemFileWatch },
      [flat, parseFileGlob(`${root}/link/*.log`, "/")],
      (path, possibly) => {
        assert.equal(possibly, false);
        seen.add(path);
        news.resolve();
      },
    );
    assert(watching.ok, JSON.stringify(watching));
    await Deno.writeTextFile(`${root}/in/deep/ignored.txt`, "x");
    await Deno.writeTextFile(`${root}/in/new.txt`, "x");
    await Deno.writeTextFile(`${root}/in/new.log`, "x");
    while (seen.size < 2) {
      await news.promise;
      news = Promise.withResolvers<void>();
      if (seen.size < 2) await news.promise;
    }
    watching.value();
    watching.value();
    assert.deepEqual([...seen].sort(), [`${root}/in/new.txt`, `${root}/link/new.log`]);
  } finally {
    await Deno.remove(root, { recursive: true });
  }
});

Deno.test("watchFiles: a directory that is not there is said, and nothing is left open", () => {
  const watching = watchFiles(
    { files: systemFiles, fileWatch: systemFileWatch },
    [parseFileGlob("/tmp/*", "/"), parseFileGlob("/nonexistent-directory/*", "/")],
    () => {},
  );
  assert(!watching.ok);
  assert.match(watching.failure, /Cannot watch \/nonexistent-directory\/\*/);
});
