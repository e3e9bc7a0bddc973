/** JSON as plain data, with the one canonical form that fingerprints are made of. */

import { JSON_LEVELS_MAX } from "./limits.ts";

/** Any JSON value. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** A JSON object. */
export type JsonObject = { [key: string]: Json };

/** Why a text is not JSON, with the place where it stops being JSON (both count from 1). */
export interface JsonFault {
  message: string;
  line: number;
  column: number;
}

/** Whether a value is a JSON object, not an array and not null. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Renders a value with object keys sorted and no white space, so that two values that mean the
 * same have the same text (RFC 8785 in spirit; numbers as `JSON.stringify` writes them).
 */
export function canonicalJson(value: Json): string {
  if (Array.isArray(value)) return "[" + value.map(canonicalJson).join(",") + "]";
  if (!isObject(value)) return JSON.stringify(value);
  const parts: string[] = [];
  for (const key of Object.keys(value).sort()) {
    const member = value[key];
    if (member !== undefined) parts.push(JSON.stringify(key) + ":" + canonicalJson(member));
  }
  return "{" + parts.join(",") + "}";
}

/** The value with every text in it, keys included, as `mend` makes it. */
export function mapStrings(value: Json, mend: (text: string) => string): Json {
  if (typeof value === "string") return mend(value);
  if (Array.isArray(value)) return value.map((item) => mapStrings(item, mend));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [mend(key), mapStrings(item, mend)]),
  );
}

/** Whether a value is nested in more levels than `levelsMax`; it never goes deeper than that. */
export function isNestedDeeper(value: unknown, levelsMax: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (levelsMax <= 0) return true;
  if (Array.isArray(value)) return value.some((item) => isNestedDeeper(item, levelsMax - 1));
  for (const key in value) {
    if (isNestedDeeper((value as JsonObject)[key], levelsMax - 1)) return true;
  }
  return false;
}

/**
 * Parses JSON; a fault is a value that names line and column, never an exception. What is nested
 * in more than `JSON_LEVELS_MAX` levels is a fault too: it can be parsed, and then breaks everything
 * that walks it.
 */
export function parseJson(
  text: string,
): { ok: true; value: Json } | { ok: false; failure: JsonFault } {
  try {
    const value = JSON.parse(text) as Json;
    if (!isNestedDeeper(value, JSON_LEVELS_MAX)) return { ok: true, value };
    const message = `nested in more than ${JSON_LEVELS_MAX} levels`;
    return { ok: false, failure: { message, line: 1, column: 1 } };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const at = /position (\d+)/.exec(message);
    const offset = at ? Number(at[1]) : text.length;
    const before = text.slice(0, offset).split("\n");
    return {
      ok: false,
      failure: {
        message: message.replace(/ \(line \d+ column \d+\)$/, ""),
        line: before.length,
        column: (before.at(-1)?.length ?? 0) + 1,
      },
    };
  }
}
