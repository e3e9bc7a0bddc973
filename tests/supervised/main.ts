/**
 * The program under supervision with another loop Worker: same supervisor, same spawn, same broker.
 * `once FILE` runs the settings in a JSON file; `__agent` is the agent it spawns.
 */

import { runBroker } from "../../src/broker/main.ts";
import { runOnce } from "../../src/supervisor/run.ts";
import { systemClock } from "../../src/sys/clock.ts";
import { systemFiles } from "../../src/sys/files.ts";
import { systemProcess } from "../../src/sys/process.ts";
import { systemRandom } from "../../src/sys/random.ts";
import { systemProgram, systemSelf } from "../../src/sys/self.ts";
import { systemSignals } from "../../src/sys/signals.ts";
import { systemWorkers } from "../../src/sys/worker.ts";
import type { TelemetryContext } from "../../src/wire/telemetry.ts";
import { readSettings } from "./settings.ts";

const root = decodeURIComponent(new URL("../..", import.meta.url).pathname).replace(/\/$/, "");
const program = systemProgram(import.meta.url, root);
// Sources and bundle keep the same tree.
const workerUrl = new URL(
  import.meta.url.endsWith(".ts") ? "./worker.ts" : "./worker.js",
  import.meta.url,
);

function openTelemetry(context: TelemetryContext) {
  return {
    emit(event: string, fields: Record<string, unknown> = {}, level = "info") {
      console.error(JSON.stringify({ level, event, ...context, ...fields }));
    },
  };
}

if (Deno.args[0] === "__agent") {
  await runBroker({
    clock: systemClock,
    process: systemProcess,
    self: systemSelf,
    program,
    worker: systemWorkers(workerUrl),
    openTelemetry,
  });
} else {
  const end = await runOnce(readSettings(Deno.args[1]!), {
    pid: Deno.pid,
    clock: systemClock,
    random: systemRandom,
    process: systemProcess,
    signals: systemSignals,
    files: systemFiles,
    program,
    env: systemSelf.env,
    openTelemetry,
  });
  console.log(JSON.stringify(end));
}
