/** What the sections of the bench share: runs against the endpoint, and readings of their trees. */

import type { Endpoint } from "./endpoint.ts";
import { type Ending, finish, type Reading, readTree, type Running, start } from "./measure.ts";
import type { Programs } from "./setup.ts";

/** What a section works with. */
export interface Bench {
  programs: Programs;
  endpoint: Endpoint;
}

/** Whether a process is agentd's own, or the bare script; not the tool server that it started. */
export const isOurs = (reading: Reading): boolean =>
  !/^\S*node \S*\/tool_server\.mjs/.test(reading.command);

let runs = 0;

/** Arguments of one run against the bench's endpoint and, unless it says otherwise, tool server. */
export function runArguments(bench: Bench, extra: string[] = [], server = true): string[] {
  return [
    "run",
    "--intelligence",
    bench.endpoint.url,
    "--model",
    "bench",
    ...(server ? ["--mcp", `bench=node ${bench.programs.scripts}/tool_server.mjs`] : []),
    "--run-dir",
    bench.programs.scratch,
    "--run-id",
    `bench-${++runs}`,
    "--max-steps",
    "3000",
    "--max-calls",
    "3000",
    "--max-tokens",
    "1000000000",
    "--tree-tokens",
    "1000000000",
    ...extra,
    "Count.",
  ];
}

/** The binary at work on the bench's job, silent. */
export const startAgentd = (bench: Bench, extra: string[] = []) =>
  start(bench.programs.agentd, runArguments(bench, ["--quiet", ...extra]));

/** The bare script at the same. */
export const startBare = (bench: Bench) =>
  start("node", [
    `${bench.programs.scripts}/bare.mjs`,
    bench.endpoint.url,
    `${bench.programs.scripts}/tool_server.mjs`,
  ]);

/** Readings of a whole tree while the endpoint holds back its answer to certain requests. */
export async function readAt(
  bench: Bench,
  moments: readonly number[],
  plan: { calls: number; bytes?: number },
  run: (bench: Bench) => Running,
): Promise<{ readings: Map<number, Reading[]>; ending: Ending }> {
  const readings = new Map<number, Reading[]>();
  let pid = 0;
  bench.endpoint.reset({
    ...plan,
    async before(n) {
      if (moments.includes(n)) readings.set(n, await readTree(pid));
    },
  });
  const running = run(bench);
  pid = running.pid;
  const ending = await finish(running);
  return { readings, ending };
}
