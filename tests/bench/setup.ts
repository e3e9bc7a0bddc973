/** What the bench runs: the binary, a compiled hello-world, the bare script with its packages. */

import { compile } from "../../tools/build.ts";
import { run } from "../../tools/denort.ts";

/** Paths of the programs, and how each is started. */
export interface Programs {
  agentd: string;
  hello: string;
  /** Directory with `bare.mjs`, `tool_server.mjs` and their node_modules. */
  scripts: string;
  /** Scratch: run directories. */
  scratch: string;
}

/** Builds whatever is missing; the binary is always built anew. */
export async function prepare(root: string): Promise<Programs> {
  const cache = `${root}/.cache`;
  const scripts = `${cache}/bench`;
  await Deno.mkdir(scripts, { recursive: true });
  const { imports } = JSON.parse(await Deno.readTextFile(`${root}/deno.json`)) as {
    imports: Record<string, string>;
  };
  const dependencies = Object.fromEntries(
    ["@modelcontextprotocol/client", "@modelcontextprotocol/server", "zod"].map((name) => [
      name,
      imports[name]!.split("@").at(-1)!,
    ]),
  );
  for (const name of ["bare.mjs", "tool_server.mjs"]) {
    await Deno.copyFile(`${root}/tests/bench/${name}`, `${scripts}/${name}`);
  }
  await Deno.writeTextFile(
    `${scripts}/package.json`,
    JSON.stringify({ private: true, type: "module", dependencies }, null, 2) + "\n",
  );
  await run("npm", ["install", "--silent", "--no-audit", "--no-fund"], { cwd: scripts });

  await run(Deno.execPath(), ["task", "build"], { cwd: root });
  const hello = `${cache}/hello`;
  await Deno.mkdir(`${cache}/hello-source`, { recursive: true });
  await Deno.writeTextFile(`${cache}/hello-source/main.js`, HELLO);
  await compile(`${cache}/hello-source`, [], hello, cache);

  const scratch = await Deno.makeTempDir({ dir: cache, prefix: "runs-" });
  return { agentd: `${root}/dist/agentd`, hello, scripts, scratch };
}

/** With an argument it stays until its stdin ends, so that its memory can be read. */
const HELLO = `console.log("hello");
if (Deno.args.length > 0) await Deno.stdin.read(new Uint8Array(1));
`;
