/** The task contract from the configuration: instruction, system text, and what must hold at the end. */

import { SCHEMA_FILE_BYTES_MAX, SYSTEM_TEXT_BYTES_MAX } from "../core/config_limits.ts";
import { isObject, type JsonObject } from "../core/json.ts";
import { CHECK_TIMEOUT_MS, INSTRUCTION_BYTES_MAX } from "../core/limits.ts";
import { byteLength } from "../core/text.ts";
import type { Check, TaskContract } from "../wire/payload.ts";
import { findJsonFault } from "./document.ts";
import { findSchemaFaults } from "./json_schema.ts";
import { describeFailure } from "./problem.ts";
import { durationOf, type Reading } from "./reading.ts";
import { didYouMean } from "./suggest.ts";
import { readUserText } from "./user_text.ts";
import { splitWords } from "./words.ts";

/** Reads the task; `servers`: names that `--require SERVER:URI` may mention. */
export async function readTask(
  reading: Reading,
  servers: readonly string[],
): Promise<TaskContract> {
  const recorded = reading.input.recorded?.task;
  const fresh = (name: string): boolean => !recorded || reading.layers.level(name) === "flag";
  return {
    instruction: fresh("instruction") ? await readInstruction(reading) : recorded!.instruction,
    system: fresh("system") ? readSystem(reading) : recorded!.system,
    seeds: recorded?.seeds ?? [],
    outputSchema: fresh("output_schema") ? readSchema(reading) : recorded!.outputSchema,
    require: fresh("require") ? readRequire(reading, servers) : recorded!.require,
    checks: fresh("check") ? readChecks(reading) : recorded!.checks,
  };
}

async function readInstruction(reading: Reading): Promise<string> {
  const written = reading.text("instruction");
  const { purpose } = reading.input;
  if (written === null) {
    const needless = reading.text("mode") === "reactive" || purpose === "permissions" ||
      purpose === "inspect" || purpose === "replay" || reading.layers.mayBeGiven("instruction");
    if (!needless) {
      reading.report(
        "INSTRUCTION",
        undefined,
        "no instruction was given",
        'write it as in agentd "do this"; - reads it from stdin, @FILE from a file',
      );
    }
    return "";
  }
  const where = reading.where("instruction");
  const text = await readWritten(reading, written, where);
  if (text === undefined) return "";
  if (text.trim() === "") {
    reading.report(where, written, "the instruction is empty", "say what is to be done");
  } else if (byteLength(text) > INSTRUCTION_BYTES_MAX) {
    reading.report(
      where,
      undefined,
      `the instruction has ${byteLength(text)} bytes`,
      `at most ${INSTRUCTION_BYTES_MAX}; put the bulk into a file that a tool can read`,
    );
  }
  return text;
}

async function readWritten(
  reading: Reading,
  written: string,
  where: string,
): Promise<string | undefined> {
  if (written === "-") {
    const text = await reading.input.readStdin(INSTRUCTION_BYTES_MAX);
    if (text.ok) return text.value;
    reading.report(where, written, `Cannot read the instruction from stdin: ${text.failure}`);
    return undefined;
  }
  if (!written.startsWith("@")) return written;
  const path = written.slice(1);
  if (path === "") {
    reading.report(where, written, "no file is named", "write @FILE");
    return undefined;
  }
  return readFile(reading, path, where, "the instruction", INSTRUCTION_BYTES_MAX);
}

function readSystem(reading: Reading): string | null {
  const path = reading.text("system");
  if (path === null) return null;
  const where = reading.where("system");
  return readFile(reading, path, where, "the system text", SYSTEM_TEXT_BYTES_MAX) ?? null;
}

/** A file's text; undefined if a problem was reported. */
export function readFile(
  reading: Reading,
  path: string,
  where: string,
  what: string,
  bytesMax: number,
): string | undefined {
  const text = readUserText(reading.input.files, reading.absolute(path), bytesMax);
  if (text.ok) return text.value;
  reading.report(where, path, `Cannot read ${what}: ${describeFailure(path, text.failure)}`);
  return undefined;
}

function readSchema(reading: Reading): JsonObject | null {
  const path = reading.text("output_schema");
  if (path === null) return null;
  const where = reading.where("output_schema");
  const text = readFile(reading, path, where, "the output schema", SCHEMA_FILE_BYTES_MAX);
  if (text === undefined) return null;
  const fault = findJsonFault(text);
  if (fault) {
    reading.report(
      where,
      path,
      `Cannot read the output schema: ${path}:${fault.line}:${fault.column}: ${fault.message}`,
    );
    return null;
  }
  const schema = JSON.parse(text);
  const faults = findSchemaFaults(schema);
  for (const each of faults) {
    reading.report(
      where,
      path,
      `${path} is no JSON Schema: at ${each.pointer}: ${each.message}`,
    );
  }
  return faults.length === 0 && isObject(schema) ? schema : null;
}

/**
 * Artifacts in the form that the agent reads: absolute paths, or `server:uri`. A URI without a
 * server is the only declared server's.
 */
function readRequire(reading: Reading, servers: readonly string[]): string[] {
  return reading.texts("require").map((item, index) => {
    const where = reading.where("require", String(index));
    if (item.startsWith("file://")) return readFileUrl(reading, item, where);
    const prefixed = /^([^:/]+):([A-Za-z][A-Za-z0-9+.-]*:.*)$/s.exec(item);
    if (prefixed) {
      if (!servers.includes(prefixed[1]!)) {
        reading.report(
          where,
          item,
          `${JSON.stringify(item)} names no declared server`,
          didYouMean(prefixed[1]!, servers) || `declared: ${servers.join(", ") || "none"}`,
        );
      }
      return item;
    }
    if (!/^[A-Za-z][A-Za-z0-9+.-]*:\/\//.test(item)) return reading.absolute(item);
    if (servers.length === 1) return `${servers[0]}:${item}`;
    reading.report(
      where,
      item,
      `${JSON.stringify(item)} does not say which server has it`,
      `write SERVER:${item}; declared: ${servers.join(", ") || "none"}`,
    );
    return item;
  });
}

/** The path of a file's URL; what is none is reported. */
function readFileUrl(reading: Reading, item: string, where: string): string {
  try {
    const url = new URL(item);
    if (url.hostname === "") return decodeURIComponent(url.pathname);
  } catch { /* no URL, or an escape that stands for nothing */ }
  reading.report(
    where,
    item,
    `${JSON.stringify(item)} is no URL of a file on this machine`,
    "write the path, or file:///PATH",
  );
  return item;
}

function readChecks(reading: Reading): Check[] {
  const list = reading.get("check");
  if (!Array.isArray(list)) return [];
  return list.filter(isObject).map((item) => {
    const words = splitWords(String(item.command));
    return {
      command: words.ok ? words.value : [],
      when: item.when === "turn" ? "turn" : "final",
      timeoutMs: durationOf(item.timeout) ?? CHECK_TIMEOUT_MS,
    };
  });
}
