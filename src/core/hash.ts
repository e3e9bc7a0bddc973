/**
 * FNV-1a, 64 bits, in two 32-bit halves: BigInt would cost twenty times as much per byte.
 * Source of the constants: Fowler, Noll, Vo; draft-eastlake-fnv.
 */

const OFFSET_HIGH = 0xcbf29ce4;
const OFFSET_LOW = 0x84222325;
const encoder = new TextEncoder();

/** A running FNV-1a/64. Fed with the same bytes in any split, it gives the same digest. */
export class Fnv64 {
  #high = OFFSET_HIGH;
  #low = OFFSET_LOW;

  /** Feeds bytes. */
  writeBytes(bytes: Uint8Array): this {
    let high = this.#high;
    let low = this.#low;
    for (let i = 0; i < bytes.length; i++) {
      low = (low ^ bytes[i]!) >>> 0;
      // The prime is 2^40 + 0x1b3: multiply by 0x1b3 and add the value shifted by 40 bits.
      const product = low * 0x1b3;
      const carry = (product - (product >>> 0)) / 0x100000000;
      high = (Math.imul(high, 0x1b3) + carry + (low << 8)) >>> 0;
      low = product >>> 0;
    }
    this.#high = high;
    this.#low = low;
    return this;
  }

  /** Feeds the UTF-8 bytes of a text. */
  write(text: string): this {
    return this.writeBytes(encoder.encode(text));
  }

  /** The digest so far: 16 lower-case hexadecimal digits. */
  hex(): string {
    return this.#high.toString(16).padStart(8, "0") + this.#low.toString(16).padStart(8, "0");
  }
}

/** FNV-1a/64 of a text's UTF-8 bytes as 16 hexadecimal digits. */
export function fnv64(text: string): string {
  return new Fnv64().write(text).hex();
}

/** The next link of a hash chain: the digest of the previous link and the new text. */
export function chain(previous: string, text: string): string {
  return new Fnv64().write(previous).write("\n").write(text).hex();
}
