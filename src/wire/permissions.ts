/** Deno permissions as flags: how they travel in argv, to `deno run` and to `agentd mcp`. */

import type { Permission, PermissionSet } from "./payload.ts";

/** The kinds, in Deno's own names and in the order in which tables show them. */
export const PERMISSION_KINDS = [
  "read",
  "write",
  "net",
  "run",
  "env",
  "sys",
  "ffi",
  "import",
] as const;

/** One of {@link PERMISSION_KINDS}. */
export type PermissionKind = (typeof PERMISSION_KINDS)[number];

/** Nothing at all. */
export const NO_PERMISSIONS: Readonly<PermissionSet> = {
  read: false,
  write: false,
  net: false,
  run: false,
  env: false,
  sys: false,
  ffi: false,
  import: false,
};

/** Where the compiled program looks for modules that are not its own: a scheme that nothing loads. */
export const REFUSED_MODULES = "agentd-refuses:/";

/** Whether a message is of what Deno's permissions, or the compiled program's module map, refuse. */
export function isDenial(message: string): boolean {
  return /NotCapable|Requires [a-z]+ access|Can't escalate parent thread permissions/.test(
    message,
  ) ||
    message.includes(REFUSED_MODULES);
}

/**
 * The `--allow-…` flags of a set, those of empty kinds left out. `code` is added to what may be
 * read. A comma in a path is doubled, as Deno's flag syntax has it.
 */
export function permissionFlags(set: PermissionSet, code: readonly string[] = []): string[] {
  const flags: string[] = [];
  for (const kind of PERMISSION_KINDS) {
    const value = kind === "read" ? withPaths(set.read, code) : set[kind];
    if (value === true) flags.push(`--allow-${kind}`);
    else if (value !== false && value.length > 0) {
      flags.push(`--allow-${kind}=${value.map((item) => item.replaceAll(",", ",,")).join(",")}`);
    }
  }
  return flags;
}

/** A set as Deno takes it for a Worker: an empty list is nothing. */
export function workerPermissions(set: PermissionSet): Record<PermissionKind, boolean | string[]> {
  const out = {} as Record<PermissionKind, boolean | string[]>;
  for (const kind of PERMISSION_KINDS) {
    const value = set[kind];
    out[kind] = Array.isArray(value) && value.length === 0 ? false : value;
  }
  return out;
}

function withPaths(value: Permission, more: readonly string[]): Permission {
  if (value === true || more.length === 0) return value;
  return [...(value === false ? [] : value), ...more];
}
