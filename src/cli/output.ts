/** The result of a run for the outside: alone on stdout, or in a file. */

import { NO_OUTPUT } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import type { Json } from "../core/json.ts";
import { type Outcome, success } from "../core/outcome.ts";
import type { FileFailure } from "../ports/files.ts";
import type { OnceEnd, RunProblem } from "../supervisor/run.ts";
import type { LogSettings } from "../wire/payload.ts";
import type { RunResult } from "../wire/result.ts";
import { LEVEL_RANK } from "../wire/telemetry.ts";
import { EXIT_FAILURE, EXIT_OK, EXIT_USAGE, exitCode } from "./exit_code.ts";
import type { CliPorts } from "./ports.ts";

/** What is said when no endpoint was configured and none was found. */
export const NO_MODEL = "no model found";

/** What to set when there is no model at all. */
export const NO_MODEL_ADVICE =
  "Set OPENAI_API_KEY or ANTHROPIC_API_KEY; or name an endpoint with " +
  "--intelligence URL (as far as /v1) and its key in AGENT_INTELLIGENCE_TOKEN; or start Ollama, " +
  "llama.cpp or LM Studio on its usual port of this machine.";

/** Prints or writes the result, says on stderr what a person must know, and gives the exit code. */
export async function handOver(
  ports: CliPorts,
  settings: Settings,
  end: OnceEnd,
  outputFile: string | null,
): Promise<number> {
  // Found a moment ago, and gone: still nobody's endpoint.
  const noModel = end.abort === "intelligence" && end.usage.steps === 0 &&
    settings.model.endpoints.every((endpoint) => endpoint.probe) &&
    /^(no model found|unreachable)/.test(end.reason);
  const code = exitCode({
    mode: settings.mode,
    status: end.status,
    abort: end.abort,
    partial: end.partial && end.result !== null,
    signal: end.signal,
    forced: end.forced,
    noModel,
  });
  if (noModel) {
    ports.terminal.writeError(`agentd: ${NO_MODEL}: ${end.reason}\n${NO_MODEL_ADVICE}\n`);
  } else explain(ports, settings.log, end);
  const text = settings.output === "json"
    ? JSON.stringify(resultObject(end, code)) + "\n"
    : resultText(end.result);
  // No result: what a file held before is worth more than nothing.
  if (text === "") return code;
  // What was told comes first, where both streams lead to the same place.
  await ports.terminal.settleError();
  const lost = outputFile === null
    ? printResult(ports, end, text)
    : writeResult(ports, outputFile, text);
  return lost && code === EXIT_OK ? EXIT_FAILURE : code;
}

/** Prints the result; whether that failed. A reader who left did not want it. */
function printResult(ports: CliPorts, end: OnceEnd, text: string): boolean {
  if (ports.terminal.writeOut(text) !== "failed") return false;
  ports.terminal.writeError(
    `agentd: Cannot write the result to stdout; agentd inspect ${end.run_id} shows it\n`,
  );
  return true;
}

/** Writes the result to its file; whether that failed. */
function writeResult(ports: CliPorts, outputFile: string, text: string): boolean {
  const written = replaceOutput(ports, outputFile, text);
  if (written.ok) return false;
  ports.terminal.writeError(`agentd: Cannot write the result: ${written.failure.message}\n`);
  // The work must not be lost with the file.
  ports.terminal.writeOut(text);
  return true;
}

/** Replaces the content of an output file, or of the file that it is a link to. */
export function replaceOutput(
  { files }: Pick<CliPorts, "files">,
  path: string,
  text: string,
): Outcome<void, FileFailure> {
  if (path === NO_OUTPUT) return success(undefined);
  const real = files.realPath(path);
  return files.writeAtomic(real.ok ? real.value : path, text);
}

/** Ends of which nobody has to be told why. */
const EXPECTED: readonly string[] = ["completed", "cancelled"];

/** Says in words what machines read in `loop.final`, unless it is machines that read stderr. */
function explain(ports: CliPorts, log: LogSettings, end: OnceEnd): void {
  const told = !log.quiet && LEVEL_RANK[log.level] <= LEVEL_RANK.info;
  if (told && log.format === "json") return;
  // For people, the last line of telemetry has said so.
  if (end.abort !== null && !told) ports.terminal.writeError(`agentd: ${end.reason}\n`);
  if (end.status !== null && !told && !end.partial && !EXPECTED.includes(end.status)) {
    ports.terminal.writeError(`agentd: the run ended as ${end.status} (${end.reason})\n`);
  }
  if (end.partial && end.result !== null) {
    ports.terminal.writeError(
      `agentd: the result is partial: the run ended as ${
        end.status ?? end.abort
      } (${end.reason})\n`,
    );
  }
}

/** Says why a run did not begin; the exit code. */
export function handProblem(ports: CliPorts, failure: RunProblem): number {
  ports.terminal.writeError(`agentd: ${failure.message}\n`);
  return failure.class === "disk" ? EXIT_FAILURE : EXIT_USAGE;
}

/** A text as it is, any other value as JSON for people; nothing for no result. */
export function resultText(result: Json): string {
  if (result === null) return "";
  const text = typeof result === "string" ? result : JSON.stringify(result, null, 2);
  return text === "" || text.endsWith("\n") ? text : text + "\n";
}

/** The object of `--output json`, its keys in their fixed order. */
export function resultObject(end: OnceEnd, code: number): RunResult {
  return {
    run_id: end.run_id,
    status: end.status,
    abort: end.abort,
    exit_code: code,
    retryable: end.retryable,
    resumable: end.resumable,
    partial: end.partial,
    result: end.result,
    reason: end.reason,
    verification: end.verification,
    usage: end.usage,
    started_at: end.started_at,
    ended_at: end.ended_at,
    record: end.record,
  };
}
