/**
 * Makes `dist/agentd`, one file that needs nothing installed: bundles each entry first, then compiles
 * the bundle. A compile that embeds node_modules would start several times slower.
 *
 * The bundle keeps the tree of the sources (main.js, src/agent/worker.js, ...), so the program finds
 * its other entries beside its own main module by the same relative paths, in both forms.
 */

import { REFUSED_MODULES } from "../src/wire/permissions.ts";
import { findCompiler, run } from "./denort.ts";

/** Modules that are started on their own: the program, and what it runs in Workers. */
export const ENTRIES: readonly string[] = [
  "main.ts",
  "src/agent/worker.ts",
  "src/toolserver/worker.ts",
];

/**
 * What the program may do at most, in the binary and, for tests and demo, from source; each process
 * narrows it for itself. Not `--allow-all`: under it a permission that was revoked is still there.
 */
export const BAKED_FLAGS: readonly string[] = [
  "--allow-read",
  "--allow-write",
  "--allow-net",
  "--allow-env",
  "--allow-run",
  "--allow-sys",
  "--no-prompt",
];

/** How the binary's runtime behaves, whatever it runs. */
const RUNTIME_FLAGS: readonly string[] = [
  // The cache is a file of a known name in the shared temporary directory, which any user could put
  // there first; start-up does not gain from it.
  "--no-code-cache",
  "--v8-flags=" + [
    // Each isolate keeps at most 2 MiB of young objects twice instead of 16: the agent's two isolates
    // take a tenth less memory and less time, since what is new stays in the processor's caches.
    "--max-semi-space-size=2",
    // Code is optimised once it is known to be needed for long, by one compiler: two of them, for
    // what runs a few hundred times at the start, are paged in for nothing. An agent that waits
    // takes a tenth less memory, and a run of 100 turns no more time (`deno task bench`).
    "--no-maglev",
    "--invocation-count-for-turbofan=20000",
    "--invocation-count-for-osr=5000",
  ].join(","),
];

/** Bundles the entries into `directory`; the paths of all files made, relative to it. */
export async function bundle(root: string, directory: string): Promise<string[]> {
  await Deno.remove(directory, { recursive: true }).catch(ignoreNotFound);
  const entries: string[] = [];
  for (const entry of ENTRIES) {
    if (await isFile(`${root}/${entry}`)) entries.push(entry);
  }
  await run(Deno.execPath(), [
    "bundle",
    "--quiet",
    // Packages then give their portable form: no require of Node's modules at run time, and a
    // smaller MCP client (without a second schema compiler).
    "--platform",
    "browser",
    "--minify",
    "--keep-names",
    "--code-splitting",
    "--outdir",
    directory,
    ...entries,
  ], { cwd: root });
  const files = await listFiles(directory, "");
  for (const entry of entries) {
    const made = entry.replace(/\.ts$/, ".js");
    if (!files.includes(made)) {
      throw new Error(`Cannot bundle: ${made} is missing in ${directory}.`);
    }
  }
  return files;
}

/** Compiles the bundle in `directory` to the program `output`. */
export async function compile(
  directory: string,
  files: readonly string[],
  output: string,
  cache: string,
): Promise<string> {
  const compiler = await findCompiler(cache);
  // Its own configuration, so that nothing of this project's (lock file, lint, tests) is embedded.
  await Deno.writeTextFile(
    `${directory}/deno.json`,
    JSON.stringify({ unstable: ["worker-options", "net"], imports: importMap(files) }) + "\n",
  );
  const included = files.filter((file) => file !== "main.js").flatMap((
    file,
  ) => ["--include", file]);
  await run(compiler.deno, [
    "compile",
    "--quiet",
    "--no-check",
    "--no-remote",
    "--no-npm",
    ...BAKED_FLAGS,
    ...RUNTIME_FLAGS,
    ...included,
    "--output",
    output,
    "main.js",
  ], {
    cwd: directory,
    env: compiler.denort === null ? {} : { DENORT_BIN: compiler.denort },
  });
  return compiler.origin;
}

/**
 * Every file of the program leads to itself, and every other to nowhere: the module loader of a
 * compiled program falls back to the disk, and asks for no read permission there.
 */
export function importMap(files: readonly string[]): Record<string, string> {
  const own = ["main.js", ...files].map((file) => [`./${file}`, `./${file}`]);
  return Object.fromEntries([...own, ["file:///", REFUSED_MODULES]]);
}

async function listFiles(directory: string, prefix: string): Promise<string[]> {
  const files: string[] = [];
  for await (const entry of Deno.readDir(`${directory}/${prefix}`)) {
    const path = prefix + entry.name;
    if (entry.isDirectory) files.push(...await listFiles(directory, `${path}/`));
    else files.push(path);
  }
  return files.sort();
}

async function isFile(path: string): Promise<boolean> {
  const info = await Deno.stat(path).catch(ignoreNotFound);
  return info?.isFile ?? false;
}

function ignoreNotFound(error: unknown): undefined {
  if (!(error instanceof Deno.errors.NotFound)) throw error;
}

if (import.meta.main) {
  const root = await Deno.realPath(`${import.meta.dirname}/..`);
  const output = `${root}/dist/agentd${Deno.build.os === "windows" ? ".exe" : ""}`;
  try {
    const files = await bundle(root, `${root}/dist/bundle`);
    const origin = await compile(`${root}/dist/bundle`, files, output, `${root}/.cache`);
    const { size } = await Deno.stat(output);
    console.log(`${output}: ${(size / 2 ** 20).toFixed(0)} MiB, compiled with ${origin}`);
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    Deno.exit(1);
  }
}
