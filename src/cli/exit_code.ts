/** Exit codes: the only place with these numbers. */

import type { Mode } from "../config/settings.ts";
import type { Abort, Status } from "../wire/result.ts";

/** What went well, or was asked for and given. */
export const EXIT_OK = 0;
/** The configuration, or the way the program was called, is at fault. */
export const EXIT_USAGE = 2;
/** A bug of this program, or a disk that takes no more. */
export const EXIT_FAILURE = 1;

/** How a whole invocation ended. */
export interface End {
  mode: Mode;
  /** Exactly one of `status` and `abort` is set, but for a daemon that came to its end cleanly. */
  status: Status | null;
  abort: Abort | null;
  /** There is a usable partial result. */
  partial: boolean;
  /** The first signal that this process got. */
  signal: "SIGINT" | "SIGTERM" | null;
  /** A second signal came, and every group was killed at once. */
  forced: boolean;
  /** No model is configured and none was found: nobody could have run it. */
  noModel?: boolean;
  /** Of a daemon: the bound that it came to. */
  bound?: "lifetime" | "lifetime_tokens" | null;
}

/** The exit code of an end. */
export function exitCode(end: End): number {
  if (end.forced) return signalCode(end.signal);
  if (end.abort === "intelligence") return end.noModel ? EXIT_USAGE : 4;
  if (end.abort === "mcp") return 6;
  if (end.mode !== "once") {
    if (end.bound === "lifetime_tokens") return 7;
    return end.bound === "lifetime" ? 124 : EXIT_OK;
  }
  switch (end.status) {
    case "completed":
      return EXIT_OK;
    case "refused":
      return 5;
    case "exhausted_steps":
    case "exhausted_tokens":
      return end.partial ? 3 : 7;
    case "deadline":
      return 124;
    case "stalled":
    case "loop_detected":
      return end.partial ? 3 : 1;
    case "cancelled":
      return signalCode(end.signal);
    case "crashed":
    case null:
      return EXIT_FAILURE;
  }
}

/** 128 and the signal's number; a run that something else cancelled ends like a terminated one. */
function signalCode(signal: End["signal"]): number {
  return signal === "SIGINT" ? 130 : 143;
}
