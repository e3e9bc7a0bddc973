/** A user's mistake in the configuration: reported whole, never thrown. */

import { PROBLEM_VALUE_CHARS_MAX } from "../core/config_limits.ts";
import type { Vault } from "../core/secret.ts";
import { clip } from "../core/text.ts";
import type { FileFailure } from "../ports/files.ts";

/** One mistake. The four fields together are one line for people. */
export interface Problem {
  /** The key as the user wrote it: a flag, an environment name, or file, line and key. */
  where: string;
  /** The value at fault, in short and with secrets gone; empty where there is none. */
  value: string;
  /** What is wrong, as a sentence without its full stop. */
  message: string;
  /** What would be right; empty where the message says it. */
  hint: string;
}

/** A problem; the value is shown as JSON, cut to 120 characters. */
export function problem(where: string, value: unknown, message: string, hint = ""): Problem {
  return { where, value: showValue(value), message, hint };
}

/** A value for people: JSON in one line, cut short. */
export function showValue(value: unknown): string {
  if (value === undefined) return "";
  return clip(JSON.stringify(value) ?? String(value), PROBLEM_VALUE_CHARS_MAX);
}

/** The problem as one line: `WHERE: MESSAGE; HINT`. */
export function formatProblem(each: Problem): string {
  const line = `${each.where}: ${each.message}${each.hint === "" ? "" : `; ${each.hint}`}`;
  return line.replace(/\s*\n\s*/g, " ");
}

/** The problem with every known secret gone: a value may hold one where none was looked for. */
export function maskProblem({ where, value, message, hint }: Problem, vault: Vault): Problem {
  const mask = (text: string) => vault.mask(text);
  return { where: mask(where), value: mask(value), message: mask(message), hint: mask(hint) };
}

/** Why a file could not be read, in one clause; `path` as the user wrote it. */
export function describeFailure(path: string, failure: FileFailure): string {
  switch (failure.class) {
    case "not_found":
      return `there is no file ${path}`;
    case "denied":
      return `reading ${path} is not permitted`;
    case "not_a_file":
      return `${path} is a directory`;
    case "not_text":
      return `${path}${failure.message.slice(failure.message.lastIndexOf(": "))}`;
    default:
      return failure.message;
  }
}
