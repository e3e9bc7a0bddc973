/** Every port over the real system, for the composition root. */

import type { Vault } from "../core/secret.ts";
import type { TelemetryPort } from "../ports/telemetry.ts";
import type { LogSettings } from "../wire/payload.ts";
import type { TelemetryContext } from "../wire/telemetry.ts";
import { createTelemetry } from "../wire/telemetry_writer.ts";
import { systemClock } from "./clock.ts";
import { systemFiles } from "./files.ts";
import { systemProcess } from "./process.ts";
import { systemRandom } from "./random.ts";
import { systemProgram, systemSelf } from "./self.ts";
import { systemSignals } from "./signals.ts";
import { systemWorkers } from "./worker.ts";
import { writeStderr } from "./output.ts";

/** The ports of a process whose entry module is at `mainUrl`. */
export function systemPorts(mainUrl: string) {
  return {
    pid: systemSelf.pid,
    clock: systemClock,
    files: systemFiles,
    process: systemProcess,
    random: systemRandom,
    signals: systemSignals,
    self: systemSelf,
    program: systemProgram(mainUrl),
    // Sources and bundle keep the same tree, so the entries are found by the same relative path.
    worker: systemWorkers(
      new URL(mainUrl.endsWith(".ts") ? "./src/agent/worker.ts" : "./src/agent/worker.js", mainUrl),
    ),
    env: (name: string) => systemSelf.env(name),
    openTelemetry: (context: TelemetryContext, log: LogSettings, vault: Vault): TelemetryPort =>
      createTelemetry(context, log, vault, writeStderr, systemClock),
  };
}
