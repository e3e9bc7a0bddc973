/** Files as a source of changes: `file:GLOB`, watched from the longest directory without wildcard. */

import { FILE_WATCH_RETRY_MS, RESOURCES_MAX } from "../core/limits.ts";
import { globToRegExp } from "../core/glob.ts";
import { failed, type Outcome, success } from "../core/outcome.ts";
import type { Cancel, ClockPort } from "../ports/clock.ts";
import type { FileWatchPort } from "../ports/file_watch.ts";
import type { FilesPort } from "../ports/files.ts";

/** The server's name that changes of files carry. */
export const FILE_SERVER = "file";

/** A glob over files, with the directory that must be watched for it. */
export interface FileGlob {
  /** Absolute. */
  glob: string;
  directory: string;
  recursive: boolean;
  pattern: RegExp;
}

/** A glob as written, relative ones against `workingDirectory`. */
export function parseFileGlob(text: string, workingDirectory: string): FileGlob {
  const absolute = text.startsWith("/") || /^[A-Za-z]:[\\/]/.test(text);
  const relative = text.replace(/^(\.\/)+/, "");
  const glob = absolute ? text : `${workingDirectory.replace(/\/$/, "")}/${relative}`;
  const wildcard = glob.search(/[*?]/);
  const literal = wildcard === -1 ? glob : glob.slice(0, wildcard);
  const slash = literal.lastIndexOf("/");
  return {
    glob,
    directory: slash <= 0 ? "/" : literal.slice(0, slash),
    recursive: wildcard !== -1 && glob.slice(wildcard).includes("/") || glob.includes("**"),
    pattern: globToRegExp(glob),
  };
}

/** A route's match with a relative file glob made absolute; others as they are. */
export function absoluteMatch(match: string, workingDirectory: string): string {
  const prefix = `${FILE_SERVER}:`;
  if (!match.startsWith(prefix)) return match;
  return prefix + parseFileGlob(match.slice(prefix.length), workingDirectory).glob;
}

/** Files that a glob matches now, at most RESOURCES_MAX; no links are followed. */
export function listMatches(files: FilesPort, glob: FileGlob): string[] {
  const out: string[] = [];
  const directories = [glob.directory];
  for (let looked = 0; directories.length > 0 && looked < RESOURCES_MAX; looked++) {
    const directory = directories.pop()!;
    const names = files.list(directory);
    if (!names.ok) continue;
    for (const name of names.value) {
      const path = `${directory === "/" ? "" : directory}/${name}`;
      const stat = files.lstat(path);
      if (!stat.ok) continue;
      if (stat.value.kind === "directory" && glob.recursive) directories.push(path);
      else if (stat.value.kind === "file" && glob.pattern.test(path)) out.push(path);
      if (out.length >= RESOURCES_MAX) return out;
    }
  }
  return out;
}

/** What is told of watched files. */
export interface FileEvents {
  /** The absolute path of a file that a glob matches; `possibly`: the system may have missed it. */
  changed(path: string, possibly: boolean): void;
  /** A glob's directory is gone and it is not watched for now, or is watched again. */
  held(glob: string, now: boolean): void;
}

/**
 * Watches globs. A directory that must be watched and is not there fails; one that goes away later is
 * looked for until it is back, and then whatever it holds has possibly changed.
 */
export function watchFiles(
  ports: { files: FilesPort; fileWatch: FileWatchPort; clock: ClockPort },
  globs: readonly FileGlob[],
  events: FileEvents,
): Outcome<Cancel, string> {
  const cancels = new Map<FileGlob, Cancel>();
  const stop = () => {
    for (const cancel of cancels.values()) cancel();
    cancels.clear();
  };
  const tellAll = (glob: FileGlob) => {
    for (const path of listMatches(ports.files, glob)) events.changed(path, true);
  };
  const watch = (glob: FileGlob): Outcome<Cancel, string> =>
    watchGlob(ports, glob, {
      changed: (path) => events.changed(path, false),
      missed: () => tellAll(glob),
      gone: () => {
        events.held(glob.glob, false);
        lookFor(glob);
      },
    });
  const lookFor = (glob: FileGlob): void => {
    const look = ports.clock.after(FILE_WATCH_RETRY_MS, () => {
      const watched = watch(glob);
      if (!watched.ok) return lookFor(glob);
      cancels.set(glob, watched.value);
      events.held(glob.glob, true);
      tellAll(glob);
    });
    cancels.set(glob, look);
  };
  for (const glob of globs) {
    const watched = watch(glob);
    if (!watched.ok) {
      stop();
      return watched;
    }
    cancels.set(glob, watched.value);
  }
  return success(stop);
}

function watchGlob(
  ports: { files: FilesPort; fileWatch: FileWatchPort },
  glob: FileGlob,
  events: { changed(path: string): void; missed(): void; gone(): void },
): Outcome<Cancel, string> {
  const real = ports.files.realPath(glob.directory);
  if (!real.ok) return failed(`Cannot watch ${glob.glob}: ${real.failure.message}`);
  const watched = ports.fileWatch.watch(real.value, glob.recursive, {
    ...events,
    // The system names what it watches by its real path; the operator may have named a link.
    changed: (path) => {
      const named = path.startsWith(real.value)
        ? glob.directory + path.slice(real.value.length)
        : path;
      if (glob.pattern.test(named)) events.changed(named);
    },
  });
  return watched.ok ? watched : failed(`Cannot watch ${glob.glob}: ${watched.failure.message}`);
}
