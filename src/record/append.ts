/**
 * Writing a record: lines are made and chained at once, held in memory, and written together
 * before the effect that they announce.
 */

import { assert, Bug } from "../core/assert.ts";
import { Fnv64 } from "../core/hash.ts";
import type { Json, JsonObject } from "../core/json.ts";
import { RECORD_LINE_BYTES_MAX } from "../core/limits.ts";
import { failed, type Outcome, success } from "../core/outcome.ts";
import { formatIso } from "../core/time.ts";
import type { ClockPort } from "../ports/clock.ts";
import type { AppendHandle, FileFailure, FilesPort, ReadHandle } from "../ports/files.ts";
import type { Durability } from "../wire/payload.ts";
import { CHAIN_START, RECORD_VERSION, type RecordLine } from "../wire/record.ts";
import { type RecordFailure, recordFailure } from "./failure.ts";
import { maskDeep } from "./mask.ts";
import { describeFault, readRecord } from "./read.ts";

export { RECORD_FULL, type RecordFailure, recordFailure } from "./failure.ts";

/** The record's name inside an agent's directory. */
export const RECORD_FILE = "record.jsonl";

const BUFFER_BYTES = 64 * 1024;
/** A buffer that one huge line has grown beyond this is let go after it is written. */
const BUFFER_KEPT_BYTES_MAX = 1024 * 1024;

/** Above it a line is measured before room is made for it, instead of reserving thrice its length. */
const LONG_LINE_CHARS = 256 * 1024;

/** What {@link openRecord} needs. */
export interface RecordDeps {
  files: FilesPort;
  clock: ClockPort;
  /** The agent's own directory; the record is `record.jsonl` in it. */
  directory: string;
  durability: Durability;
  /** Replaces every known secret; applied to each string of a payload. */
  mask: (text: string) => string;
  /** Called with every line that is there already, when a record is opened to go on. */
  onLine?: (line: RecordLine) => void;
}

/** How {@link openRecord} opens: a record that must not exist yet, or one that must. */
export type RecordMode = "new" | "append";

/** Opens a record for writing; see {@link RecordWriter}. */
export function openRecord(
  deps: RecordDeps,
  mode: RecordMode,
): Outcome<RecordWriter, RecordFailure> {
  const path = `${deps.directory}/${RECORD_FILE}`;
  let existing = nothing();
  if (mode === "new") {
    const made = deps.files.makeDirectory(deps.directory);
    if (!made.ok) return failed(recordFailure(made.failure));
    const created = deps.files.createNew(path, "");
    if (!created.ok) return failed(recordFailure(created.failure));
  } else {
    const scanned = scan(deps, path);
    if (!scanned.ok) return scanned;
    existing = scanned.value;
    if (existing.tornBytes > 0) {
      const cut = deps.files.truncate(path, existing.bytes);
      if (!cut.ok) return failed(recordFailure(cut.failure));
    }
  }
  const handle = deps.files.openAppend(path);
  if (!handle.ok) return failed(recordFailure(handle.failure));
  return success(new RecordWriter(deps, path, handle.value, existing));
}

interface Existing {
  offsets: number[];
  /** Line of each call's observation, by the call's id. */
  calls: Map<string, number>;
  bytes: number;
  /** Of the last line. */
  hash: string;
  tornBytes: number;
  last: RecordLine | null;
}

function nothing(): Existing {
  return {
    offsets: [],
    calls: new Map(),
    bytes: 0,
    hash: CHAIN_START,
    tornBytes: 0,
    last: null,
  };
}

function scan(deps: RecordDeps, path: string): Outcome<Existing, RecordFailure> {
  const found = nothing();
  for (const item of readRecord(deps.files, path)) {
    if (item.kind === "fault") {
      const kind = item.fault.kind === "unreadable" ? "missing" : "corrupt";
      return failed({
        class: kind,
        message: `Cannot go on with ${path}: ${describeFault(item.fault)}`,
        fault: item.fault,
      });
    }
    if (item.kind === "torn") {
      found.tornBytes = item.bytes;
      continue;
    }
    found.offsets.push(item.offset);
    noteCall(found.calls, item.line.type, item.line, item.line.seq);
    found.bytes = item.offset + item.bytes + 1;
    found.hash = item.hash;
    found.last = item.line;
    deps.onLine?.(item.line);
  }
  return success(found);
}

/**
 * The one writer of a record. Numbers and chain are assigned by {@link RecordWriter.append}; nothing
 * is on disk before {@link RecordWriter.flush}. When a write fails, everything since the last
 * successful flush is taken back, from the file too, so that what is there stays readable and a
 * short terminal line may still find room.
 */
export class RecordWriter {
  readonly path: string;
  /** Bytes of a torn last line that opening dropped; 0 if there was none. */
  readonly tornBytes: number;
  readonly #files: FilesPort;
  readonly #clock: ClockPort;
  readonly #mask: (text: string) => string;
  readonly #durability: Durability;
  readonly #handle: AppendHandle;
  readonly #encoder = new TextEncoder();
  #reader: ReadHandle | null = null;
  #buffer: Uint8Array<ArrayBuffer> = new Uint8Array(BUFFER_BYTES);
  #bufferedBytes = 0;
  /** Offset of each line by `seq - 1`, buffered lines included. */
  readonly #offsets: number[];
  readonly #calls: Map<string, number>;
  #hash: string;
  #lastType: string | null;
  #flushed: { lines: number; bytes: number; hash: string; lastType: string | null };
  #unsynced = false;
  #closed = false;

  /** Use {@link openRecord}. */
  constructor(deps: RecordDeps, path: string, handle: AppendHandle, existing: Existing) {
    this.path = path;
    this.tornBytes = existing.tornBytes;
    this.#files = deps.files;
    this.#clock = deps.clock;
    this.#mask = deps.mask;
    this.#durability = deps.durability;
    this.#handle = handle;
    this.#offsets = existing.offsets;
    this.#calls = existing.calls;
    this.#hash = existing.hash;
    this.#lastType = existing.last?.type ?? null;
    this.#flushed = {
      lines: existing.offsets.length,
      bytes: existing.bytes,
      hash: existing.hash,
      lastType: this.#lastType,
    };
  }

  /** The number that the next line will get. */
  get nextSeq(): number {
    return this.#offsets.length + 1;
  }

  /** The type of the last line, null in an empty record. */
  get lastType(): string | null {
    return this.#lastType;
  }

  /**
   * Makes the next line and holds it. `payload` may be a whole event or decision: its own `type` and
   * `at` give way to the arguments; `at` is in monotonic milliseconds since the run started.
   */
  append(type: string, payload: object, at: number): number {
    assert(!this.#closed, "append to a closed record");
    return this.#write(type, this.#renderPayload(payload).text, payload, at);
  }

  /**
   * Appends an event and gives back what was recorded of it: itself, or a copy with its secrets
   * masked. The machine must be given that one, or a replay would decide on other words.
   */
  admit<Event extends { type: string; at: number }>(event: Event): Event {
    assert(!this.#closed, "append to a closed record");
    const { text, masked } = this.#renderPayload(event);
    this.#write(event.type, text, event, event.at);
    return masked === null ? event : { ...masked, type: event.type, at: event.at } as Event;
  }

  #write(type: string, text: string, payload: object, at: number): number {
    const seq = this.nextSeq;
    const ts = formatIso(this.#clock.wallMs());
    const line = `{"v":${RECORD_VERSION},"seq":${seq},"ts":"${ts}","at":${JSON.stringify(at)},` +
      `"type":${JSON.stringify(type)}${text},"prev":"${this.#hash}"}`;
    this.#hold(line);
    this.#lastType = type;
    noteCall(this.#calls, type, payload, seq);
    return seq;
  }

  /** Writes everything held, in one write. */
  flush(): Outcome<void, RecordFailure> {
    if (this.#bufferedBytes === 0) return success(undefined);
    const written = this.#handle.append(this.#buffer.subarray(0, this.#bufferedBytes));
    if (!written.ok) {
      this.#takeBack();
      return failed(recordFailure(written.failure));
    }
    this.#flushed = {
      lines: this.#offsets.length,
      bytes: this.#flushed.bytes + this.#bufferedBytes,
      hash: this.#hash,
      lastType: this.#lastType,
    };
    this.#emptyBuffer();
    this.#unsynced = true;
    return this.#durability === "all" ? this.#syncHandle() : success(undefined);
  }

  /** Flushes and, but for durability `none`, waits until it is on the medium. */
  sync(): Outcome<void, RecordFailure> {
    const flushed = this.flush();
    if (!flushed.ok || this.#durability === "none") return flushed;
    return this.#syncHandle();
  }

  /** A line of this record by its number, held or written. The cost does not grow with the record. */
  readLine(seq: number): Outcome<RecordLine, RecordFailure> {
    const start = this.#offsets[seq - 1];
    if (start === undefined) {
      return failed({
        class: "missing",
        message: `Cannot read line ${seq}: there is no such line`,
      });
    }
    const end = (this.#offsets[seq] ?? this.#flushed.bytes + this.#bufferedBytes) - 1;
    if (start >= this.#flushed.bytes) {
      const from = start - this.#flushed.bytes;
      return parseOwn(this.#buffer.subarray(from, from + end - start), seq);
    }
    if (this.#reader === null) {
      const opened = this.#files.openRead(this.path);
      if (!opened.ok) return failed(recordFailure(opened.failure));
      this.#reader = opened.value;
    }
    const bytes = new Uint8Array(end - start);
    const read = readFully(this.#reader, start, bytes);
    return read.ok ? parseOwn(bytes, seq) : failed(recordFailure(read.failure));
  }

  /** The line with the last observation of a call, by the call's id. */
  readObserved(call: string): Outcome<RecordLine, RecordFailure> {
    const seq = this.#calls.get(call);
    return seq === undefined || seq >= this.nextSeq
      ? failed({ class: "missing", message: `Cannot read call ${call}: it has no observation` })
      : this.readLine(seq);
  }

  /** Flushes and closes; a second call does nothing. */
  close(): Outcome<void, RecordFailure> {
    if (this.#closed) return success(undefined);
    const flushed = this.flush();
    this.#closed = true;
    this.#reader?.close();
    this.#handle.close();
    return flushed;
  }

  #renderPayload(payload: object): { text: string; masked: JsonObject | null } {
    const fields = payload as JsonObject;
    let rest: JsonObject = fields;
    if ("type" in fields || "at" in fields) {
      const { type: _type, at: _at, ...others } = fields;
      rest = others;
    }
    if ("v" in rest || "seq" in rest || "ts" in rest || "prev" in rest) {
      throw new Bug("a payload must not name v, seq, ts or prev");
    }
    let text = JSON.stringify(rest);
    let masked: JsonObject | null = null;
    // A mask over the whole text is cheap and nearly always changes nothing. When it does, each
    // string is masked by itself, since a secret may also look like a part of the line's own form.
    if (this.#mask(text) !== text) {
      masked = maskDeep(rest as Json, this.#mask) as JsonObject;
      text = JSON.stringify(masked);
    }
    return { text: text === "{}" ? "" : "," + text.slice(1, -1), masked };
  }

  #hold(line: string): void {
    let start = this.#bufferedBytes;
    let written: number;
    if (line.length > LONG_LINE_CHARS) {
      const bytes = this.#encoder.encode(line);
      this.#reserve(start + bytes.length + 1);
      this.#buffer.set(bytes, start);
      written = bytes.length;
    } else {
      // UTF-8 needs at most three bytes for a UTF-16 unit.
      this.#reserve(start + line.length * 3 + 1);
      written = this.#encoder.encodeInto(line, this.#buffer.subarray(start)).written;
    }
    assert(written <= RECORD_LINE_BYTES_MAX, `a record line of ${written} bytes`);
    this.#offsets.push(this.#flushed.bytes + start);
    this.#hash = new Fnv64().writeBytes(this.#buffer.subarray(start, start + written)).hex();
    start += written;
    this.#buffer[start] = 10;
    this.#bufferedBytes = start + 1;
  }

  #reserve(bytes: number): void {
    if (bytes <= this.#buffer.length) return;
    const grown = new Uint8Array(Math.max(bytes, this.#buffer.length * 2));
    grown.set(this.#buffer.subarray(0, this.#bufferedBytes));
    this.#buffer = grown;
  }

  #emptyBuffer(): void {
    this.#bufferedBytes = 0;
    if (this.#buffer.length > BUFFER_KEPT_BYTES_MAX) this.#buffer = new Uint8Array(BUFFER_BYTES);
  }

  #takeBack(): void {
    this.#files.truncate(this.path, this.#flushed.bytes);
    this.#emptyBuffer();
    this.#offsets.length = this.#flushed.lines;
    this.#hash = this.#flushed.hash;
    this.#lastType = this.#flushed.lastType;
  }

  #syncHandle(): Outcome<void, RecordFailure> {
    if (!this.#unsynced) return success(undefined);
    const synced = this.#handle.sync();
    if (!synced.ok) return failed(recordFailure(synced.failure));
    this.#unsynced = false;
    return success(undefined);
  }
}

function noteCall(calls: Map<string, number>, type: string, line: object, seq: number): void {
  if (type !== "call.observed") return;
  const { call } = line as { call?: unknown };
  if (typeof call === "string") calls.set(call, seq);
}

/** Fills a buffer from an offset, or fails with `other` where the file ends before. */
export function readFully(
  handle: ReadHandle,
  offset: number,
  buffer: Uint8Array,
): Outcome<void, FileFailure> {
  let done = 0;
  while (done < buffer.length) {
    const read = handle.readAt(offset + done, buffer.subarray(done));
    if (!read.ok) return read;
    if (read.value === 0) return failed({ class: "other", message: "the file ends too early" });
    done += read.value;
  }
  return success(undefined);
}

function parseOwn(bytes: Uint8Array, seq: number): Outcome<RecordLine, RecordFailure> {
  try {
    return success(JSON.parse(new TextDecoder().decode(bytes)) as RecordLine);
  } catch {
    return failed({ class: "corrupt", message: `Cannot read line ${seq}: it is not JSON` });
  }
}
