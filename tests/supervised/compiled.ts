/** The supervised program as a binary, made as the real one is: bundled, then compiled. */

import { compile } from "../../tools/build.ts";
import { run } from "../../tools/denort.ts";

/** Compiles it into a directory; the path of the program. */
export async function compileSupervised(directory: string): Promise<string> {
  const root = decodeURIComponent(new URL("../..", import.meta.url).pathname);
  const bundle = `${directory}/bundle`;
  await run(Deno.execPath(), [
    "bundle",
    "--quiet",
    "--platform",
    "deno",
    "--code-splitting",
    "--outdir",
    bundle,
    "tests/supervised/main.ts",
    "tests/supervised/worker.ts",
  ], { cwd: root });
  const files = [...Deno.readDirSync(bundle)].map((entry) => entry.name);
  const program = `${directory}/supervised`;
  await compile(bundle, files, program, `${root}.cache`);
  return program;
}
