/**
 * The evidence ledger: every action with its arguments in short, its outcome class, the error's text
 * and the id of what it returned. Made by the runtime, never by a model; it is what compaction keeps
 * word for word. Equal outcomes are one entry with a count, so a long run stays small.
 */

import { byteLength, clip } from "../core/text.ts";
import type { ObservationClass } from "./observation.ts";

const ARGUMENT_CHARS_MAX = 160;
const DETAIL_CHARS_MAX = 400;
const LEFT_OUT_CHARS_MAX = 200;
/** Entries held before the oldest successes give way to counts. */
const ENTRIES_MAX = 2_000;

/** One outcome, however often it came. */
export interface LedgerEntry {
  tool: string;
  args: string;
  class: ObservationClass;
  /** The error's text, the reason, or the gist of what a side effect returned. */
  detail: string;
  count: number;
  firstStep: number;
  lastStep: number;
  /** The last call's id, for `artifact_read`. */
  call: string;
}

/** What was done so far, equal outcomes as one. */
export interface Ledger {
  /** In the order of their last occurrence. */
  entries: Map<string, LedgerEntry>;
  /** What gave way: count by tool. */
  given: Map<string, number>;
}

/** Nothing done yet. */
export function emptyLedger(): Ledger {
  return { entries: new Map(), given: new Map() };
}

/** Enters one outcome. */
export function enter(
  ledger: Ledger,
  step: number,
  outcome: { call: string; tool: string; args: string; class: ObservationClass; detail: string },
): void {
  const args = clip(outcome.args, ARGUMENT_CHARS_MAX);
  const detail = clip(outcome.detail.replace(/\s+/g, " ").trim(), DETAIL_CHARS_MAX);
  const key = `${outcome.tool}\n${args}\n${outcome.class}\n${detail}`;
  const known = ledger.entries.get(key);
  if (known !== undefined) {
    ledger.entries.delete(key);
    ledger.entries.set(key, {
      ...known,
      count: known.count + 1,
      lastStep: step,
      call: outcome.call,
    });
    return;
  }
  ledger.entries.set(key, {
    tool: outcome.tool,
    args,
    class: outcome.class,
    detail,
    count: 1,
    firstStep: step,
    lastStep: step,
    call: outcome.call,
  });
  if (ledger.entries.size > ENTRIES_MAX) giveWay(ledger);
}

/** Drops the oldest success into the counts; the oldest failure where there is no success left. */
function giveWay(ledger: Ledger): void {
  let oldest: [string, LedgerEntry] | undefined;
  for (const item of ledger.entries) {
    const isSuccess = isPlainSuccess(item[1]);
    if (isSuccess || oldest === undefined) oldest = item;
    if (isSuccess) break;
  }
  if (oldest === undefined) return;
  const [key, entry] = oldest;
  ledger.given.set(entry.tool, (ledger.given.get(entry.tool) ?? 0) + entry.count);
  ledger.entries.delete(key);
}

/**
 * The ledger as text of at most `bytesMax` bytes: every distinct failure before any success,
 * the newest first to stay, shown in the order of their steps.
 */
export function renderLedger(ledger: Ledger, bytesMax: number): string {
  const given = new Map(ledger.given);
  const kept: LedgerEntry[] = [];
  // The line of what was left out comes on top.
  let bytes = LEFT_OUT_CHARS_MAX * 3;
  const newest = [...ledger.entries.values()].reverse();
  const failures = newest.filter((entry) => !isPlainSuccess(entry));
  const successes = newest.filter(isPlainSuccess);
  let isFull = false;
  for (const entry of [...failures, ...successes]) {
    const cost = byteLength(renderEntry(entry)) + 1;
    // Where a failure found no room, no success does either.
    if (bytes + cost <= bytesMax && !(isFull && isPlainSuccess(entry))) {
      bytes += cost;
      kept.push(entry);
      continue;
    }
    isFull ||= !isPlainSuccess(entry);
    given.set(entry.tool, (given.get(entry.tool) ?? 0) + entry.count);
  }
  kept.sort((a, b) => a.firstStep - b.firstStep);
  const lines = kept.map(renderEntry);
  if (given.size > 0) {
    const counts = [...given].map(([tool, count]) => `${tool} ${count}`).join(", ");
    lines.unshift(
      clip(
        `- left out here for room (artifact_read {"id":"ledger"} has it): ${counts}`,
        LEFT_OUT_CHARS_MAX,
      ),
    );
  }
  return lines.join("\n");
}

function isPlainSuccess(entry: LedgerEntry): boolean {
  return entry.class === "ok" || entry.class === "truncated";
}

/** One line of the ledger. */
function renderEntry(entry: LedgerEntry): string {
  const steps = entry.firstStep === entry.lastStep
    ? `step ${entry.firstStep}`
    : `steps ${entry.firstStep} to ${entry.lastStep}`;
  const times = entry.count > 1 ? `, ${entry.count} times` : "";
  const detail = entry.detail === "" ? "" : `: ${entry.detail}`;
  return `- ${steps}${times}: ${entry.tool} ${entry.args} -> ${entry.class}${detail} [${entry.call}]`;
}
