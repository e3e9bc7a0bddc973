/** `agentd resume RUN`: goes on under the recorded configuration, with what the flags raise. */

import type { RecordedRun } from "../config/reading.ts";
import type { Settings } from "../config/settings.ts";
import { optionNamed } from "../config/options.ts";
import { problem } from "../config/problem.ts";
import { isObject, type Json, type JsonObject } from "../core/json.ts";
import { configurationChanges, planResume, type ResumePlan } from "../record/fork.ts";
import type { RunPlace } from "../record/runs.ts";
import { parentOf } from "../toolserver/paths.ts";
import type { TaskContract } from "../wire/payload.ts";
import type { ParsedArguments } from "./arguments.ts";
import { EXIT_USAGE } from "./exit_code.ts";
import { runToEnd } from "./run.ts";
import { findModel } from "./find_model.ts";
import type { CliPorts } from "./ports.ts";
import { findRun, openLook } from "./record_commands.ts";
import { loadCommandSettings, tellNotices, tellProblems } from "./settings.ts";

/** Resumes a run; the exit code. */
export async function resumeRun(ports: CliPorts, parsed: ParsedArguments): Promise<number> {
  // Its mistakes are told with those of the configuration.
  const look = await openLook(ports, { ...parsed, problems: [] });
  const place = look && findRun(look, parsed);
  if (!place) return EXIT_USAGE;
  const planned = await planResume(ports, place);
  if (!planned.ok) {
    ports.terminal.writeError(`agentd: ${planned.failure}\n`);
    return EXIT_USAGE;
  }
  const loaded = await loadRecorded(ports, parsed, {
    verb: "resume",
    place,
    plan: planned.value,
    fixed: ["run_id", "instruction"],
  });
  if (!loaded) return EXIT_USAGE;
  const settings = {
    ...loaded.found,
    mode: "once" as const,
    runId: place.id,
    runDirectory: parentOf(place.directory),
  };
  tellNotices(ports, settings, [
    ...loaded.notices,
    ...configurationChanges(loaded.configuration, settings.configuration).map((change) =>
      `resumed with ${change}`
    ),
  ]);
  return await runToEnd(ports, settings, {
    start: { kind: "resume" },
    lines: planned.value.lines,
  });
}

/** A recorded run that is to go on, and how the command that does it is called. */
interface Continuation {
  verb: "resume" | "fork";
  place: RunPlace;
  plan: Pick<ResumePlan, "started" | "limits">;
  /** Options that cannot be given any more. */
  fixed: readonly string[];
}

/** What a run that goes on is set up with. */
interface LoadedRun {
  found: Settings;
  notices: readonly string[];
  /** As recorded, the limits as they were last raised. */
  configuration: JsonObject;
}

/** The settings of a run that goes on: as recorded, and what flags change. Null: why not was told. */
export async function loadRecorded(
  ports: CliPorts,
  parsed: ParsedArguments,
  run: Continuation,
): Promise<LoadedRun | null> {
  const recorded = recordedRun(run.plan);
  if (!recorded) {
    ports.terminal.writeError(
      `agentd: Cannot ${run.verb} run ${run.place.id}: its record holds no configuration\n`,
    );
    return null;
  }
  const there = workIn(ports, run.place, recorded);
  if (!there) return null;
  const loaded = await loadCommandSettings(
    there,
    withoutFixed(parsed, run.fixed),
    "resume",
    recorded,
  );
  if (!loaded.settings) {
    tellProblems(ports, parsed, loaded);
    return null;
  }
  const found = await findModel(ports, loaded.settings);
  return found && { found, notices: loaded.notices, configuration: recorded.configuration };
}

/** What the conversation began with cannot be changed any more, nor the id of what is resumed. */
function withoutFixed(parsed: ParsedArguments, fixed: readonly string[]): ParsedArguments {
  const texts = { ...parsed.texts };
  const problems = [...parsed.problems];
  for (const name of fixed) {
    const given = texts[name];
    if (given === undefined) continue;
    delete texts[name];
    const { flag } = optionNamed(name);
    problems.push(problem(flag!, given.at(-1), "a run that goes on keeps its own", "leave it out"));
  }
  return { ...parsed, texts, problems };
}

/**
 * The same ports, in the directory where the run was started: its relative paths mean what they meant
 * then. Null if the directory is gone, which is told.
 */
function workIn(ports: CliPorts, place: RunPlace, recorded: RecordedRun): CliPorts | null {
  const cwd = recorded.workingDirectory;
  if (cwd === null || cwd === ports.cwd) return ports;
  const stat = ports.files.stat(cwd);
  if (stat.ok && stat.value.kind === "directory") {
    ports.terminal.writeError(`agentd: going on in ${cwd}, where the run was started\n`);
    return { ...ports, cwd };
  }
  ports.terminal.writeError(
    `agentd: Cannot go on with run ${place.id}: its working directory ${cwd} is gone\n`,
  );
  return null;
}

/** What the record says the run was configured with, the limits as they were last raised. */
function recordedRun(plan: Pick<ResumePlan, "started" | "limits">): RecordedRun | null {
  const { configuration, task, working_directory: workingDirectory } = plan.started;
  if (!isObject(configuration) || !isObject(task)) return null;
  const copy = structuredClone(configuration);
  const limits: JsonObject = isObject(copy.limits) ? copy.limits : {};
  copy.limits = { ...limits, ...limitsInFileForm(plan.limits) };
  return {
    configuration: copy,
    task: task as unknown as TaskContract,
    workingDirectory: typeof workingDirectory === "string" ? workingDirectory : null,
  };
}

/** Limits as an agent has them, in the form of a file: `maxSteps` is `max_steps`, `…Ms` a duration. */
function limitsInFileForm(limits: JsonObject): JsonObject {
  const file: JsonObject = {};
  for (const [name, value] of Object.entries(limits)) {
    if (value === null) continue;
    const [key, form] = RENAMED[name] ?? [snakeCase(name), (each: Json) => each];
    file[key] = form(value);
  }
  return file;
}

const inMs = (value: Json): Json => `${value}ms`;
const asIs = (value: Json): Json => value;

const RENAMED: Readonly<Record<string, [string, (value: Json) => Json]>> = {
  deadlineMs: ["deadline", inMs],
  progressTimeoutMs: ["progress_timeout", inMs],
  observationBytesMax: ["observation_bytes", asIs],
  treeTokensMax: ["tree_tokens", asIs],
  memoryBytesMax: ["max_memory", asIs],
};

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
