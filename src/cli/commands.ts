/** The commands: their names, what they take and what they say of themselves. */

import { makeOption, type Option, type Row } from "../config/option.ts";
import { OPTIONS } from "../config/options.ts";
import { PATH, SWITCH, TEXT } from "../config/shapes.ts";

/** One command of the program. */
export interface Command {
  name: string;
  /** What stands behind the name, as help shows it. */
  operands: string;
  operandsMax: number;
  summary: string;
  /** Takes every option of a run, not only those that work with every command. */
  configured: boolean;
  /** Its own options: they have neither a variable nor a file key. */
  own: readonly Option[];
}

/** Options of commands that no run has. */
function own(...rows: Omit<Row, "group">[]): Option[] {
  return rows.map((row) => makeOption({ ...row, group: "output", env: null }));
}

const COUNT = { kind: "int", min: 0 } as const;

/** Every command, in the order of help. The first is the default. */
export const COMMANDS: readonly Command[] = [
  {
    name: "run",
    operands: "[INSTRUCTION]",
    operandsMax: 1,
    summary: 'run a task; the default command, so that agentd "do this" works',
    configured: true,
    own: [],
  },
  {
    name: "resume",
    operands: "RUN",
    operandsMax: 1,
    summary: "go on with a run that stopped short; numbers may be +N",
    configured: true,
    own: [],
  },
  {
    name: "replay",
    operands: "RUN",
    operandsMax: 1,
    summary: "re-drive the loop from its record and report the first divergence",
    configured: true,
    own: own(
      { name: "until", shape: COUNT, help: "stop at this iteration" },
      {
        name: "show",
        shape: { kind: "enum", values: ["context"] },
        help: "with --until: print what the model saw there",
      },
      { name: "from", shape: COUNT, help: "fork at this iteration" },
      {
        name: "with",
        shape: { kind: "enum", values: ["model"] },
        help: "with --from: go on against a live model, as a new run",
      },
    ),
  },
  {
    name: "inspect",
    operands: "RUN",
    operandsMax: 1,
    summary: "show a run, iteration by iteration",
    configured: false,
    own: own(
      { name: "html", metavar: "FILE", shape: PATH, help: "write one self-contained page" },
      { name: "json", shape: SWITCH, help: "print it as JSON" },
      {
        name: "format",
        shape: { kind: "enum", values: ["atif", "openai", "otlp"] },
        help: "print it in another program's format",
      },
      { name: "follow", shape: SWITCH, help: "keep showing a run in progress" },
      {
        name: "import",
        metavar: "FILE",
        shape: PATH,
        help: "judge a trajectory of another program, in place of RUN",
      },
      { name: "otlp_endpoint", metavar: "URL", shape: TEXT, help: "send spans there" },
    ),
  },
  {
    name: "runs",
    operands: "",
    operandsMax: 0,
    summary: "list recorded runs, newest first",
    configured: false,
    own: own(
      { name: "prune", shape: SWITCH, help: "remove runs; needs --keep" },
      {
        name: "keep",
        metavar: "30d|N",
        shape: {
          kind: "text",
          pattern: /^(\d+|(?:\d+(?:\.\d+)?(?:s|m|h|d))+)$/,
          expects: "a duration such as 30d, or a number of runs",
        },
        help: "what --prune keeps: younger than this, or the newest N",
      },
    ),
  },
  {
    name: "validate",
    operands: "[INSTRUCTION]",
    operandsMax: 1,
    summary: "check the whole configuration, without a side effect",
    configured: true,
    own: own({
      name: "next",
      shape: { kind: "int", min: 1, max: 1000 },
      help: "print the next N start times of a schedule",
    }),
  },
  {
    name: "permissions",
    operands: "[INSTRUCTION]",
    operandsMax: 1,
    summary: "print what each process may do, and the Rule-of-Two verdict",
    configured: true,
    own: [],
  },
  {
    name: "mcp",
    operands: "fs|http|exec [--allow-…]",
    operandsMax: 1,
    summary: "serve a built-in tool server on stdio, to any MCP client",
    configured: false,
    own: [],
  },
  {
    name: "init",
    operands: "",
    operandsMax: 0,
    summary: "write a commented starter agentd.yaml",
    configured: false,
    own: [],
  },
  {
    name: "completions",
    operands: "bash|zsh|fish",
    operandsMax: 1,
    summary: "print completions for a shell",
    configured: false,
    own: [],
  },
];

/** The command of this name. */
export function commandNamed(name: string): Command | undefined {
  return COMMANDS.find((command) => command.name === name);
}

/** Options that a command takes, its own first; those without a flag are left out. */
export function optionsOf(command: Command): Option[] {
  const shared = OPTIONS.filter((option) =>
    option.flag !== null && (command.configured || option.common)
  );
  return [...command.own, ...shared];
}
