/**
 * What is too large for the context, kept whole: files under `artifacts/` in an agent's directory,
 * and old observations straight from its record.
 */

import { isObject } from "../core/json.ts";
import {
  ARTIFACT_MATCH_CHARS_MAX,
  ARTIFACT_MATCHES_MAX,
  ARTIFACT_READ_BYTES_MAX,
  SHOWN_NAME_CHARS_MAX,
  TOOL_RESULT_BYTES_MAX,
} from "../core/limits.ts";
import { failed, type Outcome, success } from "../core/outcome.ts";
import { clip, codePointBorder } from "../core/text.ts";
import type { FileFailure, FilesPort } from "../ports/files.ts";
import type { Part } from "../ports/model.ts";
import type { RecordLine } from "../wire/record.ts";
import { readFully } from "./append.ts";

/** Where artifacts are, inside an agent's directory. */
export const ARTIFACTS_DIRECTORY = "artifacts";

/** An artifact's id: the name of its file. */
const ARTIFACT_ID = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$/;

/** The largest artifact that is ever kept. */
export const ARTIFACT_BYTES_MAX = TOOL_RESULT_BYTES_MAX;

/** Why there is no artifact to read. */
export interface ArtifactFailure {
  class: "bad_id" | "not_found" | "exists" | "full" | "other";
  message: string;
}

/** A page of an artifact. Offsets are in bytes and always on a border of a character. */
export interface ArtifactPage {
  text: string;
  offset: number;
  bytes: number;
  total: number;
  /** Where the next page starts; null at the end. */
  next: number | null;
}

/** One line that holds the pattern. `line` counts from 1; `offset` is the line's, in bytes. */
export interface ArtifactMatch {
  line: number;
  offset: number;
  text: string;
}

/** What a search found: at most ARTIFACT_MATCHES_MAX lines, and how many there are in all. */
export interface ArtifactMatches {
  matches: ArtifactMatch[];
  found: number;
  total: number;
}

/**
 * What {@link Artifacts} needs. `readObserved` reads the record's line of a call, by the call's id:
 * what no file holds is read again from there.
 */
export interface ArtifactDeps {
  files: FilesPort;
  directory: string;
  readObserved?: (call: string) => Outcome<RecordLine, { message: string }>;
}

/** The artifacts of one agent. Written once, never changed. */
export class Artifacts {
  readonly #files: FilesPort;
  readonly #directory: string;
  readonly #readObserved: ArtifactDeps["readObserved"];
  #made = false;

  constructor(deps: ArtifactDeps) {
    this.#files = deps.files;
    this.#directory = `${deps.directory}/${ARTIFACTS_DIRECTORY}`;
    this.#readObserved = deps.readObserved;
  }

  /** Keeps a content under an id that is new. `content` is masked by then. */
  write(id: string, content: string | Uint8Array): Outcome<void, ArtifactFailure> {
    if (!ARTIFACT_ID.test(id)) return failed(badId(id));
    if (!this.#made) {
      const made = this.#files.makeDirectory(this.#directory);
      if (!made.ok) return failed(artifactFailure(id, made.failure));
      this.#made = true;
    }
    const written = this.#files.createNew(`${this.#directory}/${id}`, content);
    return written.ok ? written : failed(artifactFailure(id, written.failure));
  }

  /** At most `length` bytes from `offset` on; both are brought within bounds. */
  read(
    id: string,
    offset = 0,
    length = ARTIFACT_READ_BYTES_MAX,
  ): Outcome<ArtifactPage, ArtifactFailure> {
    const opened = this.#open(id);
    if (!opened.ok) return opened;
    const source = opened.value;
    try {
      const start = Math.min(Math.max(0, Math.floor(offset)), source.total);
      const wanted = Math.min(Math.max(1, Math.floor(length)), ARTIFACT_READ_BYTES_MAX);
      // A few bytes more on both sides show whether the page starts and ends inside a character.
      const from = Math.max(0, start - 3);
      const bytes = new Uint8Array(Math.min(start + wanted + 3, source.total) - from);
      const read = source.readFully(from, bytes);
      if (!read.ok) return failed(artifactFailure(id, read.failure));
      const head = codePointBorder(bytes, start - from);
      let tail = codePointBorder(bytes, Math.min(start + wanted - from, bytes.length));
      // A page shorter than its first character would never get on.
      if (tail <= head) tail = codePointBorder(bytes, Math.min(head + 1, bytes.length), true);
      const end = from + tail;
      return success({
        text: new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.subarray(head, tail)),
        offset: from + head,
        bytes: tail - head,
        total: source.total,
        next: end < source.total ? end : null,
      });
    } finally {
      source.close();
    }
  }

  /**
   * The lines that hold a text, upper and lower case alike. Plain text and no expression: a pattern
   * from a model must not be able to stop the loop.
   */
  search(id: string, pattern: string): Outcome<ArtifactMatches, ArtifactFailure> {
    const opened = this.#open(id);
    if (!opened.ok) return opened;
    const source = opened.value;
    try {
      return this.#searchIn(id, source, pattern.toLowerCase());
    } finally {
      source.close();
    }
  }

  #searchIn(
    id: string,
    source: Source,
    needle: string,
  ): Outcome<ArtifactMatches, ArtifactFailure> {
    if (source.total > ARTIFACT_BYTES_MAX) {
      return failed({ class: "other", message: `Cannot search artifact ${id}: it is too large` });
    }
    const bytes = new Uint8Array(source.total);
    const read = source.readFully(0, bytes);
    if (!read.ok) return failed(artifactFailure(id, read.failure));
    const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    const matches: ArtifactMatch[] = [];
    let found = 0;
    let line = 0;
    for (let start = 0; start < bytes.length;) {
      const feed = bytes.indexOf(10, start);
      const end = feed === -1 ? bytes.length : feed;
      const text = decoder.decode(bytes.subarray(start, end));
      const place = text.toLowerCase().indexOf(needle);
      line++;
      if (place !== -1) {
        found++;
        if (matches.length < ARTIFACT_MATCHES_MAX) {
          matches.push({ line, offset: start, text: around(text, place) });
        }
      }
      start = end + 1;
    }
    return success({ matches, found, total: source.total });
  }

  #open(id: string): Outcome<Source, ArtifactFailure> {
    if (!ARTIFACT_ID.test(id)) return failed(badId(id));
    const path = `${this.#directory}/${id}`;
    const stat = this.#files.lstat(path);
    if (!stat.ok) {
      return stat.failure.class === "not_found"
        ? this.#openObserved(id)
        : failed(artifactFailure(id, stat.failure));
    }
    if (stat.value.kind !== "file") return failed(badId(id));
    const handle = this.#files.openRead(path);
    if (!handle.ok) return failed(artifactFailure(id, handle.failure));
    return success({
      total: stat.value.bytes,
      readFully: (offset, buffer) => readFully(handle.value, offset, buffer),
      close: () => handle.value.close(),
    });
  }

  #openObserved(id: string): Outcome<Source, ArtifactFailure> {
    const line = this.#readObserved?.(id);
    if (!line?.ok) return failed({ class: "not_found", message: `There is no artifact ${id}` });
    const { observation } = line.value;
    const excerpt = isObject(observation) ? observation.excerpt : null;
    // The record holds an excerpt alone: it must not pass for the whole.
    if (isObject(excerpt)) {
      const message = `The file of artifact ${id} is missing; what was shown of it, ` +
        `${excerpt.kept} of ${excerpt.total} bytes, is all there is`;
      return failed({ class: "not_found", message });
    }
    const bytes = new TextEncoder().encode(observationText(observation));
    return success({
      total: bytes.length,
      readFully: (offset, buffer) => {
        buffer.set(bytes.subarray(offset, offset + buffer.length));
        return success(undefined);
      },
      close: () => {},
    });
  }
}

interface Source {
  total: number;
  readFully(offset: number, buffer: Uint8Array): Outcome<void, FileFailure>;
  close(): void;
}

/** The text of a recorded observation: its parts, or the harness's or the tool's message. */
export function observationText(observation: unknown): string {
  const fields = observation as {
    parts?: Part[];
    message?: string;
    why?: string;
    structured?: unknown;
  };
  if (Array.isArray(fields.parts) && fields.parts.length > 0) {
    return fields.parts.map(partText).join("\n");
  }
  if (fields.structured !== undefined && fields.structured !== null) {
    return JSON.stringify(fields.structured);
  }
  return fields.message ?? fields.why ?? "";
}

/** A part as text: itself, or what it is and how large. */
export function partText(part: Part): string {
  if (part.type === "text") return part.text;
  return `[${part.type} ${part.mimeType}, ${Math.floor(part.data.length * 3 / 4)} bytes]`;
}

function around(text: string, place: number): string {
  const start = Math.max(0, place - Math.floor(ARTIFACT_MATCH_CHARS_MAX / 4));
  const shown = clip(text.slice(start), ARTIFACT_MATCH_CHARS_MAX).toWellFormed();
  return start > 0 ? "…" + shown : shown;
}

function badId(id: string): ArtifactFailure {
  return {
    class: "bad_id",
    message: `There can be no artifact ${JSON.stringify(clip(id, SHOWN_NAME_CHARS_MAX))}`,
  };
}

function artifactFailure(id: string, failure: FileFailure): ArtifactFailure {
  switch (failure.class) {
    case "not_found":
      return { class: "not_found", message: `There is no artifact ${id}` };
    case "exists":
    case "full":
      return { class: failure.class, message: `Cannot keep artifact ${id}: ${failure.message}` };
    default:
      return { class: "other", message: `Cannot use artifact ${id}: ${failure.message}` };
  }
}
