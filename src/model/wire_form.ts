/** How pieces of a conversation look where a wire takes only some forms of them. */

import { fnv64 } from "../core/hash.ts";
import { isObject, parseJson } from "../core/json.ts";
import { WIRE_TOOL_MESSAGES_MAX, WIRE_TOOL_NAME_CHARS_MAX } from "../core/limits.ts";
import { clip, toWellFormed } from "../core/text.ts";
import { formatSize } from "../core/units.ts";
import type { Message, Part } from "../ports/model.ts";

type AssistantMessage = Extract<Message, { role: "assistant" }>;
type ToolMessage = Extract<Message, { role: "tool" }>;

/** Image types that both dialects take. */
const IMAGE_TYPES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

/** What is shown of all results that a turn's wire has no room for. */
const OVERFLOW_CHARS_MAX = 16_000;
const OVERFLOW_RESULT_CHARS_MAX = 2_000;

/** What stands where a wire wants text and there is none. */
export const EMPTY_TEXT = "(empty)";

/** Whether a part can be shown as an image. */
export function isImage(part: Part): part is Extract<Part, { type: "image" }> {
  return part.type === "image" && IMAGE_TYPES.has(part.mimeType);
}

/** A part as text; what is no text is described. */
export function describePart(part: Part): string {
  if (part.type === "text") return toWellFormed(part.text);
  const bytes = Math.floor(part.data.length * 3 / 4);
  return `[${part.type} ${part.mimeType}, ${formatSize(bytes)}: not shown]`;
}

/** Parts as one text. */
function describeParts(parts: readonly Part[]): string {
  return parts.map(describePart).filter((text) => text !== "").join("\n\n");
}

/** A tool's name as a wire takes it: what a model made up is carried in a legal form. */
export function wireName(name: string): string {
  const legal = name.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, WIRE_TOOL_NAME_CHARS_MAX);
  return legal === "" ? "unnamed" : legal;
}

/** A call's id as a wire takes it. The same id has the same form wherever it stands. */
export function wireId(id: string): string {
  return /^[A-Za-z0-9_-]{1,64}$/.test(id) ? id : `call_${fnv64(id)}`;
}

/** A call's arguments as an object's text: endpoints reject a history whose arguments are none. */
export function wireArguments(text: string): string {
  const parsed = parseJson(text);
  return parsed.ok && isObject(parsed.value) ? toWellFormed(text) : "{}";
}

/** A tool result's text with the harness's words after it. */
export function resultText(message: ToolMessage, text: string): string {
  const body = text.trim() === "" ? EMPTY_TEXT : text;
  return message.note === undefined || message.note === ""
    ? body
    : `${body}\n\n${toWellFormed(message.note)}`;
}

/**
 * The conversation with at most {@link WIRE_TOOL_MESSAGES_MAX} calls in one assistant message: the
 * first ones stay, and what came of the others is told in the text of the last result that stays.
 * The same array if nothing is over the bound.
 */
export function withinToolMessages(messages: readonly Message[]): readonly Message[] {
  const isOver = (message: Message) =>
    message.role === "assistant" && message.calls.length > WIRE_TOOL_MESSAGES_MAX;
  if (!messages.some(isOver)) return messages;
  const out: Message[] = [];
  for (let i = 0; i < messages.length; i++) {
    const message = messages[i]!;
    if (!isOver(message)) {
      out.push(message);
      continue;
    }
    let end = i + 1;
    while (messages[end]?.role === "tool") end++;
    out.push(
      ...narrowTurn(message as AssistantMessage, messages.slice(i + 1, end) as ToolMessage[]),
    );
    i = end - 1;
  }
  return out;
}

function narrowTurn(assistant: AssistantMessage, results: readonly ToolMessage[]): Message[] {
  const calls = assistant.calls.slice(0, WIRE_TOOL_MESSAGES_MAX);
  const carried = new Set(calls.map((call) => call.id));
  const kept = results.filter((result) => carried.has(result.callId));
  const rest = results.filter((result) => !carried.has(result.callId));
  const last = kept.at(-1);
  if (last !== undefined && rest.length > 0) {
    const notes = [last.note, describeRest(rest), ...rest.map((result) => result.note)];
    const note = notes.filter((text) => text !== undefined && text !== "").join("\n\n");
    kept[kept.length - 1] = { ...last, note };
  }
  return [{ ...assistant, calls }, ...kept];
}

/** Results that are not carried as messages, equal ones told once. */
function describeRest(rest: readonly ToolMessage[]): string {
  const groups = new Map<string, string[]>();
  for (const result of rest) {
    const text = `${result.name}: ${clip(describeParts(result.parts), OVERFLOW_RESULT_CHARS_MAX)}`;
    const ids = groups.get(text);
    if (ids) ids.push(result.callId);
    else groups.set(text, [result.callId]);
  }
  const lines = [...groups].map(([text, ids]) => ids.length > 1 ? `${ids.length} × ${text}` : text);
  return clip(
    `${rest.length} more calls of the same reply ended so:\n${lines.join("\n")}`,
    OVERFLOW_CHARS_MAX,
  );
}
