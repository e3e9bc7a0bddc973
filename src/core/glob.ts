/** Globs over names: `*` any run of characters but `/`, `**` any run, `?` one character. */

/** Compiles a glob; everything else in it is literal. */
export function globToRegExp(glob: string): RegExp {
  let source = "";
  for (let i = 0; i < glob.length; i++) {
    const c = glob[i]!;
    if (c === "*") {
      if (glob[i + 1] === "*") {
        source += ".*";
        i++;
      } else source += "[^/]*";
    } else if (c === "?") source += "[^/]";
    else source += c.replace(/[\\^$.|+()[\]{}]/g, "\\$&");
  }
  return new RegExp(`^${source}$`, "su");
}

/**
 * Whether a tool name `server/tool` is granted by a list of globs: `*` alone means every tool,
 * `!GLOB` removes. Order does not matter: a removal wins.
 */
export function grantsTool(globs: readonly string[], name: string): boolean {
  let granted = false;
  for (const glob of globs) {
    if (glob.startsWith("!")) {
      if (matchesTool(glob.slice(1), name)) return false;
    } else if (matchesTool(glob, name)) granted = true;
  }
  return granted;
}

/** Whether one `server/tool` glob matches; a glob without `/` matches a whole server or `*` all. */
export function matchesTool(glob: string, name: string): boolean {
  if (glob === "*" || glob === "**") return true;
  return globToRegExp(glob.includes("/") ? glob : `${glob}/*`).test(name);
}
