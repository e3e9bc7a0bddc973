/** list, stat and read of the fs server. */

import { joinBytes } from "../core/bytes.ts";
import {
  DIRECTORY_NAMES_MAX,
  LIST_ENTRIES_DEFAULT,
  LIST_ENTRIES_MAX,
  PATH_CHARS_MAX,
  READ_BYTES_MAX,
  READ_FILE_BYTES_MAX,
  READ_LINE_BYTES_MAX,
  READ_LINES_DEFAULT,
  READ_LINES_MAX,
} from "../core/tool_limits.ts";
import { codePointBorder } from "../core/text.ts";
import { formatIso } from "../core/time.ts";
import { formatSize } from "../core/units.ts";
import type { TreeFile } from "../ports/tree.ts";
import { describeBinary, looksBinary, SNIFF_BYTES } from "./content.ts";
import type { FsDeps } from "./fs.ts";
import { KIND_NAMES, requireDirectory } from "./grant.ts";
import { join } from "./paths.ts";
import {
  type Answer,
  type Arguments,
  type BuiltinTool,
  READ_ONLY,
  showName,
  textAnswer,
  ToolError,
} from "./tool.ts";
import { Breather } from "./walk.ts";

/** Lists one directory. */
export function listTool({ tree, grant }: FsDeps): BuiltinTool {
  return {
    name: "list",
    description: "List a directory: one entry per line, sorted by name; directories end in /, " +
      "symbolic links in @; files show their size.",
    inputSchema: {
      type: "object",
      properties: {
        path: { type: "string", description: "Directory; default: the working directory." },
        offset: { type: "integer", minimum: 0, description: "Entries to skip." },
        limit: { type: "integer", minimum: 1, maximum: LIST_ENTRIES_MAX },
      },
    },
    annotations: READ_ONLY,
    run(args) {
      const offset = args.integer("offset", 0, DIRECTORY_NAMES_MAX, 0);
      const limit = args.integer("limit", 1, LIST_ENTRIES_MAX, LIST_ENTRIES_DEFAULT);
      const target = grant.locate(args.text("path", PATH_CHARS_MAX, "."), "read");
      requireDirectory(target);
      const listed = tree.names(target.path, DIRECTORY_NAMES_MAX);
      if (!listed.ok) throw grant.problem("read", target.shown, listed.failure);
      const names = listed.value.names.sort((a, b) => a.name < b.name ? -1 : 1);
      const lines = names.slice(offset, offset + limit).map(({ name, kind }) => {
        const shown = showName(name);
        if (kind === "directory") return `${shown}/`;
        if (kind === "symlink") return `${shown}@`;
        const entry = tree.inspect(join(target.path, name));
        if (!entry.ok) return shown;
        if (entry.value.kind !== "file") return `${shown} (${KIND_NAMES[entry.value.kind]})`;
        return `${shown} ${formatSize(entry.value.bytes)}`;
      });
      const total = `${names.length}${listed.value.more ? " or more" : ""}`;
      const end = offset + lines.length;
      const note = lines.length === 0
        ? `${total} entries in ${target.shown}, none from offset ${offset}.`
        : end < names.length
        ? `Entries ${offset + 1} to ${end} of ${total} in ${target.shown}; next offset: ${end}.`
        : `${total} entries in ${target.shown}.`;
      return Promise.resolve(textAnswer(...(lines.length > 0 ? [lines.join("\n")] : []), note));
    },
  };
}

/** Tells of one path. */
export function statTool({ tree, grant }: FsDeps): BuiltinTool {
  return {
    name: "stat",
    description:
      "Kind, size, modification time and mode of a path, and whether it is writable here.",
    inputSchema: {
      type: "object",
      properties: { path: { type: "string" } },
      required: ["path"],
    },
    annotations: READ_ONLY,
    run(args) {
      const target = grant.locate(args.text("path", PATH_CHARS_MAX), "read");
      const { entry } = target;
      const lines = [
        `path: ${target.shown}`,
        `kind: ${KIND_NAMES[entry.kind].replace(/^an? /, "")}`,
        `bytes: ${entry.bytes}`,
        `modified: ${formatIso(entry.modifiedMs)}`,
        `mode: ${entry.mode.toString(8).padStart(4, "0")}`,
        `write granted: ${grant.covers(target.path, "write") ? "yes" : "no"}`,
      ];
      const real = tree.realPath(target.path);
      if (real.ok && real.value !== target.shown) lines.push(`real path: ${real.value}`);
      return Promise.resolve(textAnswer(lines.join("\n")));
    },
  };
}

/** Reads lines of a text file. */
export function readTool(deps: FsDeps): BuiltinTool {
  return {
    name: "read",
    description: "Read lines of a text file. The first block is the content exactly as it is in " +
      "the file; the second tells which lines, how many there are, and the next offset if more " +
      "follow. Binary files are described, not shown.",
    inputSchema: {
      type: "object",
      properties: {
        path: { type: "string" },
        offset: { type: "integer", minimum: 1, description: "First line; default 1." },
        limit: {
          type: "integer",
          minimum: 1,
          maximum: READ_LINES_MAX,
          description: `Lines; default ${READ_LINES_DEFAULT}.`,
        },
      },
      required: ["path"],
    },
    annotations: READ_ONLY,
    run: (args, signal) => readLines(deps, args, signal),
  };
}

async function readLines(
  { grant, clock }: FsDeps,
  args: Arguments,
  signal: AbortSignal,
): Promise<Answer> {
  const offset = args.integer("offset", 1, Number.MAX_SAFE_INTEGER, 1);
  const limit = args.integer("limit", 1, READ_LINES_MAX, READ_LINES_DEFAULT);
  const target = grant.locate(args.text("path", PATH_CHARS_MAX), "read");
  const file = await grant.open(target);
  try {
    const sniff = new Uint8Array(SNIFF_BYTES);
    const sniffed = file.readAt(0, sniff);
    if (!sniffed.ok) throw grant.problem("read", target.shown, sniffed.failure);
    const head = sniff.subarray(0, sniffed.value);
    if (looksBinary(head)) {
      return textAnswer(
        `${target.shown} is a binary file, not shown: ${describeBinary(head)}, ` +
          `${target.entry.bytes} bytes.`,
      );
    }
    const window = new LineWindow(offset, limit);
    await scan(file, window, new Breather(clock), signal, (failure) => {
      throw grant.problem("read", target.shown, failure);
    });
    return describeWindow(window, target.shown, target.entry.bytes);
  } finally {
    file.close();
  }
}

async function scan(
  file: TreeFile,
  window: LineWindow,
  breather: Breather,
  signal: AbortSignal,
  fail: (failure: Parameters<FsDeps["grant"]["problem"]>[2]) => never,
): Promise<void> {
  const buffer = new Uint8Array(256 * 1024);
  for (let at = 0; at < READ_FILE_BYTES_MAX;) {
    await breather.breathe();
    if (signal.aborted) throw new ToolError("Cannot go on reading: the call was cancelled.");
    const read = file.readAt(at, buffer);
    if (!read.ok) fail(read.failure);
    if (read.value === 0) {
      window.finish();
      return;
    }
    at += read.value;
    window.take(buffer.subarray(0, read.value));
  }
  window.stop();
}

function describeWindow(window: LineWindow, shown: string, bytes: number): Answer {
  const { text, lossy } = window.text();
  const total = window.complete ? `${window.lines}` : `more than ${window.lines}`;
  const notes: string[] = [];
  if (window.lines === 0 && window.complete) notes.push(`${shown} is empty.`);
  else if (window.shownLines === 0) {
    notes.push(`${shown} has ${total} lines; there is none at offset ${window.offset}.`);
  } else {
    const last = window.offset + window.shownLines - 1;
    const more = last < window.lines || !window.complete;
    notes.push(
      `Lines ${window.offset} to ${last} of ${total} (${bytes} bytes) of ${shown}` +
        (more ? `; next offset: ${last + 1}.` : "."),
    );
  }
  if (window.cutLines > 0) {
    notes.push(
      `${window.cutLines} lines were longer than ${READ_LINE_BYTES_MAX} bytes and are cut.`,
    );
  }
  if (lossy) notes.push("It is not valid UTF-8: U+FFFD stands for what could not be read.");
  return textAnswer(text, notes.join(" "));
}

/** Takes the bytes of a file and keeps those of the wanted lines, within the bounds of an answer. */
class LineWindow {
  readonly offset: number;
  readonly #limit: number;
  /** Lines seen to their end. */
  lines = 0;
  shownLines = 0;
  cutLines = 0;
  /** Whether the whole file was seen. */
  complete = false;
  readonly #parts: Uint8Array[] = [];
  #keptBytes = 0;
  /** Of the line that is under way: bytes kept, and bytes there were. */
  #line: Uint8Array[] = [];
  #lineKept = 0;
  #lineBytes = 0;
  #full = false;

  constructor(offset: number, limit: number) {
    this.offset = offset;
    this.#limit = limit;
  }

  take(chunk: Uint8Array): void {
    let start = 0;
    for (;;) {
      const end = chunk.indexOf(10, start);
      if (end === -1) break;
      this.#hold(chunk.subarray(start, end + 1));
      this.#endLine();
      start = end + 1;
    }
    if (start < chunk.length) this.#hold(chunk.subarray(start));
  }

  finish(): void {
    this.stop();
    this.complete = true;
  }

  /** Takes the line that is under way as it is. */
  stop(): void {
    if (this.#lineBytes > 0) this.#endLine();
  }

  text(): { text: string; lossy: boolean } {
    const whole = joinBytes(this.#parts);
    try {
      const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(whole);
      return { text, lossy: false };
    } catch {
      return { text: new TextDecoder("utf-8", { ignoreBOM: true }).decode(whole), lossy: true };
    }
  }

  #hold(part: Uint8Array): void {
    this.#lineBytes += part.length;
    const wanted = !this.#full && this.lines + 1 >= this.offset;
    const room = READ_LINE_BYTES_MAX - this.#lineKept;
    if (!wanted || room <= 0) return;
    // The buffer is used again for the next bytes of the file.
    const kept = part.slice(0, room);
    this.#line.push(kept);
    this.#lineKept += kept.length;
  }

  #endLine(): void {
    this.lines++;
    if (!this.#full && this.lines >= this.offset) {
      if (this.shownLines > 0 && this.#keptBytes + this.#lineKept > READ_BYTES_MAX) {
        this.#full = true;
      } else {
        this.#keepLine();
        if (++this.shownLines === this.#limit) this.#full = true;
      }
    }
    this.#line = [];
    this.#lineKept = 0;
    this.#lineBytes = 0;
  }

  #keepLine(): void {
    if (this.#lineBytes > this.#lineKept) {
      this.cutLines++;
      const last = this.#line.at(-1)!;
      const border = codePointBorder(last, last.length - 1);
      this.#line[this.#line.length - 1] = last.subarray(0, border);
      this.#line.push(new TextEncoder().encode(`… [line of ${this.#lineBytes} bytes cut]\n`));
    }
    for (const part of this.#line) {
      this.#parts.push(part);
      this.#keptBytes += part.length;
    }
  }
}
