/**
 * SHA-256 (FIPS 180-4) of short contents, at once: Web Crypto answers from another thread, and the
 * way there and back costs more than hashing a few KiB here.
 */

const K = new Int32Array(64);
const INITIAL = new Int32Array(8);

/** Fractional parts of the roots of the first primes: how the constants are defined. */
function fillConstants(): void {
  const fraction = (root: number) => Math.floor((root - Math.floor(root)) * 2 ** 32);
  let count = 0;
  for (let n = 2; count < 64; n++) {
    let isPrime = true;
    for (let d = 2; d * d <= n; d++) if (n % d === 0) isPrime = false;
    if (!isPrime) continue;
    if (count < 8) INITIAL[count] = fraction(Math.sqrt(n));
    K[count++] = fraction(Math.cbrt(n));
  }
}

// Working memory, used from the beginning of a call to its end: nothing here waits.
const schedule = new Int32Array(64);
const state = new Int32Array(8);
const tail = new Uint8Array(128);

/** The digest of these bytes: 64 lower-case hexadecimal digits. */
export function sha256(content: Uint8Array): string {
  if (K[0] === 0) fillConstants();
  state.set(INITIAL);
  const whole = content.length - content.length % 64;
  for (let at = 0; at < whole; at += 64) compress(content, at);
  const rest = content.length - whole;
  const length = rest < 56 ? 64 : 128;
  tail.fill(0);
  tail.set(content.subarray(whole));
  tail[rest] = 0x80;
  // The length in bits, big-endian, ends the last block.
  for (let i = 0, bits = content.length * 8; i < 8; i++) {
    tail[length - 1 - i] = bits % 256;
    bits = Math.floor(bits / 256);
  }
  for (let at = 0; at < length; at += 64) compress(tail, at);
  let digest = "";
  for (const word of state) digest += (word >>> 0).toString(16).padStart(8, "0");
  return digest;
}

function compress(bytes: Uint8Array, at: number): void {
  const w = schedule;
  const k = K;
  for (let i = 0, p = at; i < 16; i++, p += 4) {
    w[i] = bytes[p]! << 24 | bytes[p + 1]! << 16 | bytes[p + 2]! << 8 | bytes[p + 3]!;
  }
  for (let i = 16; i < 64; i++) {
    const x = w[i - 15]!;
    const y = w[i - 2]!;
    const s0 = (x >>> 7 | x << 25) ^ (x >>> 18 | x << 14) ^ x >>> 3;
    const s1 = (y >>> 17 | y << 15) ^ (y >>> 19 | y << 13) ^ y >>> 10;
    w[i] = w[i - 16]! + s0 + w[i - 7]! + s1 | 0;
  }
  let a = state[0]!;
  let b = state[1]!;
  let c = state[2]!;
  let d = state[3]!;
  let e = state[4]!;
  let f = state[5]!;
  let g = state[6]!;
  let h = state[7]!;
  for (let i = 0; i < 64; i++) {
    const s1 = (e >>> 6 | e << 26) ^ (e >>> 11 | e << 21) ^ (e >>> 25 | e << 7);
    const t1 = h + s1 + (e & f ^ ~e & g) + k[i]! + w[i]! | 0;
    const s0 = (a >>> 2 | a << 30) ^ (a >>> 13 | a << 19) ^ (a >>> 22 | a << 10);
    const t2 = s0 + (a & b ^ a & c ^ b & c) | 0;
    h = g;
    g = f;
    f = e;
    e = d + t1 | 0;
    d = c;
    c = b;
    b = a;
    a = t1 + t2 | 0;
  }
  state[0]! += a;
  state[1]! += b;
  state[2]! += c;
  state[3]! += d;
  state[4]! += e;
  state[5]! += f;
  state[6]! += g;
  state[7]! += h;
}
