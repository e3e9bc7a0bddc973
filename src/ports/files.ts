import type { Outcome } from "../core/outcome.ts";

/** Why a file operation failed; `message` begins with the path. */
export interface FileFailure {
  class:
    | "not_found"
    | "denied"
    | "exists"
    | "full"
    | "not_a_file"
    | "too_large"
    | "not_text"
    | "other";
  message: string;
}

/** What is known of a path. */
export interface FileStat {
  kind: "file" | "directory" | "symlink" | "other";
  bytes: number;
  modifiedMs: number;
  /** Permission bits, 0 where the system has none. */
  mode: number;
  /** Owner, null where the system has none. */
  uid: number | null;
}

/** An open file that only grows. Contract: `append` writes all bytes or fails. */
export interface AppendHandle {
  append(bytes: Uint8Array): Outcome<void, FileFailure>;
  /** Until the bytes are on the medium (fdatasync). */
  sync(): Outcome<void, FileFailure>;
  close(): void;
}

/** An open file for reading at offsets. */
export interface ReadHandle {
  /** Bytes read into `buffer` from `offset`; 0 at the end. */
  readAt(offset: number, buffer: Uint8Array): Outcome<number, FileFailure>;
  close(): void;
}

/**
 * Files. Contract: synchronous, since records must be on disk before effects; nothing throws for
 * what the world does; files are made with mode 0600 and directories with 0700.
 */
export interface FilesPort {
  readBytes(path: string, bytesMax: number): Outcome<Uint8Array, FileFailure>;
  /** Bytes that are no UTF-8 come as U+FFFD. */
  readText(path: string, bytesMax: number): Outcome<string, FileFailure>;
  /** Whole or not at all: a temporary file beside it, synced, then renamed. */
  writeAtomic(path: string, content: string | Uint8Array): Outcome<void, FileFailure>;
  /** Whole or not at all; fails with `exists` if the file exists. */
  createNew(path: string, content: string | Uint8Array): Outcome<void, FileFailure>;
  openAppend(path: string): Outcome<AppendHandle, FileFailure>;
  openRead(path: string): Outcome<ReadHandle, FileFailure>;
  truncate(path: string, bytes: number): Outcome<void, FileFailure>;
  stat(path: string): Outcome<FileStat, FileFailure>;
  /** Follows no link. */
  lstat(path: string): Outcome<FileStat, FileFailure>;
  realPath(path: string): Outcome<string, FileFailure>;
  makeDirectory(path: string): Outcome<void, FileFailure>;
  /** Names in a directory, sorted. */
  list(path: string): Outcome<string[], FileFailure>;
  remove(path: string): Outcome<void, FileFailure>;
}
