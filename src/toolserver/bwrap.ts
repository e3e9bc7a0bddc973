/** Commands wrapped by bubblewrap: a read-only root, a private /tmp, no network unless granted. */

import { BWRAP } from "../core/bwrap.ts";
import type { PermissionSet } from "../wire/payload.ts";
import { isAbsolute, isWithin, resolvePath } from "./paths.ts";
import { quote, ToolError } from "./tool.ts";

/** Arguments that build the sandbox, without the command. */
export function sandboxArguments(cwd: string, permissions: PermissionSet): string[] {
  const args = [
    "--die-with-parent",
    "--new-session",
    "--unshare-user-try",
    "--unshare-ipc",
    "--unshare-pid",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--cap-drop",
    "ALL",
  ];
  // A sandbox cannot tell hosts apart: a list of them is less than a network.
  if (permissions.net !== true) args.push("--unshare-net");
  args.push(permissions.write === true ? "--bind" : "--ro-bind", "/", "/");
  args.push("--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp");
  // The private /tmp hides a working directory in there.
  if (isWithin(cwd, "/tmp") && cwd !== "/tmp") {
    args.push(permissions.write === true ? "--bind" : "--ro-bind", cwd, cwd);
  }
  if (Array.isArray(permissions.write)) {
    for (const path of permissions.write) args.push("--bind-try", path, path);
  }
  return [...args, "--chdir", cwd];
}

/**
 * The command line that runs `argv` in a sandbox. Deno's permission covers only the sandbox's program
 * then, so the grant is checked here: the program must be listed as it is called, or by its path.
 */
export function sandboxCommand(
  argv: readonly string[],
  cwd: string,
  permissions: PermissionSet,
  env: Readonly<Record<string, string>>,
): string[] {
  const program = grantedProgram(argv[0]!, permissions, env.PATH ?? "");
  if (program === undefined) {
    const list = Array.isArray(permissions.run) ? permissions.run.join(", ") : "nothing";
    throw new ToolError(
      `Cannot run ${quote(argv[0]!)}: it is not granted. This server may run ${list}.`,
    );
  }
  return [BWRAP, ...sandboxArguments(cwd, permissions), "--", program, ...argv.slice(1)];
}

/** What to start for a program as a caller names it; undefined if the grant does not have it. */
function grantedProgram(
  program: string,
  permissions: PermissionSet,
  path: string,
): string | undefined {
  if (permissions.run === true) return program;
  if (permissions.run === false) return undefined;
  const directories = path.split(":").filter((directory) => directory.startsWith("/"));
  const asked = isAbsolute(program) ? resolvePath("/", program) : program;
  for (const item of permissions.run) {
    if (item === asked) return asked;
    const name = item.slice(item.lastIndexOf("/") + 1);
    if (isAbsolute(item) && name === asked) {
      // Called by name: it is the listed file if that is where PATH leads.
      if (directories.some((directory) => item === resolvePath(directory, name))) return item;
    } else if (
      isAbsolute(asked) && directories.some((directory) => asked === resolvePath(directory, item))
    ) return asked;
  }
  return undefined;
}
