/**
 * Reading a record, line by line and in constant memory. Every line's number, version and link to
 * the line before are checked; what cannot be trusted is named and never handed out.
 */

import { Fnv64 } from "../core/hash.ts";
import { isObject } from "../core/json.ts";
import { RECORD_LINE_BYTES_MAX } from "../core/limits.ts";
import type { FilesPort, ReadHandle } from "../ports/files.ts";
import { CHAIN_START, RECORD_VERSION, type RecordLine } from "../wire/record.ts";

const CHUNK_BYTES = 256 * 1024;

/** What is wrong with a record, and at which line (counts from 1; 0 for the file as a whole). */
export interface RecordFault {
  line: number;
  kind:
    | "unreadable"
    | "broken_json"
    | "broken_chain"
    | "gap"
    /** Written by a later program. */
    | "newer_version"
    /** Older than anything this program can read. */
    | "unknown_version";
  detail: string;
}

/** One thing found while reading. A `fault` is the last item; a `torn` tail is too. */
export type RecordItem =
  | {
    kind: "line";
    line: RecordLine;
    /** Where the line starts, and its bytes without the line feed. */
    offset: number;
    bytes: number;
    /** FNV-1a/64 of its bytes. */
    hash: string;
  }
  /** A last line without its line feed: its write was cut off, so its effect never began. */
  | { kind: "torn"; line: number; offset: number; bytes: number }
  | { kind: "fault"; fault: RecordFault };

/** A place between two lines, to go on reading from. */
export interface RecordCursor {
  offset: number;
  /** Number of the last line before it. */
  seq: number;
  /** Hash of that line. */
  hash: string;
}

/** Before the first line. */
export const RECORD_START: RecordCursor = { offset: 0, seq: 0, hash: CHAIN_START };

/** The place behind a line. */
export function cursorAfter(item: Extract<RecordItem, { kind: "line" }>): RecordCursor {
  return { offset: item.offset + item.bytes + 1, seq: item.line.seq, hash: item.hash };
}

/** Whether a record is not damaged but in a format that this program does not read. */
export function isForeignVersion(fault: RecordFault): boolean {
  return fault.kind === "newer_version" || fault.kind === "unknown_version";
}

/** Why nothing can be done with such a record, in one sentence. */
export function refusal(what: string, place: { id: string }, fault: RecordFault): string {
  return `Cannot ${what} run ${place.id}: ${describeFault(fault)}`;
}

/** One sentence on a fault, for people. */
export function describeFault(fault: RecordFault): string {
  return fault.line === 0 ? fault.detail : `line ${fault.line}: ${fault.detail}`;
}

/**
 * The lines of a record from a place on. A line is handed out only when the next one confirms its
 * hash, or when it is the last.
 */
export function* readRecord(
  files: FilesPort,
  path: string,
  from: RecordCursor = RECORD_START,
): Generator<RecordItem, void, void> {
  const opened = files.openRead(path);
  if (!opened.ok) {
    yield { kind: "fault", fault: unreadable(opened.failure.message) };
    return;
  }
  try {
    yield* checkLines(splitLines(opened.value, from.offset), from);
  } finally {
    opened.value.close();
  }
}

type RawLine =
  | { kind: "raw"; bytes: Uint8Array; offset: number }
  | { kind: "torn"; offset: number; bytes: number }
  | { kind: "long"; bytes: number }
  | { kind: "failed"; message: string };

function* splitLines(handle: ReadHandle, start: number): Generator<RawLine, void, void> {
  let buffer = new Uint8Array(CHUNK_BYTES);
  let filled = 0;
  let offset = start;
  let searched = 0;
  for (;;) {
    if (filled === buffer.length) {
      const grown = new Uint8Array(Math.min(buffer.length * 2, RECORD_LINE_BYTES_MAX + 1));
      grown.set(buffer);
      buffer = grown;
    }
    const read = handle.readAt(offset + filled, buffer.subarray(filled));
    if (!read.ok) return yield { kind: "failed", message: read.failure.message };
    if (read.value === 0) {
      if (filled > 0) yield { kind: "torn", offset, bytes: filled };
      return;
    }
    filled += read.value;
    let consumed = 0;
    for (;;) {
      const end = buffer.subarray(0, filled).indexOf(10, Math.max(consumed, searched));
      if (end === -1) break;
      yield { kind: "raw", bytes: buffer.subarray(consumed, end), offset: offset + consumed };
      consumed = end + 1;
    }
    if (consumed > 0) buffer.copyWithin(0, consumed, filled);
    filled -= consumed;
    offset += consumed;
    searched = filled;
    if (filled > RECORD_LINE_BYTES_MAX) return yield { kind: "long", bytes: filled };
  }
}

function* checkLines(
  raws: Iterable<RawLine>,
  from: RecordCursor,
): Generator<RecordItem, void, void> {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  let held: Extract<RecordItem, { kind: "line" }> | null = null;
  let seq = from.seq;
  let hash = from.hash;
  for (const raw of raws) {
    if (raw.kind === "torn") {
      if (held) yield held;
      return yield { kind: "torn", line: seq + 1, offset: raw.offset, bytes: raw.bytes };
    }
    const checked = raw.kind === "raw"
      ? checkLine(decoder, raw.bytes, seq + 1, hash)
      : { fault: rawFault(raw, seq + 1) };
    if ("fault" in checked) {
      // A broken link says that the line before is not what it was, so that one is not handed out.
      if (held && checked.fault.kind !== "broken_chain") yield held;
      return yield { kind: "fault", fault: checked.fault };
    }
    if (held) yield held;
    seq++;
    const bytes = (raw as Extract<RawLine, { kind: "raw" }>).bytes;
    hash = new Fnv64().writeBytes(bytes).hex();
    held = {
      kind: "line",
      line: checked.line,
      offset: (raw as Extract<RawLine, { kind: "raw" }>).offset,
      bytes: bytes.length,
      hash,
    };
  }
  if (held) yield held;
}

function checkLine(
  decoder: TextDecoder,
  bytes: Uint8Array,
  number: number,
  hash: string,
): { line: RecordLine } | { fault: RecordFault } {
  let value: unknown;
  try {
    value = JSON.parse(decoder.decode(bytes));
  } catch {
    return { fault: { line: number, kind: "broken_json", detail: "it is not JSON" } };
  }
  if (
    !isObject(value) || typeof value.v !== "number" || typeof value.seq !== "number" ||
    typeof value.type !== "string"
  ) {
    return { fault: { line: number, kind: "broken_json", detail: "it is no line of a record" } };
  }
  const line = value as RecordLine;
  if (line.v !== RECORD_VERSION) return { fault: versionFault(number, line.v) };
  if (line.seq !== number) {
    const detail = `it says it is line ${line.seq}: lines are missing or were put in`;
    return { fault: { line: number, kind: "gap", detail } };
  }
  if (line.prev !== hash) {
    const changed = Math.max(1, number - 1);
    const detail = number === 1
      ? `it chains from ${line.prev} and not from ${hash}: lines before it are missing`
      : `its hash is ${hash}, and line ${number} holds ${line.prev} of it: it was changed`;
    return { fault: { line: changed, kind: "broken_chain", detail } };
  }
  return { line };
}

function versionFault(line: number, version: number): RecordFault {
  return version > RECORD_VERSION
    ? {
      line,
      kind: "newer_version",
      detail: `it has format version ${version}; this program reads up to ${RECORD_VERSION}`,
    }
    : {
      line,
      kind: "unknown_version",
      detail: `it has format version ${version}, which never was; versions start at 1`,
    };
}

function rawFault(
  raw: Extract<RawLine, { kind: "long" | "failed" }>,
  number: number,
): RecordFault {
  if (raw.kind === "failed") return unreadable(raw.message);
  const detail = `it has more than ${RECORD_LINE_BYTES_MAX} bytes`;
  return { line: number, kind: "broken_json", detail };
}

function unreadable(message: string): RecordFault {
  return { line: 0, kind: "unreadable", detail: `the record cannot be read: ${message}` };
}

/** The first line of a record; undefined where there is no whole one. Its hash is not checked. */
export function readHead(files: FilesPort, path: string): RecordLine | undefined {
  const opened = files.openRead(path);
  if (!opened.ok) return undefined;
  try {
    for (let window = 16 * 1024; window <= RECORD_LINE_BYTES_MAX; window *= 8) {
      const bytes = new Uint8Array(window);
      const filled = fill(opened.value, 0, bytes);
      if (filled === undefined) return undefined;
      const end = bytes.subarray(0, filled).indexOf(10);
      if (end === -1 && filled === window) continue;
      return end === -1 ? undefined : parseLine(bytes.subarray(0, end));
    }
    return undefined;
  } finally {
    opened.value.close();
  }
}

/** What the end of a record says, without reading the rest. */
export interface RecordTail {
  /** The last whole line; null where there is none. */
  last: RecordLine | null;
  /** Its hash, or CHAIN_START. */
  hash: string;
  /** Bytes up to and with its line feed. */
  bytes: number;
  tornBytes: number;
}

/**
 * The last whole line, read from the end of the file. Nothing before it is checked; undefined if the
 * file cannot be read or what should be the last line is none.
 */
export function readTail(files: FilesPort, path: string): RecordTail | undefined {
  const stat = files.stat(path);
  const opened = files.openRead(path);
  if (!opened.ok) return undefined;
  try {
    return stat.ok ? tailOf(opened.value, stat.value.bytes) : undefined;
  } finally {
    opened.value.close();
  }
}

function tailOf(handle: ReadHandle, size: number): RecordTail | undefined {
  for (let window = 16 * 1024;; window *= 8) {
    const start = Math.max(0, size - window);
    const bytes = new Uint8Array(size - start);
    const filled = fill(handle, start, bytes);
    if (filled === undefined) return undefined;
    const seen = bytes.subarray(0, filled);
    const end = seen.lastIndexOf(10);
    const before = end <= 0 ? -1 : seen.lastIndexOf(10, end - 1);
    if (start > 0 && before === -1) {
      if (window > RECORD_LINE_BYTES_MAX * 2) return undefined;
      continue;
    }
    if (end === -1) return { last: null, hash: CHAIN_START, bytes: 0, tornBytes: filled };
    const raw = seen.subarray(before + 1, end);
    const last = parseLine(raw);
    if (last === undefined) return undefined;
    const hash = new Fnv64().writeBytes(raw).hex();
    return { last, hash, bytes: start + end + 1, tornBytes: filled - end - 1 };
  }
}

/** Bytes read into the buffer from an offset, fewer only at the end; undefined on a failure. */
function fill(handle: ReadHandle, offset: number, buffer: Uint8Array): number | undefined {
  let filled = 0;
  while (filled < buffer.length) {
    const read = handle.readAt(offset + filled, buffer.subarray(filled));
    if (!read.ok) return undefined;
    if (read.value === 0) break;
    filled += read.value;
  }
  return filled;
}

function parseLine(bytes: Uint8Array): RecordLine | undefined {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    const line: unknown = JSON.parse(text);
    const known = isObject(line) && line.v === RECORD_VERSION && typeof line.type === "string" &&
      typeof line.seq === "number";
    return known ? line as RecordLine : undefined;
  } catch {
    return undefined;
  }
}
