/** Replay: what a record of 100,000 events takes, and whether memory grows with its length. */

import { type Bench, runArguments } from "./bench.ts";
import { finish, readTree, start } from "./measure.ts";
import { heading, report } from "./report.ts";

const CALLS_PER_TURN = 50;
/** Each turn is an event more than its calls. */
const TURNS = 2_000;
/** By {@link TURNS} the heap has the size that it keeps. */
const LONGER_TURNS = 4_000;
const READ_EVERY_MS = 200;
const GOAL_SECONDS = 10;
const GOAL_GROWTH = 1.1;

/** Records two runs, one twice as long as the other, and replays both. */
export async function measureReplay(bench: Bench): Promise<void> {
  heading("Replay");
  const one = await replay(bench, await makeRecord(bench, TURNS));
  report({
    what: `replay of ${one.events} events`,
    value: one.seconds,
    unit: "s",
    goal: GOAL_SECONDS,
  });
  const longer = await replay(bench, await makeRecord(bench, LONGER_TURNS));
  report({
    what: `peak memory with ${longer.events} events`,
    value: longer.peakMiB,
    unit: "MiB",
    base: { what: `with ${one.events} events`, value: one.peakMiB },
    goal: GOAL_GROWTH,
  });
}

/** A run of so many turns with many calls each, recorded; its id. */
async function makeRecord(bench: Bench, turns: number): Promise<string> {
  bench.endpoint.reset({ calls: turns, each: CALLS_PER_TURN });
  const args = runArguments(bench, [
    ...["--quiet", "--deadline", "30m", "--durability", "none"],
    ...["--max-calls-per-turn", String(CALLS_PER_TURN)],
  ]);
  const calls = args.indexOf("--max-calls");
  args[calls + 1] = String(turns * CALLS_PER_TURN);
  args[args.indexOf("--max-steps") + 1] = String(turns + 1);
  await finish(start(bench.programs.agentd, args));
  return args[args.indexOf("--run-id") + 1]!;
}

async function replay(
  bench: Bench,
  id: string,
): Promise<{ events: number; seconds: number; peakMiB: number }> {
  const running = start(bench.programs.agentd, [
    "replay",
    `${bench.programs.scratch}/${id}`,
  ]);
  let ended = false;
  void running.ended.then(() => ended = true);
  let peakMiB = 0;
  while (!ended) {
    const [reading] = await readTree(running.pid);
    peakMiB = Math.max(peakMiB, reading?.peakMiB ?? 0);
    await new Promise((resolve) => setTimeout(resolve, READ_EVERY_MS));
  }
  const { stdout, wallMs } = await finish(running);
  const events = Number(/(\d[\d,]*) events/.exec(stdout)?.[1]?.replaceAll(",", ""));
  return { events, seconds: wallMs / 1000, peakMiB };
}
