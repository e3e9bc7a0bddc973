/** Permissions as users write them: flags in Deno's own syntax, and lists. */

import type { Permission, PermissionSet } from "../wire/payload.ts";
import { NO_PERMISSIONS } from "../wire/permissions.ts";
import { resolvePath } from "./paths.ts";

/** The kinds that the built-in tool servers know of. */
export const ALLOW_KINDS = ["read", "write", "net", "run", "env"] as const;

/** One of {@link ALLOW_KINDS}. */
export type AllowKind = typeof ALLOW_KINDS[number];

/** Deno's short names of these flags. */
const SHORT: Record<string, AllowKind> = { R: "read", W: "write", N: "net", E: "env" };

/** Permissions found among arguments, what else there was, and what is wrong with them. */
export interface ParsedFlags {
  permissions: PermissionSet;
  /** Arguments that are no permission flag, in order. */
  rest: string[];
  problems: string[];
}

/**
 * Reads `--allow-read`, `--allow-read=a,b`, `-R=a` and so on; a flag given twice adds up. Relative
 * paths are seen from `workingDirectory`. `--allow-all` and `--deny-…` are problems: each permission
 * is to be named.
 */
export function parsePermissionFlags(
  args: readonly string[],
  workingDirectory: string,
): ParsedFlags {
  const permissions: PermissionSet = { ...NO_PERMISSIONS };
  const rest: string[] = [];
  const problems: string[] = [];
  for (const argument of args) {
    const match = /^(?:--allow-([a-z]+)|-([RWNEA]))(?:=(.*))?$/s.exec(argument);
    if (!match) {
      if (/^--deny-/.test(argument)) {
        problems.push(`Cannot use ${argument}: grant less with --allow-…=LIST instead.`);
      } else rest.push(argument);
      continue;
    }
    const name = match[1] ?? SHORT[match[2]!] ?? "all";
    const kind = ALLOW_KINDS.find((known) => known === name);
    if (kind === undefined) {
      problems.push(
        `Cannot use ${argument}: name what is allowed, by --allow-read, --allow-write, ` +
          "--allow-net, --allow-run or --allow-env.",
      );
      continue;
    }
    const parsed = parsePermission(kind, match[3] ?? true, workingDirectory);
    problems.push(...parsed.problems.map((problem) => `Cannot use ${argument}: ${problem}`));
    permissions[kind] = unitePermissions(permissions[kind], parsed.permission);
  }
  return { permissions, rest, problems };
}

/**
 * One kind's permission from what was written for it: `true`, a list, or a text with commas, where
 * `,,` is a comma that belongs to an item.
 */
export function parsePermission(
  kind: AllowKind,
  value: true | string | readonly string[],
  workingDirectory: string,
): { permission: Permission; problems: string[] } {
  if (value === true) return { permission: true, problems: [] };
  const items = typeof value === "string" ? splitList(value) : value;
  const problems: string[] = [];
  const list: string[] = [];
  for (const item of items) {
    const text = item.trim();
    const problem = text === "" ? "an item of the list is empty" : checkItem(kind, text);
    if (problem !== undefined) problems.push(problem);
    else if (kind === "read" || kind === "write") list.push(resolvePath(workingDirectory, text));
    else if (kind === "run" && /[\\/]/.test(text)) list.push(resolvePath(workingDirectory, text));
    else list.push(text);
  }
  return { permission: list.length > 0 ? [...new Set(list)] : false, problems };
}

function splitList(text: string): string[] {
  return text.replaceAll(",,", "\0").split(",").map((item) => item.replaceAll("\0", ","));
}

function checkItem(kind: AllowKind, item: string): string | undefined {
  if (item.includes("\0")) return "it contains a NUL character";
  if (kind === "net") {
    if (/^[a-z]+:\/\//i.test(item)) {
      return `${JSON.stringify(item)} is a URL; write the host, as in ${
        JSON.stringify(hostOf(item))
      }`;
    }
    if (parseHost(item) === undefined) {
      return `${JSON.stringify(item)} is no host; write HOST, HOST:PORT, or [IPv6]:PORT`;
    }
  }
  if (kind === "env" && /[=\s]/.test(item)) {
    return `${JSON.stringify(item)} is no name of a variable`;
  }
  return undefined;
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host || "HOST" : "HOST";
}

/** Host (lower case, IPv6 without brackets) and port, if there is one, of a net permission's item. */
export function parseHost(item: string): { host: string; port: number | null } | undefined {
  const match = /^(?:\[([0-9A-Fa-f:.%]+)\]|([^[\]:/?#@\s]+))(?::(\d{1,5}))?$/.exec(item);
  if (!match) {
    // Deno takes a bare IPv6 address, too.
    return /^[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*$/.test(item)
      ? { host: item.toLowerCase(), port: null }
      : undefined;
  }
  const port = match[3] === undefined ? null : Number(match[3]);
  if (port !== null && (port < 1 || port > 65_535)) return undefined;
  return { host: (match[1] ?? match[2]!).toLowerCase().replace(/\.$/, ""), port };
}

/** What either of two permissions allows. */
export function unitePermissions(one: Permission, other: Permission): Permission {
  if (one === true || other === true) return true;
  if (one === false) return other;
  if (other === false) return one;
  return [...new Set([...one, ...other])];
}
