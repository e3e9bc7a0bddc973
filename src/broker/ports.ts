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
