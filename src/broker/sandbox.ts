import { BWRAP, READ_ONLY_SYSTEM } from "../core/bwrap.ts";

/** What `sandbox: bwrap` puts around a command: a read-only system, a private /tmp. */
export interface BwrapGrant {
  /** Absolute paths that stay writable. */
  write: readonly string[];
  network: boolean;
}

/**
 * The words of a command inside bwrap: everything is read-only but the paths granted, /tmp is its
 * own, other processes are not seen, and all of it dies with whoever started it.
 */
export function wrapInBwrap(command: readonly string[], grant: BwrapGrant): string[] {
  const words = [BWRAP, ...READ_ONLY_SYSTEM, "--tmpfs", "/tmp"];
  for (const path of grant.write) words.push("--bind", path, path);
  words.push("--unshare-all");
  if (grant.network) words.push("--share-net");
  words.push("--die-with-parent", "--");
  return [...words, ...command];
}
