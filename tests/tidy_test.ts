/**
 * What a linter of single files cannot see: cycles, sizes, words that must not be there, bounds that
 * nothing keeps.
 */

import assert from "node:assert/strict";
import { parse } from "yaml";
import { areaOf } from "../tools/lint/places.ts";

const root = new URL("..", import.meta.url);
const LINES_MAX = 400;
const FUNCTION_LINES_MAX = 70;

/** Files that git tracks, or would: nothing that is ignored. */
async function trackedFiles(): Promise<string[]> {
  const { stdout, success } = await new Deno.Command("git", {
    args: ["ls-files", "--cached", "--others", "--exclude-standard"],
    cwd: root,
    stdin: "null",
  }).output();
  assert.ok(success, "git lists the files");
  const names = new TextDecoder().decode(stdout).split("\n").filter((name) => name !== "");
  const files: string[] = [];
  for (const name of names) {
    // A file that was deleted and not yet committed is still listed.
    const info = await Deno.stat(new URL(name, root)).catch(() => null);
    if (info?.isFile) files.push(name);
  }
  return files;
}

const files = await trackedFiles();
const texts = new Map<string, string>();
for (const file of files) {
  if (/\.(?:png|ico|gz|zip)$/.test(file)) continue;
  texts.set(file, await Deno.readTextFile(new URL(file, root)));
}
const sources = [...texts].filter(([file]) => file.endsWith(".ts"));
const program = sources.filter(([file]) =>
  /^(?:src\/|main\.ts|mod\.ts)/.test(file) && !file.endsWith("_test.ts")
);

/** The lines where a pattern stands, as `file:line: text`. */
function linesWith(pattern: RegExp, among: Iterable<[string, string]> = texts): string[] {
  const found: string[] = [];
  for (const [file, text] of among) {
    // The patterns themselves stand here.
    if (file === "tests/tidy_test.ts") continue;
    text.split("\n").forEach((line, index) => {
      if (pattern.test(line)) found.push(`${file}:${index + 1}: ${line.trim().slice(0, 120)}`);
    });
  }
  return found;
}

/** Modules that a module imports when it loads, by path; types and dynamic imports do not load. */
function importsOf(file: string, text: string): string[] {
  const found: string[] = [];
  const pattern = /^(?:import|export)\s+(?!type\b)(?:[^"';]*?\bfrom\s+)?"(\.[^"]+)"/gm;
  for (const match of text.matchAll(pattern)) {
    const names = /\{([^}]*)\}/.exec(match[0])?.[1];
    const onlyTypes = names !== undefined && names.trim() !== "" &&
      names.split(",").every((name) => name.trim() === "" || /^type\s/.test(name.trim()));
    if (onlyTypes) continue;
    const path = new URL(match[1]!, new URL(file, root)).pathname;
    found.push(path.slice(root.pathname.length));
  }
  return found;
}

Deno.test("tidy: no import cycles", () => {
  const graph = new Map(sources.map(([file, text]) => [file, importsOf(file, text)]));
  const done = new Set<string>();
  const cycles: string[] = [];
  const visit = (file: string, path: string[]): void => {
    const at = path.indexOf(file);
    if (at !== -1) cycles.push([...path.slice(at), file].join(" → "));
    if (at !== -1 || done.has(file)) return;
    for (const next of graph.get(file) ?? []) visit(next, [...path, file]);
    done.add(file);
  };
  for (const file of graph.keys()) visit(file, []);
  assert.ok([...graph.values()].flat().length > 0, "imports are seen at all");
  assert.deepEqual(cycles, []);
});

Deno.test(`tidy: files of the program have at most ${LINES_MAX} lines`, () => {
  const long = program.map(([file, text]) => [file, text.split("\n").length - 1] as const)
    .filter(([, lines]) => lines > LINES_MAX);
  assert.deepEqual(long, []);
});

Deno.test(`tidy: functions of the program have at most ${FUNCTION_LINES_MAX} lines`, () => {
  const long: string[] = [];
  for (const [file, text] of program) {
    const lines = text.split("\n");
    lines.forEach((line, start) => {
      // Formatted code closes a block at the indentation of the line that opened it.
      const head = /^(\s*)(?:export )?(?:default )?(?:async )?function\*? (\w+)/.exec(line) ??
        /^(\s*)(?:static |async |#)*(\w+)\(.*\)(?::.*)? \{$/.exec(line);
      if (!head || ["if", "for", "while", "switch", "catch"].includes(head[2]!)) return;
      const end = lines.findIndex((other, index) =>
        index > start && other.startsWith(`${head[1]}}`) && !other.startsWith(`${head[1]}}: `)
      );
      if (end - start + 1 > FUNCTION_LINES_MAX) long.push(`${file}: ${head[2]} ${end - start + 1}`);
    });
  }
  assert.deepEqual(long, []);
});

Deno.test("tidy: nothing is left to do in the text", () => {
  assert.deepEqual(linesWith(/\b(?:TODO|FIXME|XXX|HACK)\b/), []);
});

Deno.test("tidy: nothing refers to a document that is not here", () => {
  assert.deepEqual(linesWith(/\bcontract \d|\bissue #?\d|\bsee the (?:design|ticket|spec)\b/i), []);
});

Deno.test("tidy: no test is switched off or alone", () => {
  assert.deepEqual(
    linesWith(/\.only\(|\bonly: true|Deno\.test\.ignore|\bignore: true/, sources),
    [],
  );
});

Deno.test("tidy: no registry host and no path of one machine", () => {
  assert.deepEqual(
    linesWith(
      /registry\.npmjs|npmjs\.org|\/work\/|\/root\/|\/home\/(?!(?:me|agentd)\b)[a-z]|\/Users\/[a-z]|\/tmp\/t\//,
    ),
    [],
  );
});

Deno.test("tidy: text is UTF-8 with LF, ends with a line feed and has no trailing white space", () => {
  const odd: string[] = [];
  for (const [file, text] of texts) {
    if (text.includes("\r\n") || text.includes("\uFFFD") && !file.endsWith(".ts")) odd.push(file);
    if (text !== "" && !text.endsWith("\n")) odd.push(`${file}: no line feed at the end`);
  }
  assert.deepEqual([...odd, ...linesWith(/[ \t]+$/)], []);
});

Deno.test("tidy: every exported symbol of the program says what it is", () => {
  const silent: string[] = [];
  for (const [file, text] of program) {
    const lines = text.split("\n");
    lines.forEach((line, index) => {
      const name =
        /^export (?:default )?(?:abstract )?(?:async )?(?:function\*?|class|interface|type|const|let|enum) (\w+)/
          .exec(line)?.[1];
      if (name === undefined) return;
      let above = index - 1;
      while (above >= 0 && /^\s*\/\/ /.test(lines[above]!)) above--;
      // One comment may speak for a run of declarations without blank lines between them.
      while (above >= 0 && /^export (?:const|type) .*;$/.test(lines[above]!)) above--;
      if (above < 0 || !lines[above]!.trimEnd().endsWith("*/")) silent.push(`${file}: ${name}`);
    });
  }
  assert.deepEqual(silent, []);
});

Deno.test("tidy: a value is exported only for another file", () => {
  const words = new Map(sources.map(([file, text]) => [file, new Set(text.match(/\w+/g))]));
  const unused: string[] = [];
  for (const [file, text] of sources) {
    if (!/^(?:src|tools)\//.test(file)) continue;
    const pattern = /^export (?:async )?(?:function\*?|class|const) (\w+)/gm;
    for (const [, name] of text.matchAll(pattern)) {
      const isUsed = [...words].some(([other, used]) => other !== file && used.has(name!));
      if (!isUsed) unused.push(`${file}: ${name}`);
    }
  }
  assert.deepEqual(unused, []);
});

Deno.test("tidy: every bound in core is kept somewhere", () => {
  const isBounds = (file: string): boolean => /^src\/core\/(?:\w+_)?limits\.ts$/.test(file);
  const bounds = program.filter(([file]) => isBounds(file)).map(([, text]) => text).join("\n");
  const names = [...bounds.matchAll(/^export const (\w+)/gm)].map((match) => match[1]!);
  assert.ok(names.length > 20, "the bounds are found");
  const rest = program.filter(([file]) => !isBounds(file)).map(([, text]) => text).join("\n");
  assert.deepEqual(names.filter((name) => !new RegExp(`\\b${name}\\b`).test(rest)), []);
});

Deno.test("tidy: every folder of src has its place in the house's rules", async () => {
  const { MAY_IMPORT } = await import("../tools/lint/places.ts");
  const areas = new Set(program.map(([file]) => areaOf(file)));
  assert.deepEqual([...areas].filter((area) => area === null || !(area in MAY_IMPORT)), []);
});

Deno.test("tidy: every dependency has its reason in the README, and is used", () => {
  const { imports } = JSON.parse(texts.get("deno.json")!) as { imports: Record<string, string> };
  const readme = texts.get("README.md") ?? "";
  const code = sources.map(([, text]) => text).join("\n");
  for (const [name, target] of Object.entries(imports)) {
    assert.match(target, /^npm:[^^~]+@\d+\.\d+\.\d+$/, `${name} is pinned`);
    assert.ok(readme.includes(`\`${name}\``), `${name} has its reason in the README`);
    assert.ok(code.includes(`"${name}"`) || code.includes(`"${name}/`), `${name} is used`);
  }
});

Deno.test("tidy: the version is the same in deno.json, in the program and in the changelog", () => {
  const { version } = JSON.parse(texts.get("deno.json")!) as { version: string };
  assert.equal(/VERSION = "([^"]+)"/.exec(texts.get("src/core/version.ts")!)?.[1], version);
  assert.equal(/^## (\S+)/m.exec(texts.get("CHANGELOG.md")!)?.[1], version);
});

Deno.test("tidy: workflows are YAML, and their actions are pinned to a commit", () => {
  const workflows = [...texts].filter(([file]) => /^\.github\/workflows\/.*\.ya?ml$/.test(file));
  assert.ok(workflows.length > 0, "the workflows are found");
  const loose: string[] = [];
  for (const [file, text] of workflows) {
    const { jobs } = parse(text) as { jobs: Record<string, { steps: { uses?: string }[] }> };
    for (const { uses } of Object.values(jobs).flatMap((job) => job.steps)) {
      if (uses !== undefined && !/@[0-9a-f]{40}$/.test(uses)) loose.push(`${file}: ${uses}`);
    }
  }
  assert.deepEqual(loose, []);
});

Deno.test("tidy: ARCHITECTURE.md is short and names every folder of src", () => {
  const text = texts.get("ARCHITECTURE.md") ?? "";
  assert.ok(text.split("\n").length - 1 < 150, "under 150 lines");
  const folders = new Set(program.map(([file]) => /^src\/([^/]+)\//.exec(file)?.[1]));
  for (const folder of folders) {
    if (folder !== undefined) assert.ok(text.includes(`src/${folder}`), `src/${folder} is named`);
  }
});

Deno.test("tidy: documents link to what exists", async () => {
  const broken: string[] = [];
  for (const [file, text] of texts) {
    if (!file.endsWith(".md")) continue;
    for (const [, target] of text.matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)[^)]*\)/g)) {
      const url = new URL(target!, new URL(file, root));
      if (await Deno.stat(url).catch(() => null) === null) broken.push(`${file}: ${target}`);
    }
  }
  assert.deepEqual(broken, []);
});
