/** Lines out of byte chunks, with a bound: what is over it is reported, never held. */

export type LineEvent =
  | { type: "line"; text: string }
  /** A line over the bound: its bytes were dropped as they came. */
  | { type: "oversized"; bytes: number }
  /** Bytes that are no UTF-8. */
  | { type: "invalid"; bytes: number };

/** Splits a stream of bytes into lines. Feed it chunks; a last line without `\n` comes at `end`. */
export class LineSplitter {
  readonly #bytesMax: number;
  #pending: Uint8Array[] = [];
  #pendingBytes = 0;
  #dropping = false;
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

  /** The unfinished last line, if there is one. */
  end(): LineEvent[] {
    const events: LineEvent[] = [];
    if (this.#pendingBytes > 0) this.#finish(events);
    return events;
  }

  #hold(part: Uint8Array): void {
    this.#pendingBytes += part.length;
    if (this.#dropping || this.#pendingBytes > this.#bytesMax) {
      this.#dropping = true;
      this.#pending = [];
    } else if (part.length > 0) this.#pending.push(part);
  }

  #finish(events: LineEvent[]): void {
    const bytes = this.#pendingBytes;
    const parts = this.#pending;
    const dropped = this.#dropping;
    this.#pending = [];
    this.#pendingBytes = 0;
    this.#dropping = false;
    if (dropped) {
      events.push({ type: "oversized", bytes });
      return;
    }
    let whole = parts[0] ?? new Uint8Array(0);
    if (parts.length > 1) {
      whole = new Uint8Array(bytes);
      let at = 0;
      for (const part of parts) {
        whole.set(part, at);
        at += part.length;
      }
    }
    try {
      const text = this.#decoder.decode(whole);
      events.push({ type: "line", text: text.endsWith("\r") ? text.slice(0, -1) : text });
    } catch {
      events.push({ type: "invalid", bytes });
    }
  }
}
