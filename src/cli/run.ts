/** `agentd run`: a run, or a daemon, and what the outside gets of its end. */

import { outputFileOf } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import { makeUlid } from "../core/ids.ts";
import { runOnce, type RunOptions } from "../supervisor/run.ts";
import type { ParsedArguments } from "./arguments.ts";
import { EXIT_USAGE } from "./exit_code.ts";
import { findModel } from "./find_model.ts";
import { handOver, handProblem } from "./output.ts";
import type { CliPorts } from "./ports.ts";
import { loadCommandSettings, tellNotices, tellProblems } from "./settings.ts";
import { openSpans } from "./spans.ts";

/** Runs what the command line asks for; the exit code. */
export async function runCommand(ports: CliPorts, parsed: ParsedArguments): Promise<number> {
  const loaded = await loadCommandSettings(ports, parsed, "run");
  if (!loaded.settings) {
    tellProblems(ports, parsed, loaded);
    return EXIT_USAGE;
  }
  const settings = await findModel(ports, loaded.settings);
  if (!settings) return EXIT_USAGE;
  tellNotices(ports, settings, loaded.notices);
  if (settings.mode === "once" && settings.lock === null) {
    return await runToEnd(ports, settings, { start: { kind: "fresh" } });
  }
  const { runDaemonSettings, runLocked } = await import("./daemon.ts");
  return settings.mode === "once"
    ? await runLocked(
      ports,
      settings,
      () => runToEnd(ports, settings, { start: { kind: "fresh" } }),
    )
    : await runDaemonSettings(ports, settings);
}

/** One run from its start, fresh or resumed, to the exit code. */
export async function runToEnd(
  ports: CliPorts,
  settings: Settings,
  options: RunOptions,
): Promise<number> {
  const runId = settings.runId ?? makeUlid(ports.clock.wallMs(), ports.random.bytes(10));
  const named = { ...settings, runId };
  const spans = await openSpans(ports, named, runId);
  const end = await runOnce(named, ports, options);
  await spans.close();
  if (!end.ok) return handProblem(ports, end.failure);
  const code = await handOver(ports, named, end.value, outputFileOf(settings));
  // Everything is handed over: a signal that comes while the process ends changes nothing of it.
  for (const signal of ["SIGINT", "SIGTERM"] as const) ports.signals.on(signal, () => {});
  return code;
}
