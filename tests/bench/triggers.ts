/** Triggers: what the router absorbs, and how late a schedule fires while the machine is busy. */

import type { Route } from "../../src/config/settings.ts";
import {
  accept,
  openRouter,
  routerDepth,
  settle,
  takeDeliveries,
} from "../../src/trigger/router.ts";
import type { Bench } from "./bench.ts";
import { median } from "./measure.ts";
import { heading, report } from "./report.ts";

const EVENTS = 1_000_000;
const SLOTS = 20;
const INTERVAL_MS = 500;

function route(match: string, target: Route["target"]): Route {
  return { match, target, debounceMs: 250, cap: 16, overflow: "coalesce", instruction: null };
}

/** Both. */
export async function measureTriggers(bench: Bench): Promise<void> {
  heading("Triggers");
  for (const uris of [40, 5_000]) measureRouter(uris);
  for (const busy of [false, true]) await measureLateness(bench, busy);
}

/** Changes of some URIs in turn, a hundred routes, deliveries taken and served every 10 ms. */
function measureRouter(uris: number): void {
  const router = openRouter([
    ...Array.from(
      { length: 98 },
      (_, i) => route(`mem://other/${i}/*`, { kind: "spawn", maxInflight: 4 }),
    ),
    route("mem://spawn/*", { kind: "spawn", maxInflight: 4 }),
    route("mem://warm/**", { kind: "continue", session: "main" }),
  ]);
  const names = Array.from({ length: uris }, (_, i) => `mem://${i % 2 ? "spawn" : "warm"}/${i}`);
  let delivered = 0;
  const startedMs = performance.now();
  for (let i = 0; i < EVENTS; i++) {
    const change = {
      server: "docs",
      uri: names[i % uris]!,
      kind: "changed",
      runId: null,
      body: null,
      tries: 0,
    } as const;
    accept(router, change, i / 100);
    if (i % 1000 === 0) {
      for (const delivery of takeDeliveries(router, i / 100)) {
        delivered++;
        settle(router, delivery.id, "served", i / 100, 0.5);
      }
    }
  }
  const seconds = (performance.now() - startedMs) / 1000;
  report({
    what: `changes a second, ${uris} URIs, 100 routes`,
    value: EVENTS / seconds / 1000,
    unit: "thousand",
  });
  console.log(`    ${delivered} deliveries, ${routerDepth(router)} entries left`);
}

async function measureLateness(bench: Bench, busy: boolean): Promise<void> {
  bench.endpoint.reset({ calls: 0, say: () => ({ text: "Seen." }) });
  const burners = busy
    ? Array.from(
      { length: navigator.hardwareConcurrency },
      () => new Deno.Command("sh", { args: ["-c", "while :; do :; done"], stdin: "null" }).spawn(),
    )
    : [];
  const child = new Deno.Command(bench.programs.agentd, {
    args: [
      ...["run", "--mode", "schedule", "--interval", `${INTERVAL_MS}ms`, "--overlap", "skip"],
      ...["--max-iterations", `${SLOTS}`, "--intelligence", bench.endpoint.url, "--model", "bench"],
      ...[
        "--run-dir",
        bench.programs.scratch,
        "--state-dir",
        `${bench.programs.scratch}/late-${busy}`,
      ],
      ...["--log-format", "json", "Look."],
    ],
    cwd: bench.programs.scratch,
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).spawn();
  const { stderr } = await child.output();
  for (const burner of burners) {
    burner.kill("SIGKILL");
    await burner.status;
  }
  const late = new TextDecoder().decode(stderr).split("\n").filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line)).filter((line) => line.event === "trigger.fired")
    .map((line) => line.late_ms as number);
  report({
    what: `fire after its slot, ${
      busy ? "every core busy" : "machine idle"
    }, median of ${late.length}`,
    value: median(late),
    unit: "ms",
  });
  console.log(`    at most ${Math.max(...late)} ms`);
}
