/**
 * Going on from a record: what a resume needs to know of it, and a fork, which is a new run that
 * begins with the lines of another up to an iteration.
 */

import { canonicalJson, isObject, type Json, type JsonObject } from "../core/json.ts";
import { ARTIFACT_BYTES_MAX, ARTIFACTS_DIRECTORY } from "./artifacts.ts";
import { clip } from "../core/text.ts";
import { failed, type Outcome, success } from "../core/outcome.ts";
import type { ClockPort } from "../ports/clock.ts";
import type { FilesPort } from "../ports/files.ts";
import type { LockPort } from "../ports/lock.ts";
import type { AgentResult } from "../wire/result.ts";
import { openRecord, RECORD_FILE, type RecordWriter } from "./append.ts";
import type { RecordLine } from "../wire/record.ts";
import { countOf } from "./output.ts";
import { describeFault, isForeignVersion, readRecord, type RecordFault } from "./read.ts";
import { isRunning, type RunPlace } from "./runs.ts";
import { TERMINAL_TYPE } from "./terminal.ts";

const DIFFERENCES_MAX = 100;
const VALUE_CHARS_MAX = 120;
/** What an agent keeps beside its record and its artifacts. */
const NOTES_FILE = "notes.md";

/** What a record says of a run that may go on. */
export interface ResumePlan {
  place: RunPlace;
  /** `run.started`: identity, task, model, configuration, as the last resume left them. */
  started: JsonObject;
  /** The limits last in force. */
  limits: JsonObject;
  /** How the last stretch ended; null if it was cut off. */
  end: AgentResult | null;
  steps: number;
  /** Whole lines of the record. */
  lines: number;
  /** Intents without an outcome: they become `unknown`. */
  openCalls: string[];
  tornBytes: number;
}

/**
 * Reads a record for `agentd resume`. A failure is one sentence: the run goes on already, has
 * nothing left to do, or its record is damaged.
 */
export async function planResume(
  deps: { files: FilesPort; lock: LockPort },
  place: RunPlace,
): Promise<Outcome<ResumePlan, string>> {
  const cannot = (why: string): { ok: false; failure: string } =>
    failed(`Cannot resume run ${place.id}: ${why}`);
  if (await isRunning(deps, place.directory)) return cannot("it is still running");
  let started: JsonObject | null = null;
  const plan: Omit<ResumePlan, "started"> = {
    place,
    limits: {},
    end: null,
    steps: 0,
    lines: 0,
    openCalls: [],
    tornBytes: 0,
  };
  const open = new Set<string>();
  for (const item of readRecord(deps.files, place.record)) {
    if (item.kind === "fault") return cannot(faultOf(item.fault));
    if (item.kind === "torn") {
      plan.tornBytes = item.bytes;
      continue;
    }
    const { line } = item;
    plan.lines = line.seq;
    if (line.type === "run.started") started = { ...line };
    if (line.type === "run.resumed" && started !== null) takeTerms(started, line);
    if (line.type === "run.started" || line.type === "run.resumed") {
      plan.end = null;
      if (isObject(line.limits)) plan.limits = line.limits;
    } else if (line.type === "call.intended") open.add(String(line.call));
    else if (line.type === "call.observed" || line.type === "call.abandoned") {
      open.delete(String(line.call));
    } else if (line.type === "turn.judged") plan.steps = Number(line.step);
    else if (line.type === TERMINAL_TYPE) plan.end = line as unknown as AgentResult;
  }
  if (started === null) return cannot("its record does not hold its start");
  const subagent = subagentOf(started);
  if (subagent !== null) return cannot(subagent);
  const { end } = plan;
  if (end?.status === "completed" || end?.status === "refused") {
    return cannot(`it ended ${end.status}, and nothing is left to do`);
  }
  return success({ ...plan, started, openCalls: [...open] });
}

/** A later format is no damage. */
function faultOf(fault: RecordFault): string {
  const what = describeFault(fault);
  return isForeignVersion(fault) ? what : `its record is damaged: ${what}`;
}

/** Why a subagent does not go on by itself: what it may do is its parent's to give. */
function subagentOf(started: JsonObject): string | null {
  const path = isObject(started.identity) ? started.identity.path : "0";
  return path === "0" ? null : `it is the subagent ${path} of a run: only the whole run goes on`;
}

/** What a resume changed holds for the next one too. */
function takeTerms(started: JsonObject, resumed: JsonObject): void {
  for (const name of ["task", "configuration", "working_directory"]) {
    const value = resumed[name];
    if (value !== undefined) started[name] = value;
  }
}

/** What differs between two effective configurations: one `key: old -> new` each. */
export function configurationChanges(before: JsonObject, after: JsonObject): string[] {
  const changes: string[] = [];
  const compare = (path: string, old: Json | undefined, now: Json | undefined): void => {
    if (changes.length >= DIFFERENCES_MAX) return;
    if (isObject(old) && isObject(now)) {
      for (const key of new Set([...Object.keys(old), ...Object.keys(now)])) {
        compare(path === "" ? key : `${path}.${key}`, old[key], now[key]);
      }
    } else if (canonicalJson(old ?? null) !== canonicalJson(now ?? null)) {
      changes.push(`${path}: ${show(old)} -> ${show(now)}`);
    }
  };
  compare("", before, after);
  return changes.sort();
}

function show(value: Json | undefined): string {
  return value === undefined ? "(unset)" : clip(JSON.stringify(value), VALUE_CHARS_MAX);
}

/** What a fork goes on with: the terms that held in iteration `from`. A failure is one sentence. */
export function planFork(
  files: FilesPort,
  place: RunPlace,
  from: number,
): Outcome<Pick<ResumePlan, "started" | "limits">, string> {
  const cannot = (why: string): { ok: false; failure: string } =>
    failed(`Cannot fork run ${place.id} at iteration ${from}: ${why}`);
  let started: JsonObject | null = null;
  let limits: JsonObject = {};
  const lines = linesBefore(files, place, from);
  let next = lines.next();
  for (; !next.done; next = lines.next()) {
    const line = next.value;
    if (line.type === "run.started") started = { ...line };
    if (line.type === "run.resumed" && started !== null) takeTerms(started, line);
    const begins = line.type === "run.started" || line.type === "run.resumed";
    if (begins && isObject(line.limits)) limits = line.limits;
  }
  if (next.value !== null) return cannot(next.value);
  if (started === null) return cannot("its record does not hold its start");
  const subagent = subagentOf(started);
  return subagent === null ? success({ started, limits }) : cannot(subagent);
}

/** The lines up to the moment before the model answered in iteration `from`; why there are none. */
function* linesBefore(
  files: FilesPort,
  place: RunPlace,
  from: number,
): Generator<RecordLine, string | null, void> {
  let requested = 0;
  for (const item of readRecord(files, place.record)) {
    if (item.kind === "fault") return faultOf(item.fault);
    if (item.kind === "torn") break;
    const { line } = item;
    if (line.type === "model.requested" && line.purpose === "turn") requested = Number(line.step);
    if (line.type === "model.answered" && requested === from) return null;
    yield line;
  }
  // A run that was cut off while the model was asked can be forked there too.
  return requested === from ? null : `it made ${countOf(requested, "iteration")}`;
}

/** What {@link forkRun} needs. */
export interface ForkDeps {
  files: FilesPort;
  clock: ClockPort;
  runDirectory: string;
}

/**
 * Makes the new run `id` from the lines of another up to the moment before the model answered in
 * iteration `from`. It is then resumed like any run that was cut off there. The other run is only
 * read; the new one must not exist.
 */
export function forkRun(
  deps: ForkDeps,
  place: RunPlace,
  from: number,
  id: string,
): Outcome<RunPlace, string> {
  const cannot = (why: string): { ok: false; failure: string } =>
    failed(`Cannot fork run ${place.id} at iteration ${from}: ${why}`);
  const directory = `${deps.runDirectory}/${id}`;
  // Where copying fails, the directory is removed: it must be ours.
  if (deps.files.lstat(directory).ok) return cannot(`${directory} exists already`);
  const opened = openRecord({
    files: deps.files,
    clock: deps.clock,
    directory,
    durability: "none",
    // What is copied was masked when it was recorded.
    mask: (text) => text,
  }, "new");
  if (!opened.ok) return cannot(opened.failure.message);
  const copied = copyLines(deps.files, opened.value, place, from, id, directory);
  const closed = opened.value.close();
  const why = copied ?? (closed.ok ? copyKept(deps.files, place.directory, directory) : null) ??
    (closed.ok ? null : closed.failure.message);
  if (why !== null) {
    deps.files.remove(directory);
    return cannot(why);
  }
  return success({ id, directory, record: `${directory}/${RECORD_FILE}` });
}

/** Null when done, else why not. */
function copyLines(
  files: FilesPort,
  writer: RecordWriter,
  place: RunPlace,
  from: number,
  id: string,
  directory: string,
): string | null {
  const lines = linesBefore(files, place, from);
  let next = lines.next();
  for (; !next.done; next = lines.next()) {
    const line = next.value;
    const { v: _v, seq: _seq, ts: _ts, prev: _prev, ...payload } = line;
    if (line.type === "run.started" && isObject(payload.identity)) {
      payload.identity = { ...payload.identity, runId: id, directory };
      payload.forked_from = { run_id: place.id, step: from };
    }
    writer.append(line.type, payload, line.at);
    if (line.seq % 256 === 0) {
      const flushed = writer.flush();
      if (!flushed.ok) return flushed.failure.message;
    }
  }
  return next.value;
}

/** Artifacts and notes, which the copied lines may name. Null when done, else why not. */
function copyKept(files: FilesPort, from: string, to: string): string | null {
  const names = files.list(`${from}/${ARTIFACTS_DIRECTORY}`);
  const kept = names.ok ? names.value.map((name) => `${ARTIFACTS_DIRECTORY}/${name}`) : [];
  if (kept.length > 0) {
    const made = files.makeDirectory(`${to}/${ARTIFACTS_DIRECTORY}`);
    if (!made.ok) return made.failure.message;
  }
  for (const name of [...kept, NOTES_FILE]) {
    const content = files.readBytes(`${from}/${name}`, ARTIFACT_BYTES_MAX);
    if (!content.ok) {
      if (content.failure.class === "not_found") continue;
      return content.failure.message;
    }
    const written = files.createNew(`${to}/${name}`, content.value);
    if (!written.ok) return written.failure.message;
  }
  return null;
}
