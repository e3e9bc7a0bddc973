/** Output of any length in bounded room: its head and its tail. */

import { joinBytes } from "../core/bytes.ts";

/** Keeps the first two thirds and the last third of a bound, and counts the rest. */
export class OutputTail {
  totalBytes = 0;
  readonly #headMax: number;
  readonly #tailMax: number;
  readonly #head: Uint8Array;
  #headBytes = 0;
  /** A ring: the oldest byte is at `#tailAt` once it is full. */
  readonly #tail: Uint8Array;
  #tailAt = 0;
  #tailBytes = 0;

  constructor(bytesMax: number) {
    this.#headMax = Math.floor(bytesMax * 2 / 3);
    this.#tailMax = bytesMax - this.#headMax;
    this.#head = new Uint8Array(this.#headMax);
    this.#tail = new Uint8Array(this.#tailMax);
  }

  add(chunk: Uint8Array): void {
    this.totalBytes += chunk.length;
    const toHead = chunk.subarray(0, this.#headMax - this.#headBytes);
    this.#head.set(toHead, this.#headBytes);
    this.#headBytes += toHead.length;
    let rest = chunk.subarray(toHead.length);
    if (rest.length > this.#tailMax) rest = rest.subarray(rest.length - this.#tailMax);
    while (rest.length > 0) {
      const part = rest.subarray(0, this.#tailMax - this.#tailAt);
      this.#tail.set(part, this.#tailAt);
      this.#tailAt = (this.#tailAt + part.length) % this.#tailMax;
      this.#tailBytes = Math.min(this.#tailMax, this.#tailBytes + part.length);
      rest = rest.subarray(part.length);
    }
  }

  /** The whole text, or head and tail with what is missing between them said. */
  render(): string {
    const start = this.#tailBytes < this.#tailMax ? 0 : this.#tailAt;
    const tail = joinBytes([
      this.#tail.subarray(start, this.#tailBytes),
      this.#tail.subarray(0, start),
    ]);
    const missing = this.totalBytes - this.#headBytes - this.#tailBytes;
    const decoder = new TextDecoder();
    if (missing === 0) {
      return decoder.decode(joinBytes([this.#head.subarray(0, this.#headBytes), tail]));
    }
    const headEnd = endOfCharacters(this.#head, this.#headBytes);
    const tailStart = tail.findIndex((byte) => (byte & 0xc0) !== 0x80);
    const cut = this.totalBytes - headEnd - (tail.length - tailStart);
    return `${decoder.decode(this.#head.subarray(0, headEnd))}\n` +
      `[… ${cut} of ${this.totalBytes} bytes left out …]\n` +
      decoder.decode(tail.subarray(tailStart));
  }
}

/** Where the last whole UTF-8 character before `end` ends. */
function endOfCharacters(bytes: Uint8Array, end: number): number {
  for (let back = 1; back <= Math.min(4, end); back++) {
    const byte = bytes[end - back]!;
    if ((byte & 0xc0) === 0x80) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return length > back ? end - back : end;
  }
  return end;
}
