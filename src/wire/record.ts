/**
 * Lines of a record. Two sorts: what happened to the loop (its events, verbatim, which
 * are the only input of the fold) and what the loop decided (which replay compares). The agent's
 * types of both are in src/agent/event.ts; here is what every line has.
 */

import type { Json } from "../core/json.ts";

/** Version of the lines; a newer one is refused. */
export const RECORD_VERSION = 1;

/** The hash that the first line chains from. */
export const CHAIN_START = "0000000000000000";

/**
 * One line: `prev` is FNV-1a/64 over the whole previous line (its bytes without `\n`), as 16
 * hexadecimal digits, and CHAIN_START for the first. `at` is milliseconds on the monotonic clock
 * since the run started, the only time that decisions see; `ts` is ISO 8601 UTC, for people.
 * Key order on disk: v, seq, ts, at, type, payload..., prev.
 */
export interface RecordLine {
  /** Format version. */
  v: number;
  /** Counts from 1. */
  seq: number;
  /** Wall-clock time, ISO 8601 UTC; for people. */
  ts: string;
  /** Milliseconds on the monotonic clock since the run started. */
  at: number;
  /** The event or decision. */
  type: string;
  /** Hash of the line before. */
  prev: string;
  /** The payload. */
  [field: string]: Json;
}
