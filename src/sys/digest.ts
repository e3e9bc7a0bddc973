import { toHex } from "../core/ids.ts";
import { sha256 } from "../core/sha256.ts";
import type { DigestPort } from "../ports/digest.ts";

const encoder = new TextEncoder();

/** Above this, another thread is worth the way to it. */
const SHORT_BYTES_MAX = 2 * 1024;

/** SHA-256: by Web Crypto, short contents at once. */
export const systemDigest: DigestPort = {
  async sha256(content) {
    const bytes = typeof content === "string" ? encoder.encode(content) : content;
    if (bytes.length <= SHORT_BYTES_MAX) return sha256(bytes);
    return toHex(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes as BufferSource)));
  },
};
