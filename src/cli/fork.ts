/** `agentd replay RUN --from N --with model`: a new run that begins like a recorded one. */

import { makeUlid } from "../core/ids.ts";
import { isObject, type Json } from "../core/json.ts";
import { forkRun, type ResumePlan } from "../record/fork.ts";
import { readHead } from "../record/read.ts";
import type { RunPlace } from "../record/runs.ts";
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
  const { from, with: live, until } = look.own;
  if (typeof from !== "number" || live !== "model") {
    return cannot("--from N and --with model belong together: a fork goes on against a live model");
  }
  if (until !== undefined) return cannot("--until is of a replay; a fork takes --from");
  const loaded = await loadRecorded(ports, parsed, {
    verb: "fork",
    place,
    plan: startOf(ports, place),
    fixed: ["instruction"],
  });
  if (!loaded) return EXIT_USAGE;
  const { found } = loaded;
  const runId = found.runId ?? makeUlid(ports.clock.wallMs(), ports.random.bytes(10));
  const settings = { ...found, mode: "once" as const, runId };
  const forked = forkRun({ ...ports, runDirectory: settings.runDirectory }, place, from, runId);
  if (!forked.ok) return cannot(forked.failure);
  tellNotices(ports, settings, [...loaded.notices, `forked from ${place.id} as ${runId}`]);
  return await runToEnd(ports, settings, { kind: "resume", forked: true });
}

/** The start of a run as its record has it; nothing of what came after. */
function startOf(ports: CliPorts, place: RunPlace): Pick<ResumePlan, "started" | "limits"> {
  const head = readHead(ports.files, place.record);
  const limits: Json | undefined = head?.limits;
  return { started: { ...head }, limits: isObject(limits) ? limits : {} };
}
