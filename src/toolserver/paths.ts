/** Paths as texts: always with `/`, on Windows too, where the system takes both. */

/** Whether a path starts at a root: `/`, `C:/` or `//server`. */
export function isAbsolute(path: string): boolean {
  return path.startsWith("/") || /^[A-Za-z]:[\\/]/.test(path) || path.startsWith("\\\\");
}

/**
 * The absolute form of `path` seen from the absolute directory `base`: `.`, `..` and doubled slashes
 * are resolved as text, before any link is followed.
 */
export function resolvePath(base: string, path: string): string {
  const windows = /^[A-Za-z]:[\\/]|^\\\\/.test(base) || /^[A-Za-z]:[\\/]|^\\\\/.test(path);
  const clean = (text: string) => windows ? text.replaceAll("\\", "/") : text;
  const whole = isAbsolute(path) ? clean(path) : `${clean(base)}/${clean(path)}`;
  const root = windows ? /^([A-Za-z]:\/|\/\/|\/)/.exec(whole)?.[0] ?? "/" : "/";
  const parts: string[] = [];
  for (const part of whole.slice(root.length).split("/")) {
    if (part === "" || part === ".") continue;
    if (part === "..") parts.pop();
    else parts.push(part);
  }
  return root + parts.join("/");
}

/** Whether an absolute, resolved path is `root` or below it. */
export function isWithin(path: string, root: string): boolean {
  return path === root || path.startsWith(root.endsWith("/") ? root : `${root}/`);
}

/** What is left of `path` below `root`, without a leading slash; `path` is within `root`. */
export function below(path: string, root: string): string {
  return path === root ? "" : path.slice(root.endsWith("/") ? root.length : root.length + 1);
}

/** A name below a directory. */
export function join(directory: string, name: string): string {
  if (name === "") return directory;
  return directory.endsWith("/") ? directory + name : `${directory}/${name}`;
}

/** The last part of an absolute path; a root has none. */
export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** The directory above an absolute path; a root is its own. */
export function parentOf(path: string): string {
  const at = path.lastIndexOf("/");
  if (at <= 0) return "/";
  return /^[A-Za-z]:$/.test(path.slice(0, at)) ? path.slice(0, at + 1) : path.slice(0, at);
}
