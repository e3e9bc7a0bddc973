/**
 * Which paths the fs server may touch. Deno's permission compares path texts and follows symbolic
 * links out of a grant, so every path is resolved here first: the real path must lie in the real
 * path of a granted root, before opening, and again after it.
 *
 * The race that is left (see permissions.md). Between the check and the opening, somebody else who
 * may write inside the grant can put a link in the place of a directory. For reading and writing
 * that is found afterwards: what was opened must be the very file (device and inode) that the
 * checked real path names, or nothing of it is shown or written. What can still happen is that a
 * directory's names are listed, that opening a file outside has its side effect, and that an empty
 * file with a random name is made outside. On systems without inodes the comparison is left out.
 */

import type { FileFailure } from "../ports/files.ts";
import type { TreeEntry, TreeFile, TreeKind, TreePort } from "../ports/tree.ts";
import type { Permission } from "../wire/payload.ts";
import { DIRECTORIES_MADE_MAX, PATH_CHARS_MAX } from "../core/tool_limits.ts";
import { below, isWithin, join, parentOf, resolvePath } from "./paths.ts";
import { quote, ToolError } from "./tool.ts";

/** What is to be done with a path; names the flag that grants it. */
export type Access = "read" | "write";

/** A path that exists inside the grant. */
export interface GrantedPath {
  /** As the caller means it: absolute, links not followed. */
  shown: string;
  /** The same file with every link resolved, spelled below the root as it was granted. */
  path: string;
  entry: TreeEntry;
}

interface Root {
  granted: string;
  /** Real path; null until the root exists. */
  real: string | null;
}

/** The grant of one server. */
export class PathGrant {
  readonly workingDirectory: string;
  readonly #tree: TreePort;
  readonly #roots: Record<Access, Root[] | true>;

  constructor(
    tree: TreePort,
    permissions: { read: Permission; write: Permission },
    workingDirectory: string,
  ) {
    this.#tree = tree;
    this.workingDirectory = resolvePath(workingDirectory, ".");
    this.#roots = {
      read: this.#makeRoots(permissions.read),
      write: this.#makeRoots(permissions.write),
    };
  }

  /** The granted roots as a person wrote them, made absolute. */
  describe(access: Access): string {
    const roots = this.#roots[access];
    if (roots === true) return "everything";
    return roots.length === 0 ? "nothing" : roots.map((root) => root.granted).join(", ");
  }

  /** The path that the caller means, absolute; nothing is looked up. */
  absolute(requested: string, access: Access): string {
    if (requested.length > PATH_CHARS_MAX) {
      throw new ToolError(
        `Cannot ${access} a path of ${requested.length} characters; at most ${PATH_CHARS_MAX} are taken.`,
      );
    }
    if (requested.includes("\0")) {
      throw new ToolError(`Cannot ${access} ${quote(requested)}: a path has no NUL character.`);
    }
    if (requested.trim() === "") throw new ToolError(`Cannot ${access} "": the path is empty.`);
    return resolvePath(this.workingDirectory, requested);
  }

  /** Whether a checked real path may also be used for `access`. */
  covers(path: string, access: Access): boolean {
    return this.#containingRoot(path, access) !== undefined;
  }

  /** Finds what exists at a path; throws a {@link ToolError} where it is missing or not granted. */
  locate(requested: string, access: Access): GrantedPath {
    const found = this.find(requested, access);
    if (found === null) {
      const shown = this.absolute(requested, access);
      throw new ToolError(
        `Cannot ${access} ${shown}: there is no such file or directory. ` +
          "Use list or glob to see what is there.",
      );
    }
    return found;
  }

  /** As {@link locate}, with null where nothing is at the path. */
  find(requested: string, access: Access): GrantedPath | null {
    const shown = this.absolute(requested, access);
    const spelled = this.#spell(shown, access);
    const real = this.#tree.realPath(spelled);
    if (!real.ok) {
      if (real.failure.class !== "not_found") throw this.problem(access, shown, real.failure);
      const link = this.#tree.inspect(spelled);
      if (link.ok) {
        throw new ToolError(
          `Cannot ${access} ${shown}: it is a symbolic link to something that is missing.`,
        );
      }
      return null;
    }
    const path = this.#spellReal(real.value, shown, access);
    const entry = this.#tree.inspect(path);
    if (!entry.ok) {
      if (entry.failure.class === "not_found") return null;
      throw this.problem(access, shown, entry.failure);
    }
    return { shown, path, entry: entry.value };
  }

  /** Opens a regular file for reading, proved to be the one that the grant covers. */
  async open(target: GrantedPath): Promise<TreeFile> {
    requireFile(target, "read");
    const opened = await this.#tree.openRead(target.path);
    if (!opened.ok) throw this.problem("read", target.shown, opened.failure);
    const file = opened.value;
    try {
      this.verify(file, target.path, target.shown, "read");
    } catch (error) {
      file.close();
      throw error;
    }
    return file;
  }

  /** Proves that an open file is what its path names, inside the grant. */
  verify(file: TreeFile, path: string, shown: string, access: Access): void {
    const held = file.entry();
    if (!held.ok) throw this.problem(access, shown, held.failure);
    if (held.value.kind !== "file") {
      throw new ToolError(`Cannot ${access} ${shown}: it is ${KIND_NAMES[held.value.kind]}.`);
    }
    const real = this.#tree.realPath(path);
    const named = real.ok && this.#containingRealRoot(real.value, access) !== undefined
      ? this.#tree.inspect(this.#spellReal(real.value, shown, access))
      : undefined;
    if (!named?.ok || named.value.identity !== held.value.identity) {
      throw new ToolError(`Cannot ${access} ${shown}: it was replaced while it was opened.`);
    }
  }

  /**
   * The directory that a new file at `requested` goes into, made if it is missing, and the file's
   * path in it. Directories are made only below the grant.
   */
  prepareParent(requested: string): { shown: string; path: string; parent: string } {
    const shown = this.absolute(requested, "write");
    const spelled = this.#spell(shown, "write");
    const root = this.#containingRoot(spelled, "write");
    if (root !== undefined && spelled === root.granted) {
      // The grant is this one file: what is above it is not granted, but has to be there.
      return { shown, path: spelled, parent: parentOf(spelled) };
    }
    if (root !== undefined) this.#makeRoot(root, shown);
    const missing: string[] = [];
    let at = parentOf(spelled);
    for (;;) {
      const real = this.#tree.realPath(at);
      if (real.ok) {
        at = this.#spellReal(real.value, shown, "write");
        break;
      }
      if (real.failure.class !== "not_found" || this.#tree.inspect(at).ok) {
        throw this.problem("write", shown, real.failure);
      }
      // Each directory is made and looked at on its own, which holds the server the longer the deeper.
      if (missing.length === DIRECTORIES_MADE_MAX) {
        throw new ToolError(
          `Cannot write ${shown}: over ${DIRECTORIES_MADE_MAX} directories above it are missing, ` +
            "more than are made. Use a shorter path.",
        );
      }
      missing.unshift(at.slice(parentOf(at).length).replace(/^\//, ""));
      at = parentOf(at);
    }
    for (const name of missing) {
      at = join(at, name);
      const made = this.#tree.makeDirectory(at, false);
      if (!made.ok && made.failure.class !== "exists") {
        throw this.problem("write", shown, made.failure);
      }
      const real = this.#tree.realPath(at);
      if (!real.ok) throw this.problem("write", shown, real.failure);
      at = this.#spellReal(real.value, shown, "write");
    }
    const entry = this.#tree.inspect(at);
    if (!entry.ok) throw this.problem("write", shown, entry.failure);
    if (entry.value.kind !== "directory") {
      throw new ToolError(
        `Cannot write ${shown}: ${at} is ${KIND_NAMES[entry.value.kind]}, not a directory.`,
      );
    }
    return {
      shown,
      path: join(at, spelled.slice(parentOf(spelled).length).replace(/^\//, "")),
      parent: at,
    };
  }

  /** A failure of the system, in words for the caller. */
  problem(access: Access, shown: string, failure: FileFailure): ToolError {
    switch (failure.class) {
      case "not_found":
        return new ToolError(`Cannot ${access} ${shown}: there is no such file or directory.`);
      case "denied":
        return new ToolError(
          `Cannot ${access} ${shown}: permission denied. It may be out of this server's grant (` +
            `${access}: ${this.describe(access)}) or closed to its user; choose another path.`,
        );
      case "full":
        return new ToolError(`Cannot ${access} ${shown}: no space is left on the device.`);
      case "exists":
        return new ToolError(`Cannot ${access} ${shown}: it exists already.`);
      case "not_a_file":
        return new ToolError(
          `Cannot ${access} ${shown}: it, or what it is in, is of another kind.`,
        );
      default:
        return new ToolError(
          /os error (20|40)\b|too many levels/i.test(failure.message)
            ? `Cannot ${access} ${shown}: a part of the path is no directory, or a link to itself.`
            : /os error 36\b|name too long/i.test(failure.message)
            ? `Cannot ${access} ${shown}: the name is too long for the file system.`
            : `Cannot ${access} ${shown}: the system refuses it (${systemWords(failure.message)}).`,
        );
    }
  }

  #makeRoots(permission: Permission): Root[] | true {
    if (typeof permission === "boolean") return permission ? true : [];
    return permission.map((path) => {
      const granted = resolvePath(this.workingDirectory, path);
      const real = this.#tree.realPath(granted);
      return { granted, real: real.ok ? resolvePath("/", real.value) : null };
    });
  }

  /** The real path of a root that has come to exist since; pinned at first sight. */
  #realOf(root: Root): string | null {
    if (root.real === null) {
      const real = this.#tree.realPath(root.granted);
      if (real.ok) root.real = resolvePath("/", real.value);
    }
    return root.real;
  }

  #makeRoot(root: Root, shown: string): void {
    if (this.#realOf(root) !== null) return;
    const made = this.#tree.makeDirectory(root.granted, true);
    if (!made.ok) throw this.problem("write", shown, made.failure);
    if (this.#realOf(root) === null) {
      throw new ToolError(`Cannot write ${shown}: ${root.granted} cannot be made.`);
    }
  }

  #containingRoot(path: string, access: Access): Root | undefined {
    const roots = this.#roots[access];
    if (roots === true) return { granted: "/", real: "/" };
    return roots.find((root) => isWithin(path, root.granted));
  }

  #containingRealRoot(real: string, access: Access): Root | undefined {
    const roots = this.#roots[access];
    if (roots === true) return { granted: "/", real: "/" };
    const clean = resolvePath("/", real);
    return roots.find((root) => {
      const at = this.#realOf(root);
      return at !== null && isWithin(clean, at);
    });
  }

  /** The path below a root as granted: Deno knows the grant by that spelling only. */
  #spell(absolute: string, access: Access): string {
    if (this.#roots[access] === true || this.#containingRoot(absolute, access)) return absolute;
    const root = this.#containingRealRoot(absolute, access);
    if (root !== undefined) return join(root.granted, below(absolute, root.real!));
    throw this.#outside(absolute, access);
  }

  #spellReal(real: string, shown: string, access: Access): string {
    const clean = resolvePath("/", real);
    if (this.#roots[access] === true) return clean;
    const root = this.#containingRealRoot(clean, access);
    if (root === undefined) {
      throw new ToolError(
        `Cannot ${access} ${shown}: a symbolic link in it leads out of what is granted (` +
          `${this.describe(access)}). Use a path in there.`,
      );
    }
    return join(root.granted, below(clean, root.real!));
  }

  #outside(absolute: string, access: Access): ToolError {
    const roots = this.#roots[access];
    if (roots !== true && roots.length === 0) {
      return new ToolError(
        `Cannot ${access} ${absolute}: this server was started without --allow-${access}.`,
      );
    }
    return new ToolError(
      `Cannot ${access} ${absolute}: it is outside of what is granted (${
        this.describe(access)
      }). ` +
        "Use a path in there.",
    );
  }
}

/** What the kinds are called in a sentence. */
export const KIND_NAMES: Readonly<Record<TreeKind, string>> = {
  file: "a file",
  directory: "a directory",
  symlink: "a symbolic link",
  fifo: "a fifo (named pipe)",
  socket: "a socket",
  device: "a device",
};

/** Refuses what is no regular file, before opening it could block or have an effect. */
export function requireFile(target: GrantedPath, access: Access): void {
  if (target.entry.kind === "file") return;
  throw new ToolError(
    `Cannot ${access} ${target.shown}: it is ${
      KIND_NAMES[target.entry.kind]
    }, not a regular file.` +
      (target.entry.kind === "directory" ? " Use list to see what is in it." : ""),
  );
}

/** Refuses what is no directory. */
export function requireDirectory(target: GrantedPath): void {
  if (target.entry.kind === "directory") return;
  throw new ToolError(
    `Cannot list ${target.shown}: it is ${KIND_NAMES[target.entry.kind]}, not a directory.` +
      (target.entry.kind === "file" ? " Use read to see what is in it." : ""),
  );
}

/** The system's own words, without the path and the runtime's hints about flags. */
function systemWords(message: string): string {
  const at = message.indexOf(": ");
  return message.slice(at === -1 ? 0 : at + 2).split(/[,:] (?:run again|open|stat|readdir)\b/)[0]!
    .slice(0, 200);
}
