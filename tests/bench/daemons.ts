/** Daemons: what they take while nothing happens, and how soon a change reaches the model. */

import { UpdatingServers } from "../fakes/updating_servers.ts";
import type { Bench } from "./bench.ts";
import { waitingHello } from "./children.ts";
import { median, type Reading, readTree, sum } from "./measure.ts";
import { heading, report } from "./report.ts";

const IDLE_MS = 20_000;
const ROUNDS = 9;
const DEBOUNCE_MS = 100;

interface Daemon {
  pid: number;
  stop(): Promise<void>;
}

function startDaemon(bench: Bench, args: string[]): Daemon {
  const child = new Deno.Command(bench.programs.agentd, {
    args: [
      "run",
      "--intelligence",
      bench.endpoint.url,
      "--model",
      "bench",
      "--run-dir",
      bench.programs.scratch,
      "--state-dir",
      `${bench.programs.scratch}/state-${++daemons}`,
      "--quiet",
      ...args,
    ],
    cwd: bench.programs.scratch,
    stdin: "null",
    stdout: "null",
    stderr: "inherit",
  }).spawn();
  return {
    pid: child.pid,
    async stop() {
      child.kill("SIGTERM");
      await child.status;
    },
  };
}

let daemons = 0;

/** Every mode at idle, then both routes of the reactive one. */
export async function measureDaemons(bench: Bench): Promise<void> {
  heading(`Daemons, ${IDLE_MS / 1000} s at idle`);
  const hello = (await waitingHello(bench)).residentMiB;
  const servers = new UpdatingServers(`${bench.programs.scratch}/servers`, ["mem://a", "mem://b"]);
  const watch = ["--mcp", `docs=${servers.command().join(" ")}`, "--subscribe", "docs:mem://*"];
  const modes: [name: string, args: string[]][] = [
    ["loop", ["--mode", "loop", "--interval", "10m", "Look."]],
    ["schedule", ["--mode", "schedule", "--cron", "0 0 1 1 *", "Look."]],
    ["reactive", ["--mode", "reactive", ...watch, "Look."]],
  ];
  for (const [name, args] of modes) {
    bench.endpoint.reset({ calls: 0 });
    const daemon = startDaemon(bench, args);
    await pause(3_000);
    const before = await readTree(daemon.pid);
    await pause(IDLE_MS);
    const after = await readTree(daemon.pid);
    await daemon.stop();
    reportIdle(name, before, after, hello);
  }
  for (const route of ["spawn", "continue:main"]) {
    await measureRoute(bench, servers, watch, route);
  }
}

function reportIdle(name: string, before: Reading[], after: Reading[], hello: number): void {
  const ours = (reading: Reading) => reading.command.includes("agentd");
  const spentMs = sum(after, "cpuMs", ours) - sum(before, "cpuMs", ours);
  report({
    what: `${name}: CPU of agentd's processes`,
    value: spentMs / IDLE_MS * 100,
    unit: "% of a core",
    goal: 0.5,
  });
  report({
    what: `${name}: resident, the daemon itself`,
    value: after[0]!.residentMiB,
    unit: "MiB",
    base: { what: "compiled hello-world", value: hello },
    goal: 1.3,
  });
  for (const reading of after.slice(1)) {
    console.log(
      `    ${reading.residentMiB.toFixed(0).padStart(4)} MiB resident beside it  ${
        reading.command.slice(0, 60)
      }`,
    );
  }
}

/** From the update at the server to the model's request. */
async function measureRoute(
  bench: Bench,
  servers: UpdatingServers,
  watch: string[],
  route: string,
): Promise<void> {
  let asked = Promise.withResolvers<void>();
  bench.endpoint.reset({
    calls: 0,
    say() {
      asked.resolve();
      return { text: "Seen." };
    },
  });
  const daemon = startDaemon(bench, [
    ...["--mode", "reactive", ...watch],
    ...["--route", `mem://*=>${route},debounce=${DEBOUNCE_MS}ms`],
    "Look.",
  ]);
  while (!(await servers.subscribed()).some((uris) => uris.length > 0)) await pause(50);
  const waits: number[] = [];
  for (let round = 0; round <= ROUNDS; round++) {
    await pause(DEBOUNCE_MS * 5);
    asked = Promise.withResolvers();
    const startedMs = performance.now();
    await servers.update("mem://a");
    await asked.promise;
    // The first starts the warm session.
    if (round > 0) waits.push(performance.now() - startedMs);
  }
  await daemon.stop();
  report({
    what: `update to model call, ${route.split(":")[0]} route, debounce ${DEBOUNCE_MS} ms`,
    value: median(waits),
    unit: "ms",
    goal: route === "spawn" ? undefined : 2 * DEBOUNCE_MS + 20,
  });
}

function pause(durationMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, durationMs));
}
