/** What an option is: one row of the table that flags, environment, file, help and completions share. */

import type { Json } from "../core/json.ts";
import type { Shape } from "./shape.ts";

/** Groups of options, in the order of help. */
export const GROUPS = [
  "task",
  "model",
  "tools",
  "limits",
  "mode",
  "safety",
  "output",
] as const;

/** One of {@link GROUPS}. */
export type Group = (typeof GROUPS)[number];

/**
 * How the text of a flag or a variable becomes a value in the file's form. `plain` follows the
 * shape; the others are small notations of their own.
 */
export type Form =
  | "plain"
  | "check"
  | "command_map"
  | "mcp"
  | "mcp_config"
  | "permission"
  | "route"
  | "token_env"
  | "token_file";

/** One option. */
export interface Option {
  /** Unique; snake_case. */
  name: string;
  /** With its dashes; null: no flag. */
  flag: string | null;
  /** One letter with its dash. */
  short?: string;
  /** What help calls the value; empty for a switch. */
  metavar: string;
  /** Path of its key in the file, or below `invocation` where the file has none. */
  key: readonly string[];
  /** Whether `key` may stand in a file. */
  inFile: boolean;
  env: string | null;
  shape: Shape;
  /** In the file's form; undefined: unset. */
  default?: Json;
  /** What help says in place of the default. */
  defaultText?: string;
  form: Form;
  /** May be given several times. */
  repeatable: boolean;
  /** What is given at a higher level is merged by key into what is given below. */
  merged: boolean;
  group: Group;
  help: string;
  /** Works with every command. */
  common: boolean;
}

/** Where options that no file has are kept in the effective configuration. */
export const INVOCATION = "invocation";

/** A row as it is written: the rest follows from the name. */
export type Row =
  & Pick<Option, "name" | "shape" | "group" | "help">
  & Partial<Option>
  /** Dotted; undefined: no file key. */
  & { file?: string };

/** Completes a row: flag and variable from the name, the key from `file`. */
export function makeOption(row: Row): Option {
  const { file, ...rest } = row;
  return {
    flag: `--${row.name.replaceAll("_", "-")}`,
    metavar: defaultMetavar(row.shape),
    key: file === undefined ? [INVOCATION, row.name] : file.split("."),
    inFile: file !== undefined,
    env: `AGENT_${row.name.toUpperCase()}`,
    form: "plain",
    repeatable: row.shape.kind === "list",
    merged: row.shape.kind === "map",
    common: false,
    ...rest,
  };
}

function defaultMetavar(shape: Shape): string {
  switch (shape.kind) {
    case "int":
    case "number":
      return "N";
    case "duration":
      return "TIME";
    case "size":
      return "SIZE";
    case "enum":
      return shape.values.join("|");
    case "boolean":
      return "";
    case "command":
      return "COMMAND";
    default:
      return "TEXT";
  }
}
