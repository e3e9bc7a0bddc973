import type { ClockPort } from "../ports/clock.ts";
import type { ProcessPort } from "../ports/process.ts";
import type { ProgramPort, SelfPort } from "../ports/self.ts";
import type { TelemetryPort } from "../ports/telemetry.ts";
import type { WorkerPort } from "../ports/worker.ts";
import type { Vault } from "../core/secret.ts";
import type { LogSettings } from "../wire/payload.ts";
import type { TelemetryContext } from "../wire/telemetry.ts";

/** Effects that the broker needs; none of them reads a file, a network or a model. */
export interface BrokerPorts {
  clock: ClockPort;
  process: ProcessPort;
  self: SelfPort;
  program: ProgramPort;
  worker: WorkerPort;
  openTelemetry(context: TelemetryContext, log: LogSettings, vault: Vault): TelemetryPort;
}

/** Variables that every process below an agent gets, where they are set. */
export const CLEAN_ENVIRONMENT: readonly string[] = [
  "PATH",
  "HOME",
  "TMPDIR",
  "LANG",
  // Without these no program starts on Windows.
  "SYSTEMROOT",
  "COMSPEC",
  "PATHEXT",
  "TEMP",
  "TMP",
  "USERPROFILE",
  "APPDATA",
  "LOCALAPPDATA",
];

/** The clean environment of this process's children. */
export function cleanEnvironment(env: (name: string) => string | undefined): Record<string, string> {
  const clean: Record<string, string> = {};
  for (const name of CLEAN_ENVIRONMENT) {
    const value = env(name);
    if (value !== undefined) clean[name] = value;
  }
  return clean;
}
