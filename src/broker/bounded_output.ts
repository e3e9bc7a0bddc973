/** The output of a command within a bound: its beginning and its end, in the order it came. */

import { joinBytes } from "../core/bytes.ts";

type Which = "stdout" | "stderr";

/** Collects two streams; of what is over the bound, the middle is left out and counted. */
export class BoundedOutput {
  readonly #both: Keep;
  readonly #apart: Record<Which, Keep>;
  readonly #readers: ReadableStreamDefaultReader<Uint8Array>[] = [];

  constructor(bytesMax: number) {
    this.#both = new Keep(bytesMax);
    this.#apart = { stdout: new Keep(bytesMax), stderr: new Keep(bytesMax) };
  }

  /** Bytes that came in all. */
  get totalBytes(): number {
    return this.#both.totalBytes;
  }

  /** Reads a stream to its end, or until it breaks or `stop`. Never rejects. */
  async read(stream: ReadableStream<Uint8Array>, which: Which): Promise<void> {
    const reader = stream.getReader();
    this.#readers.push(reader);
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        this.#both.add(value);
        this.#apart[which].add(value);
      }
    } catch { /* a pipe that breaks has ended */ }
  }

  stop(): void {
    for (const reader of this.#readers) reader.cancel().catch(() => {});
  }

  text(which: Which | "both"): string {
    return (which === "both" ? this.#both : this.#apart[which]).text();
  }
}

/** A quarter of the bound for the beginning, the rest for the end: failures are told at the end. */
class Keep {
  totalBytes = 0;
  readonly #headMax: number;
  readonly #tailMax: number;
  #head: Uint8Array[] = [];
  #headBytes = 0;
  #tail: Uint8Array[] = [];
  #tailBytes = 0;

  constructor(bytesMax: number) {
    this.#headMax = Math.floor(bytesMax / 4);
    this.#tailMax = bytesMax - this.#headMax;
  }

  add(chunk: Uint8Array): void {
    this.totalBytes += chunk.length;
    const room = this.#headMax - this.#headBytes;
    if (room > 0) {
      const part = chunk.slice(0, room);
      this.#head.push(part);
      this.#headBytes += part.length;
      chunk = chunk.subarray(part.length);
    }
    if (chunk.length === 0) return;
    this.#tail.push(chunk.slice(-this.#tailMax));
    this.#tailBytes += this.#tail.at(-1)!.length;
    while (this.#tailBytes - this.#tail[0]!.length >= this.#tailMax) {
      this.#tailBytes -= this.#tail.shift()!.length;
    }
  }

  text(): string {
    const tail = joinBytes(this.#tail).slice(-this.#tailMax);
    const left = this.totalBytes - this.#headBytes - tail.length;
    if (left === 0) return decode(joinBytes([...this.#head, tail]));
    return `${decode(joinBytes(this.#head))}\n[… ${left} bytes left out …]\n${decode(tail)}`;
  }
}

function decode(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}
