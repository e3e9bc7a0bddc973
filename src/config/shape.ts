/** Shapes of values as they stand in a configuration file, and the check of a value against one. */

import { CONFIG_DURATION_MS_MAX, CONFIG_LIST_ITEMS_MAX } from "../core/config_limits.ts";
import { isObject, type Json } from "../core/json.ts";
import { parseDurationMs, parseSizeBytes } from "../core/units.ts";
import { didYouMean } from "./suggest.ts";
import { showValue } from "./problem.ts";
import { splitWords } from "./words.ts";

/** What a value must be. Durations, sizes, rates and commands are texts, as users write them. */
export type Shape =
  | { kind: "text"; pattern?: RegExp; expects?: string }
  | { kind: "int"; min: number; max?: number }
  | { kind: "number"; min: number; max?: number; above?: boolean }
  | { kind: "duration"; minMs: number }
  | { kind: "size"; min: number }
  | { kind: "enum"; values: readonly string[] }
  | { kind: "boolean" }
  | { kind: "command" }
  | { kind: "rate" }
  /** `true`: everything; `false` or an empty list: nothing. */
  | { kind: "permission" }
  /** Any object: passed through. */
  | { kind: "object" }
  /** `comma`: one text may hold several, separated by commas. */
  | { kind: "list"; of: Shape; comma?: boolean }
  | { kind: "map"; of: Shape; key?: RegExp; keyExpects?: string }
  | { kind: "record"; fields: Readonly<Record<string, Shape>>; required?: readonly string[] };

/** Told of every fault: where below the value, the part at fault, what is wrong, what would be right. */
export type Report = (path: readonly string[], value: Json, message: string, hint: string) => void;

/** Calls per period of `30/m`; undefined if it is no rate. */
export function parseRate(text: string): { calls: number; perMs: number } | undefined {
  const match = /^([1-9]\d{0,8})\/(ms|s|m|h|d)$/.exec(text);
  return match
    ? { calls: Number(match[1]), perMs: parseDurationMs(`1${match[2]}`) as number }
    : undefined;
}

/** What a shape expects, in words. */
export function describeShape(shape: Shape): string {
  switch (shape.kind) {
    case "text":
      return shape.expects ?? "a text";
    case "int":
      return shape.max === undefined
        ? `a whole number, ${shape.min} or more`
        : `a whole number from ${shape.min} to ${shape.max}`;
    case "number":
      if (shape.max === undefined) {
        return `a number ${shape.above ? `above ${shape.min}` : `of at least ${shape.min}`}`;
      }
      return shape.above
        ? `a number above ${shape.min} and at most ${shape.max}`
        : `a number from ${shape.min} to ${shape.max}`;
    case "duration":
      return "a duration such as 500ms, 30s, 10m or 2h";
    case "size":
      return "a size such as 16KiB, 512MiB or 1GiB";
    case "enum":
      return shape.values.length === 2
        ? shape.values.join(" or ")
        : `one of ${shape.values.join(", ")}`;
    case "boolean":
      return "true or false";
    case "command":
      return "a command line";
    case "rate":
      return "a rate such as 30/m or 5/s";
    case "permission":
      return "true, false or a list";
    case "object":
    case "record":
    case "map":
      return "a mapping of keys to values";
    case "list":
      return "a list";
  }
}

/** Checks a value against a shape and reports every fault; true if there was none. */
export function checkShape(shape: Shape, value: Json, path: string[], report: Report): boolean {
  const wrong = (hint = ""): false => {
    report(path, value, `${showValue(value)} is not ${describeShape(shape)}`, hint);
    return false;
  };
  switch (shape.kind) {
    case "text":
      if (typeof value !== "string") {
        return wrong(typeof value === "object" ? "" : "put it in quotes");
      }
      return shape.pattern && !shape.pattern.test(value) ? wrong() : true;
    case "enum":
      if (typeof value === "string" && shape.values.includes(value)) return true;
      return wrong(typeof value === "string" ? didYouMean(value, shape.values) : "");
    case "int":
      return Number.isSafeInteger(value) && inRange(value as number, shape) ? true : wrong();
    case "number":
      return typeof value === "number" && inRange(value, shape) ? true : wrong();
    case "boolean":
      return typeof value === "boolean" ? true : wrong();
    case "duration":
      return checkDuration(shape.minMs, value, path, report);
    case "size": {
      const bytes = typeof value === "number" ? value : parseSizeBytes(String(value));
      if (bytes === undefined || !Number.isSafeInteger(bytes)) return wrong();
      if (bytes >= shape.min) return true;
      report(path, value, `${showValue(value)} is below ${shape.min} bytes`, "");
      return false;
    }
    case "rate":
      return typeof value === "string" && parseRate(value) ? true : wrong();
    case "command":
      return checkCommand(value, path, report);
    case "permission":
      if (typeof value === "boolean") return true;
      return Array.isArray(value) ? checkItems({ kind: "text" }, value, path, report) : wrong();
    case "object":
      return isObject(value) ? true : wrong();
    case "list":
      if (shape.comma && typeof value === "string") return true;
      return Array.isArray(value) ? checkItems(shape.of, value, path, report) : wrong();
    case "map":
      return isObject(value) ? checkMap(shape, value, path, report) : wrong();
    case "record":
      return isObject(value) ? checkRecord(shape, value, path, report) : wrong();
  }
}

function inRange(value: number, shape: { min: number; max?: number; above?: boolean }): boolean {
  return (shape.above ? value > shape.min : value >= shape.min) &&
    value <= (shape.max ?? Number.MAX_SAFE_INTEGER);
}

function checkDuration(minMs: number, value: Json, path: string[], report: Report): boolean {
  const ms = typeof value === "string" ? parseDurationMs(value) : value === 0 ? 0 : undefined;
  const shown = showValue(value);
  if (ms === undefined) {
    const hint = typeof value === "number" || /^\d+$/.test(String(value))
      ? `add the unit, as in ${String(value)}s`
      : "";
    report(path, value, `${shown} is not ${describeShape({ kind: "duration", minMs })}`, hint);
    return false;
  }
  if (ms < minMs) report(path, value, `${shown} is too short`, `at least ${minMs}ms`);
  else if (ms > CONFIG_DURATION_MS_MAX) report(path, value, `${shown} is too long`, "at most 366d");
  else return true;
  return false;
}

function checkCommand(value: Json, path: string[], report: Report): boolean {
  if (typeof value !== "string") {
    report(path, value, `${showValue(value)} is not a command line`, "write it as one text");
    return false;
  }
  const words = splitWords(value);
  if (words.ok) return true;
  report(
    path,
    value,
    `Cannot split ${showValue(value)} into words: ${words.failure}`,
    words.failure.includes("quote") ? "close the quote, or escape it with a backslash" : "",
  );
  return false;
}

function checkItems(of: Shape, items: Json[], path: string[], report: Report): boolean {
  if (items.length > CONFIG_LIST_ITEMS_MAX) {
    report(
      path,
      items.length,
      `a list of ${items.length} items`,
      `at most ${CONFIG_LIST_ITEMS_MAX}`,
    );
    return false;
  }
  let sound = true;
  items.forEach((item, index) => {
    if (!checkShape(of, item, [...path, String(index)], report)) sound = false;
  });
  return sound;
}

function checkMap(
  shape: Extract<Shape, { kind: "map" }>,
  value: { [key: string]: Json },
  path: string[],
  report: Report,
): boolean {
  let sound = true;
  for (const [key, member] of Object.entries(value)) {
    if (shape.key && !shape.key.test(key)) {
      report([...path, key], key, `${showValue(key)} is not ${shape.keyExpects ?? "a name"}`, "");
      sound = false;
    }
    if (!checkShape(shape.of, member, [...path, key], report)) sound = false;
  }
  return sound;
}

function checkRecord(
  shape: Extract<Shape, { kind: "record" }>,
  value: { [key: string]: Json },
  path: string[],
  report: Report,
): boolean {
  let sound = true;
  for (const [key, member] of Object.entries(value)) {
    const field = shape.fields[key];
    if (!field || !Object.hasOwn(shape.fields, key)) {
      const known = Object.keys(shape.fields);
      report(
        [...path, key],
        key,
        `unknown key ${showValue(key)}`,
        didYouMean(key, known) || `known here: ${known.join(", ")}`,
      );
      sound = false;
    } else if (member !== null && !checkShape(field, member, [...path, key], report)) sound = false;
  }
  for (const key of shape.required ?? []) {
    if ((value[key] ?? null) === null) {
      report(path, value, `the key ${showValue(key)} is missing`, "");
      sound = false;
    }
  }
  return sound;
}
