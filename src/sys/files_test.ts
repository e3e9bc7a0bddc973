import assert from "node:assert/strict";
import { systemFiles } from "./files.ts";

async function inDirectory(act: (directory: string) => void | Promise<void>): Promise<void> {
  const directory = await Deno.makeTempDir({ prefix: "agentd-files-" });
  try {
    await act(directory);
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}

Deno.test("readBytes: files at the bound, one past it, and empty ones", () =>
  inDirectory((directory) => {
    const path = `${directory}/file`;
    for (const size of [0, 1, 4_095, 4_096, 4_097, 10_000]) {
      const bytes = new Uint8Array(size).map((_, at) => at % 251);
      Deno.writeFileSync(path, bytes);
      assert.deepEqual(systemFiles.readBytes(path, size), { ok: true, value: bytes });
      if (size === 0) continue;
      const read = systemFiles.readBytes(path, size - 1);
      assert.equal(read.ok ? null : read.failure.class, "too_large");
    }
  }));

Deno.test({
  name: "readBytes: what does not say its size is read up to the bound, and no further",
  ignore: Deno.build.os !== "linux",
  fn: () => {
    for (const bytesMax of [10, 4_096, 100_000]) {
      const read = systemFiles.readBytes("/dev/zero", bytesMax);
      assert.equal(read.ok ? null : read.failure.class, "too_large");
    }
    assert.deepEqual(systemFiles.readBytes("/dev/null", 10), { ok: true, value: new Uint8Array() });
  },
});
