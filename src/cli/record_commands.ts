/** `agentd runs`, `inspect` and `replay`: commands that only look at what was recorded. */

import { type Basics, loadBasics } from "../config/load.ts";
import { problem } from "../config/problem.ts";
import { checkShape } from "../config/shape.ts";
import { readTexts } from "../config/texts.ts";
import type { Json } from "../core/json.ts";
import type { CommandOutput } from "../record/output.ts";
import { resolveRun, type RunPlace, runsCommand } from "../record/runs.ts";
import { resolvePath } from "../toolserver/paths.ts";
import type { ParsedArguments } from "./arguments.ts";
import { EXIT_USAGE } from "./exit_code.ts";
import type { CliPorts } from "./ports.ts";
import { loadInput, tellProblems } from "./settings.ts";

/** What a command that looks at runs works with. */
export interface Look {
  ports: CliPorts;
  basics: Basics;
  /** Values of the command's own options, of their shapes. */
  own: Readonly<Record<string, Json>>;
}

/** Reads the options that such a command takes; null if a problem was told. */
export async function openLook(ports: CliPorts, parsed: ParsedArguments): Promise<Look | null> {
  const notices: string[] = [];
  const problems = [...parsed.problems];
  const own = readOwn(parsed);
  problems.push(...own.problems);
  const loaded = await loadBasics(loadInput(ports, parsed, "inspect", notices));
  if (!loaded.ok) problems.push(...loaded.failure);
  if (problems.length > 0 || !loaded.ok) {
    tellProblems(ports, parsed, { settings: null, problems, notices });
    return null;
  }
  for (const notice of notices) ports.terminal.writeError(`agentd: ${notice}\n`);
  return { ports, basics: loaded.value, own: own.values };
}

/** The values of a command's own options, and what is wrong with them. */
export function readOwn(
  parsed: ParsedArguments,
): { values: Record<string, Json>; problems: ParsedArguments["problems"] } {
  const values: Record<string, Json> = {};
  const problems: ParsedArguments["problems"] = [];
  for (const option of parsed.command.own) {
    const texts = parsed.texts[option.name];
    if (texts === undefined) continue;
    const value = readTexts(
      option,
      texts,
      (at, message, hint) => problems.push(problem(option.flag!, at, message, hint)),
    );
    if (value === undefined) continue;
    const sound = checkShape(
      option.shape,
      value,
      [],
      (_path, at, message, hint) => problems.push(problem(option.flag!, at, message, hint)),
    );
    if (sound) values[option.name] = value;
  }
  return { values, problems };
}

/** The run that the operand names; null if there is none, which is told. */
export function findRun(look: Look, parsed: ParsedArguments): RunPlace | null {
  const { ports, basics } = look;
  const name = parsed.operands[0];
  if (name === undefined) {
    ports.terminal.writeError(
      `agentd: ${parsed.command.name} needs a RUN: an id, a unique prefix of one, a path, or last\n`,
    );
    return null;
  }
  const path = /[/\\]/.test(name) || name === "." || name === ".."
    ? resolvePath(ports.cwd, name)
    : name;
  const place = resolveRun({ files: ports.files, runDirectory: basics.runDirectory }, path);
  if (place.ok) return place.value;
  ports.terminal.writeError(`agentd: ${place.failure}\n`);
  return null;
}

/** Prints what a command came to; its exit code. */
export function printOutput(ports: CliPorts, output: CommandOutput): number {
  if (output.stderr !== "") ports.terminal.writeError(output.stderr);
  if (output.stdout !== "") ports.terminal.writeOut(output.stdout);
  return output.exitCode;
}

/** `agentd runs`. */
export async function listCommand(ports: CliPorts, parsed: ParsedArguments): Promise<number> {
  const look = await openLook(ports, parsed);
  if (!look) return EXIT_USAGE;
  const { own, basics } = look;
  const keep = typeof own.keep === "string" ? own.keep : null;
  if ((own.prune === true) !== (keep !== null)) {
    ports.terminal.writeError(
      keep === null
        ? "agentd: --prune needs --keep: 30d keeps what is younger, a number keeps so many\n"
        : "agentd: --keep is of --prune\n",
    );
    return EXIT_USAGE;
  }
  return printOutput(
    ports,
    await runsCommand({ ...ports, runDirectory: basics.runDirectory }, {
      output: basics.output,
      prune: keep === null ? null : { keep },
    }),
  );
}

/** `agentd replay RUN`, without `--from`. */
export async function replayRun(ports: CliPorts, parsed: ParsedArguments): Promise<number> {
  const look = await openLook(ports, parsed);
  const place = look && findRun(look, parsed);
  if (!look || !place) return EXIT_USAGE;
  const { own } = look;
  const until = typeof own.until === "number" ? own.until : null;
  if (own.show !== undefined && until === null) {
    ports.terminal.writeError("agentd: --show context needs --until N: which iteration\n");
    return EXIT_USAGE;
  }
  const { replayCommand } = await import("../record/replay.ts");
  return printOutput(
    ports,
    replayCommand(ports.files, place, {
      output: look.basics.output,
      until,
      showContext: own.show === "context",
    }),
  );
}
