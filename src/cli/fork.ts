/** `agentd replay RUN --from N --with model`: a new run that begins like a recorded one. */

import { makeUlid } from "../core/ids.ts";
import { forkRun, planFork } from "../record/fork.ts";
import type { ParsedArguments } from "./arguments.ts";
import { EXIT_USAGE } from "./exit_code.ts";
import type { CliPorts } from "./ports.ts";
import { findRun, openLook } from "./record_commands.ts";
import { loadRecorded } from "./resume.ts";
import { runToEnd } from "./run.ts";
import { tellNotices } from "./settings.ts";

/** Forks a run at an iteration, and goes on against a live model; the exit code. */
export async function forkReplay(ports: CliPorts, parsed: ParsedArguments): Promise<number> {
  const look = await openLook(ports, parsed);
  const place = look && findRun(look, parsed);
  if (!look || !place) return EXIT_USAGE;
  const cannot = (why: string): number => {
    ports.terminal.writeError(`agentd: ${why}\n`);
    return EXIT_USAGE;
  };
  const { from, with: live, until, show } = look.own;
  if (typeof from !== "number" || live !== "model") {
    return cannot("--from N and --with model belong together: a fork goes on against a live model");
  }
  if (until !== undefined) return cannot("--until is of a replay; a fork takes --from");
  if (show !== undefined) return cannot("--show is of a replay; a fork takes --from");
  const planned = planFork(ports.files, place, from);
  if (!planned.ok) return cannot(planned.failure);
  const loaded = await loadRecorded(ports, parsed, {
    verb: "fork",
    place,
    plan: planned.value,
    fixed: ["instruction"],
  });
  if (!loaded) return EXIT_USAGE;
  const { found } = loaded;
  const runId = found.runId ?? makeUlid(ports.clock.wallMs(), ports.random.bytes(10));
  const settings = { ...found, mode: "once" as const, runId };
  const forked = forkRun({ ...ports, runDirectory: settings.runDirectory }, place, from, runId);
  if (!forked.ok) return cannot(forked.failure);
  tellNotices(ports, settings, [...loaded.notices, `forked from ${place.id} as ${runId}`]);
  return await runToEnd(ports, settings, { start: { kind: "resume", forked: true } });
}
