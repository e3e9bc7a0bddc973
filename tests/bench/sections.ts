/** The sections of the bench; start, one turn, a hundred turns and memory are here. */

import { type Bench, isOurs, readAt, runArguments, startAgentd, startBare } from "./bench.ts";
import { measureChildren, waitingHello } from "./children.ts";
import { measureDaemons } from "./daemons.ts";
import { measureAssembly, measureCompaction, measureLong } from "./long.ts";
import { type Ending, finish, median, type Reading, start, sum } from "./measure.ts";
import { measureReplay } from "./replay.ts";
import { heading, report } from "./report.ts";
import { measureTriggers } from "./triggers.ts";

const START_ROUNDS = 21;
const RUN_ROUNDS = 11;
const TURN_ROUNDS = 5;
const TURNS = 100;

/** Wall times of two programs, run in turns so that the machine's moods hit both. */
async function race(
  rounds: number,
  first: () => Promise<Ending>,
  second: () => Promise<Ending>,
): Promise<[number, number]> {
  const times: [number[], number[]] = [[], []];
  for (let round = 0; round <= rounds; round++) {
    const pair = [await first(), await second()] as const;
    // The first round fills caches.
    if (round > 0) pair.forEach((ending, index) => times[index]!.push(ending.wallMs));
  }
  return [median(times[0]), median(times[1])];
}

async function measureStart(bench: Bench): Promise<void> {
  heading(`Start (median of ${START_ROUNDS})`);
  const [ours, hello] = await race(
    START_ROUNDS,
    () => finish(start(bench.programs.agentd, ["--version"])),
    () => finish(start(bench.programs.hello, [])),
  );
  report({
    what: "agentd --version, wall",
    value: ours,
    unit: "ms",
    base: { what: "compiled hello-world", value: hello },
    goal: 1.25,
  });
}

async function measureOneTurn(bench: Bench): Promise<void> {
  heading(`One turn, one stdio tool server (median of ${RUN_ROUNDS})`);
  const once = (run: () => Promise<Ending>) => () => {
    bench.endpoint.reset({ calls: 0 });
    return run();
  };
  const [ours, bare] = await race(
    RUN_ROUNDS,
    once(() => finish(startAgentd(bench))),
    once(() => finish(startBare(bench))),
  );
  report({
    what: "agentd run, wall",
    value: ours,
    unit: "ms",
    base: { what: "bare script", value: bare },
    goal: 1,
  });
  bench.endpoint.reset({ calls: 0 });
  const startedMs = Date.now();
  const { stderr } = await finish(
    start(
      bench.programs.agentd,
      runArguments(bench, ["--log-format", "json", "--log-level", "debug"]),
    ),
  );
  const endedMs = Date.now();
  console.log("  where the time goes (ms since the start):");
  for (const line of stderr.split("\n").filter((line) => line.startsWith("{"))) {
    const { ts, event, comp, dur_ms } = JSON.parse(line) as Record<string, string>;
    const at = String(Date.parse(ts!) - startedMs).padStart(6);
    console.log(`  ${at}  ${comp}  ${event}${dur_ms === undefined ? "" : ` (${dur_ms} ms)`}`);
  }
  console.log(`  ${String(endedMs - startedMs).padStart(6)}  ended`);
}

/** CPU per turn: the whole run, without its start, around turn 20, around turn 100. */
type Cost =
  | "ours"
  | "bare"
  | "oursLater"
  | "bareLater"
  | "early"
  | "late"
  | "bareEarly"
  | "bareLate";

async function measureTurns(bench: Bench): Promise<void> {
  heading(`${TURNS} turns with one tool call each`);
  const moments = [1, 11, 31, TURNS - 19, TURNS + 1, TURNS + 21];
  const calls = TURNS + 20;
  const cost: Record<Cost, number[]> = {
    ours: [],
    bare: [],
    oursLater: [],
    bareLater: [],
    early: [],
    late: [],
    bareEarly: [],
    bareLate: [],
  };
  let last: Reading[] = [];
  for (let round = 0; round < TURN_ROUNDS; round++) {
    const ours = (await readAt(bench, moments, { calls }, startAgentd)).readings;
    const cpu = (n: number) => sum(ours.get(n)!, "cpuMs", isOurs);
    cost.ours.push(cpu(TURNS + 1) / TURNS);
    cost.oursLater.push((cpu(TURNS + 1) - cpu(1)) / TURNS);
    cost.early.push((cpu(31) - cpu(11)) / 20);
    cost.late.push((cpu(TURNS + 21) - cpu(TURNS - 19)) / 40);
    last = ours.get(TURNS + 1)!;
    const bare = (await readAt(bench, moments, { calls }, startBare)).readings;
    const bareCpu = (n: number) => sum(bare.get(n)!, "cpuMs", isOurs);
    cost.bare.push(bareCpu(TURNS + 1) / TURNS);
    cost.bareLater.push((bareCpu(TURNS + 1) - bareCpu(1)) / TURNS);
    cost.bareEarly.push((bareCpu(31) - bareCpu(11)) / 20);
    cost.bareLate.push((bareCpu(TURNS + 21) - bareCpu(TURNS - 19)) / 40);
  }
  report({
    what: "CPU per turn, all agentd processes, start included",
    value: median(cost.ours),
    unit: "ms",
    base: { what: "bare script", value: median(cost.bare) },
    goal: 1.5,
  });
  report({
    what: "the same without the start",
    value: median(cost.oursLater),
    unit: "ms",
    base: { what: "bare script", value: median(cost.bareLater) },
  });
  report({
    what: "CPU per turn around turn 100",
    value: median(cost.late),
    unit: "ms",
    base: { what: "around turn 20", value: median(cost.early) },
    goal: 1.2,
  });
  report({
    what: "the same for the bare script",
    value: median(cost.bareLate),
    unit: "ms",
    base: { what: "around turn 20", value: median(cost.bareEarly) },
  });
  await measureMemory(bench, last);
}

async function measureMemory(bench: Bench, tree: Reading[]): Promise<void> {
  const hello = await waitingHello(bench);
  report({
    what: "peak memory of the supervisor",
    value: tree[0]!.peakMiB,
    unit: "MiB",
    base: { what: "compiled hello-world", value: hello.peakMiB },
    goal: 1.3,
  });
  report({
    what: "memory of the tree, shared pages once",
    value: sum(tree, "shareMiB"),
    unit: "MiB",
    goal: 200,
  });
  for (const process of tree) {
    console.log(
      `    ${process.peakMiB.toFixed(0).padStart(4)} MiB peak, ${
        process.shareMiB.toFixed(0).padStart(4)
      } MiB share  ${process.command.slice(0, 60)}`,
    );
  }
}

/** Sections by name, in the order in which they are printed. */
export const SECTIONS: Record<string, (bench: Bench) => Promise<void>> = {
  start: measureStart,
  one: measureOneTurn,
  turns: measureTurns,
  long: measureLong,
  assembly: measureAssembly,
  compaction: measureCompaction,
  replay: measureReplay,
  children: measureChildren,
  daemons: measureDaemons,
  triggers: measureTriggers,
};
