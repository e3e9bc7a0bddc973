/** `agentd init` and `agentd completions`: what the program writes for its users. */

import { didYouMean } from "../config/suggest.ts";
import type { ParsedArguments } from "./arguments.ts";
import { renderCompletions, type Shell, SHELLS } from "./completions.ts";
import { EXIT_FAILURE, EXIT_OK, EXIT_USAGE } from "./exit_code.ts";
import type { CliPorts } from "./ports.ts";
import { tellProblems } from "./settings.ts";
import { STARTER } from "./starter.ts";

const FILE = "agentd.yaml";

/** Runs `init` or `completions`; the exit code. */
export function makeCommand(ports: CliPorts, parsed: ParsedArguments): number {
  if (parsed.problems.length > 0) {
    tellProblems(ports, parsed, { settings: null, problems: parsed.problems, notices: [] });
    return EXIT_USAGE;
  }
  return parsed.command.name === "init" ? init(ports) : completions(ports, parsed.operands[0]);
}

function init(ports: CliPorts): number {
  const path = `${ports.cwd}/${FILE}`;
  const made = ports.files.createNew(path, STARTER);
  if (made.ok) {
    ports.terminal.writeError(`Wrote ${FILE}. Edit it, then: agentd validate\n`);
    return EXIT_OK;
  }
  const exists = made.failure.class === "exists";
  ports.terminal.writeError(
    exists
      ? `agentd: ${FILE} exists already; it was left as it is\n`
      : `agentd: Cannot write ${FILE}: ${made.failure.message}\n`,
  );
  return exists ? EXIT_USAGE : EXIT_FAILURE;
}

function completions(ports: CliPorts, shell: string | undefined): number {
  if (!SHELLS.includes(shell as Shell)) {
    const near = shell === undefined ? "" : didYouMean(shell, SHELLS);
    ports.terminal.writeError(
      `agentd: completions needs a shell: ${SHELLS.join(", ")}${near === "" ? "" : `; ${near}`}\n`,
    );
    return EXIT_USAGE;
  }
  ports.terminal.writeOut(renderCompletions(shell as Shell));
  return EXIT_OK;
}
