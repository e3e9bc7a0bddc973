/** Bodies that came with requests, kept in files until a run is handed them. */

import { TRIGGER_BODY_BYTES_MAX } from "../core/limits.ts";
import { failed, type Outcome, success } from "../core/outcome.ts";
import type { FilesPort } from "../ports/files.ts";

/** Where accepted bodies wait: written before their request is answered. */
export interface BodyStore {
  put(runId: string, body: Uint8Array): Outcome<string, string>;
  get(path: string): Uint8Array | null;
  drop(path: string): void;
  /** Drops all but these. */
  sweep(paths: ReadonlySet<string>): void;
}

/** Bodies of requests as files of one directory, removed once they were handed over. */
export function fileBodies(files: FilesPort, directory: string): BodyStore {
  return {
    put(runId, body) {
      const made = files.makeDirectory(directory);
      if (!made.ok) return failed(made.failure.message);
      const path = `${directory}/${runId}`;
      const written = files.writeAtomic(path, body);
      return written.ok ? success(path) : failed(written.failure.message);
    },
    get(path) {
      // The state file names it: it must be one of ours.
      if (!path.startsWith(`${directory}/`) || path.includes("..")) return null;
      const read = files.readBytes(path, TRIGGER_BODY_BYTES_MAX);
      return read.ok ? read.value : null;
    },
    drop(path) {
      if (path.startsWith(`${directory}/`) && !path.includes("..")) files.remove(path);
    },
    sweep(paths) {
      const names = files.list(directory);
      for (const name of names.ok ? names.value : []) {
        const path = `${directory}/${name}`;
        if (!paths.has(path)) files.remove(path);
      }
    },
  };
}
