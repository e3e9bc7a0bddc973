/** Lines out of byte chunks, with a bound: what is over it is reported, never held. */

import { joinBytes } from "../core/bytes.ts";

/** One line of a stream, or what stands in its place. */
export type LineEvent =
  | { type: "line"; text: string }
  /** A line over the bound: its bytes were dropped as they came, but for its two ends. */
  | { type: "oversized"; bytes: number; head: string; tail: string }
  /** Bytes that are no UTF-8; `lossy` is the line with U+FFFD where they are. */
  | { type: "invalid"; bytes: number; lossy: string };

/** What is kept of each end of an oversized line: enough to see which answer it was. */
const EDGE_BYTES = 256;

/** Room for an unfinished line that is kept for the next one. */
const ROOM_KEPT_BYTES = 64 * 1024;

/** Splits a stream of bytes into lines. Feed it chunks; a last line without `\n` comes at `end`. */
export class LineSplitter {
  readonly #bytesMax: number;
  /** The unfinished line, copied: a chunk of one byte may be a view of a large buffer. */
  #pending = new Uint8Array(0);
  #pendingBytes = 0;
  #dropping = false;
  #head = new Uint8Array(0);
  #tail = new Uint8Array(0);
  readonly #decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** The lines that this chunk completes. */
  push(chunk: Uint8Array): LineEvent[] {
    const events: LineEvent[] = [];
    let start = 0;
    for (;;) {
      const end = chunk.indexOf(10, start);
      if (end === -1) break;
      const part = chunk.subarray(start, end);
      if (this.#pendingBytes === 0 && part.length <= this.#bytesMax) {
        events.push(this.#decode(part));
      } else {
        this.#hold(part);
        events.push(this.#finish());
      }
      start = end + 1;
    }
    if (start < chunk.length) this.#hold(chunk.subarray(start));
    return events;
  }

  /** Whether the unfinished line is over the bound already: nothing good can come of it. */
  get overBound(): boolean {
    return this.#dropping;
  }

  /** The unfinished last line, if there is one. */
  end(): LineEvent[] {
    return this.#pendingBytes > 0 ? [this.#finish()] : [];
  }

  #hold(part: Uint8Array): void {
    const before = this.#pendingBytes;
    this.#pendingBytes += part.length;
    if (!this.#dropping && this.#pendingBytes > this.#bytesMax) {
      this.#dropping = true;
      const held = this.#pending.subarray(0, before);
      this.#head = firstBytes(firstBytes(this.#head, held), part);
      this.#tail = lastBytes(this.#tail, held);
      this.#pending = new Uint8Array(0);
    }
    if (this.#dropping) {
      this.#tail = lastBytes(this.#tail, part);
      return;
    }
    if (this.#pendingBytes > this.#pending.length) {
      const roomBytes = Math.min(this.#bytesMax, Math.max(1_024, 2 * this.#pendingBytes));
      const grown = new Uint8Array(roomBytes);
      grown.set(this.#pending.subarray(0, before));
      this.#pending = grown;
    }
    this.#pending.set(part, before);
  }

  #finish(): LineEvent {
    const bytes = this.#pendingBytes;
    this.#pendingBytes = 0;
    if (this.#dropping) {
      this.#dropping = false;
      const lossy = new TextDecoder();
      const head = lossy.decode(this.#head);
      const tail = lossy.decode(this.#tail);
      this.#head = this.#tail = new Uint8Array(0);
      return { type: "oversized", bytes, head, tail };
    }
    const event = this.#decode(this.#pending.subarray(0, bytes));
    if (this.#pending.length > ROOM_KEPT_BYTES) this.#pending = new Uint8Array(0);
    return event;
  }

  #decode(line: Uint8Array): LineEvent {
    try {
      const text = this.#decoder.decode(line);
      return { type: "line", text: text.endsWith("\r") ? text.slice(0, -1) : text };
    } catch {
      return { type: "invalid", bytes: line.length, lossy: new TextDecoder().decode(line) };
    }
  }
}

function firstBytes(held: Uint8Array, more: Uint8Array): Uint8Array<ArrayBuffer> {
  return joinBytes([held, more.subarray(0, Math.max(0, EDGE_BYTES - held.length))]);
}

function lastBytes(held: Uint8Array, more: Uint8Array): Uint8Array<ArrayBuffer> {
  const tail = more.subarray(Math.max(0, more.length - EDGE_BYTES));
  return joinBytes([held.subarray(Math.max(0, held.length + tail.length - EDGE_BYTES)), tail]);
}
