/** Replay: what a record of 100,000 events takes, and whether memory grows with its length. */

import { type Bench, runArguments } from "./bench.ts";
import { finish, readTree, start } from "./measure.ts";
import { heading, report } from "./report.ts";

const CALLS_PER_TURN = 50;
/** Each turn is an event more than its calls. */
const LONG_TURNS = 2_000;
/** By then the heap has the size that it keeps. */
const SHORT_TURNS = 1_000;
const READ_EVERY_MS = 200;
const GOAL_SECONDS = 10;
const GOAL_GROWTH = 1.1;

/** Records two runs, one twice as long as the other, and replays both. */
export async function measureReplay(bench: Bench): Promise<void> {
  heading("Replay");
  const short = await replay(bench, await makeRecord(bench, SHORT_TURNS));
  const long = await replay(bench, await makeRecord(bench, LONG_TURNS));
  report({
    what: `replay of ${long.events} events`,
    value: long.seconds,
    unit: "s",
    goal: GOAL_SECONDS,
  });
  report({
    what: "its peak memory",
    value: long.peakMiB,
    unit: "MiB",
    base: { what: `with ${short.events} events`, value: short.peakMiB },
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
