/** What a daemon keeps over a restart, in one file of the state directory, written whole. */

import { DYNAMIC_ROUTES_MAX, SESSIONS_MAX, STATE_BYTES_MAX } from "../core/limits.ts";
import { fnv64 } from "../core/hash.ts";
import { canonicalJson, isObject, type Json, parseJson } from "../core/json.ts";
import { failed, type Outcome, success } from "../core/outcome.ts";
import type { Settings } from "../config/settings.ts";
import type { FilesPort } from "../ports/files.ts";
import type { Change, StoredBody } from "./route_queue.ts";

/** Version of the state file; a higher one is not read. */
const STATE_VERSION = 1;

/** A warm session that may be taken up again from its record. */
export interface SessionState {
  name: string;
  runId: string;
  startedWallMs: number;
  /** Its process was started once: there is, or should be, a record to go on from. */
  begun: boolean;
  /** Subscriptions that its agent made, each `server:uri`. */
  subscriptions: string[];
}

/** What a schedule keeps over a restart. Times are milliseconds since the Unix epoch. */
export interface ScheduleKept {
  /** The times it was made for: another cron expression, zone or interval starts anew. */
  plan: string;
  /** Where an interval counts from. */
  anchorMs: number;
  lastSlotMs: number;
  queuedSlotMs: number | null;
}

/** Everything that a daemon keeps over a restart. */
export interface DaemonState {
  schedule: ScheduleKept | null;
  /** Subscriptions were in place once: at the next start each watched URI possibly changed. */
  watched: boolean;
  sessions: SessionState[];
  /** Taken in and not yet served. */
  pending: Change[];
}

/** The state of a daemon that never ran. */
export function emptyState(): DaemonState {
  return { schedule: null, watched: false, sessions: [], pending: [] };
}

/**
 * What a daemon's files are called: the operator's lock name, else a digest of what makes it this
 * daemon and no other (mode, task, triggers, configuration file, working directory).
 */
export function daemonName(settings: Settings): string {
  if (settings.lock !== null) return settings.lock;
  const { mode, task, trigger, configurationFile, workingDirectory } = settings;
  const identity: Json = {
    mode,
    instruction: task.instruction,
    cron: trigger.cron,
    timezone: trigger.timezone,
    interval: trigger.intervalMs,
    subscribe: trigger.subscribe,
    routes: trigger.routes.map((route) => route.match),
    file: configurationFile,
    directory: workingDirectory,
  };
  return `${mode}-${fnv64(canonicalJson(identity))}`;
}

/** Why a state file was not read. */
export interface StateFailure {
  /** `corrupt`: it is moved aside and the daemon starts anew; the others stop the daemon. */
  class: "corrupt" | "newer" | "unreadable";
  message: string;
}

/** Reads a state file; one that does not exist is an empty state. */
export function loadState(files: FilesPort, path: string): Outcome<DaemonState, StateFailure> {
  const read = files.readText(path, STATE_BYTES_MAX);
  if (!read.ok) {
    if (read.failure.class === "not_found") return success(emptyState());
    // One that is too large is not ours, since none such is written: it is left for its owner.
    const message = `Cannot read the state: ${read.failure.message}`;
    return failed({ class: "unreadable", message });
  }
  const parsed = parseJson(read.value);
  if (!parsed.ok) {
    return failed({
      class: "corrupt",
      message: `Cannot read the state: ${path}:${parsed.failure.line}: ${parsed.failure.message}`,
    });
  }
  const value = parsed.value;
  if (isObject(value) && typeof value.v === "number" && value.v > STATE_VERSION) {
    return failed({
      class: "newer",
      message: `Cannot read the state: ${path} has version ${value.v}, this program knows ` +
        `${STATE_VERSION}`,
    });
  }
  const state = parseState(value);
  return state === undefined
    ? failed({
      class: "corrupt",
      message: `Cannot read the state: ${path} is not a daemon's state`,
    })
    : success(state);
}

/** Writes a state file whole or not at all. */
export function saveState(
  files: FilesPort,
  path: string,
  state: DaemonState,
): Outcome<void, string> {
  const bytes = new TextEncoder().encode(JSON.stringify({ v: STATE_VERSION, ...state }) + "\n");
  if (bytes.length > STATE_BYTES_MAX) {
    return failed(`Cannot write the state: ${bytes.length} bytes, over ${STATE_BYTES_MAX}`);
  }
  const written = files.writeAtomic(path, bytes);
  return written.ok ? written : failed(`Cannot write the state: ${written.failure.message}`);
}

/** Moves a corrupt state aside, so that nothing of it is lost to whoever looks. */
export function setAside(files: FilesPort, path: string): void {
  const bytes = files.readBytes(path, STATE_BYTES_MAX);
  if (bytes.ok) files.writeAtomic(`${path}.corrupt`, bytes.value);
  files.remove(path);
}

function parseState(value: Json): DaemonState | undefined {
  if (!isObject(value) || value.v !== STATE_VERSION) return undefined;
  const schedule = value.schedule === null ? null : parseSchedule(value.schedule);
  const sessions = parseList(value.sessions, SESSIONS_MAX, parseSession);
  // Every route holds thousands at most, and there are many routes: the file's size is the bound.
  const pending = parseList(value.pending, Infinity, parseChange);
  if (schedule === undefined || sessions === undefined || pending === undefined) return undefined;
  if (typeof value.watched !== "boolean") return undefined;
  return { schedule, watched: value.watched, sessions, pending };
}

function parseList<Item>(
  value: Json | undefined,
  itemsMax: number,
  parse: (value: Json) => Item | undefined,
): Item[] | undefined {
  if (!Array.isArray(value) || value.length > itemsMax) return undefined;
  const items = value.map(parse);
  return items.every((item) => item !== undefined) ? items as Item[] : undefined;
}

function isTime(value: unknown): value is number {
  return Number.isSafeInteger(value);
}

function parseSchedule(value: Json | undefined): ScheduleKept | undefined {
  if (!isObject(value)) return undefined;
  const { plan, anchorMs, lastSlotMs, queuedSlotMs } = value;
  if (typeof plan !== "string" || !isTime(anchorMs) || !isTime(lastSlotMs)) return undefined;
  if (queuedSlotMs !== null && !isTime(queuedSlotMs)) return undefined;
  return { plan, anchorMs, lastSlotMs, queuedSlotMs };
}

function parseSession(value: Json): SessionState | undefined {
  if (!isObject(value)) return undefined;
  const { name, runId, startedWallMs, begun } = value;
  const subscriptions = parseList(
    value.subscriptions,
    DYNAMIC_ROUTES_MAX,
    (item) => typeof item === "string" ? item : undefined,
  );
  if (typeof name !== "string" || typeof runId !== "string" || typeof begun !== "boolean") {
    return undefined;
  }
  if (!isTime(startedWallMs)) return undefined;
  return subscriptions && { name, runId, startedWallMs, begun, subscriptions };
}

function parseChange(value: Json): Change | undefined {
  if (!isObject(value)) return undefined;
  const { server, uri, kind, runId, tries } = value;
  if (server !== null && typeof server !== "string") return undefined;
  if (runId !== null && typeof runId !== "string") return undefined;
  if (typeof uri !== "string" || !isTime(tries)) return undefined;
  if (kind !== "changed" && kind !== "possibly") return undefined;
  const body = value.body === null ? null : parseBody(value.body);
  return body === undefined ? undefined : { server, uri, kind, runId, body, tries };
}

function parseBody(value: Json | undefined): StoredBody | undefined {
  if (!isObject(value)) return undefined;
  const { path, mimeType, name } = value;
  return typeof path === "string" && typeof mimeType === "string" && typeof name === "string"
    ? { path, mimeType, name }
    : undefined;
}
