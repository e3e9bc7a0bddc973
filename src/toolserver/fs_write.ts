/** write and edit of the fs server: whole files, in one step. */

import { isConfigurationName } from "../core/config_name.ts";
import { toHex } from "../core/ids.ts";
import { EDIT_FILE_BYTES_MAX, PATH_CHARS_MAX, WRITE_BYTES_MAX } from "../core/tool_limits.ts";
import type { TreeFile } from "../ports/tree.ts";
import type { FsDeps } from "./fs.ts";
import { type GrantedPath, requireFile } from "./grant.ts";
import { join, nameOf, parentOf } from "./paths.ts";
import {
  type Answer,
  type Arguments,
  type BuiltinTool,
  quote,
  textAnswer,
  ToolError,
} from "./tool.ts";

const encoder = new TextEncoder();

/** Writes a whole file. */
export function writeTool(deps: FsDeps): BuiltinTool {
  return {
    name: "write",
    description: "Write a whole text file, replacing what was there; missing directories are " +
      "made. The file changes in one step or not at all.",
    inputSchema: {
      type: "object",
      properties: { path: { type: "string" }, content: { type: "string" } },
      required: ["path", "content"],
    },
    annotations: {
      readOnlyHint: false,
      destructiveHint: true,
      idempotentHint: true,
      openWorldHint: false,
    },
    run: (args) => deps.alone(() => writeFile(deps, args)),
  };
}

async function writeFile(deps: FsDeps, args: Arguments): Promise<Answer> {
  const requested = args.text("path", PATH_CHARS_MAX);
  const content = args.text("content", WRITE_BYTES_MAX);
  const bytes = encoder.encode(content);
  if (bytes.length > WRITE_BYTES_MAX) {
    throw new ToolError(
      `Cannot write ${bytes.length} bytes: at most ${WRITE_BYTES_MAX} are taken at once.`,
    );
  }
  if (/[\\/]$/.test(requested)) {
    throw new ToolError(
      `Cannot write ${quote(requested)}: it names a directory; name a file in it.`,
    );
  }
  const shown = await replaceFile(deps, requested, bytes, null);
  const what = shown.replaced ? "replaced" : "new file";
  return textAnswer(`Wrote ${bytes.length} bytes to ${shown.shown} (${what}).`);
}

/** Replaces an exact text in a file. */
export function editTool(deps: FsDeps): BuiltinTool {
  return {
    name: "edit",
    description:
      "Replace an exact text in a file, everywhere it stands. The number of places must " +
      "be count (default 1), else nothing is changed. White space and line ends count.",
    inputSchema: {
      type: "object",
      properties: {
        path: { type: "string" },
        old_text: { type: "string" },
        new_text: { type: "string" },
        count: { type: "integer", minimum: 1, description: "Places expected; default 1." },
      },
      required: ["path", "old_text", "new_text"],
    },
    annotations: {
      readOnlyHint: false,
      destructiveHint: true,
      idempotentHint: false,
      openWorldHint: false,
    },
    run: (args) => deps.alone(() => editFile(deps, args)),
  };
}

async function editFile(deps: FsDeps, args: Arguments): Promise<Answer> {
  const { grant } = deps;
  const requested = args.text("path", PATH_CHARS_MAX);
  const oldText = args.text("old_text", WRITE_BYTES_MAX);
  const newText = args.text("new_text", WRITE_BYTES_MAX);
  const count = args.integer("count", 1, 1_000_000, 1);
  if (oldText === "") {
    throw new ToolError("Cannot edit: old_text is empty; use write for a new file.");
  }
  if (oldText === newText) {
    throw new ToolError("Cannot edit: old_text and new_text are the same.");
  }
  const target = grant.locate(requested, "write");
  requireFile(target, "write");
  if (!grant.covers(target.path, "read")) {
    throw new ToolError(
      `Cannot edit ${target.shown}: it may be written, but not read; use write for the whole file.`,
    );
  }
  const text = await loadText(deps, target);
  const places = countPlaces(text, oldText);
  if (places !== count) throw wrongCount(target.shown, text, oldText, places, count);
  if (overlaps(text, oldText)) {
    throw new ToolError(
      `Cannot edit ${target.shown}: places where old_text stands overlap, so it is not clear which ` +
        "is meant. Nothing was changed. Make old_text longer so that it names its place.",
    );
  }
  // Checked before the text is made, which could be too long for any string.
  const length = text.length + places * (newText.length - oldText.length);
  const result = length > EDIT_FILE_BYTES_MAX
    ? null
    : encoder.encode(text.replaceAll(oldText, () => newText));
  if (result === null || result.length > EDIT_FILE_BYTES_MAX) {
    throw new ToolError(
      `Cannot edit ${target.shown}: it would have over ${EDIT_FILE_BYTES_MAX} bytes.`,
    );
  }
  await replaceFile(deps, requested, result, target);
  const line = lineAt(text, text.indexOf(oldText));
  return textAnswer(
    `Replaced ${places} ${places === 1 ? "place" : "places"} in ${target.shown}, ` +
      `the first in line ${line}; it has ${result.length} bytes now.`,
  );
}

async function loadText({ grant }: FsDeps, target: GrantedPath): Promise<string> {
  if (target.entry.bytes > EDIT_FILE_BYTES_MAX) {
    throw new ToolError(
      `Cannot edit ${target.shown}: it has ${target.entry.bytes} bytes, over ${EDIT_FILE_BYTES_MAX}.`,
    );
  }
  const file = await grant.open(target);
  try {
    const bytes = new Uint8Array(EDIT_FILE_BYTES_MAX + 1);
    let filled = 0;
    for (;;) {
      const read = file.readAt(filled, bytes.subarray(filled));
      if (!read.ok) throw grant.problem("read", target.shown, read.failure);
      if (read.value === 0) break;
      filled += read.value;
    }
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
      .decode(bytes.subarray(0, filled));
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new ToolError(
      `Cannot edit ${target.shown}: it is not valid UTF-8, and an edit would damage it.`,
    );
  } finally {
    file.close();
  }
}

function wrongCount(
  shown: string,
  text: string,
  oldText: string,
  places: number,
  count: number,
): ToolError {
  if (places > 0) {
    const lines: number[] = [];
    for (let at = text.indexOf(oldText); at !== -1 && lines.length < 20;) {
      lines.push(lineAt(text, at));
      at = text.indexOf(oldText, at + oldText.length);
    }
    return new ToolError(
      `Cannot edit ${shown}: old_text stands in ${places} places, not ${count} (lines ` +
        `${lines.join(", ")}${places > lines.length ? ", …" : ""}). Nothing was changed. ` +
        "Make old_text longer so that it names one place, or set count.",
    );
  }
  const hint = text.includes(oldText.replaceAll("\n", "\r\n"))
    ? "The file ends its lines with CRLF: write \\r\\n in old_text."
    : squeeze(text).includes(squeeze(oldText))
    ? "It does stand there with other white space: read the file and copy it exactly."
    : "Read the file and copy the text exactly.";
  return new ToolError(`Cannot edit ${shown}: old_text is not in it. Nothing was changed. ${hint}`);
}

function countPlaces(text: string, part: string): number {
  let places = 0;
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + part.length)) places++;
  return places;
}

/** Whether a place where `part` stands begins within another one. */
function overlaps(text: string, part: string): boolean {
  for (let at = text.indexOf(part); at !== -1;) {
    const next = text.indexOf(part, at + 1);
    if (next !== -1 && next < at + part.length) return true;
    at = next;
  }
  return false;
}

/** The line, from 1, that a place in a text is in. */
function lineAt(text: string, place: number): number {
  return countPlaces(text.slice(0, place), "\n") + 1;
}

function squeeze(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}

/**
 * Puts `bytes` in the place of a file, by way of a temporary file beside it; `expected` is the file
 * that the new content was made from. What was there keeps its permission bits.
 */
async function replaceFile(
  deps: FsDeps,
  requested: string,
  bytes: Uint8Array,
  expected: GrantedPath | null,
): Promise<{ shown: string; replaced: boolean }> {
  const { grant, tree } = deps;
  const existing = grant.find(requested, "write");
  // The name as it is asked for, and the one that a link leads to.
  for (const path of [grant.absolute(requested, "write"), existing?.path]) {
    if (path !== undefined) requireOthers(path);
  }
  if (existing !== null) requireWritable(existing);
  if (
    expected !== null &&
    (existing?.entry.identity !== expected.entry.identity ||
      existing?.entry.modifiedMs !== expected.entry.modifiedMs)
  ) throw new ToolError(`Cannot edit ${expected.shown}: somebody else changed it; read it again.`);
  const place = existing === null
    ? grant.prepareParent(requested)
    : { shown: existing.shown, path: existing.path, parent: parentOf(existing.path) };
  if (!grant.covers(place.parent, "write")) {
    await writeInPlace(deps, existing, place.path, place.shown, bytes);
    return { shown: place.shown, replaced: existing !== null };
  }
  const temporary = join(place.parent, `.agentd-${toHex(deps.random.bytes(9))}.tmp`);
  const made = tree.createNew(temporary);
  if (!made.ok) throw grant.problem("write", place.shown, made.failure);
  let renamed = false;
  try {
    fill(deps, made.value, temporary, place.shown, bytes);
    if (existing !== null) {
      const kept = tree.setMode(temporary, existing.entry.mode & 0o777);
      if (!kept.ok) throw grant.problem("write", place.shown, kept.failure);
    }
    const moved = tree.rename(temporary, place.path);
    if (!moved.ok) throw grant.problem("write", place.shown, moved.failure);
    renamed = true;
  } finally {
    made.value.close();
    if (!renamed) tree.remove(temporary);
  }
  return { shown: place.shown, replaced: existing !== null };
}

/** A later run in that directory would take it for its operator's word, hooks and commands included. */
function requireOthers(path: string): void {
  if (!isConfigurationName(nameOf(path))) return;
  throw new ToolError(
    `Cannot write ${path}: ${
      nameOf(path)
    } is agentd's own configuration, which a later run would ` +
      "trust. Use another name; only a person changes this file.",
  );
}

/** A regular file that its owner did not mark as read-only: replacing it would get around that. */
function requireWritable(target: GrantedPath): void {
  requireFile(target, "write");
  if (target.entry.mode !== 0 && (target.entry.mode & 0o222) === 0) {
    throw new ToolError(`Cannot write ${target.shown}: it is marked read-only.`);
  }
}

/** Where one file alone is granted, nothing can be made beside it: it is written where it is. */
async function writeInPlace(
  { grant, tree }: FsDeps,
  existing: GrantedPath | null,
  path: string,
  shown: string,
  bytes: Uint8Array,
): Promise<void> {
  const opened = existing === null ? tree.createNew(path) : await tree.openWrite(path);
  if (!opened.ok) throw grant.problem("write", shown, opened.failure);
  const file = opened.value;
  try {
    grant.verify(file, path, shown, "write");
    const emptied = file.truncate();
    if (!emptied.ok) throw grant.problem("write", shown, emptied.failure);
    const written = file.write(bytes);
    if (!written.ok) throw grant.problem("write", shown, written.failure);
    file.sync();
  } finally {
    file.close();
  }
}

function fill(
  { grant }: FsDeps,
  file: TreeFile,
  path: string,
  shown: string,
  bytes: Uint8Array,
): void {
  grant.verify(file, path, shown, "write");
  const written = file.write(bytes);
  if (!written.ok) throw grant.problem("write", shown, written.failure);
  const synced = file.sync();
  if (!synced.ok) throw grant.problem("write", shown, synced.failure);
}
