/** Why a record cannot be opened or written, from what the files said. */

import type { FileFailure } from "../ports/files.ts";
import type { RecordFault } from "./read.ts";

/** Why a record cannot be opened or written. `full`: the disk is, or the quota. */
export interface RecordFailure {
  class: "exists" | "missing" | "corrupt" | "full" | "denied" | "other";
  message: string;
  /** Set for `corrupt`. */
  fault?: RecordFault;
}

/** How the failure of a record on a full disk begins. */
export const RECORD_FULL = "Cannot write the record: no space left";

/** A record's failure from a file's. */
export function recordFailure(failure: FileFailure): RecordFailure {
  const message = failure.class === "full"
    ? `${RECORD_FULL} (${failure.message})`
    : `Cannot use the record: ${failure.message}`;
  switch (failure.class) {
    case "exists":
    case "full":
    case "denied":
      return { class: failure.class, message };
    case "not_found":
      return { class: "missing", message };
    default:
      return { class: "other", message };
  }
}
