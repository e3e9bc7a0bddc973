/** Text that must survive every wire: cut on borders that readers see, never in a code point. */

const encoder = new TextEncoder();

/** UTF-8 bytes of a text. */
export function byteLength(text: string): number {
  let bytes = text.length;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 0x80) continue;
    if (code < 0x800) bytes += 1;
    else if (code >= 0xd800 && code < 0xdc00 && (text.charCodeAt(i + 1) & 0xfc00) === 0xdc00) {
      bytes += 2;
      i++;
    } else bytes += 2;
  }
  return bytes;
}

/** The text with unpaired surrogates and NULs replaced by U+FFFD: what any endpoint accepts. */
export function toWellFormed(text: string): string {
  const sound = text.isWellFormed() ? text : text.toWellFormed();
  return sound.includes("\0") ? sound.replaceAll("\0", "\uFFFD") : sound;
}

/** C0 but tab and line feed, C1, zero-width and bidirectional controls. */
const CONTROLS =
  // deno-lint-ignore no-control-regex
  /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u200B-\u200F\u202A-\u202E\u2060-\u206F\uFEFF]/g;

/** Control characters but tab and line feed removed: for metadata that strangers wrote. */
export function withoutControls(text: string): string {
  return text.replace(CONTROLS, "");
}

/** At most `charsMax` UTF-16 units, cut before a surrogate pair, with `…` where cut. */
export function clip(text: string, charsMax: number): string {
  if (text.length <= charsMax) return text;
  let end = charsMax - 1;
  if ((text.charCodeAt(end - 1) & 0xfc00) === 0xd800) end--;
  return text.slice(0, end) + "…";
}

/** Head and tail of a text that is over a size. */
export interface HeadAndTail {
  head: string;
  tail: string;
  /** Bytes shown, head and tail together. */
  keptBytes: number;
  totalBytes: number;
}

/**
 * Two thirds head and one third tail within `bytesMax` UTF-8 bytes, cut at line borders where one
 * is near (within a quarter of the part), else at code-point borders; undefined if the text fits.
 */
export function headAndTail(text: string, bytesMax: number): HeadAndTail | undefined {
  const bytes = encoder.encode(text);
  if (bytes.length <= bytesMax) return undefined;
  const headMax = Math.floor(bytesMax * 2 / 3);
  const tailMax = bytesMax - headMax;
  let headEnd = codePointBorder(bytes, headMax);
  const lineEnd = bytes.lastIndexOf(10, headEnd - 1);
  if (lineEnd >= headMax * 3 / 4) headEnd = lineEnd + 1;
  let tailStart = codePointBorder(bytes, bytes.length - tailMax, true);
  const lineStart = bytes.indexOf(10, tailStart);
  if (lineStart !== -1 && lineStart + 1 < bytes.length && lineStart - tailStart < tailMax / 4) {
    tailStart = lineStart + 1;
  }
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  return {
    head: decoder.decode(bytes.subarray(0, headEnd)),
    tail: decoder.decode(bytes.subarray(tailStart)),
    keptBytes: headEnd + bytes.length - tailStart,
    totalBytes: bytes.length,
  };
}

/** The nearest offset at or before (`forward`: at or after) `offset` where a code point starts. */
export function codePointBorder(bytes: Uint8Array, offset: number, forward = false): number {
  let at = offset;
  while (at > 0 && at < bytes.length && (bytes[at]! & 0xc0) === 0x80) at += forward ? 1 : -1;
  return at;
}
