/** One grant of a built-in server, in its renderings: arguments, process flags, Worker permissions. */

import { BWRAP } from "../core/bwrap.ts";
import type { BuiltinServer, PermissionSet } from "../wire/payload.ts";
import { CLEAN_ENVIRONMENT } from "../wire/environment.ts";
import { NO_PERMISSIONS, permissionFlags } from "../wire/permissions.ts";
import { ALLOW_KINDS, type AllowKind, unitePermissions } from "./flags.ts";
import type { Sandbox, ServerKind } from "./messages.ts";

/** The kinds of permission that each server makes use of. */
const USED_KINDS: Readonly<Record<ServerKind, readonly AllowKind[]>> = {
  fs: ["read", "write"],
  http: ["net"],
  // Beyond run and env: what a command finds inside its sandbox, where there is one.
  exec: ["run", "env", "read", "write", "net"],
};

/** Variables that commands of exec get, where they are set. */
export const COMMAND_VARIABLES: readonly string[] = CLEAN_ENVIRONMENT;

/** The part of a grant that one server makes use of. */
export function usedPermissions(kind: ServerKind, permissions: PermissionSet): PermissionSet {
  const used: PermissionSet = { ...NO_PERMISSIONS };
  for (const name of USED_KINDS[kind]) used[name] = permissions[name];
  return used;
}

/**
 * The permissions of a server's Worker: its grant. Two additions are as small as they can be: fs may
 * also look at what it may write, since without that no symbolic link could be told (its tools show
 * nothing of it), and exec in a sandbox runs the sandbox's program, and that one only.
 */
export function workerPermissions(
  kind: ServerKind,
  permissions: PermissionSet,
  sandbox: Sandbox,
): PermissionSet {
  const worker: PermissionSet = { ...NO_PERMISSIONS };
  switch (kind) {
    case "fs":
      worker.read = unitePermissions(permissions.read, permissions.write);
      worker.write = permissions.write;
      break;
    case "http":
      worker.net = permissions.net;
      break;
    case "exec":
      worker.run = sandbox === "bwrap" && permissions.run !== false ? [BWRAP] : permissions.run;
      break;
  }
  return worker;
}

/** Arguments that start a built-in server: a role of this program, `mcp NAME --allow-…`. */
export function toolServerRole(server: BuiltinServer): string[] {
  const role = [
    "mcp",
    server.name,
    ...permissionFlags(usedPermissions(server.name, server.permissions)),
  ];
  if (server.name === "exec" && server.sandbox !== "none") role.push(`--sandbox=${server.sandbox}`);
  return role;
}

/**
 * Deno's flags for a built-in server's process from source: what its Worker gets, its own `code` to
 * load, and for exec `run` for the groups of commands and the variables that they get.
 */
export function toolServerFlags(server: BuiltinServer, code: readonly string[]): string[] {
  const { name, permissions, sandbox } = server;
  const flags = workerPermissions(name, permissions, sandbox);
  if (name === "exec") {
    flags.run = true;
    flags.env = unitePermissions(permissions.env, [...COMMAND_VARIABLES]);
  }
  return permissionFlags(flags, code);
}

/** What of a grant a server has no use for, as flags. */
export function unusedFlags(kind: ServerKind, permissions: PermissionSet): string[] {
  return ALLOW_KINDS
    .filter((name) => permissions[name] !== false && !USED_KINDS[kind].includes(name))
    .map((name) => `--allow-${name}`);
}
