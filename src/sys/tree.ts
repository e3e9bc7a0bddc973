import { OPEN_TIMEOUT_MS } from "../core/tool_limits.ts";
import { failed, type Outcome, success } from "../core/outcome.ts";
import type { FileFailure } from "../ports/files.ts";
import type { TreeEntry, TreeFile, TreeKind, TreePort } from "../ports/tree.ts";

/** The file system as the fs tool server sees it. */
export const systemTree: TreePort = {
  inspect: (path) => attempt(path, () => describe(Deno.lstatSync(path))),
  realPath: (path) => attempt(path, () => Deno.realPathSync(path)),
  names: (path, namesMax) =>
    attempt(path, () => {
      const names: { name: string; kind: TreeKind | "other" }[] = [];
      for (const entry of Deno.readDirSync(path)) {
        if (names.length === namesMax) return { names, more: true };
        const kind = entry.isFile
          ? "file"
          : entry.isDirectory
          ? "directory"
          : entry.isSymlink
          ? "symlink"
          : "other";
        names.push({ name: entry.name, kind });
      }
      return { names, more: false };
    }),
  openRead: (path) => open(path, { read: true }),
  openWrite: (path) => open(path, { write: true }),
  createNew: (path) =>
    attempt(path, () => wrap(Deno.openSync(path, { write: true, createNew: true }), path)),
  setMode: (path, mode) =>
    attempt(path, () => {
      if (Deno.build.os !== "windows") Deno.chmodSync(path, mode);
    }),
  rename: (from, to) => attempt(to, () => Deno.renameSync(from, to)),
  remove: (path) => attempt(path, () => Deno.removeSync(path)),
  makeDirectory: (path, parents) =>
    attempt(path, () => Deno.mkdirSync(path, { recursive: parents })),
};

/** Off this thread: opening what turned into a fifo since it was inspected blocks. */
async function open(
  path: string,
  options: Deno.OpenOptions,
): Promise<Outcome<TreeFile, FileFailure>> {
  const opening = Deno.open(path, options).then(
    (file): Outcome<TreeFile, FileFailure> => success(wrap(file, path)),
    (error): Outcome<TreeFile, FileFailure> => failed(classify(path, error)),
  );
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<"late">((resolve) => {
    timer = setTimeout(() => resolve("late"), OPEN_TIMEOUT_MS);
  });
  const first = await Promise.race([opening, late]);
  clearTimeout(timer);
  if (first !== "late") return first;
  opening.then((outcome) => outcome.ok && outcome.value.close());
  return failed({ class: "not_a_file", message: `${path}: opening it does not end` });
}

function wrap(file: Deno.FsFile, path: string): TreeFile {
  return {
    entry: () => attempt(path, () => describe(file.statSync())),
    readAt: (offset, buffer) =>
      attempt(path, () => {
        file.seekSync(offset, Deno.SeekMode.Start);
        return file.readSync(buffer) ?? 0;
      }),
    write: (bytes) =>
      attempt(path, () => {
        let written = 0;
        while (written < bytes.length) written += file.writeSync(bytes.subarray(written));
      }),
    truncate: () =>
      attempt(path, () => {
        file.truncateSync(0);
        file.seekSync(0, Deno.SeekMode.Start);
      }),
    sync: () => attempt(path, () => file.syncDataSync()),
    close: () => file.close(),
  };
}

function describe(info: Deno.FileInfo): TreeEntry {
  return {
    kind: kindOf(info),
    bytes: info.size,
    modifiedMs: info.mtime?.getTime() ?? 0,
    mode: (info.mode ?? 0) & 0o7777,
    identity: info.ino === null ? null : `${info.dev}:${info.ino}`,
  };
}

function kindOf(info: Deno.FileInfo): TreeKind {
  if (info.isSymlink) return "symlink";
  if (info.isDirectory) return "directory";
  if (info.isFile) return "file";
  if (info.isFifo) return "fifo";
  return info.isSocket ? "socket" : "device";
}

function attempt<Value>(path: string, act: () => Value): Outcome<Value, FileFailure> {
  try {
    return success(act());
  } catch (error) {
    return failed(classify(path, error));
  }
}

function classify(path: string, error: unknown): FileFailure {
  const text = error instanceof Error ? error.message : String(error);
  const message = `${path}: ${text}`;
  if (error instanceof Deno.errors.NotFound) return { class: "not_found", message };
  if (error instanceof Deno.errors.AlreadyExists) return { class: "exists", message };
  if (error instanceof Deno.errors.NotCapable || error instanceof Deno.errors.PermissionDenied) {
    return { class: "denied", message };
  }
  if (error instanceof Deno.errors.NotADirectory || error instanceof Deno.errors.IsADirectory) {
    return { class: "not_a_file", message };
  }
  if (/os error (28|122)\b|No space left|quota exceeded/i.test(text)) {
    return { class: "full", message };
  }
  return { class: "other", message };
}
