/**
 * `--record-model`: replies are written in the run's own directory, the only place where the loop may
 * write, and carried to the user's file once the run is over.
 */

import type { Settings } from "../config/settings.ts";
import { IMPORT_BYTES_MAX } from "../core/limits.ts";
import type { FilesPort } from "../ports/files.ts";
import type { TelemetryPort } from "../ports/telemetry.ts";
import type { ModelSettings } from "../wire/payload.ts";

const NAME = "recording.jsonl";

/** The model's settings as an agent in `directory` is told them. */
export function recordingInside(model: ModelSettings, directory: string): ModelSettings {
  return model.recordTo === null ? model : { ...model, recordTo: `${directory}/${NAME}` };
}

/**
 * Carries the recording of the run in `directory` to the file that was asked for: as the file's whole
 * content in mode once, at its end in a daemon, whose runs share the file. A failure is told.
 */
export function deliverRecording(
  settings: Settings,
  files: FilesPort,
  telemetry: TelemetryPort,
  directory: string,
): void {
  const target = settings.model.recordTo;
  if (target === null) return;
  const bytes = files.readBytes(`${directory}/${NAME}`, IMPORT_BYTES_MAX);
  // A run that ended before its first reply has none.
  if (!bytes.ok && bytes.failure.class === "not_found") return;
  const written = !bytes.ok
    ? bytes
    : settings.mode === "once"
    ? files.writeAtomic(target, bytes.value)
    : append(files, target, bytes.value);
  if (!written.ok) {
    telemetry.emit("loop.error", {
      err: {
        type: "recording",
        message:
          `Cannot hand over the recording, which stays in ${directory}: ${written.failure.message}`,
      },
    }, "error");
  }
}

function append(files: FilesPort, path: string, bytes: Uint8Array) {
  const opened = files.openAppend(path);
  if (!opened.ok) return opened;
  const written = opened.value.append(bytes);
  opened.value.close();
  return written;
}
