/** Control frames on byte streams: bounded both ways, one JSON object a line. */

import { type LineEvent, LineSplitter } from "./lines.ts";

const encoder = new TextEncoder();

/** The bytes of one frame, its line feed included. */
export function encodeFrame(frame: { v: 1; type: string }): Uint8Array {
  return encoder.encode(JSON.stringify(frame) + "\n");
}

/**
 * Writes frames in order without anyone waiting for it. What the other side does not read is held
 * up to `bytesMax`; beyond it, and after the stream broke, `send` answers false.
 */
export class FrameWriter {
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #bytesMax: number;
  #pendingBytes = 0;
  #broken = false;
  #last: Promise<void> = Promise.resolve();

  constructor(stream: WritableStream<Uint8Array>, bytesMax: number) {
    this.#writer = stream.getWriter();
    this.#writer.closed.catch(() => this.#broken = true);
    this.#bytesMax = bytesMax;
  }

  /** Bytes accepted and not yet written. */
  get pendingBytes(): number {
    return this.#pendingBytes;
  }

  /** Queues bytes; false where they are not accepted. */
  send(bytes: Uint8Array): boolean {
    if (this.#broken || this.#pendingBytes + bytes.length > this.#bytesMax) return false;
    this.#pendingBytes += bytes.length;
    this.#last = this.#writer.write(bytes).then(
      () => {
        this.#pendingBytes -= bytes.length;
      },
      () => {
        this.#broken = true;
      },
    );
    return true;
  }

  /** Until everything accepted so far is written, or the stream broke. Never rejects. */
  flushed(): Promise<void> {
    return this.#last;
  }

  /** Takes nothing more, flushes, then closes the stream. Never rejects. */
  async close(): Promise<void> {
    this.#broken = true;
    await this.#last;
    await this.#writer.close().catch(() => {});
  }
}

/**
 * Reads a stream line by line until its end or until `each` answers false; then the stream is
 * cancelled. A line that is over the bound is reported as soon as it is, not at its end, and ends
 * the reading. Never rejects: a stream that breaks has ended.
 */
export async function readLines(
  stream: ReadableStream<Uint8Array>,
  bytesMax: number,
  each: (event: LineEvent) => boolean,
): Promise<void> {
  const reader = new ChunkReader(stream);
  const splitter = new LineSplitter(bytesMax);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      const events = done ? splitter.end() : splitter.push(value);
      if (!done && splitter.overBound) {
        events.push({ type: "oversized", bytes: bytesMax, head: "", tail: "" });
      }
      for (const event of events) if (!each(event)) return;
      if (done || splitter.overBound) return;
    }
  } catch {
    /* a stream that breaks has ended */
  } finally {
    await reader.close();
  }
}

const CHUNK_BYTES = 16 * 1024;

type Chunk = { done: false; value: Uint8Array } | { done: true; value: undefined };

/**
 * Reads chunks into one buffer that is used again and again, where a stream can do that: a stream of
 * the system makes 64 KiB for each read otherwise, and a control channel carries few bytes often.
 */
class ChunkReader {
  readonly #byob: ReadableStreamBYOBReader | null;
  readonly #plain: ReadableStreamDefaultReader<Uint8Array> | null;
  #buffer = new Uint8Array(CHUNK_BYTES);

  constructor(stream: ReadableStream<Uint8Array>) {
    this.#byob = byobReaderOf(stream);
    this.#plain = this.#byob === null ? stream.getReader() : null;
  }

  /** The next bytes, the caller's own. */
  async read(): Promise<Chunk> {
    if (this.#byob === null) return await this.#plain!.read() as Chunk;
    const { done, value } = await this.#byob.read(this.#buffer);
    if (done || value === undefined) return { done: true, value: undefined };
    const bytes = value.slice();
    this.#buffer = new Uint8Array(value.buffer as ArrayBuffer);
    return { done: false, value: bytes };
  }

  async close(): Promise<void> {
    const reader = this.#byob ?? this.#plain!;
    await reader.cancel().catch(() => {});
    reader.releaseLock();
  }
}

function byobReaderOf(stream: ReadableStream<Uint8Array>): ReadableStreamBYOBReader | null {
  try {
    return stream.getReader({ mode: "byob" });
  } catch {
    return null;
  }
}
