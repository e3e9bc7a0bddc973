/** Recorded runs as a whole: the list, finding one, and removing old ones. */

import { RUN_ID } from "../core/ids.ts";
import { isObject, type Json } from "../core/json.ts";
import { LISTING_INSTRUCTION_CHARS_MAX } from "../core/limits.ts";
import { failed, type Outcome, success } from "../core/outcome.ts";
import { formatSize, parseDurationMs } from "../core/units.ts";
import { formatIso, parseIso } from "../core/time.ts";
import { type ClockPort, pause } from "../ports/clock.ts";
import type { FilesPort } from "../ports/files.ts";
import type { LockHandle, LockPort } from "../ports/lock.ts";
import type { RecordLine } from "../wire/record.ts";
import type { Abort, AgentResult, Status } from "../wire/result.ts";
import { RECORD_FILE } from "./append.ts";
import {
  type CommandOutput,
  formatCost,
  formatCount,
  oneLine,
  renderTable,
  usageError,
} from "./output.ts";
import { readHead, readRecord, readTail } from "./read.ts";
import { TERMINAL_TYPE } from "./terminal.ts";

/** Deepest nesting that sizes are added up in: a run, its agents, their artifacts. */
const DEPTH_MAX = 16;
const CANDIDATES_SHOWN_MAX = 5;

/** What commands on runs need. */
export interface RunsDeps {
  files: FilesPort;
  clock: ClockPort;
  lock: LockPort;
  /** `--run-dir`, absolute. */
  runDirectory: string;
}

/** A run found on disk. */
export interface RunPlace {
  id: string;
  /** The root agent's directory. */
  directory: string;
  /** Path of the root agent's record. */
  record: string;
}

/**
 * How a run stands. `ended`: its record has a terminal line; `running`: its supervisor is there;
 * `interrupted`: neither; `damaged`: its record cannot be read.
 */
export type RunState = "ended" | "running" | "interrupted" | "damaged";

/** One run in the list; what is unknown is null. Sizes in bytes, cost in USD. */
export interface RunSummary {
  run_id: string;
  state: RunState;
  status: Status | null;
  abort: Abort | null;
  started_at: string | null;
  /** Time of the last line. */
  last_at: string | null;
  steps: number;
  tokens: number;
  cost: number | null;
  bytes: number;
  instruction: string;
  record: string;
}

/**
 * The lock that a run's supervisor holds while the run is alive, in the run's own directory: what
 * tells a running run from an interrupted one.
 */
export function runLockPath(directory: string): string {
  return `${directory}/lock`;
}

/** Why a run's lock was not taken: another supervisor has it, or the disk does not give one. */
export interface HoldFailure {
  class: "running" | "disk";
  message: string;
}

/** Whoever only asks whether a run goes on has its lock for a moment: it is tried again. */
const HOLD_ATTEMPTS_MAX = 10;
const HOLD_PAUSE_MS = 30;

/** Takes a run's lock, for as long as its supervisor works on it. */
export async function holdRun(
  deps: { lock: LockPort; clock: ClockPort },
  directory: string,
): Promise<Outcome<LockHandle, HoldFailure>> {
  const never = new AbortController().signal;
  for (let attempt = 1;; attempt++) {
    const taken = await deps.lock.tryLock(runLockPath(directory));
    if (taken.ok) return taken;
    const { failure } = taken;
    if (failure.class !== "held") {
      const message = `Cannot lock the run in ${directory}: ${failure.message}`;
      return failed({ class: "disk", message });
    }
    if (attempt === HOLD_ATTEMPTS_MAX) {
      const message = `Cannot work on the run in ${directory}: it is running`;
      return failed({ class: "running", message });
    }
    await pause(deps.clock, HOLD_PAUSE_MS, never);
  }
}

/** Whether a supervisor is at work on the run in this directory. */
export function isRunning(deps: { lock: LockPort }, directory: string): Promise<boolean> {
  return deps.lock.isHeld(runLockPath(directory));
}

/** Every run in the run directory, the newest first. A directory without a record is none. */
export async function listRuns(deps: RunsDeps): Promise<RunSummary[]> {
  // Together: where a lock can only be waited for, each run that goes on takes that long.
  const runs = await Promise.all(runPlaces(deps).map((place) => summarizeRun(deps, place)));
  return runs.sort(byNewest);
}

/** One run's line in the list, from the head and the tail of its record. */
async function summarizeRun(deps: RunsDeps, place: RunPlace): Promise<RunSummary> {
  const { files } = deps;
  const head = readHead(files, place.record);
  const tail = readTail(files, place.record);
  const summary: RunSummary = {
    run_id: place.id,
    state: "interrupted",
    status: null,
    abort: null,
    started_at: head?.ts ?? null,
    last_at: tail?.last?.ts ?? head?.ts ?? null,
    steps: 0,
    tokens: 0,
    cost: null,
    bytes: sizeOf(files, place.directory, 0),
    instruction: instructionOf(head),
    record: place.record,
  };
  if (tail === undefined) return { ...summary, state: "damaged" };
  if (tail.last?.type === TERMINAL_TYPE) {
    const result = tail.last as unknown as AgentResult;
    summary.state = "ended";
    summary.status = result.status ?? null;
    summary.abort = result.abort ?? null;
    const usage = result.usage;
    summary.steps = usage?.steps ?? 0;
    summary.tokens = (usage?.tokens_in ?? 0) + (usage?.tokens_out ?? 0);
    summary.cost = usage?.cost ?? null;
    return summary;
  }
  if (await isRunning(deps, place.directory)) summary.state = "running";
  return addTurns(files, place.record, summary);
}

/** What an unfinished run used: no line says it, so its turns are added up. */
function addTurns(files: FilesPort, record: string, summary: RunSummary): RunSummary {
  for (const item of readRecord(files, record)) {
    if (item.kind === "fault") return { ...summary, state: "damaged" };
    if (item.kind !== "line" || item.line.type !== "turn.judged") continue;
    const line = item.line;
    summary.steps = number(line.step);
    summary.tokens += number(line.tokens_in) + number(line.tokens_out);
    if (typeof line.cost === "number") summary.cost = (summary.cost ?? 0) + line.cost;
  }
  return summary;
}

/** The runs there are, unsorted and unread. */
function runPlaces(deps: { files: FilesPort; runDirectory: string }): RunPlace[] {
  const names = deps.files.list(deps.runDirectory);
  if (!names.ok) return [];
  return names.value.filter((name) => RUN_ID.test(name)).map((id) =>
    placeOf(id, `${deps.runDirectory}/${id}`)
  ).filter((place) => isRun(deps.files, place.directory));
}

function placeOf(id: string, directory: string): RunPlace {
  return { id, directory, record: `${directory}/${RECORD_FILE}` };
}

/** A directory itself, no link to one: pruning must not reach what is elsewhere. */
function isRun(files: FilesPort, directory: string): boolean {
  const itself = files.lstat(directory);
  if (!itself.ok || itself.value.kind !== "directory") return false;
  const record = files.lstat(`${directory}/${RECORD_FILE}`);
  return record.ok && record.value.kind === "file";
}

/**
 * The run that a RUN names: an id, a unique prefix of one, a path to a run's directory or record,
 * or `last`. A failure is one sentence.
 */
export function resolveRun(
  deps: { files: FilesPort; runDirectory: string },
  text: string,
): Outcome<RunPlace, string> {
  if (/[/\\]/.test(text) || text === "." || text === "..") return resolvePath(deps.files, text);
  const places = runPlaces(deps);
  if (text === "last") {
    let newest: { place: RunPlace; startedAt: string } | null = null;
    for (const place of places) {
      // One whose beginning cannot be read is not passed over for an older one.
      const startedAt = readHead(deps.files, place.record)?.ts ??
        formatIso(modifiedMs(deps.files, place.record));
      const later = newest === null || startedAt > newest.startedAt ||
        (startedAt === newest.startedAt && place.id > newest.place.id);
      if (later) newest = { place, startedAt };
    }
    return newest
      ? success(newest.place)
      : failed(`Cannot find the last run: there is none in ${deps.runDirectory}`);
  }
  const exact = places.find((place) => place.id === text);
  if (exact) return success(exact);
  const candidates = places.filter((place) => text !== "" && place.id.startsWith(text));
  if (candidates.length === 1) return success(candidates[0]!);
  const shown = JSON.stringify(oneLine(text, 80));
  if (candidates.length > 1) {
    const ids = candidates.slice(0, CANDIDATES_SHOWN_MAX).map((place) => place.id).join(", ");
    const more = candidates.length > CANDIDATES_SHOWN_MAX
      ? ` and ${candidates.length - CANDIDATES_SHOWN_MAX} more`
      : "";
    return failed(`Cannot tell which run ${shown} means: ${ids}${more}`);
  }
  return failed(`Cannot find the run ${shown}: there is none of that id in ${deps.runDirectory}`);
}

function resolvePath(files: FilesPort, text: string): Outcome<RunPlace, string> {
  const given = text.replace(/[/\\]+$/, "") || "/";
  const directory = given.endsWith(`/${RECORD_FILE}`)
    ? given.slice(0, -RECORD_FILE.length - 1)
    : given;
  const real = files.realPath(directory);
  const record = `${directory}/${RECORD_FILE}`;
  const stat = files.stat(record);
  if (!real.ok || !stat.ok || stat.value.kind !== "file") {
    return failed(
      `Cannot find a run at ${JSON.stringify(oneLine(text, 200))}: no ${RECORD_FILE} there`,
    );
  }
  const name = real.value.split(/[/\\]/).at(-1)!;
  return success(placeOf(name, real.value));
}

/** Options of `agentd runs`. */
export interface RunsOptions {
  output: "text" | "json";
  /** With `--prune`: `30d` keeps what is younger, `N` the newest N. */
  prune: { keep: string } | null;
}

/** `agentd runs`: the list, or with `--prune` what was removed. */
export async function runsCommand(deps: RunsDeps, options: RunsOptions): Promise<CommandOutput> {
  const present = deps.files.list(deps.runDirectory);
  if (!present.ok && present.failure.class !== "not_found") {
    return usageError(`Cannot list the runs: ${present.failure.message}`);
  }
  if (options.prune) return await prune(deps, options.prune.keep, options.output);
  const runs = await listRuns(deps);
  if (options.output === "json") {
    return { exitCode: 0, stdout: JSON.stringify(runs, null, 2) + "\n", stderr: "" };
  }
  if (runs.length === 0) {
    return { exitCode: 0, stdout: "", stderr: `No runs in ${deps.runDirectory}\n` };
  }
  return { exitCode: 0, stdout: renderRuns(runs), stderr: "" };
}

function renderRuns(runs: readonly RunSummary[]): string {
  return renderTable(
    [
      { head: "RUN" },
      { head: "STARTED" },
      { head: "STATUS" },
      { head: "STEPS", right: true },
      { head: "TOKENS", right: true },
      { head: "COST", right: true },
      { head: "SIZE", right: true },
      { head: "INSTRUCTION" },
    ],
    runs.map((run) => [
      run.run_id,
      (run.started_at ?? "–").slice(0, 19).replace("T", " "),
      statusOf(run),
      String(run.steps),
      formatCount(run.tokens),
      formatCost(run.cost),
      formatSize(run.bytes),
      run.instruction,
    ]),
  );
}

function statusOf(run: RunSummary): string {
  if (run.state !== "ended") return run.state === "running" ? "* running" : run.state;
  return run.status ?? `abort ${run.abort}`;
}

async function prune(
  deps: RunsDeps,
  keep: string,
  output: "text" | "json",
): Promise<CommandOutput> {
  const count = /^\d+$/.test(keep) ? Number(keep) : undefined;
  const ageMs = count === undefined ? parseDurationMs(keep) : undefined;
  if (count === undefined && ageMs === undefined) {
    return usageError(
      `--keep is ${JSON.stringify(oneLine(keep, 40))}: give an age such as 30d or a number of runs`,
    );
  }
  const runs = await listRuns(deps);
  const now = deps.clock.wallMs();
  const notes: string[] = [];
  const doomed = runs.filter((run, place) => {
    if (run.state === "running") return false;
    if (run.state === "damaged") {
      // How old it is, and what it would tell, nobody knows: that is for a person to remove.
      notes.push(`agentd: run ${run.run_id} is kept: its record cannot be read\n`);
      return false;
    }
    if (count !== undefined) return place >= count;
    const lastMs = parseIso(run.last_at ?? "") ?? modifiedMs(deps.files, run.record);
    return now - lastMs > ageMs!;
  });
  const failures: string[] = [];
  const removed: RunSummary[] = [];
  for (const run of doomed) {
    const directory = run.record.slice(0, -RECORD_FILE.length - 1);
    // Held meanwhile: since the list was made it may have been resumed, and may be now.
    const lock = await deps.lock.tryLock(runLockPath(directory));
    if (!lock.ok && lock.failure.class === "held") continue;
    const gone = deps.files.remove(directory);
    if (lock.ok) lock.value.release();
    if (gone.ok) removed.push(run);
    else failures.push(`agentd: Cannot remove run ${run.run_id}: ${gone.failure.message}\n`);
  }
  const bytes = removed.reduce((sum, run) => sum + run.bytes, 0);
  const stdout = output === "json"
    ? JSON.stringify({ removed: removed.map((run) => run.run_id), bytes }, null, 2) + "\n"
    : removed.map((run) => `removed ${run.run_id} (${formatSize(run.bytes)})\n`).join("") +
      `${removed.length} of ${runs.length} runs removed, ${formatSize(bytes)} freed\n`;
  const stderr = [...notes, ...failures].join("");
  return { exitCode: failures.length > 0 ? 1 : 0, stdout, stderr };
}

function modifiedMs(files: FilesPort, path: string): number {
  const stat = files.stat(path);
  return stat.ok ? stat.value.modifiedMs : 0;
}

function byNewest(a: RunSummary, b: RunSummary): number {
  const startedA = a.started_at ?? "";
  const startedB = b.started_at ?? "";
  if (startedA !== startedB) return startedA < startedB ? 1 : -1;
  return a.run_id < b.run_id ? 1 : -1;
}

function sizeOf(files: FilesPort, path: string, depth: number): number {
  const stat = files.lstat(path);
  if (!stat.ok) return 0;
  if (stat.value.kind !== "directory") return stat.value.bytes;
  if (depth > DEPTH_MAX) return 0;
  const names = files.list(path);
  if (!names.ok) return 0;
  return names.value.reduce((sum, name) => sum + sizeOf(files, `${path}/${name}`, depth + 1), 0);
}

function instructionOf(head: RecordLine | undefined): string {
  const task = head?.task;
  if (!isObject(task) || typeof task.instruction !== "string") return "";
  return oneLine(task.instruction, LISTING_INSTRUCTION_CHARS_MAX);
}

function number(value: Json | undefined): number {
  return typeof value === "number" ? value : 0;
}
