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

/** Splits a stream of bytes into lines. Feed it chunks; a last line without `\n` comes at `end`. */
export class LineSplitter {
  readonly #bytesMax: number;
  #pending: Uint8Array[] = [];
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
      this.#hold(chunk.subarray(start, end));
      this.#finish(events);
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
    const events: LineEvent[] = [];
    if (this.#pendingBytes > 0) this.#finish(events);
    return events;
  }

  #hold(part: Uint8Array): void {
    this.#pendingBytes += part.length;
    if (!this.#dropping && this.#pendingBytes > this.#bytesMax) {
      this.#dropping = true;
      for (const held of this.#pending) {
        this.#head = firstBytes(this.#head, held);
        this.#tail = lastBytes(this.#tail, held);
      }
      this.#head = firstBytes(this.#head, part);
      this.#pending = [];
    }
    if (this.#dropping) this.#tail = lastBytes(this.#tail, part);
    else if (part.length > 0) this.#pending.push(part);
  }

  #finish(events: LineEvent[]): void {
    const bytes = this.#pendingBytes;
    const parts = this.#pending;
    const dropped = this.#dropping;
    this.#pending = [];
    this.#pendingBytes = 0;
    this.#dropping = false;
    if (dropped) {
      const lossy = new TextDecoder();
      events.push({
        type: "oversized",
        bytes,
        head: lossy.decode(this.#head),
        tail: lossy.decode(this.#tail),
      });
      this.#head = this.#tail = new Uint8Array(0);
      return;
    }
    // Nearly every line comes in one piece, which need not be copied.
    const whole = parts.length === 1 ? parts[0]! : joinBytes(parts);
    try {
      const text = this.#decoder.decode(whole);
      events.push({ type: "line", text: text.endsWith("\r") ? text.slice(0, -1) : text });
    } catch {
      events.push({ type: "invalid", bytes, lossy: new TextDecoder().decode(whole) });
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
