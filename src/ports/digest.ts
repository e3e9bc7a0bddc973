/** Content digests. Contract: SHA-256 as 64 lower-case hexadecimal digits. */
export interface DigestPort {
  sha256(content: string | Uint8Array): Promise<string>;
}
