import assert from "node:assert/strict";
import { RECORDING, SUMMARY } from "../../tools/demo.ts";

const root = new URL("../../", import.meta.url);

Deno.test("demo: the recorded job is refused once, mends its summary, and exits 0", async () => {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "--no-prompt",
      "--allow-read",
      "--allow-write=out",
      "--allow-env",
      "--allow-run",
      "tools/demo.ts",
      "--recorded",
    ],
    cwd: root,
    stdin: "null",
    env: { NO_COLOR: "1" },
  }).output();
  const told = new TextDecoder().decode(stderr);
  assert.equal(code, 0, told);
  const result = JSON.parse(new TextDecoder().decode(stdout));
  assert.equal(result.file, SUMMARY);
  const refused = told.indexOf("not verified: check");
  const mended = told.indexOf("fs/edit");
  const verified = told.search(/^verified$/m);
  assert.ok(0 < refused && refused < mended && mended < verified, told);
  const summary = await Deno.readTextFile(new URL(SUMMARY, root));
  assert.match(summary, /^\| 130, 143 \|/m, "what the check named is there");
});

Deno.test("demo: the recording says that no model made it", async () => {
  const text = await Deno.readTextFile(new URL(RECORDING, root));
  assert.match(JSON.parse(text.split("\n")[0]!).note, /by hand/);
});
