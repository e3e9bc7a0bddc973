/** Programs by name, as a shell would find them. */

import type { FilesPort } from "../ports/files.ts";
import { resolvePath } from "../toolserver/paths.ts";

/**
 * The absolute path of a program: as written where it has a separator (seen from `cwd`), else the
 * first directory of PATH that has it. Undefined if there is none that can be executed.
 */
export function findProgram(
  name: string,
  cwd: string,
  env: Readonly<Record<string, string>>,
  files: FilesPort,
): string | undefined {
  if (name === "") return undefined;
  const windows = env.PATHEXT !== undefined && env.SYSTEMROOT !== undefined;
  const endings = windows ? ["", ...env.PATHEXT!.split(";")] : [""];
  const bases = /[\\/]/.test(name)
    ? [resolvePath(cwd, name)]
    : (env.PATH ?? "").split(windows ? ";" : ":").filter((directory) => directory !== "").map((
      directory,
    ) => resolvePath(resolvePath(cwd, directory), name));
  for (const base of bases) {
    for (const ending of endings) {
      const stat = files.stat(base + ending);
      if (!stat.ok || stat.value.kind !== "file") continue;
      // A mode of 0 means that the system has none.
      if (stat.value.mode === 0 || (stat.value.mode & 0o111) !== 0) return base + ending;
    }
  }
  return undefined;
}
