/** The arguments of the command line: which command, which texts for which option. */

import type { Option } from "../config/option.ts";
import { type Problem, problem, showValue } from "../config/problem.ts";
import { didYouMean, nearest } from "../config/suggest.ts";
import { BARE } from "../config/texts.ts";
import { type Command, commandNamed, COMMANDS, optionsOf } from "./commands.ts";

/** The command line as it was understood. */
export interface ParsedArguments {
  command: Command;
  /** Whether the command was named, and not only the default. */
  named: boolean;
  /** What follows `--` is an instruction, whatever it looks like. */
  literal: boolean;
  help: boolean;
  version: boolean;
  /** Texts by option name, one per occurrence; a switch without a value is {@link BARE}. */
  texts: Record<string, string[]>;
  operands: string[];
  problems: Problem[];
}

/** Options that a beginning may stand for, as far as they are listed. */
const SUGGESTED_MAX = 6;

/** Everything behind the name of `mcp` is its tool server's own. */
export const PASSED_THROUGH = "mcp";

/** Reads the command line; every mistake is reported, none ends the reading. */
export async function parseArguments(argv: readonly string[]): Promise<ParsedArguments> {
  const { command, named, rest } = splitCommand(argv);
  const parsed: ParsedArguments = {
    command,
    named,
    literal: rest.includes("--"),
    help: false,
    version: false,
    texts: {},
    operands: [],
    problems: [],
  };
  if (command.name === PASSED_THROUGH) {
    return { ...parsed, operands: rest, help: rest[0] === "--help" || rest[0] === "-h" };
  }
  const options = optionsOf(command);
  const { Command: Parser, CommanderError, Option: ParserOption } = await import("commander");
  const parser = new Parser(command.name).exitOverride().configureOutput({
    writeErr: () => {},
    writeOut: () => {},
  }).helpOption(false);
  for (const option of options) {
    const value = isSwitch(option) ? "[value]" : "<value>";
    parser.addOption(
      new ParserOption(`${option.short ? `${option.short}, ` : ""}${option.flag} ${value}`)
        .argParser((text: string) => void (parsed.texts[option.name] ??= []).push(text)),
    );
  }
  let split: { operands: string[]; unknown: string[] };
  try {
    split = parser.parseOptions(markSwitches(rest, options));
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    // The one mistake that commander itself finds: it can only be at the end.
    split = { operands: [], unknown: [] };
    const flag = rest.at(-1)!;
    const option = options.find((each) => each.flag === flag || each.short === flag);
    parsed.problems.push(
      problem(
        flag,
        undefined,
        "the value is missing",
        `write ${flag} ${option?.metavar ?? "TEXT"}`,
      ),
    );
    return { ...parsed, operands: operandsOf(rest, options) };
  }
  sortUnknown(parsed, split.unknown, options);
  parsed.operands.unshift(...split.operands);
  checkOperands(parsed);
  return parsed;
}

/** A switch may carry `=VALUE`, but never takes the next argument as its value. */
function isSwitch(option: Option): boolean {
  return option.shape.kind === "boolean" || option.shape.kind === "permission";
}

/** The command is the first argument that is no option and no option's value, if it is a name. */
function splitCommand(
  argv: readonly string[],
): { command: Command; named: boolean; rest: string[] } {
  const fallback = COMMANDS[0]!;
  const all = COMMANDS.flatMap(optionsOf);
  for (let i = 0; i < argv.length; i++) {
    const argument = argv[i]!;
    if (argument === "--") break;
    if (argument.startsWith("-") && argument !== "-") {
      const option = all.find((each) => each.flag === argument || each.short === argument);
      if (option && !isSwitch(option)) i++;
      continue;
    }
    const command = commandNamed(argument);
    if (!command) break;
    return { command, named: true, rest: [...argv.slice(0, i), ...argv.slice(i + 1)] };
  }
  return { command: fallback, named: false, rest: [...argv] };
}

/** The arguments with every bare switch given a value, so that it takes none from its neighbour. */
function markSwitches(rest: readonly string[], options: readonly Option[]): string[] {
  const marked: string[] = [];
  for (let i = 0; i < rest.length; i++) {
    const argument = rest[i]!;
    if (argument === "--") return [...marked, ...rest.slice(i)];
    const option = options.find((each) => each.flag === argument || each.short === argument);
    if (!option) marked.push(argument);
    else if (isSwitch(option)) marked.push(`${option.flag}=${BARE}`);
    else {
      marked.push(argument);
      if (i + 1 < rest.length) marked.push(rest[++i]!);
    }
  }
  return marked;
}

/** What is no option of the command: help, version, a mistake, or an operand behind one. */
function sortUnknown(
  parsed: ParsedArguments,
  unknown: readonly string[],
  options: readonly Option[],
): void {
  const mistakes: string[] = [];
  for (const argument of unknown) {
    if (argument === "--help" || argument === "-h") parsed.help = true;
    else if (argument === "--version" || argument === "-V") parsed.version = true;
    else if (argument.startsWith("-") && argument !== "-") mistakes.push(argument);
    else parsed.operands.push(argument);
  }
  for (const argument of mistakes) {
    const flag = argument.split("=")[0]!;
    parsed.problems.push(
      problem(flag, undefined, "unknown option", suggestOption(flag, parsed.command, options)),
    );
  }
  // What follows an unknown option may well be its value: it is not judged as an operand.
  if (mistakes.length > 0 && parsed.operands.length > parsed.command.operandsMax) {
    parsed.operands = parsed.operands.slice(-Math.max(1, parsed.command.operandsMax));
  }
}

function suggestOption(flag: string, command: Command, options: readonly Option[]): string {
  const flags = [
    ...options.flatMap((option) => option.short ? [option.flag!, option.short] : option.flag!),
    "--help",
    "--version",
  ];
  const longer = flags.filter((each) => flag.length > 4 && each.startsWith(flag));
  if (longer.length > 1 && longer.length <= SUGGESTED_MAX) {
    return `did you mean one of ${longer.join(", ")}?`;
  }
  const near = longer.length === 1 ? longer[0] : nearest(flag, flags);
  if (near !== undefined) return `did you mean ${near}?`;
  const other = COMMANDS.find((each) => optionsOf(each).some((option) => option.flag === flag));
  if (other) return `it is an option of agentd ${other.name}`;
  return `agentd ${command.name} --help lists the options`;
}

function operandsOf(rest: readonly string[], options: readonly Option[]): string[] {
  const takesValue = (argument: string | undefined): boolean => {
    const option = options.find((each) => each.flag === argument || each.short === argument);
    return option !== undefined && !isSwitch(option);
  };
  return rest.filter((argument, index) =>
    !argument.startsWith("-") && !takesValue(rest[index - 1])
  );
}

function checkOperands(parsed: ParsedArguments): void {
  const { command, named, operands } = parsed;
  if (parsed.help || parsed.version || parsed.problems.length > 0) return;
  const word = named || parsed.literal ? undefined : operands[0];
  // Commands of many other programs: as tasks, they would cost money and answer nothing.
  if (word === "version" || (word === "help" && operands.length <= 2)) {
    const about = commandNamed(operands[1] ?? "");
    parsed.problems.push(
      problem(
        showValue(word),
        word,
        "unknown command",
        `did you mean agentd ${about ? `${about.name} ` : ""}--${word}? ` +
          `As an instruction: agentd run ${word}`,
      ),
    );
    return;
  }
  if (operands.length > command.operandsMax) {
    const first = operands[0]!;
    parsed.problems.push(
      problem(
        named ? command.name : showValue(first),
        operands,
        command.operandsMax === 0
          ? `${showValue(first)} is too much: this command takes options only`
          : `${operands.length} arguments, where ${command.operandsMax} is taken`,
        (named ? "" : didYouMean(first, COMMANDS.map((each) => each.name))) ||
          (command.name === "run" ? "put the instruction in quotes" : ""),
      ),
    );
    return;
  }
  // One word that is nearly a command is more likely a slip than a task.
  const only = operands[0];
  if (named || only === undefined || /\s/.test(only) || parsed.literal) return;
  const near = nearest(only, COMMANDS.map((each) => each.name));
  if (near !== undefined) {
    parsed.problems.push(
      problem(
        showValue(only),
        only,
        "unknown command",
        `did you mean ${near}? As an instruction: agentd run ${only}`,
      ),
    );
  }
}
