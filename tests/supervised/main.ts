/**
 * The program under supervision with another loop Worker: same supervisor, same spawn, same broker.
 * `once FILE` runs the settings in a JSON file; `__agent` is the agent it spawns.
 */

import { runBroker } from "../../src/broker/main.ts";
import { runOnce } from "../../src/supervisor/run.ts";
import { systemClock } from "../../src/sys/clock.ts";
import { systemFiles } from "../../src/sys/files.ts";
import { systemLock } from "../../src/sys/lock.ts";
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
    self: {
      pid: systemSelf.pid,
      standalone: systemSelf.standalone,
      stdin: systemSelf.stdin,
      stdout: systemSelf.stdout,
      env: systemSelf.env,
      exit: systemSelf.exit,
      // What is left afterwards is said by attempts, for the tests to read.
      async revokeAllButRun() {
        await systemSelf.revokeAllButRun();
        console.error(JSON.stringify({ event: "proc.ready", comp: "revoked", ...await tryAll() }));
      },
    },
    program,
    worker: systemWorkers(workerUrl),
    openTelemetry,
  });
} else if (Deno.args[0] === "mcp") {
  // A tool server that says nothing: it is its process that tests look at.
  for await (const _ of Deno.stdin.readable);
} else {
  const end = await runOnce(readSettings(Deno.args[1]!), {
    pid: Deno.pid,
    clock: systemClock,
    random: systemRandom,
    process: systemProcess,
    signals: systemSignals,
    files: systemFiles,
    lock: systemLock,
    program,
    env: systemSelf.env,
    openTelemetry,
  });
  console.log(JSON.stringify(end));
}

/** Which kinds this thread can still use. */
async function tryAll(): Promise<Record<string, string>> {
  const attempts: Record<string, () => unknown> = {
    read: () => Deno.readTextFileSync("/etc/passwd"),
    write: () => Deno.writeTextFileSync("/tmp/agentd-should-not-be", ""),
    net: () => Deno.listen({ port: 0 }).close(),
    env: () => Deno.env.get("HOME"),
    sys: () => Deno.hostname(),
    run: async () => await new Deno.Command("true").output(),
  };
  const outcomes: Record<string, string> = {};
  for (const [kind, attempt] of Object.entries(attempts)) {
    try {
      await attempt();
      outcomes[kind] = "possible";
    } catch (error) {
      outcomes[kind] = error instanceof Deno.errors.NotCapable ? "denied" : String(error);
    }
  }
  return outcomes;
}
