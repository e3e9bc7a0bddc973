import { failed, type Outcome, success } from "../core/outcome.ts";
import type { FileFailure, FilesPort } from "../ports/files.ts";

const encoder = new TextEncoder();
let temporaryCount = 0;

/** The file system, synchronously. */
export const systemFiles: FilesPort = {
  readBytes(path, bytesMax) {
    return attempt(path, () => {
      const stat = Deno.statSync(path);
      if (stat.isDirectory) return failed(failure("not_a_file", path, "it is a directory"));
      if (stat.size > bytesMax) {
        return failed(failure("too_large", path, `${stat.size} bytes, at most ${bytesMax}`));
      }
      const bytes = Deno.readFileSync(path);
      return bytes.length > bytesMax
        ? failed(failure("too_large", path, `${bytes.length} bytes, at most ${bytesMax}`))
        : success(bytes);
    });
  },
  readText(path, bytesMax) {
    const bytes = systemFiles.readBytes(path, bytesMax);
    return bytes.ok ? success(new TextDecoder().decode(bytes.value)) : bytes;
  },
  writeAtomic(path, content) {
    return attempt(path, () => {
      const temporary = `${path}.${Deno.pid}.${++temporaryCount}.tmp`;
      try {
        writeNew(temporary, content, true);
        Deno.renameSync(temporary, path);
      } catch (error) {
        try {
          Deno.removeSync(temporary);
        } catch { /* the first error is the one that matters */ }
        throw error;
      }
      return success(undefined);
    });
  },
  createNew(path, content) {
    return attempt(path, () => {
      writeNew(path, content, false);
      return success(undefined);
    });
  },
  openAppend(path) {
    return attempt(path, () => {
      const file = Deno.openSync(path, { append: true, create: true, mode: 0o600 });
      return success({
        append: (bytes: Uint8Array) =>
          attempt(path, () => {
            writeAll(file, bytes);
            return success(undefined);
          }),
        sync: () =>
          attempt(path, () => {
            file.syncDataSync();
            return success(undefined);
          }),
        close: () => file.close(),
      });
    });
  },
  openRead(path) {
    return attempt(path, () => {
      const file = Deno.openSync(path, { read: true });
      return success({
        readAt: (offset: number, buffer: Uint8Array) =>
          attempt(path, () => {
            file.seekSync(offset, Deno.SeekMode.Start);
            return success(file.readSync(buffer) ?? 0);
          }),
        close: () => file.close(),
      });
    });
  },
  truncate: (path, bytes) =>
    attempt(path, () => {
      Deno.truncateSync(path, bytes);
      return success(undefined);
    }),
  stat: (path) => attempt(path, () => success(describe(Deno.statSync(path)))),
  lstat: (path) => attempt(path, () => success(describe(Deno.lstatSync(path)))),
  realPath: (path) => attempt(path, () => success(Deno.realPathSync(path))),
  makeDirectory: (path) =>
    attempt(path, () => {
      Deno.mkdirSync(path, { recursive: true, mode: 0o700 });
      return success(undefined);
    }),
  list: (path) =>
    attempt(path, () => success([...Deno.readDirSync(path)].map((entry) => entry.name).sort())),
  remove: (path) =>
    attempt(path, () => {
      Deno.removeSync(path, { recursive: true });
      return success(undefined);
    }),
};

function writeNew(path: string, content: string | Uint8Array, sync: boolean): void {
  const file = Deno.openSync(path, { write: true, createNew: true, mode: 0o600 });
  try {
    writeAll(file, typeof content === "string" ? encoder.encode(content) : content);
    if (sync) file.syncDataSync();
  } finally {
    file.close();
  }
}

function writeAll(file: Deno.FsFile, bytes: Uint8Array): void {
  let written = 0;
  while (written < bytes.length) written += file.writeSync(bytes.subarray(written));
}

function describe(info: Deno.FileInfo) {
  const kind = info.isSymlink
    ? "symlink"
    : info.isFile
    ? "file"
    : info.isDirectory
    ? "directory"
    : "other";
  return {
    kind: kind as "symlink" | "file" | "directory" | "other",
    bytes: info.size,
    modifiedMs: info.mtime?.getTime() ?? 0,
    mode: (info.mode ?? 0) & 0o7777,
    uid: info.uid,
  };
}

function failure(kind: FileFailure["class"], path: string, message: string): FileFailure {
  return { class: kind, message: `${path}: ${message}` };
}

function attempt<Value>(
  path: string,
  act: () => Outcome<Value, FileFailure>,
): Outcome<Value, FileFailure> {
  try {
    return act();
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    if (error instanceof Deno.errors.NotFound) return failed(failure("not_found", path, message));
    if (error instanceof Deno.errors.AlreadyExists) return failed(failure("exists", path, message));
    if (error instanceof Deno.errors.NotCapable || error instanceof Deno.errors.PermissionDenied) {
      return failed(failure("denied", path, message));
    }
    if (/os error (28|122)\b|No space left|quota exceeded/i.test(message)) {
      return failed(failure("full", path, message));
    }
    return failed(failure("other", path, message));
  }
}
