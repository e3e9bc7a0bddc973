import type { Vault } from "../core/secret.ts";
import type { ClockPort } from "../ports/clock.ts";
import type { FilesPort } from "../ports/files.ts";
import type { LockPort } from "../ports/lock.ts";
import type { ProcessPort } from "../ports/process.ts";
import type { RandomPort } from "../ports/random.ts";
import type { ProgramPort } from "../ports/self.ts";
import type { SignalsPort } from "../ports/signals.ts";
import type { TelemetryPort } from "../ports/telemetry.ts";
import type { LogSettings } from "../wire/payload.ts";
import type { TelemetryContext } from "../wire/telemetry.ts";

/** Effects that the supervisor needs. There is no model and no tool among them. */
export interface SupervisorPorts {
  pid: number;
  clock: ClockPort;
  random: RandomPort;
  process: ProcessPort;
  signals: SignalsPort;
  files: FilesPort;
  /** Every run holds a lock in its directory while it goes on. */
  lock: LockPort;
  program: ProgramPort;
  /** Variables of this process's environment: agents get a few of them (clean environment). */
  env(name: string): string | undefined;
  /** The whole environment: what `--allow-env` hands to the exec server is taken from it. */
  variables?: Readonly<Record<string, string>>;
  openTelemetry(context: TelemetryContext, log: LogSettings, vault: Vault): TelemetryPort;
}
