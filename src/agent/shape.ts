/**
 * From what a tool returned to a typed observation: secrets gone, bounded, whole content kept as an
 * artifact, and a digest of everything but time-like noise.
 */

import { canonicalJson, type JsonObject, parseJson } from "../core/json.ts";
import type { Outcome } from "../core/outcome.ts";
import { byteLength, clip, headAndTail, toWellFormed } from "../core/text.ts";
import type { DigestPort } from "../ports/digest.ts";
import type { Part } from "../ports/model.ts";
import type { ToolFailure, ToolResult } from "../ports/tools.ts";
import { maskTime } from "./mask.ts";
import type { Observation } from "./observation.ts";
import type { PlannedCall } from "./plan.ts";

/** What shaping a result needs. */
export interface ShapeDeps {
  digest: DigestPort;
  /** Replaces every known secret. */
  mask: (text: string) => string;
  /** Keeps a whole content; false if it could not be kept. */
  keep: (id: string, content: string) => boolean;
}

/** A result as the loop takes it. */
export interface Shaped {
  observation: Observation;
  digest: string;
  bytes: number;
}

type Media = Exclude<Part, { type: "text" }>;

/** Noise is masked in this much of a content; what follows counts as it is. */
const MASKED_CHARS_MAX = 256 * 1024;
const WHY_CHARS_MAX = 1_000;

/** Shapes an answer or a failure. */
export async function shapeResult(
  deps: ShapeDeps,
  call: PlannedCall,
  result: Outcome<ToolResult, ToolFailure>,
): Promise<Shaped> {
  if (!result.ok) return await shapeFailure(deps, call, result.failure);
  const { text, media, described, structured } = readParts(deps, result.value, call);
  const textBytes = byteLength(text);
  const bytes = textBytes + media.reduce((sum, part) => sum + part.data.length, 0);
  const digest = await digestContent(deps, text, [...media, ...described]);
  const cut = textBytes > call.showBytesMax ? headAndTail(text, call.showBytesMax) : undefined;
  const excerpt = cut === undefined || !deps.keep(call.call, text)
    ? null
    : { kept: cut.keptBytes, total: cut.totalBytes, artifact: call.call };
  const shown = cut === undefined ? text : joinCut(cut, call.call, excerpt !== null);
  if (result.value.isError) {
    return {
      observation: {
        class: "error",
        error: "tool",
        message: shown || "(no message)",
        retryable: false,
        excerpt,
      },
      digest,
      bytes,
    };
  }
  const parts: Part[] = shown === "" && media.length > 0
    ? media
    : [{ type: "text", text: shown }, ...media];
  const gap = partialOf(result.value.structured);
  if (gap !== null) {
    return { observation: { class: "partial", ...gap, parts, excerpt }, digest, bytes };
  }
  if (excerpt !== null) {
    return { observation: { class: "truncated", parts, excerpt }, digest, bytes };
  }
  return { observation: { class: "ok", parts, structured }, digest, bytes };
}

/**
 * The text of a result, its structured content included once, and its media within bounds. An error
 * is text alone: its media are described.
 */
function readParts(
  deps: ShapeDeps,
  result: ToolResult,
  { mediaBytesMax, mediaMax }: PlannedCall,
): { text: string; media: Media[]; described: Media[]; structured: JsonObject | null } {
  const texts: string[] = [];
  const media: Media[] = [];
  const described: Media[] = [];
  let mediaBytes = 0;
  for (const part of result.parts) {
    if (part.type === "text") texts.push(part.text);
    else {
      mediaBytes += part.data.length;
      const why = result.isError
        ? "an error shows none"
        : mediaBytes > mediaBytesMax
        ? "too large to show"
        : media.length >= mediaMax
        ? "one too many to show"
        : null;
      if (why === null) media.push(part);
      else {
        described.push(part);
        texts.push(`[${part.type} ${part.mimeType}, ${part.data.length} bytes of base64, ${why}]`);
      }
    }
  }
  const { structured } = result;
  const held = structured === null || holdsStructured(texts, structured);
  if (!held) texts.push(JSON.stringify(structured));
  const text = deps.mask(toWellFormed(texts.join("\n")));
  return { text, media, described, structured: held ? null : structured };
}

/** A result's text as hooks are given it: its media named, its structured content included once. */
export function resultText({ parts, structured }: ToolResult): string {
  const texts = parts.map((part) => part.type === "text" ? part.text : `[${part.type}]`);
  const plain = parts.flatMap((part) => part.type === "text" ? [part.text] : []);
  if (structured !== null && !holdsStructured(plain, structured)) {
    texts.push(JSON.stringify(structured));
  }
  return texts.join("\n");
}

/** Servers repeat structured content as text; it is shown once. */
function holdsStructured(texts: readonly string[], structured: JsonObject): boolean {
  if (texts.length !== 1) return false;
  const text = texts[0]!.trim();
  if (!text.startsWith("{")) return false;
  const parsed = parseJson(text);
  return parsed.ok && canonicalJson(parsed.value) === canonicalJson(structured);
}

/** A result that says of itself that it is partial: `{partial: true, done, missing}`. */
function partialOf(structured: JsonObject | null): { done: string; missing: string } | null {
  if (structured === null || structured.partial !== true || structured.missing === undefined) {
    return null;
  }
  const word = (value: unknown) =>
    clip(typeof value === "string" ? value : JSON.stringify(value ?? ""), WHY_CHARS_MAX);
  return { done: word(structured.done), missing: word(structured.missing) };
}

function joinCut(
  cut: { head: string; tail: string; keptBytes: number; totalBytes: number },
  call: string,
  kept: boolean,
): string {
  const left = cut.totalBytes - cut.keptBytes;
  const how = kept
    ? `; artifact_read ${JSON.stringify({ id: call, offset: byteLength(cut.head) })}`
    : "";
  return `${cut.head}\n[${left} of ${cut.totalBytes} bytes left out here${how}]\n${cut.tail}`;
}

async function digestContent(
  deps: ShapeDeps,
  text: string,
  media: readonly Media[],
): Promise<string> {
  const masked = text.length <= MASKED_CHARS_MAX
    ? maskTime(text)
    : maskTime(text.slice(0, MASKED_CHARS_MAX)) + text.slice(MASKED_CHARS_MAX);
  const whole = media.length === 0
    ? masked
    : [masked, ...media.map((part) => `${part.mimeType};${part.data}`)].join("\n");
  return await deps.digest.sha256(whole);
}

/** The taxonomy of failures (ARCHITECTURE.md): what a lost or failed call is to the model. */
async function shapeFailure(
  deps: ShapeDeps,
  call: PlannedCall,
  failure: ToolFailure,
): Promise<Shaped> {
  const message = clip(deps.mask(toWellFormed(failure.message)), WHY_CHARS_MAX);
  const observation = observeFailure(call, { ...failure, message });
  const content = `${failure.class}\n${maskTime(message)}`;
  return { observation, digest: await deps.digest.sha256(content), bytes: byteLength(message) };
}

function observeFailure(call: PlannedCall, failure: ToolFailure): Observation {
  const { message } = failure;
  const error = (
    kind: "protocol" | "transport" | "permission",
    retryable: boolean,
  ): Observation => ({
    class: "error",
    error: kind,
    message,
    retryable,
    excerpt: null,
  });
  switch (failure.class) {
    case "protocol":
      return error("protocol", failure.retryable);
    case "not_sent":
    case "server_down":
      return error("transport", failure.retryable);
    case "denied":
      return error("permission", false);
    case "lost":
      return call.effect === "read_only" ? error("transport", true) : unknownOutcome(call, message);
    case "cancelled":
      return call.effect === "read_only"
        ? { class: "refused", why: "withdrawn before its answer came" }
        : unknownOutcome(call, message);
  }
}

/** A side effect whose answer is lost: what was asked, and how to find out. */
function unknownOutcome(call: PlannedCall, message: string): Observation {
  const asked = clip(JSON.stringify(call.arguments), 400);
  return {
    class: "unknown",
    why:
      `${call.tool.name} ${asked} was sent and its answer is lost (${message}). It may have happened. Read the state to find out before you send it again.`,
  };
}
