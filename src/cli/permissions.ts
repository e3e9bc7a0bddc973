/** `agentd permissions`: what each process may do under a configuration, and the verdict on it. */

import { renderPermissions, reportPermissions } from "../supervisor/permission_table.ts";
import type { ParsedArguments } from "./arguments.ts";
import { EXIT_OK, EXIT_USAGE } from "./exit_code.ts";
import type { CliPorts } from "./ports.ts";
import { loadCommandSettings, tellProblems } from "./settings.ts";

/** Prints the report, a refused grant included; the exit code. */
export async function permissionsCommand(
  ports: CliPorts,
  parsed: ParsedArguments,
): Promise<number> {
  const loaded = await loadCommandSettings(ports, parsed, "permissions");
  const { settings } = loaded;
  if (!settings) {
    tellProblems(ports, parsed, loaded);
    return EXIT_USAGE;
  }
  for (const notice of loaded.notices) ports.terminal.writeError(`agentd: ${notice}\n`);
  const report = reportPermissions(settings, ports.program.standalone);
  const text = settings.output === "json"
    ? JSON.stringify(report, null, 2) + "\n"
    : renderPermissions(report);
  ports.terminal.writeOut(settings.vault.mask(text));
  return EXIT_OK;
}
