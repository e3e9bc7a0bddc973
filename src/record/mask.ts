/** Secrets out of plain data, string by string. */

import { isObject, type Json, type JsonObject } from "../core/json.ts";

/** Numbers with fewer digits are not secrets that a mask could hide usefully. */
const NUMBER_DIGITS_MIN = 8;

/**
 * A name as our own vocabulary has them: letters and underscores. Such keys stay whatever secret
 * looks like a part of them (`token` in `tokensIn`), or a record would lose its own fields.
 */
const OWN_NAME = /^[A-Za-z_]{1,24}$/;

/**
 * A copy of the value in which every string, every key that is no plain name and every long number
 * went through `mask`.
 */
export function maskDeep(value: Json, mask: (text: string) => string): Json {
  return maskAt(value, mask, 0);
}

function maskAt(value: Json, mask: (text: string) => string, depth: number): Json {
  if (typeof value === "string") return mask(value);
  if (typeof value === "number") {
    const text = String(value);
    if (text.length < NUMBER_DIGITS_MIN || depth < 2) return value;
    return mask(text) === text ? value : mask(text);
  }
  if (Array.isArray(value)) return value.map((item) => maskAt(item, mask, depth + 1));
  if (!isObject(value)) return value;
  const masked: JsonObject = {};
  for (const [key, member] of Object.entries(value)) {
    if (member === undefined) continue;
    Object.defineProperty(masked, depth === 0 || OWN_NAME.test(key) ? key : mask(key), {
      value: maskAt(member, mask, depth + 1),
      enumerable: true,
      configurable: true,
      writable: true,
    });
  }
  return masked;
}
