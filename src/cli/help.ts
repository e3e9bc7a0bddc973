/** Help, rendered from the tables of commands and options. */

import { GROUPS, type Option } from "../config/option.ts";
import { optionNamed } from "../config/options.ts";
import { VERSION } from "../core/version.ts";
import { type Command, COMMANDS, optionsOf } from "./commands.ts";

const USAGE_COLUMN = 34;

/** The overview: commands, and where to read on. */
export function renderOverview(): string {
  const names = COMMANDS.map((command) => `${command.name} ${command.operands}`.trim());
  const width = Math.max(...names.map((name) => name.length));
  const lines = COMMANDS.map((command, index) =>
    `  ${names[index]!.padEnd(width)}  ${command.summary}`
  );
  return [
    `agentd ${VERSION}: runs an agent on a task until it is done, verified or out of budget`,
    "",
    'usage: agentd "do this"',
    "       agentd COMMAND [OPTIONS]",
    "",
    "commands:",
    ...lines,
    "",
    "RUN is a run id, a unique prefix of one, a path to a run directory, or last.",
    "agentd COMMAND --help lists the options, each with its key in agentd.yaml, its variable and",
    "its default. Precedence: default, then file, then environment, then flag.",
    "",
  ].join("\n");
}

/** The options of one command; those of a run with key, variable and default. */
export function renderHelp(command: Command): string {
  const lines = [
    `agentd ${command.name}: ${command.summary}`,
    "",
    `usage: agentd ${command.name} ${[command.operands, "[OPTIONS]"].filter(Boolean).join(" ")}`,
  ];
  if (command.own.length > 0) {
    lines.push("", "options:", ...command.own.flatMap((option) => renderOption(option)));
  }
  const shared = optionsOf(command).filter((option) => !command.own.includes(option));
  for (const group of GROUPS) {
    const options = shared.filter((option) => option.group === group);
    if (options.length > 0) {
      lines.push("", `${group}:`, ...options.flatMap((option) => renderOption(option)));
    }
  }
  if (command.configured) lines.push("", ...renderFileOnly());
  lines.push(
    "",
    "Durations: 500ms, 30s, 10m, 2h. Sizes: 16KiB, 512MiB. A COMMAND is split into words as a POSIX",
    "shell would, and never given to a shell. A list in --allow-…=LIST needs the =. In a variable,",
    "values of a repeatable option stand on lines of their own.",
    "",
  );
  return lines.join("\n");
}

/** An option as it is written: `-o, --output-file FILE`. */
export function usageOf(option: Option): string {
  const short = option.short ? `${option.short}, ` : "";
  const value = option.shape.kind === "permission"
    ? `[=${option.metavar}]`
    : option.metavar === ""
    ? ""
    : ` ${option.metavar}`;
  return `${short}${option.flag}${value}`;
}

/** Where else it may be set, and what it is if it is nowhere. */
export function detailsOf(option: Option): string {
  const value = option.defaultText ?? renderDefault(option);
  return [
    ...(option.inFile || option.name === "token_file" || option.name === "mcp_config"
      ? [`file ${option.key.join(".")}`]
      : []),
    ...(option.env === null ? [] : [`env ${option.env}`]),
    ...(value === "" ? [] : [`default ${value}`]),
  ].join(" · ");
}

function renderDefault(option: Option): string {
  const value = option.default;
  if (value === undefined) return "";
  if (value === false) return "off";
  if (value === true) return "on";
  if (Array.isArray(value)) return value.join(",");
  return typeof value === "object" ? "" : String(value);
}

function renderOption(option: Option): string[] {
  const usage = `  ${usageOf(option)}`;
  const help = option.help + (option.repeatable ? " (repeatable)" : "");
  const details = detailsOf(option);
  const lines = usage.length < USAGE_COLUMN - 1
    ? [usage.padEnd(USAGE_COLUMN) + help]
    : [usage, " ".repeat(USAGE_COLUMN) + help];
  if (details !== "") lines.push(" ".repeat(USAGE_COLUMN) + details);
  return lines;
}

/** Keys that have no flag. */
const FILE_ONLY = [
  "token",
  "idle_timeout",
  "model_options",
  "prices",
  "tool_rules",
  "pin_tools",
  "exec_sandbox",
  "observation_bytes",
  "progress_timeout",
  "sessions",
];

function renderFileOnly(): string[] {
  return [
    "without a flag:",
    ...FILE_ONLY.flatMap((name) => {
      const option = optionNamed(name);
      return [
        `  ${option.key.join(".")}`.padEnd(USAGE_COLUMN) + option.help,
        " ".repeat(USAGE_COLUMN) + detailsOf(option).replace(/^file \S+( · )?/, ""),
      ].filter((line) => line.trim() !== "");
    }),
  ];
}
