import { failed, type Outcome, success } from "../core/outcome.ts";
import type { FileFailure, FilesPort } from "../ports/files.ts";

const encoder = new TextEncoder();
/** Room for what a file that does not say its size begins with. */
const READ_BYTES_MIN = 4_096;
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
      const bytes = readBounded(path, bytesMax, stat.size);
      return bytes === null
        ? failed(failure("too_large", path, `over ${bytesMax} bytes`))
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
        removeQuietly(temporary);
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

/** All of a file; null if that is over `bytesMax`: a device, or a pipe, does not say its size. */
function readBounded(path: string, bytesMax: number, bytesExpected: number): Uint8Array | null {
  const file = Deno.openSync(path, { read: true });
  try {
    let buffer = new Uint8Array(Math.min(bytesMax, Math.max(bytesExpected, READ_BYTES_MIN)) + 1);
    for (let filled = 0;;) {
      const read = file.readSync(buffer.subarray(filled));
      if (read === null) return buffer.subarray(0, filled);
      filled += read;
      if (filled > bytesMax) return null;
      if (filled < buffer.length) continue;
      const larger = new Uint8Array(Math.min(bytesMax + 1, filled * 2));
      larger.set(buffer);
      buffer = larger;
    }
  } finally {
    file.close();
  }
}

/** Makes a file with this content, or none. */
function writeNew(path: string, content: string | Uint8Array, sync: boolean): void {
  const file = Deno.openSync(path, { write: true, createNew: true, mode: 0o600 });
  let written = false;
  try {
    writeAll(file, typeof content === "string" ? encoder.encode(content) : content);
    if (sync) file.syncDataSync();
    written = true;
  } finally {
    file.close();
    if (!written) removeQuietly(path);
  }
}

function removeQuietly(path: string): void {
  try {
    Deno.removeSync(path);
  } catch { /* the first error is the one that matters */ }
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
