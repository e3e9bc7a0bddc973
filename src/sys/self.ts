import type { ProgramPort, SelfPort } from "../ports/self.ts";
import { settleStderr } from "./output.ts";

const KINDS = ["read", "write", "net", "env", "sys", "ffi", "import"] as const;

/** This process. */
export const systemSelf: SelfPort = {
  pid: Deno.pid,
  standalone: Deno.build.standalone,
  get stdin() {
    return Deno.stdin.readable;
  },
  get stdout() {
    return Deno.stdout.writable;
  },
  env: readVariable,
  async revokeAllButRun() {
    for (const name of KINDS) await Deno.permissions.revoke({ name } as Deno.PermissionDescriptor);
  },
  exit: (code) => void settleStderr().then(() => Deno.exit(code)),
};

/**
 * This program, compiled or as source: `mainUrl` is its entry, `root` the directory with its
 * `deno.json` (the entry's own, unless told).
 */
export function systemProgram(mainUrl: string, root?: string): ProgramPort {
  const command = Deno.execPath();
  if (Deno.build.standalone) {
    return { standalone: true, command, code: [], environment: {}, args: (role) => [...role] };
  }
  const main = pathOf(mainUrl);
  const home = main.slice(0, Math.max(main.lastIndexOf("/"), main.lastIndexOf("\\")));
  const base = root ?? home;
  const environment: Record<string, string> = {};
  for (const name of ["DENO_DIR", "XDG_CACHE_HOME"]) {
    const value = readVariable(name);
    if (value !== undefined) environment[name] = value;
  }
  return {
    standalone: false,
    command,
    code: root === undefined ? [main, `${base}/src`] : [home, `${base}/src`],
    environment,
    args: (role, flags) => [
      "run",
      "--quiet",
      "--no-prompt",
      "--config",
      `${base}/deno.json`,
      ...flags,
      main,
      ...role,
    ],
  };
}

function readVariable(name: string): string | undefined {
  try {
    return Deno.env.get(name);
  } catch {
    return undefined;
  }
}

function pathOf(url: string): string {
  const path = decodeURIComponent(new URL(url).pathname);
  return /^\/[A-Za-z]:\//.test(path) ? path.slice(1) : path;
}
