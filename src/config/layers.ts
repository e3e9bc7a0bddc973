/** Defaults, record, file, variables and flags, laid over each other. */

import { isObject, type Json, type JsonObject } from "../core/json.ts";
import { INVOCATION, type Option } from "./option.ts";
import { optionNamed, OPTIONS } from "./options.ts";
import { type Level, type Locate, Origins } from "./origin.ts";
import { type Problem, problem, showValue } from "./problem.ts";
import { checkShape } from "./shape.ts";
import { didYouMean, nearest } from "./suggest.ts";
import { readTexts, splitCommas } from "./texts.ts";

/** The effective configuration in the file's form, as it grows level by level. */
export class Layers {
  readonly tree: JsonObject = {};
  readonly origins = new Origins();
  readonly problems: Problem[] = [];
  /** A file could not be read: what it would have set is not known. */
  fileUnread = false;
  readonly #refused = new Set<string>();

  /** `select`: only these options are laid, and what a file holds beside them is not looked at. */
  constructor(readonly select: ((option: Option) => boolean) | null = null) {
    for (const option of OPTIONS) {
      if (option.default !== undefined) this.#put(option, structuredClone(option.default));
    }
  }

  /** The effective value of an option in the file's form; undefined where unset. */
  get(name: string): Json | undefined {
    return valueAt(this.tree, optionNamed(name).key);
  }

  /** The place of an option's value, or of a part of it, as its author wrote it. */
  where(name: string, ...below: string[]): string {
    return this.origins.where([...optionNamed(name).key, ...below]);
  }

  level(name: string, ...below: string[]): Level {
    return this.origins.level([...optionNamed(name).key, ...below]);
  }

  /** Whether an unset option may well have been given, in a form that was reported. */
  mayBeGiven(name: string): boolean {
    return this.fileUnread || this.#refused.has(name);
  }

  report(where: string, value: unknown, message: string, hint = ""): void {
    this.problems.push(problem(where, value, message, hint));
  }

  /**
   * Lays one value over what is there, if it has the option's shape. Of a map that merges, each entry
   * stands for itself.
   */
  lay(option: Option, value: Json, level: Level, locate: Locate): void {
    if (option.merged && isObject(value)) {
      for (const [key, member] of Object.entries(value)) {
        if (!this.#isSound(option, { [key]: member }, locate)) continue;
        const below = valueAt(this.tree, option.key);
        if (isObject(below)) below[key] = member;
        else this.#put(option, { [key]: member });
        this.origins.set([...option.key, key], level, (path) => locate([key, ...path]));
      }
      return;
    }
    if (!this.#isSound(option, value, locate)) {
      this.#refused.add(option.name);
      return;
    }
    const whole = option.shape.kind === "list" && typeof value === "string"
      ? splitCommas(value)
      : value;
    this.#put(option, whole);
    this.origins.set(option.key, level, locate);
  }

  #isSound(option: Option, value: Json, locate: Locate): boolean {
    return checkShape(option.shape, value, [], (path, at, message, hint) => {
      const hidden = isHidden([...option.key, ...path]);
      this.report(
        locate(path),
        hidden ? "***" : at,
        hidden ? "the value has the wrong type" : message,
        hint,
      );
    });
  }

  /** Lays a file's content (or a recorded configuration) over what is there. */
  layFile(content: JsonObject, level: "file" | "record", locate: Locate): void {
    const options = OPTIONS.filter((option) =>
      (option.inFile || (level === "record" && option.key[0] === INVOCATION)) &&
      (this.select === null || this.select(option))
    );
    this.#layLevel(content, [], options, level, locate);
  }

  #layLevel(
    content: JsonObject,
    path: string[],
    options: readonly Option[],
    level: "file" | "record",
    locate: Locate,
  ): void {
    const depth = path.length;
    for (const [key, value] of Object.entries(content)) {
      const below = [...path, key];
      const matching = options.filter((option) => option.key[depth] === key);
      const option = matching.find((each) => each.key.length === depth + 1);
      if (matching.length === 0) {
        if (this.select === null) this.#reportUnknown(below, options, locate);
      } else if (value === null) continue;
      else if (option) {
        this.lay(option, value, level, (more) => locate([...below, ...more]));
      } else if (isObject(value)) this.#layLevel(value, below, matching, level, locate);
      else {
        this.report(
          locate(below),
          value,
          `${showValue(value)} is not a mapping of keys to values`,
          `known here: ${[...new Set(matching.map((each) => each.key[depth + 1]!))].join(", ")}`,
        );
      }
    }
  }

  #reportUnknown(path: string[], options: readonly Option[], locate: Locate): void {
    const key = path.at(-1)!;
    const depth = path.length - 1;
    const siblings = [...new Set(options.map((option) => option.key[depth]!))];
    const elsewhere = OPTIONS.filter((option) => option.inFile).find((option) =>
      option.key.at(-1) === key || option.name === key
    );
    const near = nearest(key, siblings);
    const hint = near !== undefined
      ? `did you mean ${[...path.slice(0, -1), near].join(".")}?`
      : elsewhere
      ? `did you mean ${elsewhere.key.join(".")}?`
      : didYouMean(key, OPTIONS.filter((each) => each.inFile).map((each) => each.key.join("."))) ||
        `known here: ${siblings.join(", ")}`;
    this.report(locate(path), undefined, `unknown key ${showValue(key)}`, hint);
  }

  /** Lays the texts of a flag or a variable. `relative`: `+N` adds to what is there. */
  layTexts(
    option: Option,
    texts: readonly string[],
    level: "env" | "flag",
    relative: boolean,
  ): void {
    const label = level === "env" ? option.env! : option.flag ?? option.name;
    const below = relative ? valueAt(this.tree, option.key) : undefined;
    const value = readTexts(
      option,
      texts,
      (at, message, hint) => this.report(label, at, message, hint),
      below,
    );
    if (value !== undefined) this.lay(option, value, level, locateIn(label, option));
  }

  #put(option: Option, value: Json): void {
    let node = this.tree;
    for (const key of option.key.slice(0, -1)) {
      const next = node[key];
      node = isObject(next) ? next : (node[key] = {});
    }
    node[option.key.at(-1)!] = value;
  }
}

/** Where a part of a flag's value is: the flag, and the part if it is a named one. */
function locateIn(label: string, option: Option): Locate {
  return (below) => {
    const named = below.filter((key) => !/^\d+$/.test(key));
    return option.shape.kind === "map" && named.length > 0 ? `${label} ${named.join(".")}` : label;
  };
}

/** Whether a path may hold a secret, which no message may show. */
function isHidden(path: readonly string[]): boolean {
  return path.at(-1) === "token" ||
    (path[0] === "mcp_servers" && path.length > 3 && (path[2] === "env" || path[2] === "headers"));
}

/** The value at a path; undefined where there is none. */
export function valueAt(tree: JsonObject, path: readonly string[]): Json | undefined {
  let node: Json | undefined = tree;
  for (const key of path) {
    if (!isObject(node) || !Object.hasOwn(node, key)) return undefined;
    node = node[key];
  }
  return node;
}
