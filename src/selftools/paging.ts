/** Pages of long texts for a model: each says where it stands, how long the whole is, what is next. */

import { ARTIFACT_MATCH_CHARS_MAX, ARTIFACT_MATCHES_MAX } from "../core/limits.ts";
import { byteLength, clip, codePointBorder } from "../core/text.ts";
import type { ArtifactMatches, ArtifactPage } from "../record/artifacts.ts";

/** What stands above a page. */
const HEADER_BYTES = 128;
/** A page is never shorter than this, however little room there is. */
const PAGE_BYTES_MIN = 64;

/** Bytes of text that a page may have where `showBytesMax` bytes of a result are shown. */
export function pageBytes(showBytesMax: number, wanted: unknown): number {
  const most = Math.max(PAGE_BYTES_MIN, showBytesMax - HEADER_BYTES);
  return typeof wanted === "number" ? Math.min(wanted, most) : most;
}

/** A page with its place in the whole. */
export function renderPage(page: ArtifactPage): string {
  const next = page.next === null ? "the end" : `next offset ${page.next}`;
  return `bytes ${page.offset} to ${
    page.offset + page.bytes
  } of ${page.total}, ${next}\n${page.text}`;
}

/** Lines that matched, as many as there is room for. */
export function renderMatches(found: ArtifactMatches, showBytesMax: number): string {
  const lines = found.matches.map((match) =>
    `line ${match.line}, offset ${match.offset}: ${match.text}`
  );
  const kept = fitLines(lines, Math.max(PAGE_BYTES_MIN, showBytesMax - HEADER_BYTES));
  const head = `${found.found} of its lines match (${found.total} bytes in all)`;
  const more = found.found - kept.length;
  return [head, ...kept, ...(more > 0 ? [`${more} more lines match`] : [])].join("\n");
}

/** The first lines that fit into so many bytes, one at the least. */
export function fitLines(lines: readonly string[], bytesMax: number): string[] {
  const kept: string[] = [];
  let bytes = 0;
  for (const line of lines) {
    bytes += byteLength(line) + 1;
    if (bytes > bytesMax && kept.length > 0) break;
    kept.push(line);
  }
  return kept;
}

/** A page of a text in memory. */
export function pageOfText(whole: string, offset: number, length: number): ArtifactPage {
  const bytes = new TextEncoder().encode(whole);
  const start = codePointBorder(bytes, Math.min(Math.max(0, offset), bytes.length));
  let end = codePointBorder(bytes, Math.min(start + length, bytes.length));
  if (end <= start) end = codePointBorder(bytes, Math.min(start + 1, bytes.length), true);
  return {
    text: new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.subarray(start, end)),
    offset: start,
    bytes: end - start,
    total: bytes.length,
    next: end < bytes.length ? end : null,
  };
}

/** The lines of a text in memory that hold a pattern, upper and lower case alike. */
export function matchesInText(whole: string, pattern: string): ArtifactMatches {
  const needle = pattern.toLowerCase();
  const matches: ArtifactMatches["matches"] = [];
  let found = 0;
  let offset = 0;
  for (const [index, line] of whole.split("\n").entries()) {
    if (line.toLowerCase().includes(needle)) {
      found++;
      if (matches.length < ARTIFACT_MATCHES_MAX) {
        matches.push({ line: index + 1, offset, text: clip(line, ARTIFACT_MATCH_CHARS_MAX) });
      }
    }
    offset += byteLength(line) + 1;
  }
  return { matches, found, total: byteLength(whole) };
}
