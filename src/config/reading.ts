/** What every part of the reading shares: the layers, the outside, and how to complain. */

import type { Json, JsonObject } from "../core/json.ts";
import type { Outcome } from "../core/outcome.ts";
import { type SecretText, Vault } from "../core/secret.ts";
import type { FilesPort } from "../ports/files.ts";
import type { ServerSettings, TaskContract, ToolSettings } from "../wire/payload.ts";
import { resolvePath } from "../toolserver/paths.ts";
import type { Layers } from "./layers.ts";
import { isHeaderValue, resolveSecretText } from "./secrets.ts";
import { parseDurationMs, parseSizeBytes } from "../core/units.ts";

/** What the configuration is loaded for; it decides what must be there. */
export type Purpose = "run" | "validate" | "permissions" | "resume" | "replay" | "inspect";

/** A run that is gone on with: what it was recorded with stands below every flag. */
export interface RecordedRun {
  /** `configuration` of its record. */
  configuration: JsonObject;
  task: TaskContract;
  /** Where it was started; null where the record does not say. */
  workingDirectory: string | null;
}

/** Everything that loading a configuration reads. */
export interface LoadInput {
  purpose: Purpose;
  /** Texts by option name, one per occurrence. */
  flags: Readonly<Record<string, readonly string[]>>;
  env: Readonly<Record<string, string>>;
  /** Absolute. */
  cwd: string;
  home: string | null;
  /** The user's id, null where the system has none. */
  uid: number | null;
  files: FilesPort;
  /** All of stdin, or why it cannot be had. */
  readStdin(bytesMax: number): Promise<Outcome<string, string>>;
  stderrIsTerminal: boolean;
  /** Why a grant may not be given at all (the Rule of Two), else null; left out: not asked. */
  judge?(servers: readonly ServerSettings[], tools: ToolSettings): string | null;
  /** For resume and replay. */
  recorded?: RecordedRun;
  /** Told of what is not wrong but should be known; one sentence each. */
  notice(text: string): void;
}

/** The shared state of one loading. */
export class Reading {
  readonly vault = new Vault();

  constructor(readonly layers: Layers, readonly input: LoadInput) {}

  get(name: string): Json | undefined {
    return this.layers.get(name);
  }

  text(name: string): string | null {
    const value = this.get(name);
    return typeof value === "string" ? value : null;
  }

  number(name: string): number | null {
    const value = this.get(name);
    return typeof value === "number" ? value : null;
  }

  /** Whether a switch is on. */
  on(name: string): boolean {
    return this.get(name) === true;
  }

  texts(name: string): string[] {
    const value = this.get(name);
    return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
  }

  /** Milliseconds of a duration; null where unset. */
  ms(name: string): number | null {
    return durationOf(this.get(name));
  }

  /** Bytes of a size; null where unset. */
  bytes(name: string): number | null {
    const value = this.get(name);
    return value === undefined ? null : parseSizeBytes(String(value)) ?? null;
  }

  where(name: string, ...below: string[]): string {
    return this.layers.where(name, ...below);
  }

  report(where: string, value: unknown, message: string, hint = ""): void {
    this.layers.report(where, value, message, hint);
  }

  /** A path as configured, made absolute: `~/` is the home, all else is below the working directory. */
  absolute(path: string): string {
    if (this.input.home !== null && (path === "~" || path.startsWith("~/"))) {
      return resolvePath(this.input.home, path.slice(2));
    }
    return resolvePath(this.input.cwd, path);
  }

  /** A text with its secret references resolved; undefined if a problem was reported. */
  secretText(text: string, where: string): SecretText | undefined {
    const outcome = resolveSecretText(text, {
      vault: this.vault,
      env: this.input.env,
      files: this.input.files,
      absolute: (path) => this.absolute(path),
    });
    if (outcome.ok) return outcome.value;
    this.report(where, undefined, outcome.failure.message, outcome.failure.hint);
    return undefined;
  }

  /** The same for a text that a header carries. */
  headerText(text: string, where: string): SecretText | undefined {
    const parts = this.secretText(text, where);
    return parts !== undefined && this.fitsHeader(parts, where) ? parts : undefined;
  }

  /** Whether a header can carry it; else that is reported, and nothing of the value is shown. */
  fitsHeader(parts: SecretText, where: string): boolean {
    if (isHeaderValue(this.vault.fill(parts).reveal())) return true;
    this.report(
      where,
      "***",
      "the value has characters that no header can carry",
      "look for a line end, a control character, or one beyond Latin-1",
    );
    return false;
  }
}

/** Milliseconds of a duration in the file's form; null if it is none. */
export function durationOf(value: Json | undefined): number | null {
  return value === undefined || value === null ? null : parseDurationMs(String(value)) ?? null;
}
