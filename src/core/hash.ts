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
    // The low half as two 16-bit limbs: all products then fit in 32-bit integers, which is more
    // than twice as fast as a product in floating point.
    let high = this.#high | 0;
    let upper = this.#low >>> 16;
    let lower = this.#low & 0xffff;
    for (let i = 0; i < bytes.length; i++) {
      lower ^= bytes[i]!;
      // The prime is 2^40 + 0x1b3: multiply by 0x1b3 and add the value shifted by 40 bits.
      const product = Math.imul(lower, 0x1b3);
      const carried = Math.imul(upper, 0x1b3) + (product >>> 16);
      high = (Math.imul(high, 0x1b3) + (((upper << 16) | lower) << 8) + (carried >>> 16)) | 0;
      lower = product & 0xffff;
      upper = carried & 0xffff;
    }
    this.#high = high >>> 0;
    this.#low = ((upper << 16) | lower) >>> 0;
    return this;
  }

  /** Feeds the UTF-8 bytes of a text. */
  write(text: string): this {
    let high = this.#high | 0;
    let upper = this.#low >>> 16;
    let lower = this.#low & 0xffff;
    let ascii = 0;
    // Nearly every text is ASCII, whose units are its bytes: nothing is encoded then.
    for (; ascii < text.length; ascii++) {
      const unit = text.charCodeAt(ascii);
      if (unit > 127) break;
      lower ^= unit;
      const product = Math.imul(lower, 0x1b3);
      const carried = Math.imul(upper, 0x1b3) + (product >>> 16);
      high = (Math.imul(high, 0x1b3) + (((upper << 16) | lower) << 8) + (carried >>> 16)) | 0;
      lower = product & 0xffff;
      upper = carried & 0xffff;
    }
    this.#high = high >>> 0;
    this.#low = ((upper << 16) | lower) >>> 0;
    return ascii === text.length ? this : this.writeBytes(encoder.encode(text.slice(ascii)));
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
