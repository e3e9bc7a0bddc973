/** glob and search of the fs server. */

import {
  GLOB_PATHS_DEFAULT,
  GLOB_PATHS_MAX,
  PATH_CHARS_MAX,
  PATTERN_CHARS_MAX,
  SEARCH_CONTEXT_LINES_MAX,
  SEARCH_FILE_BYTES_MAX,
  SEARCH_LINE_BYTES_MAX,
  SEARCH_LINE_SHOWN_CHARS_MAX,
  SEARCH_MATCHES_DEFAULT,
  SEARCH_MATCHES_MAX,
  SEARCH_MATCHES_PER_FILE_MAX,
  WALK_ENTRIES_MAX,
  WALK_TIME_MS,
} from "../core/tool_limits.ts";
import { formatSize } from "../core/units.ts";
import { looksBinary } from "./content.ts";
import type { FsDeps } from "./fs.ts";
import { type GrantedPath, requireDirectory, requireFile } from "./grant.ts";
import { compileGlob, compilePattern, type Pattern } from "./pattern.ts";
import { PatternError } from "./pattern_tree.ts";
import {
  type Answer,
  type Arguments,
  type BuiltinTool,
  quote,
  READ_ONLY,
  showName,
  textAnswer,
  ToolError,
} from "./tool.ts";
import { Breather, IGNORED, LeftOut, walk } from "./walk.ts";

/** Finds paths by a glob. */
export function globTool(deps: FsDeps): BuiltinTool {
  return {
    name: "glob",
    description: "Find files and directories below a directory by a glob: * and ? within a name, " +
      "** across directories, [a-z], {a,b}. Paths are relative to that directory, sorted. " +
      ".git and node_modules are not entered unless the pattern names them or all is true.",
    inputSchema: {
      type: "object",
      properties: {
        pattern: { type: "string", description: "Such as src/**/*.ts" },
        path: { type: "string", description: "Where to start; default: the working directory." },
        all: { type: "boolean" },
        offset: { type: "integer", minimum: 0, description: "Matches to skip." },
        limit: { type: "integer", minimum: 1, maximum: GLOB_PATHS_MAX },
      },
      required: ["pattern"],
    },
    annotations: READ_ONLY,
    run: (args, signal) => findPaths(deps, args, signal),
  };
}

async function findPaths(deps: FsDeps, args: Arguments, signal: AbortSignal): Promise<Answer> {
  const source = args.text("pattern", PATTERN_CHARS_MAX);
  const start = deps.grant.locate(args.text("path", PATH_CHARS_MAX, "."), "read");
  const offset = args.integer("offset", 0, WALK_ENTRIES_MAX, 0);
  const limit = args.integer("limit", 1, GLOB_PATHS_MAX, GLOB_PATHS_DEFAULT);
  requireDirectory(start);
  const glob = relativeGlob(source, start.shown);
  // As in a shell: what ends in a slash stands for directories.
  const directoriesOnly = glob.endsWith("/");
  const pattern = compile("pattern", () => compileGlob(glob.replace(/\/+$/, "") || "**"));
  const all = args.flag("all", false) || IGNORED.some((name) => source.includes(name));
  const leftOut = new LeftOut();
  const found: string[] = [];
  let matches = 0;
  let more = false;
  for await (const entry of walk(deps, start, { all }, leftOut, signal)) {
    if (directoriesOnly && entry.kind !== "directory") continue;
    if (compile("pattern", () => pattern.search(entry.relative)) === -1) continue;
    if (matches++ < offset) continue;
    if (found.length === limit) {
      more = true;
      break;
    }
    const shown = showName(entry.relative);
    found.push(entry.kind === "directory" ? `${shown}/` : shown);
  }
  requireGoing(signal);
  const end = offset + found.length;
  const notes = [
    more
      ? `Matches ${offset + 1} to ${end} of ${source} in ${start.shown}; next offset: ${end}.`
      : `${matches} matches of ${source} in ${start.shown}.`,
    ...describeLeftOut(leftOut),
  ];
  return textAnswer(...(found.length > 0 ? [found.join("\n")] : []), notes.join(" "));
}

/**
 * A glob seen from the start: `./x` is `x`, and an absolute one below the start is relative. One that
 * leads out of the start can match nothing, and that is no answer to whoever looks for something.
 */
function relativeGlob(source: string, start: string): string {
  const within = start.endsWith("/") ? start : `${start}/`;
  const glob = source.startsWith(within)
    ? source.slice(within.length)
    : source.replace(/^(?:\.\/)+/, "");
  if (glob.startsWith("/") || glob.split("/").includes("..")) {
    throw new ToolError(
      `Cannot use "pattern": ${quote(source)} leads out of ${start}, where the search starts. ` +
        "Give the directory as path, and a pattern relative to it.",
    );
  }
  return glob || "**";
}

/** Searches the content of files. */
export function searchTool(deps: FsDeps): BuiltinTool {
  return {
    name: "search",
    description: "Search text files for lines that match a regular expression (JavaScript syntax " +
      "without look-around and back references; per line) or, with literal, a text. Answers " +
      "path:line:text, context lines as path-line-text. .git and node_modules are left out " +
      "unless all is true.",
    inputSchema: {
      type: "object",
      properties: {
        pattern: { type: "string" },
        path: {
          type: "string",
          description: "File or directory; default: the working directory.",
        },
        literal: { type: "boolean", description: "The pattern is plain text." },
        ignore_case: { type: "boolean" },
        include: {
          type: "string",
          description: "Only files whose path matches this glob; without / it is for names.",
        },
        context: { type: "integer", minimum: 0, maximum: SEARCH_CONTEXT_LINES_MAX },
        all: { type: "boolean" },
        offset: { type: "integer", minimum: 0, description: "Matches to skip." },
        limit: { type: "integer", minimum: 1, maximum: SEARCH_MATCHES_MAX },
      },
      required: ["pattern"],
    },
    annotations: READ_ONLY,
    run: (args, signal) => new Search(deps, args, signal).run(),
  };
}

class Search {
  readonly #deps: FsDeps;
  readonly #signal: AbortSignal;
  readonly #start: GrantedPath;
  readonly #pattern: Pattern;
  readonly #include: Pattern | null;
  readonly #context: number;
  readonly #offset: number;
  readonly #limit: number;
  readonly #all: boolean;
  readonly #source: string;
  readonly #breather: Breather;
  readonly #leftOut = new LeftOut();
  readonly #out: string[] = [];
  #matches = 0;
  #shown = 0;
  #files = 0;
  #more = false;

  constructor(deps: FsDeps, args: Arguments, signal: AbortSignal) {
    this.#deps = deps;
    this.#signal = signal;
    this.#source = args.text("pattern", PATTERN_CHARS_MAX);
    this.#start = deps.grant.locate(args.text("path", PATH_CHARS_MAX, "."), "read");
    const options = {
      literal: args.flag("literal", false),
      ignoreCase: args.flag("ignore_case", false),
    };
    this.#pattern = compile("pattern", () => compilePattern(this.#source, options));
    const include = args.optionalText("include", PATTERN_CHARS_MAX);
    this.#include = include === null ? null : compile(
      "include",
      () => compileGlob(include.includes("/") ? include.replace(/^\.?\//, "") : `**/${include}`),
    );
    this.#context = args.integer("context", 0, SEARCH_CONTEXT_LINES_MAX, 0);
    this.#offset = args.integer("offset", 0, Number.MAX_SAFE_INTEGER, 0);
    this.#limit = args.integer("limit", 1, SEARCH_MATCHES_MAX, SEARCH_MATCHES_DEFAULT);
    this.#all = args.flag("all", false);
    this.#breather = new Breather(deps.clock);
  }

  async run(): Promise<Answer> {
    if (this.#start.entry.kind !== "directory") {
      requireFile(this.#start, "read");
      await this.#searchFile(this.#start.shown, this.#start, true);
    } else await this.#searchTree();
    requireGoing(this.#signal);
    return this.#answer();
  }

  async #searchTree(): Promise<void> {
    const { tree } = this.#deps;
    const options = { all: this.#all };
    for await (const found of walk(this.#deps, this.#start, options, this.#leftOut, this.#signal)) {
      if (found.kind === "symlink") this.#leftOut.add("symbolic links, not followed");
      if (found.kind !== "file") continue;
      const { relative, path } = found;
      if (this.#include && compile("include", () => this.#include!.search(relative)) === -1) {
        continue;
      }
      const entry = tree.inspect(path);
      if (!entry.ok || entry.value.kind !== "file") {
        this.#leftOut.add("unreadable files");
        continue;
      }
      await this.#searchFile(
        showName(relative),
        { shown: relative, path, entry: entry.value },
        false,
      );
      if (this.#more || this.#signal.aborted) return;
    }
  }

  async #searchFile(name: string, target: GrantedPath, alone: boolean): Promise<void> {
    if (target.entry.bytes > SEARCH_FILE_BYTES_MAX) {
      this.#leftOut.add(`files over ${formatSize(SEARCH_FILE_BYTES_MAX)}`);
      return;
    }
    await this.#breather.breathe();
    const bytes = await this.#load(target, alone);
    if (bytes === null) return;
    if (looksBinary(bytes.subarray(0, 8192))) {
      this.#leftOut.add("binary files");
      return;
    }
    this.#files++;
    const text = new TextDecoder().decode(bytes);
    if (!text.includes(this.#pattern.required)) return;
    await this.#searchText(name, text);
  }

  async #load(target: GrantedPath, alone: boolean): Promise<Uint8Array | null> {
    try {
      const file = await this.#deps.grant.open(target);
      try {
        return readWhole(file, target.entry.bytes);
      } finally {
        file.close();
      }
    } catch (error) {
      if (alone || !(error instanceof ToolError)) throw error;
      this.#leftOut.add("unreadable files");
      return null;
    }
  }

  async #searchText(name: string, text: string): Promise<void> {
    const lines = text.split("\n");
    if (lines.at(-1) === "") lines.pop();
    let inFile = 0;
    let printed = -1;
    for (let at = 0; at < lines.length; at++) {
      if (at % 256 === 0) {
        await this.#breather.breathe();
        if (this.#signal.aborted) return;
        if (this.#breather.elapsedMs() > WALK_TIME_MS) {
          this.#leftOut.stopped = `after ${WALK_TIME_MS / 1000} s; narrow the path`;
          return;
        }
      }
      const end = this.#matchLine(lines[at]!);
      if (end === -1) continue;
      if (inFile === SEARCH_MATCHES_PER_FILE_MAX) {
        this.#leftOut.add(
          `files with over ${SEARCH_MATCHES_PER_FILE_MAX} matches, of which the rest`,
        );
        return;
      }
      inFile++;
      if (this.#matches++ < this.#offset) continue;
      if (this.#shown === this.#limit) {
        this.#more = true;
        return;
      }
      this.#shown++;
      printed = this.#print(name, lines, at, end, printed);
    }
  }

  #matchLine(line: string): number {
    if (withoutReturn(line).length > SEARCH_LINE_BYTES_MAX) {
      this.#leftOut.add(`lines searched only up to ${SEARCH_LINE_BYTES_MAX} characters`);
    }
    return this.#endOfMatch(line);
  }

  #endOfMatch(line: string): number {
    const text = withoutReturn(line).slice(0, SEARCH_LINE_BYTES_MAX);
    return compile("pattern", () => this.#pattern.search(text));
  }

  /** Prints a match with its context; the last line printed. */
  #print(name: string, lines: string[], at: number, end: number, printed: number): number {
    const from = Math.max(printed + 1, at - this.#context);
    if (this.#context > 0 && this.#out.length > 0 && from > printed + 1) this.#out.push("--");
    for (let line = from; line < at; line++) {
      this.#out.push(`${name}-${line + 1}-${clipAround(lines[line]!, 0)}`);
    }
    this.#out.push(`${name}:${at + 1}:${clipAround(lines[at]!, end)}`);
    let last = at;
    while (last + 1 < lines.length && last < at + this.#context) {
      // The next match prints itself and its own context.
      if (this.#endOfMatch(lines[last + 1]!) !== -1) break;
      last++;
      this.#out.push(`${name}-${last + 1}-${clipAround(lines[last]!, 0)}`);
    }
    return last;
  }

  #answer(): Answer {
    const end = this.#offset + this.#shown;
    const notes = [
      this.#more
        ? `Matches ${this.#offset + 1} to ${end}; more follow: next offset: ${end}.`
        : `${this.#matches} matches in ${this.#files} files searched below ${this.#start.shown}.`,
      ...describeLeftOut(this.#leftOut),
    ];
    return textAnswer(...(this.#out.length > 0 ? [this.#out.join("\n")] : []), notes.join(" "));
  }
}

function readWhole(
  file: { readAt(offset: number, buffer: Uint8Array): { ok: boolean; value?: number } },
  bytes: number,
): Uint8Array {
  const buffer = new Uint8Array(Math.min(bytes, SEARCH_FILE_BYTES_MAX));
  let filled = 0;
  while (filled < buffer.length) {
    const read = file.readAt(filled, buffer.subarray(filled));
    if (!read.ok) throw new ToolError("Cannot read on: the system refuses it.");
    if (!read.value) break;
    filled += read.value;
  }
  return buffer.subarray(0, filled);
}

/** A line without what is left of a CRLF at its end. */
function withoutReturn(line: string): string {
  return line.endsWith("\r") ? line.slice(0, -1) : line;
}

/** At most {@link SEARCH_LINE_SHOWN_CHARS_MAX} characters of a line, around where a match ends. */
function clipAround(line: string, end: number): string {
  const text = withoutReturn(line);
  if (text.length <= SEARCH_LINE_SHOWN_CHARS_MAX) return text;
  const start = Math.max(0, Math.min(end - SEARCH_LINE_SHOWN_CHARS_MAX / 2, text.length));
  const from = start < SEARCH_LINE_SHOWN_CHARS_MAX / 2 ? 0 : start;
  const to = from + SEARCH_LINE_SHOWN_CHARS_MAX;
  return (from > 0 ? "…" : "") + text.slice(from, to) + (to < text.length ? "…" : "");
}

function describeLeftOut(leftOut: LeftOut): string[] {
  const notes: string[] = [];
  const counts = leftOut.describe();
  if (counts.length > 0) notes.push(`Left out: ${counts.join("; ")}.`);
  if (leftOut.stopped !== null) notes.push(`Stopped ${leftOut.stopped}.`);
  return notes;
}

function requireGoing(signal: AbortSignal): void {
  if (signal.aborted) throw new ToolError("Cannot go on: the call was cancelled.");
}

function compile<Value>(argument: string, act: () => Value): Value {
  try {
    return act();
  } catch (error) {
    if (!(error instanceof PatternError)) throw error;
    const hint = argument === "pattern" ? " For a plain text in search, set literal to true." : "";
    throw new ToolError(`Cannot use ${quote(argument)}: ${error.message}.${hint}`);
  }
}
