/** `agentd run`: a run, or a daemon, and what the outside gets of its end. */

import { outputFileOf } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import { runOnce } from "../supervisor/run.ts";
import type { ParsedArguments } from "./arguments.ts";
import { EXIT_USAGE } from "./exit_code.ts";
import { handOver, handProblem } from "./output.ts";
import type { CliPorts } from "./ports.ts";
import { loadCommandSettings, tellNotices, tellProblems } from "./settings.ts";

/** Runs what the command line asks for; the exit code. */
export async function runCommand(ports: CliPorts, parsed: ParsedArguments): Promise<number> {
  const loaded = await loadCommandSettings(ports, parsed, "run");
  const { settings } = loaded;
  if (!settings) {
    tellProblems(ports, parsed, loaded);
    return EXIT_USAGE;
  }
  tellNotices(ports, settings, loaded.notices);
  return await runSettings(ports, settings);
}

async function runSettings(ports: CliPorts, settings: Settings): Promise<number> {
  if (settings.mode !== "once" || settings.lock !== null) {
    const { runDaemonSettings, runLocked } = await import("./daemon.ts");
    if (settings.mode !== "once") return await runDaemonSettings(ports, settings);
    return await runLocked(ports, settings, () => runUnlocked(ports, settings));
  }
  return await runUnlocked(ports, settings);
}

async function runUnlocked(ports: CliPorts, settings: Settings): Promise<number> {
  const end = await runOnce(settings, ports);
  if (!end.ok) return handProblem(ports, end.failure);
  return handOver(ports, settings, end.value, outputFileOf(settings));
}
