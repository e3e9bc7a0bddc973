import { toHex } from "../core/ids.ts";
import type { DigestPort } from "../ports/digest.ts";

const encoder = new TextEncoder();

/** SHA-256 by Web Crypto. */
export const systemDigest: DigestPort = {
  async sha256(content) {
    const bytes = typeof content === "string" ? encoder.encode(content) : content;
    return toHex(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes as BufferSource)));
  },
};
