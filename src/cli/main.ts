/** The command line: understands it, and hands it to the command that it names. */

import { Bug } from "../core/assert.ts";
import { VERSION } from "../core/version.ts";
import { parseArguments, type ParsedArguments, PASSED_THROUGH } from "./arguments.ts";
import { EXIT_OK, EXIT_USAGE } from "./exit_code.ts";
import type { CliPorts } from "./ports.ts";

/**
 * Runs one command line to its end and gives the exit code. Every command loads its own modules;
 * mistakes of the user are told in one line each, without a stack, and exit 2.
 */
export async function runCli(argv: readonly string[], ports: CliPorts): Promise<number> {
  const parsed = await parseArguments(argv);
  if (parsed.version) {
    ports.terminal.writeOut(`agentd ${VERSION}\n`);
    return EXIT_OK;
  }
  if (parsed.help || (argv.length === 0 && !hasTask(ports))) {
    const { renderHelp, renderOverview } = await import("./help.ts");
    ports.terminal.writeOut(parsed.named ? renderHelp(parsed.command) : renderOverview());
    return parsed.help ? EXIT_OK : EXIT_USAGE;
  }
  return await dispatch(parsed, ports);
}

/** Whether a bare `agentd` has anything to do: a file or a variable may hold the task. */
function hasTask(ports: CliPorts): boolean {
  return ports.variables.AGENT_INSTRUCTION !== undefined ||
    ports.variables.AGENT_CONFIG !== undefined || ports.files.lstat(`${ports.cwd}/agentd.yaml`).ok;
}

async function dispatch(parsed: ParsedArguments, ports: CliPorts): Promise<number> {
  switch (parsed.command.name) {
    case "run":
      return await (await import("./run.ts")).runCommand(ports, parsed);
    case "validate":
      return await (await import("./validate.ts")).validateCommand(ports, parsed);
    case "permissions":
      return await (await import("./permissions.ts")).permissionsCommand(ports, parsed);
    case "init":
    case "completions":
      return await (await import("./make.ts")).makeCommand(ports, parsed);
    case "runs":
      return await (await import("./record_commands.ts")).listCommand(ports, parsed);
    case "inspect":
      return await (await import("./inspect.ts")).inspectRun(ports, parsed);
    case "replay":
      return parsed.texts.from === undefined && parsed.texts.with === undefined
        ? await (await import("./record_commands.ts")).replayRun(ports, parsed)
        : await (await import("./fork.ts")).forkReplay(ports, parsed);
    case "resume":
      return await (await import("./resume.ts")).resumeRun(ports, parsed);
    case PASSED_THROUGH:
      // The composition root serves it before this is asked; here it stood behind an option.
      ports.terminal.writeError(
        "agentd: mcp must be the first argument: agentd mcp fs|http|exec\n",
      );
      return EXIT_USAGE;
    default:
      throw new Bug(`no such command: ${parsed.command.name}`);
  }
}
