/**
 * The JSON-action fallback: one object, found in prose by balanced braces, aware of
 * strings and escapes. `{"action":"tool","tool":NAME,"arguments":{…}}` or
 * `{"action":"final","result":…}`, the latter with `"status":"refused"` for an explicit refusal.
 */

import { isObject, type Json, type JsonObject, parseJson } from "../core/json.ts";

/** One action, as the fallback writes it. */
export type JsonAction =
  | { kind: "tool"; tool: string; arguments: Json }
  | { kind: "final"; result: Json }
  | { kind: "refused"; reason: string };

/** An action and its place. */
export interface FoundAction {
  action: JsonAction;
  /** Where the object stands in the text. */
  start: number;
  end: number;
  /** Further actions behind it, which are not taken. */
  more: number;
}

/** The end (exclusive) of the balanced object or array that starts at `start`, or -1. */
function balancedEnd(text: string, start: number): number {
  let depth = 0;
  let inString = false;
  for (let i = start; i < text.length; i++) {
    const c = text[i];
    if (inString) {
      if (c === "\\") i++;
      else if (c === '"') inString = false;
    } else if (c === '"') inString = true;
    else if (c === "{" || c === "[") depth++;
    else if ((c === "}" || c === "]") && --depth === 0) return i + 1;
  }
  return -1;
}

/** Every outermost object in a text that is JSON, in order; linear in the text. */
function* findObjects(
  text: string,
): Generator<{ value: JsonObject; start: number; end: number }> {
  for (const found of findValues(text, /\{/g)) {
    if (isObject(found.value)) yield { ...found, value: found.value };
  }
}

/** Every outermost JSON value in a text that begins as `opening` (a global expression) says. */
function* findValues(
  text: string,
  opening: RegExp,
): Generator<{ value: Json; start: number; end: number }> {
  let at = 0;
  // What opens and never closes makes one scan to the end; a few are enough to give up.
  let open = 0;
  while (open < 8) {
    opening.lastIndex = at;
    const start = opening.exec(text)?.index;
    if (start === undefined) return;
    const end = balancedEnd(text, start);
    if (end === -1) {
      open++;
      at = start + 1;
      continue;
    }
    const parsed = parseJson(text.slice(start, end));
    if (parsed.ok) {
      yield { value: parsed.value, start, end };
      at = end;
    } else at = start + 1;
  }
}

/** Objects of one reply that are looked at. */
const OBJECTS_MAX = 64;

/** The first action object in a text; objects that are no action are passed over. */
export function findAction(text: string): FoundAction | null {
  let tries = 0;
  let first: FoundAction | null = null;
  for (const { value, start, end } of findObjects(text)) {
    const action = parseAction(value);
    if (action !== null && first !== null) first.more++;
    else if (action !== null) first = { action, start, end, more: 0 };
    if (++tries >= OBJECTS_MAX) break;
  }
  return first;
}

function parseAction(value: JsonObject): JsonAction | null {
  if (value.action === "tool" && typeof value.tool === "string") {
    return { kind: "tool", tool: value.tool, arguments: value.arguments ?? {} };
  }
  if (value.action !== "final") return null;
  if (value.status === "refused") {
    const reason = value.reason ?? value.result;
    return { kind: "refused", reason: typeof reason === "string" ? reason : "no reason given" };
  }
  return { kind: "final", result: value.result ?? null };
}

/**
 * The JSON value of a final text: the whole text, the last fenced block, or the last outermost
 * object or array in it; undefined where there is none.
 */
export function findJsonValue(text: string): Json | undefined {
  const trimmed = text.trim();
  const whole = parseJson(trimmed);
  if (whole.ok) return whole.value;
  const blocks = [...trimmed.matchAll(/```[\w-]*[ \t]*\n([\s\S]*?)```/g)];
  for (const block of blocks.reverse()) {
    const parsed = parseJson(block[1]!.trim());
    if (parsed.ok) return parsed.value;
  }
  let last: Json | undefined;
  for (const { value } of findValues(trimmed, /[{[]/g)) last = value;
  return last;
}
