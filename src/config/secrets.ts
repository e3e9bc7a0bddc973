/** References to secrets in configured texts: `${env:NAME}` and `${file:PATH}`. */

import { SECRET_FILE_BYTES_MAX } from "../core/config_limits.ts";
import { failed, type Outcome, success } from "../core/outcome.ts";
import type { SecretText } from "../core/secret.ts";
import type { Vault } from "../core/secret.ts";
import type { FilesPort } from "../ports/files.ts";
import { describeFailure } from "./problem.ts";
import { didYouMean } from "./suggest.ts";
import { readUserText } from "./user_text.ts";

/** What is needed to resolve a reference. */
export interface SecretSources {
  vault: Vault;
  env: Readonly<Record<string, string>>;
  files: FilesPort;
  /** A path as configured, made absolute. */
  absolute(path: string): string;
}

/** Why a text's references cannot be resolved, and what would be right. */
export interface SecretFault {
  message: string;
  hint: string;
}

/** Whether a text refers to a secret at all. */
export function hasReference(text: string): boolean {
  return /(?<!\$)\$\{/.test(text);
}

/**
 * A text with its references resolved into the vault, under the names `env:NAME` and `file:PATH`.
 * `$${` stands for a literal `${`. `bareNames`: `${NAME}` is a variable too, as other programs write
 * it.
 */
export function resolveSecretText(
  text: string,
  sources: SecretSources,
  bareNames = false,
): Outcome<SecretText, SecretFault> {
  const parts: SecretText = [];
  let literal = "";
  for (let i = 0; i < text.length; i++) {
    if (text.startsWith("$${", i)) {
      literal += "${";
      i += 2;
    } else if (text.startsWith("${", i)) {
      const end = text.indexOf("}", i);
      if (end === -1) return failed({ message: "a ${ is not closed", hint: "write $${ for ${" });
      const reference = text.slice(i + 2, end);
      const name = resolveReference(reference, sources, bareNames);
      if (!name.ok) return name;
      if (literal !== "") parts.push(literal);
      literal = "";
      parts.push({ secret: name.value });
      i = end;
    } else literal += text[i];
  }
  if (literal !== "" || parts.length === 0) parts.push(literal);
  return success(parts);
}

function resolveReference(
  reference: string,
  sources: SecretSources,
  bareNames: boolean,
): Outcome<string, SecretFault> {
  const match = /^(?:(env|file):)?(.*)$/s.exec(reference)!;
  const kind = match[1] ?? (bareNames ? "env" : undefined);
  const target = match[2]!;
  if (kind === undefined || target === "") {
    return failed({
      message: `\${${reference}} is no reference`,
      hint: "write ${env:NAME} or ${file:PATH}; $${ stands for a literal ${",
    });
  }
  return kind === "env" ? resolveVariable(target, sources) : resolveFile(target, sources);
}

function resolveVariable(name: string, sources: SecretSources): Outcome<string, SecretFault> {
  const value = sources.env[name];
  if (value === undefined || value === "") {
    return failed({
      message: `the environment variable ${name} is ${value === "" ? "empty" : "not set"}`,
      hint: didYouMean(name, Object.keys(sources.env)) || `set ${name}`,
    });
  }
  sources.vault.add(`env:${name}`, value);
  return success(`env:${name}`);
}

function resolveFile(path: string, sources: SecretSources): Outcome<string, SecretFault> {
  const absolute = sources.absolute(path);
  const text = readUserText(sources.files, absolute, SECRET_FILE_BYTES_MAX);
  if (!text.ok) {
    return failed({
      message: `Cannot read the secret file: ${describeFailure(path, text.failure)}`,
      hint: "",
    });
  }
  const value = text.value.replace(/(\r?\n)+$/, "");
  if (value === "") return failed({ message: `the secret file ${path} is empty`, hint: "" });
  // A header cannot carry it, and a file of several lines is hardly a token.
  if (/[\r\n\0]/.test(value)) {
    return failed({ message: `the secret file ${path} has more than one line`, hint: "" });
  }
  sources.vault.add(`file:${absolute}`, value);
  return success(`file:${absolute}`);
}

/** Whether a value can stand in a header (RFC 9110, 5.5): Latin-1 without controls. */
export function isHeaderValue(text: string): boolean {
  return /^[\t\x20-\x7e\x80-\xff]*$/.test(text);
}

/** Names of variables and headers whose values are credentials, whatever they hold. */
export function isCredentialName(name: string): boolean {
  return /(^|[_-])(key|token|secret|password|passwd|pwd|credentials?|auth|authorization|cookie|pat|apikey)($|[_-])/i
    .test(name.replace(/([a-z])([A-Z])/g, "$1_$2"));
}
