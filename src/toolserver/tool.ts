/** What a tool of a built-in server is, and how its arguments are read. */

import { isObject, type Json, type JsonObject } from "../core/json.ts";
import { clip } from "../core/text.ts";

/** Hints of the protocol about what a tool does. */
export interface ToolAnnotations {
  readOnlyHint: boolean;
  destructiveHint: boolean;
  idempotentHint: boolean;
  /** Whether it reaches beyond this machine's granted part. */
  openWorldHint: boolean;
}

/** Of a tool that only looks, at what lies in the grant. */
export const READ_ONLY: ToolAnnotations = {
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: false,
};

/** One block of an answer. */
export type AnswerBlock =
  | { type: "text"; text: string }
  | { type: "image"; data: string; mimeType: string };

/** What a call answers; `isError` is the tool's own error, for the caller to act on. */
export interface Answer {
  blocks: AnswerBlock[];
  isError: boolean;
}

/** One tool. `run` throws {@link ToolError} for what the caller can put right, and nothing else. */
export interface BuiltinTool {
  name: string;
  description: string;
  inputSchema: { type: "object" } & JsonObject;
  annotations: ToolAnnotations;
  run(args: Arguments, signal: AbortSignal): Promise<Answer>;
}

/** A failure that the caller reads: says what cannot be done, why, and what would work. */
export class ToolError extends Error {
  override name = "ToolError";
}

/** An answer of texts, one block each. */
export function textAnswer(...texts: string[]): Answer {
  return { blocks: texts.map((text) => ({ type: "text", text })), isError: false };
}

/** An answer that tells of a failure. */
export function errorAnswer(text: string): Answer {
  return { blocks: [{ type: "text", text }], isError: true };
}

/** A caller's value as it is quoted in an error. */
export function quote(value: string): string {
  return JSON.stringify(clip(value, 200));
}

/** A file's name as it is shown: one with control characters cannot pass for several. */
export function showName(name: string): string {
  // deno-lint-ignore no-control-regex
  return /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/.test(name) ? JSON.stringify(name) : name;
}

/** A call's arguments, read by name and type; a wrong one is a {@link ToolError}. */
export class Arguments {
  readonly #values: JsonObject;

  constructor(tool: string, values: Json | undefined, schema: JsonObject) {
    if (values !== undefined && values !== null && !isObject(values)) {
      throw new ToolError(`Cannot call ${tool}: arguments must be an object.`);
    }
    this.#values = isObject(values) ? values : {};
    const known = Object.keys(schema.properties as JsonObject);
    for (const name of Object.keys(this.#values)) {
      if (!known.includes(name)) {
        throw new ToolError(
          `Cannot call ${tool}: there is no argument ${quote(name)}; it takes ${known.join(", ")}.`,
        );
      }
    }
    for (const name of (schema.required ?? []) as string[]) {
      if (this.#values[name] === undefined) {
        throw new ToolError(`Cannot call ${tool}: the argument "${name}" is missing.`);
      }
    }
  }

  /** A text, at most `charsMax` long; `otherwise` where it is absent. */
  text(name: string, charsMax: number, otherwise?: string): string {
    const value = this.#value(name);
    if (value === undefined && otherwise !== undefined) return otherwise;
    if (typeof value !== "string") throw wrongType(name, "a string", value);
    if (value.length > charsMax) {
      throw new ToolError(
        `Cannot use "${name}": it is ${value.length} characters long, at most ${charsMax} are taken.`,
      );
    }
    return value;
  }

  /** A text, or null where it is absent. */
  optionalText(name: string, charsMax: number): string | null {
    return this.#value(name) === undefined ? null : this.text(name, charsMax);
  }

  /** A whole number from `min` to `max`; above `max` is an error, not cut. */
  integer(name: string, min: number, max: number, otherwise: number): number {
    const value = this.#value(name);
    if (value === undefined) return otherwise;
    if (typeof value !== "number" || !Number.isInteger(value)) {
      throw wrongType(name, "a whole number", value);
    }
    if (value < min || value > max) {
      throw new ToolError(`Cannot use "${name}": ${value} is not from ${min} to ${max}.`);
    }
    return value;
  }

  /** A number above 0, at most `max`. */
  positive(name: string, max: number, otherwise: number): number {
    const value = this.#value(name);
    if (value === undefined) return otherwise;
    if (typeof value !== "number") throw wrongType(name, "a number", value);
    if (!(value > 0 && value <= max)) {
      throw new ToolError(`Cannot use "${name}": ${value} is not above 0 and at most ${max}.`);
    }
    return value;
  }

  /** True or false. */
  flag(name: string, otherwise: boolean): boolean {
    const value = this.#value(name);
    if (value === undefined) return otherwise;
    if (typeof value !== "boolean") throw wrongType(name, "true or false", value);
    return value;
  }

  /** A list of texts. */
  texts(name: string, countMax: number): string[] {
    const value = this.#value(name);
    if (!Array.isArray(value) || !value.every((item) => typeof item === "string")) {
      throw wrongType(name, "a list of strings", value);
    }
    if (value.length > countMax) {
      throw new ToolError(
        `Cannot use "${name}": it has ${value.length} items, at most ${countMax} are taken.`,
      );
    }
    return value as string[];
  }

  /** An object whose values are texts; empty where it is absent. */
  textMap(name: string, countMax: number): Record<string, string> {
    const value = this.#value(name);
    if (value === undefined) return {};
    if (!isObject(value) || !Object.values(value).every((item) => typeof item === "string")) {
      throw wrongType(name, "an object of strings", value);
    }
    if (Object.keys(value).length > countMax) {
      throw new ToolError(`Cannot use "${name}": at most ${countMax} members are taken.`);
    }
    return value as Record<string, string>;
  }

  /** Null counts as absent: some callers fill every optional argument with it. */
  #value(name: string): Json | undefined {
    return this.#values[name] ?? undefined;
  }
}

function wrongType(name: string, wanted: string, value: Json | undefined): ToolError {
  const shown = value === undefined ? "nothing" : clip(JSON.stringify(value), 80);
  return new ToolError(`Cannot use "${name}": it must be ${wanted}, not ${shown}.`);
}
