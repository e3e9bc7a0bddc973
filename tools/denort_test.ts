import assert from "node:assert/strict";
import { extractHead, hasDigest, run } from "./denort.ts";

Deno.test("extractHead: cuts the first bytes of one file out of an archive, executable", async () => {
  const directory = await Deno.makeTempDir();
  try {
    await Deno.mkdir(`${directory}/package`);
    const bytes = crypto.getRandomValues(new Uint8Array(60_000));
    await Deno.writeFile(`${directory}/package/other`, new Uint8Array(5_000));
    await Deno.writeFile(`${directory}/package/program`, bytes);
    const archive = `${directory}/package.tgz`;
    await run("tar", ["-czf", archive, "package"], { cwd: directory });

    const rows: [bytesMax: number | null, length: number][] = [
      [null, 60_000],
      [1, 1],
      [59_999, 59_999],
      [60_000, 60_000],
    ];
    for (const [bytesMax, length] of rows) {
      const path = `${directory}/out-${bytesMax}`;
      await extractHead(archive, "package/program", bytesMax, path);
      assert.deepEqual(await Deno.readFile(path), bytes.subarray(0, length));
      if (Deno.build.os !== "windows") {
        assert.equal((await Deno.stat(path)).mode! & 0o700, 0o700);
      }
    }
    for (const [file, bytesMax] of [["package/program", 60_001], ["package/none", null]] as const) {
      const path = `${directory}/never`;
      await assert.rejects(extractHead(archive, file, bytesMax, path), /Cannot extract/);
      await assert.rejects(Deno.stat(path), Deno.errors.NotFound);
    }
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
});

Deno.test("hasDigest: knows the right file, a wrong one and a missing one", async () => {
  const path = await Deno.makeTempFile();
  try {
    await Deno.writeTextFile(path, "abc");
    const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert.equal(await hasDigest(path, abc), true);
    assert.equal(await hasDigest(path, abc.replace("b", "c")), false);
    assert.equal(await hasDigest(`${path}.none`, abc), false);
  } finally {
    await Deno.remove(path);
  }
});

Deno.test("run: hands over stdout, and throws with the program's own words", async () => {
  const options = { env: { NO_COLOR: "1" } };
  assert.match(await run(Deno.execPath(), ["--version"], options), /^deno \d/);
  await assert.rejects(
    run(Deno.execPath(), ["run", "nowhere.ts"], options),
    /Cannot run .*nowhere\.ts:[^]*Module not found/,
  );
});
