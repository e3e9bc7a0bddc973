/**
 * `deno task tune`: what other limits would have done to the labelled trajectories of tests/corpus. A
 * line a setting: how many good ones it would have cut, how many spins it would have caught, and how
 * many turns after a spin began. What counts is judged by the loop's own functions.
 *
 * `deno task tune write` makes the scripted trajectories anew; `deno task tune add RECORD NAME good`,
 * or `… spin TURN`, adds a run's record.
 */

import { DEFAULT_LIMITS, type Limits } from "../src/core/limits.ts";
import { scriptedTrajectories } from "../tests/corpus/scenarios.ts";
import { judgeTrajectory, type Trajectory, turnsOf } from "../tests/corpus/trajectory.ts";

/** Where the trajectories are, a line each. */
const CORPUS = "tests/corpus/corpus.jsonl";

/** The knobs that are tuned. */
export type Knobs = Pick<Limits, "idleLimit" | "failLimit" | "repeatCap">;

/** What one setting does to the corpus. */
export interface Tuned extends Knobs {
  /** Names of good trajectories that it would have cut. */
  cut: string[];
  /** Spins that it would have stopped, and how many turns after they began. */
  caught: { name: string; turns: number }[];
  /** Names of spins that it would have let go on. */
  missed: string[];
}

/** Values around the defaults. */
const GRID: { [Knob in keyof Knobs]: readonly number[] } = {
  idleLimit: [2, 3, 4, 6],
  failLimit: [4, 6, 8, 12],
  repeatCap: [2, 3, 4, 6],
};

/** Reads the corpus. */
export async function readCorpus(root: string): Promise<Trajectory[]> {
  const text = await Deno.readTextFile(`${root}/${CORPUS}`);
  return text.trimEnd().split("\n").map((line) => JSON.parse(line) as Trajectory);
}

/** Judges the corpus under one setting. */
export function judgeCorpus(corpus: readonly Trajectory[], knobs: Knobs): Tuned {
  const tuned: Tuned = { ...knobs, cut: [], caught: [], missed: [] };
  for (const trajectory of corpus) {
    const { name } = trajectory;
    const end = judgeTrajectory(trajectory, knobs);
    if (trajectory.label === "good") {
      if (end !== null) tuned.cut.push(`${name} (turn ${end.turn})`);
    } else if (end === null) tuned.missed.push(name);
    else tuned.caught.push({ name, turns: end.turn - (trajectory.spinFrom ?? 1) + 1 });
  }
  return tuned;
}

/** Every setting of the grid. */
export function settings(): Knobs[] {
  return GRID.idleLimit.flatMap((idleLimit) =>
    GRID.failLimit.flatMap((failLimit) =>
      GRID.repeatCap.map((repeatCap) => ({ idleLimit, failLimit, repeatCap }))
    )
  );
}

function renderTable(corpus: readonly Trajectory[]): string {
  const good = corpus.filter((trajectory) => trajectory.label === "good").length;
  const spins = corpus.length - good;
  const lines = [
    `${corpus.length} trajectories: ${good} good, ${spins} spins. * is the default.`,
    "",
    "idle fail repeat | good cut | spins caught | turns of a spin: mean, most",
  ];
  for (const knobs of settings()) {
    const { cut, caught } = judgeCorpus(corpus, knobs);
    const { idleLimit, failLimit, repeatCap } = knobs;
    const turns = caught.map((spin) => spin.turns);
    const mean = turns.reduce((sum, value) => sum + value, 0) / Math.max(1, turns.length);
    lines.push([
      [idleLimit, failLimit, repeatCap].map((value) => String(value).padStart(4)).join(" ") +
      (isDefault(knobs) ? " *" : "  "),
      `${cut.length} of ${good}`.padStart(8),
      `${caught.length} of ${spins}`.padStart(12),
      `${mean.toFixed(1).padStart(5)}, ${Math.max(0, ...turns)}`,
    ].join(" | "));
  }
  const chosen = judgeCorpus(corpus, DEFAULT_LIMITS);
  lines.push("", "Under the defaults:");
  for (const name of chosen.cut) lines.push(`  cut: ${name}`);
  for (const name of chosen.missed) lines.push(`  not caught: ${name}`);
  for (const { name, turns } of chosen.caught) lines.push(`  caught in ${turns} turns: ${name}`);
  return lines.join("\n");
}

function isDefault(knobs: Knobs): boolean {
  return knobs.idleLimit === DEFAULT_LIMITS.idleLimit &&
    knobs.failLimit === DEFAULT_LIMITS.failLimit && knobs.repeatCap === DEFAULT_LIMITS.repeatCap;
}

async function writeCorpus(root: string, corpus: readonly Trajectory[]): Promise<void> {
  const text = corpus.map((trajectory) => JSON.stringify(trajectory) + "\n").join("");
  await Deno.writeTextFile(`${root}/${CORPUS}`, text);
}

async function main(root: string, args: readonly string[]): Promise<number> {
  const [action, record, name, label, from] = args;
  if (action === undefined) {
    console.log(renderTable(await readCorpus(root)));
    return 0;
  }
  const known = await readCorpus(root).catch(() => []);
  if (action === "write") {
    const runs = known.filter((trajectory) => trajectory.source === "run");
    await writeCorpus(root, [...scriptedTrajectories(), ...runs]);
    return 0;
  }
  const isGood = label === "good" && from === undefined;
  const isSpin = label === "spin" && Number(from) >= 1;
  if (action !== "add" || record === undefined || name === undefined || !(isGood || isSpin)) {
    console.error("Cannot tune: use no argument, write, or add RECORD NAME good|spin [TURN].");
    return 2;
  }
  const text = await Deno.readTextFile(record);
  const turns = turnsOf(text.trimEnd().split("\n").map((line) => JSON.parse(line)));
  const added: Trajectory = {
    name,
    label: isGood ? "good" : "spin",
    ...(isSpin ? { spinFrom: Number(from) } : {}),
    source: "run",
    turns,
  };
  await writeCorpus(root, [...known.filter((trajectory) => trajectory.name !== name), added]);
  return 0;
}

if (import.meta.main) {
  Deno.exit(await main(await Deno.realPath(`${import.meta.dirname}/..`), Deno.args));
}
