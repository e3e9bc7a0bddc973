/** Settings for a command, or its problems told to the user. */

import { loadSettings } from "../config/load.ts";
import { formatProblem, type Problem } from "../config/problem.ts";
import type { LoadInput, Purpose, RecordedRun } from "../config/reading.ts";
import type { Settings } from "../config/settings.ts";
import { Vault } from "../core/secret.ts";
import type { LogSettings } from "../wire/payload.ts";
import type { TelemetryContext } from "../wire/telemetry.ts";
import { explainTrifecta, judgeGrant } from "../supervisor/rule_of_two.ts";
import type { ParsedArguments } from "./arguments.ts";
import type { CliPorts } from "./ports.ts";

/** The input of a loading, from the command line and its surroundings. */
export function loadInput(
  ports: CliPorts,
  parsed: ParsedArguments,
  purpose: Purpose,
  notices: string[],
  recorded?: RecordedRun,
): LoadInput {
  return {
    purpose,
    flags: Object.fromEntries(
      // A command's own options are not of the configuration.
      Object.entries(parsed.texts).filter(([name]) =>
        !parsed.command.own.some((option) => option.name === name)
      ),
    ),
    env: ports.variables,
    cwd: ports.cwd,
    home: ports.home,
    uid: ports.uid,
    files: ports.files,
    readStdin: (bytesMax) => ports.terminal.readIn(bytesMax),
    stderrIsTerminal: ports.terminal.stderrIsTerminal,
    recorded,
    notice: (text) => notices.push(text),
  };
}

/** What loading came to: settings with what should be known of them, or every problem. */
export interface Loaded {
  settings: Settings | null;
  problems: Problem[];
  notices: string[];
}

/**
 * Loads the settings of a command, the operand as its instruction. The problems of the arguments are
 * among the problems; so is a grant that unites all three legs of the Rule of Two.
 */
export async function loadCommandSettings(
  ports: CliPorts,
  parsed: ParsedArguments,
  purpose: Purpose,
  recorded?: RecordedRun,
): Promise<Loaded> {
  const notices: string[] = [];
  const problems = [...parsed.problems];
  const texts = { ...parsed.texts };
  const takesInstruction = parsed.command.operands === "[INSTRUCTION]";
  if (takesInstruction && parsed.operands.length > 0) {
    if (texts.instruction) {
      problems.push({
        where: "--instruction",
        value: "",
        message: "the instruction is given twice, also as an argument",
        hint: "leave one out",
      });
    }
    texts.instruction = [parsed.operands[0]!];
  }
  const input = loadInput(ports, { ...parsed, texts }, purpose, notices, recorded);
  const loaded = await loadSettings({
    ...input,
    judge: (servers, tools) => {
      // Its verdict is what `permissions` prints.
      if (purpose === "permissions") return null;
      const verdict = judgeGrant(servers, tools);
      return verdict.trifecta ? explainTrifecta(verdict) : null;
    },
  });
  if (!loaded.ok) return { settings: null, problems: [...problems, ...loaded.failure], notices };
  const settings = loaded.value;
  return problems.length > 0
    ? { settings: null, problems, notices }
    : { settings, problems, notices };
}

/** Tells problems as one line each, and as telemetry where machines listen. */
export function tellProblems(ports: CliPorts, parsed: ParsedArguments, loaded: Loaded): void {
  const { problems, notices } = loaded;
  const count = problems.length === 1 ? "one problem" : `${problems.length} problems`;
  const asked = parsed.texts.log_format?.at(-1) ?? ports.variables.AGENT_LOG_FORMAT;
  const machine = asked === "json";
  if (!machine) {
    ports.terminal.writeError(
      [
        `agentd: ${count} with the ${
          parsed.problems.length > 0 ? "command line" : "configuration"
        }; nothing was started`,
        ...problems.map((each) => `  ${formatProblem(each)}`),
        ...notices.map((each) => `  note: ${each}`),
        "",
      ].join("\n"),
    );
  }
  if (machine || (asked !== "text" && !ports.terminal.stderrIsTerminal)) {
    const log: LogSettings = { level: "info", format: "json", content: false, quiet: false };
    const telemetry = ports.openTelemetry(contextOf(ports), log, new Vault());
    telemetry.emit("config.invalid", {
      message: problems.map(formatProblem).join("\n"),
      problems: problems.map(({ where, value, message, hint }) => ({
        where,
        value,
        message,
        hint,
      })),
      notices,
    }, "error");
  }
}

/** Tells what should be known of valid settings: as telemetry of the run to come. */
export function tellNotices(ports: CliPorts, settings: Settings, notices: readonly string[]): void {
  const telemetry = ports.openTelemetry(contextOf(ports), settings.log, settings.vault);
  telemetry.emit("config.loaded", { file: settings.configurationFile });
  for (const notice of notices) telemetry.emit("config.loaded", { notice }, "warn");
}

/** Who speaks before, and beside, any run. */
export function contextOf(ports: CliPorts): TelemetryContext {
  return {
    run_id: null,
    agent_id: null,
    agent_path: null,
    comp: "supervisor",
    pid: ports.pid,
    trace_id: null,
    span_id: null,
    parent_span_id: null,
  };
}
