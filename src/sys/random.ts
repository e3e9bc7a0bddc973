import type { RandomPort } from "../ports/random.ts";

/** Web Crypto's randomness. */
export const systemRandom: RandomPort = {
  bytes: (count) => crypto.getRandomValues(new Uint8Array(count)),
  unit: () => crypto.getRandomValues(new Uint32Array(1))[0]! / 2 ** 32,
};
