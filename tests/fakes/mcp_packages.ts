/** Real MCP servers from npm, in exact versions, fetched once into `.cache/mcp`. */

const VERSION = "2026.8.31";
const PACKAGES = ["everything", "filesystem", "memory"] as const;
const root = new URL("../../.cache/mcp/", import.meta.url);

/** A real server that npm has. */
export type RealServer = (typeof PACKAGES)[number];

/** The script of a real server, to be run by Node; fetched if it is not there yet. */
export async function realServer(name: RealServer): Promise<string> {
  const home = new URL(`${VERSION}/`, root);
  if (!await exists(new URL("complete", home))) await fetchPackages(home);
  const script = `node_modules/@modelcontextprotocol/server-${name}/dist/index.js`;
  return new URL(script, home).pathname;
}

async function fetchPackages(home: URL): Promise<void> {
  await Deno.mkdir(root, { recursive: true });
  // Several test processes may get here at once: each fetches its own copy, the first one stays.
  const draft = await Deno.makeTempDir({ dir: root.pathname });
  await Deno.writeTextFile(`${draft}/package.json`, "{}");
  const { success, stderr } = await new Deno.Command("npm", {
    args: [
      "install",
      "--no-audit",
      "--no-fund",
      "--ignore-scripts",
      "--prefix",
      draft,
      ...PACKAGES.map((name) => `@modelcontextprotocol/server-${name}@${VERSION}`),
    ],
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).output();
  if (!success) throw new Error(`Cannot fetch servers: ${new TextDecoder().decode(stderr)}`);
  await Deno.writeTextFile(`${draft}/complete`, "");
  try {
    await Deno.rename(draft, home.pathname.slice(0, -1));
  } catch {
    await Deno.remove(draft, { recursive: true });
  }
}

async function exists(path: URL): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}
