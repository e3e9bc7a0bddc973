import assert from "node:assert/strict";
import { systemFileWatch } from "../sys/file_watch.ts";
import { systemClock } from "../sys/clock.ts";
import { systemFiles } from "../sys/files.ts";
import { absoluteMatch, listMatches, parseFileGlob, watchFiles } from "./file_source.ts";

const PORTS = { files: systemFiles, fileWatch: systemFileWatch, clock: systemClock };

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
      PORTS,
      [flat, parseFileGlob(`${root}/link/*.log`, "/")],
      {
        changed: (path, possibly) => {
          assert.equal(possibly, false);
          seen.add(path);
          news.resolve();
        },
        held: () => assert.fail(),
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
    PORTS,
    [parseFileGlob("/tmp/*", "/"), parseFileGlob("/nonexistent-directory/*", "/")],
    { changed: () => {}, held: () => {} },
  );
  assert(!watching.ok);
  assert.match(watching.failure, /Cannot watch \/nonexistent-directory\/\*/);
});

for (const how of ["removed", "moved away"]) {
  Deno.test(`watchFiles: a directory that is ${how} and made anew is watched again`, {
    ignore: Deno.build.os !== "linux",
  }, async () => {
    const root = await Deno.realPath(await Deno.makeTempDir());
    const told: string[] = [];
    let news = Promise.withResolvers<void>();
    const until = async (text: string) => {
      while (!told.includes(text)) {
        await news.promise;
        news = Promise.withResolvers<void>();
      }
    };
    const tell = (text: string) => {
      told.push(text);
      news.resolve();
    };
    await Deno.mkdir(`${root}/in`);
    const watching = watchFiles(PORTS, [parseFileGlob(`${root}/in/*.txt`, "/")], {
      changed: (path, possibly) => tell(`${possibly ? "?" : ""}${path.slice(root.length)}`),
      held: (_glob, now) => tell(now ? "held" : "not held"),
    });
    assert(watching.ok);
    if (how === "removed") await Deno.remove(`${root}/in`);
    else await Deno.rename(`${root}/in`, `${root}/old`);
    await until("not held");
    await Deno.mkdir(`${root}/in`);
    await Deno.writeTextFile(`${root}/in/meanwhile.txt`, "x");
    await until("?/in/meanwhile.txt");
    await Deno.writeTextFile(`${root}/in/later.txt`, "x");
    await until("/in/later.txt");
    assert.deepEqual(told.slice(0, 2), ["not held", "held"]);
    // One that is gone when the watch ends is not looked for any more.
    told.length = 0;
    await Deno.remove(`${root}/in`, { recursive: true });
    await until("not held");
    watching.value();
    await Deno.remove(root, { recursive: true });
  });
}
