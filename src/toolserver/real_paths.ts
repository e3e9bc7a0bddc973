/** Grants of paths together with where their links lead. */

import type { Permission } from "../wire/payload.ts";
import { join, parentOf, resolvePath } from "./paths.ts";

/**
 * A permission on paths with the real path of each added, where it is another one: Deno compares a
 * path as it is written, but some of its checks look at the file that is open. What does not exist
 * yet counts below the real path of the nearest directory that does. `realPath` answers undefined
 * where a path does not exist or may not be read.
 */
export function withRealPaths(
  permission: Permission,
  realPath: (path: string) => string | undefined,
): Permission {
  if (typeof permission === "boolean") return permission;
  const paths = new Set(permission);
  for (const path of permission) {
    const real = realOf(path, realPath);
    if (real !== undefined) paths.add(real);
  }
  return [...paths];
}

function realOf(
  path: string,
  realPath: (path: string) => string | undefined,
): string | undefined {
  const missing: string[] = [];
  let at = path;
  for (;;) {
    const real = realPath(at);
    if (real !== undefined) {
      return missing.reduceRight(
        (directory, name) => join(directory, name),
        resolvePath("/", real),
      );
    }
    const parent = parentOf(at);
    if (parent === at) return undefined;
    missing.push(at.slice(parent.length).replace(/^\//, ""));
    at = parent;
  }
}
