/** Identifiers: ULIDs for runs, W3C trace and span ids, and the grammar of a run id. */

const CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/** A run id as users may give it. */
export const RUN_ID = /^[A-Za-z0-9_-]{1,64}$/;

/** A ULID from a wall-clock time in milliseconds and ten random bytes. */
export function makeUlid(wallMs: number, random: Uint8Array): string {
  let time = Math.floor(wallMs);
  let head = "";
  for (let i = 0; i < 10; i++) {
    head = CROCKFORD[time % 32]! + head;
    time = Math.floor(time / 32);
  }
  let tail = "";
  for (let i = 0; i < 16; i++) {
    const bit = i * 5;
    const byte = bit >> 3;
    const pair = ((random[byte] ?? 0) << 8) | (random[byte + 1] ?? 0);
    tail += CROCKFORD[(pair >> (11 - (bit & 7))) & 31]!;
  }
  return head + tail;
}

/** Lower-case hexadecimal digits of bytes. */
export function toHex(bytes: Uint8Array): string {
  let out = "";
  for (const byte of bytes) out += byte.toString(16).padStart(2, "0");
  return out;
}

/** A W3C `traceparent` value, sampled. `traceId`: 32, `spanId`: 16 hexadecimal digits. */
export function traceparent(traceId: string, spanId: string): string {
  return `00-${traceId}-${spanId}-01`;
}
