/** Shell completions, generated from the tables of commands and options. */

import type { Option } from "../config/option.ts";
import type { Shape } from "../config/shape.ts";
import { COMMANDS, optionsOf } from "./commands.ts";

/** The shells that completions are generated for. */
export const SHELLS = ["bash", "zsh", "fish"] as const;

/** One of {@link SHELLS}. */
export type Shell = (typeof SHELLS)[number];

/** Words that may stand behind a command's name. */
const OPERANDS: Readonly<Record<string, readonly string[]>> = {
  mcp: ["fs", "http", "exec"],
  completions: SHELLS,
  resume: ["last"],
  replay: ["last"],
  inspect: ["last"],
};

/** The script that a shell reads. */
export function renderCompletions(shell: Shell): string {
  switch (shell) {
    case "bash":
      return renderBash();
    case "zsh":
      return renderZsh();
    case "fish":
      return renderFish();
  }
}

/** What an option's value may be: words, files, or anything. */
type Values = { kind: "words"; words: readonly string[] } | { kind: "files" | "free" | "none" };

function valuesOf(option: Option): Values {
  const { shape } = option;
  if (shape.kind === "boolean" || shape.kind === "permission") return { kind: "none" };
  if (shape.kind === "enum") return { kind: "words", words: shape.values };
  if (option.form === "command_map") {
    const events = Object.keys((shape as Extract<Shape, { kind: "record" }>).fields);
    return { kind: "words", words: events.map((event) => `${event}=`) };
  }
  return { kind: /FILE|DIR|PATH/.test(option.metavar) ? "files" : "free" };
}

function everyOption(): Option[] {
  const seen = new Map<string, Option>();
  for (const command of COMMANDS) {
    for (const option of optionsOf(command)) seen.set(option.flag!, option);
  }
  return [...seen.values()];
}

function flagsOf(option: Option): string[] {
  return option.short ? [option.flag!, option.short] : [option.flag!];
}

function renderBash(): string {
  const words = everyOption().map((option) => ({ option, values: valuesOf(option) }));
  const cases = words.flatMap(({ option, values }) => {
    const pattern = flagsOf(option).join("|");
    if (values.kind === "none") return [];
    const action = values.kind === "words"
      ? `COMPREPLY=($(compgen -W "${values.words.join(" ")}" -- "$current"))`
      : values.kind === "files"
      ? `COMPREPLY=($(compgen -f -- "$current"))`
      : "COMPREPLY=()";
    return [`    ${pattern}) ${action}; return ;;`];
  });
  const valued = words.filter(({ values }) => values.kind !== "none").flatMap(({ option }) =>
    flagsOf(option)
  );
  const perCommand = COMMANDS.map((command) => {
    const flags = optionsOf(command).flatMap(flagsOf).join(" ");
    const operands = (OPERANDS[command.name] ?? []).join(" ");
    return `    ${command.name}) flags="${flags} --help"; operands="${operands}" ;;`;
  });
  return `# bash completion of agentd; source it, or put it where bash-completion looks.
_agentd() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}"
  local command="" flags="" operands="" index=1 word
  COMPREPLY=()
  case "$previous" in
${cases.join("\n")}
  esac
  while [ "$index" -lt "$COMP_CWORD" ]; do
    word="\${COMP_WORDS[index]}"
    case "$word" in
    ${valued.join("|")}) index=$((index + 1)) ;;
    -*) ;;
    *) command="$word"; break ;;
    esac
    index=$((index + 1))
  done
  case "$command" in
${perCommand.join("\n")}
    *) flags="${optionsOf(COMMANDS[0]!).flatMap(flagsOf).join(" ")} --help --version"
      [ -z "$command" ] && operands="${COMMANDS.map((command) => command.name).join(" ")}" ;;
  esac
  case "$current" in
    -*) COMPREPLY=($(compgen -W "$flags" -- "$current")) ;;
    *) COMPREPLY=($(compgen -W "$operands" -- "$current") $(compgen -f -- "$current")) ;;
  esac
}
complete -o filenames -F _agentd agentd
`;
}

function renderZsh(): string {
  const quote = (text: string): string =>
    text.replace(/[\\\[\]:]/g, "\\$&").replaceAll("'", "'\\''");
  const specOf = (option: Option): string[] => {
    const values = valuesOf(option);
    const message = quote(option.metavar || "value");
    const action = values.kind === "words"
      ? `:${message}:(${values.words.join(" ")})`
      : values.kind === "files"
      ? `:${message}:_files`
      : values.kind === "free"
      ? `:${message}: `
      : "";
    const many = option.repeatable ? "*" : "";
    return flagsOf(option).map((flag) => `'${many}${flag}[${quote(option.help)}]${action}'`);
  };
  const cases = COMMANDS.map((command) => {
    const operands = OPERANDS[command.name];
    const specs = [
      ...optionsOf(command).flatMap(specOf),
      "'--help[show help]'",
      operands ? `'*:operand:(${operands.join(" ")})'` : "'*:operand:_files'",
    ];
    return `    ${command.name})\n      _arguments \\\n        ${specs.join(" \\\n        ")} ;;`;
  });
  const names = COMMANDS.map((command) => `'${command.name}:${quote(command.summary)}'`);
  return `#compdef agentd
# zsh completion of agentd; put it on the fpath as _agentd.
_agentd() {
  local -a commands=(
    ${names.join("\n    ")}
  )
  if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then
    _describe command commands
    _files
    return
  fi
  local command=run
  if (( \${+commands[(r)$words[2]:*]} )); then
    command=$words[2]
    shift words
    (( CURRENT-- ))
  fi
  case $command in
${cases.join("\n")}
  esac
}
compdef _agentd agentd
`;
}

function renderFish(): string {
  const quote = (text: string): string => `'${text.replace(/[\\']/g, "\\$&")}'`;
  const lines = ["# fish completion of agentd; put it into completions/agentd.fish."];
  const names = COMMANDS.map((command) => command.name).join(" ");
  for (const command of COMMANDS) {
    lines.push(
      `complete -c agentd -n "not __fish_seen_subcommand_from ${names}" -a ${command.name} -d ${
        quote(command.summary)
      }`,
    );
  }
  for (const command of COMMANDS) {
    const seen = command.name === "run"
      ? `not __fish_seen_subcommand_from ${COMMANDS.slice(1).map((each) => each.name).join(" ")}`
      : `__fish_seen_subcommand_from ${command.name}`;
    for (const option of optionsOf(command)) {
      const values = valuesOf(option);
      const argument = values.kind === "words"
        ? ` -x -a ${quote(values.words.join(" "))}`
        : values.kind === "files"
        ? " -r -F"
        : values.kind === "free"
        ? " -x"
        : "";
      const short = option.short ? ` -s ${option.short.slice(1)}` : "";
      lines.push(
        `complete -c agentd -n "${seen}"${short} -l ${option.flag!.slice(2)}${argument} -d ${
          quote(option.help)
        }`,
      );
    }
    const operands = OPERANDS[command.name];
    if (operands) lines.push(`complete -c agentd -n "${seen}" -a ${quote(operands.join(" "))}`);
  }
  return lines.join("\n") + "\n";
}
