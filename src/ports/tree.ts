import type { Outcome } from "../core/outcome.ts";
import type { FileFailure } from "./files.ts";

/** What a path names. */
export type TreeKind = "file" | "directory" | "symlink" | "fifo" | "socket" | "device";

/** What is at a path, or open. */
export interface TreeEntry {
  kind: TreeKind;
  bytes: number;
  modifiedMs: number;
  /** Permission bits, 0 where the system has none. */
  mode: number;
  /** Device and inode: the same for the same file. Null where the system has none. */
  identity: string | null;
}

/** An open file. Contract: `entry` tells of what was opened, whatever its path names by now. */
export interface TreeFile {
  entry(): Outcome<TreeEntry, FileFailure>;
  /** Bytes read into `buffer` from `offset`; 0 at the end. */
  readAt(offset: number, buffer: Uint8Array): Outcome<number, FileFailure>;
  /** All bytes, after those written before. */
  write(bytes: Uint8Array): Outcome<void, FileFailure>;
  /** Drops what it holds. */
  truncate(): Outcome<void, FileFailure>;
  /** Until the bytes are on the medium. */
  sync(): Outcome<void, FileFailure>;
  close(): void;
}

/**
 * A tree of files of which only a part is granted. Contract: nothing throws for what the world does;
 * opening answers within a bound also where the system blocks, as on a fifo.
 */
export interface TreePort {
  /** Follows no link. */
  inspect(path: string): Outcome<TreeEntry, FileFailure>;
  realPath(path: string): Outcome<string, FileFailure>;
  /** Names and kinds in a directory, unsorted, at most `namesMax` of them. */
  names(
    path: string,
    namesMax: number,
  ): Outcome<{ names: { name: string; kind: TreeKind | "other" }[]; more: boolean }, FileFailure>;
  openRead(path: string): Promise<Outcome<TreeFile, FileFailure>>;
  /** Opens what exists for writing, keeping what it holds. */
  openWrite(path: string): Promise<Outcome<TreeFile, FileFailure>>;
  /** Makes a file that must not exist, following no link; its mode is left to the system's mask. */
  createNew(path: string): Outcome<TreeFile, FileFailure>;
  /** Permission bits; nothing where the system has none. */
  setMode(path: string, mode: number): Outcome<void, FileFailure>;
  rename(from: string, to: string): Outcome<void, FileFailure>;
  remove(path: string): Outcome<void, FileFailure>;
  /** Makes one directory, or with `parents` also those above it. */
  makeDirectory(path: string, parents: boolean): Outcome<void, FileFailure>;
}
