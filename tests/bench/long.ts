/** Long runs: cost of a turn at 20, 200 and 2,000 turns, memory over them, levers of the context. */

import {
  contextHash,
  projectMessages,
  pushMessage,
  startTranscript,
} from "../../src/agent/context.ts";
import { type Bench, isOurs, readAt, runArguments, startAgentd } from "./bench.ts";
import { finish, median, start, sum } from "./measure.ts";
import { heading, report } from "./report.ts";

const LONG_TURNS = 2_000;
const LONG_ROUNDS = 3;
const RESULT_BYTES = 16 * 1024;

/** What one long run showed: CPU of a turn around some turns, and the most memory in two quarters. */
interface LongRun {
  cpu: Map<number, number>;
  secondQuarterMiB: number;
  lastQuarterMiB: number;
}

/**
 * 2,000 turns with a result of 16 KiB each, three times: a full collection takes as long as dozens of turns, and falls into
 * one window or another.
 */
export async function measureLong(bench: Bench): Promise<void> {
  heading(`${LONG_TURNS} turns with 16 KiB results (median of ${LONG_ROUNDS})`);
  const newFileMs = await measureNewFile(bench.programs.scratch);
  report({ what: "a new file where runs are kept (median)", value: newFileMs, unit: "ms" });
  if (newFileMs > SLOW_FILE_MS) {
    console.log(
      "  That is slow: for minutes, ext4 passes over the inodes of everything that was deleted, the\n" +
        "  longer the more files it makes. An artifact of each turn pays it; measure on a quiet disk.",
    );
  }
  const runs: LongRun[] = [];
  for (let round = 0; round < LONG_ROUNDS; round++) runs.push(await runLong(bench));
  const cpu = (turn: number) => median(runs.map((run) => run.cpu.get(turn)!));
  for (const turn of [20, 200]) {
    report({ what: `CPU per turn around turn ${turn}`, value: cpu(turn), unit: "ms" });
  }
  report({
    what: `CPU per turn around turn ${LONG_TURNS}`,
    value: cpu(LONG_TURNS),
    unit: "ms",
    base: { what: "around turn 100", value: cpu(100) },
    goal: 1.2,
  });
  report({
    what: "memory of agentd's processes, last quarter",
    value: median(runs.map((run) => run.lastQuarterMiB)),
    unit: "MiB",
    base: { what: "second quarter", value: median(runs.map((run) => run.secondQuarterMiB)) },
    goal: 1.1,
  });
}

/** A new file takes a fraction of this, unless the file system searches. */
const SLOW_FILE_MS = 0.1;

/** What the file system takes for one of as many files as a long run makes. */
async function measureNewFile(scratch: string): Promise<number> {
  const directory = await Deno.makeTempDir({ dir: scratch, prefix: "files-" });
  const bytes = new Uint8Array(RESULT_BYTES);
  const times: number[] = [];
  for (let i = 0; i < LONG_TURNS; i++) {
    const startMs = performance.now();
    const file = Deno.openSync(`${directory}/${i}`, { write: true, createNew: true });
    times.push(performance.now() - startMs);
    file.writeSync(bytes);
    file.close();
  }
  return median(times);
}

async function runLong(bench: Bench): Promise<LongRun> {
  const windows: [name: number, from: number, to: number][] = [
    [20, 11, 31],
    [100, 61, 141],
    [200, 161, 241],
    [LONG_TURNS, 1_801, 2_001],
  ];
  const moments = new Set(windows.flatMap(([, from, to]) => [from, to]));
  for (let n = 101; n <= LONG_TURNS; n += 100) moments.add(n);
  const { readings } = await readAt(
    bench,
    [...moments],
    { calls: LONG_TURNS, bytes: RESULT_BYTES },
    (bench) => startAgentd(bench, ["--deadline", "30m"]),
  );
  const at = (n: number) => sum(readings.get(n)!, "cpuMs", isOurs);
  const peak = (from: number, to: number) =>
    Math.max(
      ...[...readings].filter(([n]) => n >= from && n <= to).map(([, tree]) =>
        sum(tree, "residentMiB", isOurs)
      ),
    );
  return {
    cpu: new Map(windows.map(([name, from, to]) => [name, (at(to) - at(from)) / (to - from)])),
    secondQuarterMiB: peak(501, 1_000),
    lastQuarterMiB: peak(1_501, LONG_TURNS),
  };
}

/** Assembling and hashing the context: what a new KiB costs in a conversation of some length. */
export function measureAssembly(): Promise<void> {
  heading("Context: assembled and hashed");
  const text = "line of a result that a tool gave back\n".repeat(RESULT_BYTES / 39);
  for (const turns of [20, 200, 2_000]) {
    const transcript = startTranscript([{ type: "text", text: "do it" }]);
    const add = (n: number) => {
      const parts = [{ type: "text" as const, text: `${n} ${text}` }];
      const message = {
        role: "tool" as const,
        callId: `c${n}`,
        name: "a__b",
        parts,
        isError: false,
      };
      pushMessage(transcript, message, n, null);
      contextHash("0".repeat(16), transcript);
      return projectMessages(transcript).length;
    };
    for (let n = 0; n < turns; n++) add(n);
    const startedMs = performance.now();
    const rounds = 200;
    for (let n = 0; n < rounds; n++) add(turns + n);
    const perKiB = (performance.now() - startedMs) / rounds / (text.length / 1024);
    report({
      what: `per KiB of new content after ${turns} turns`,
      value: perKiB * 1000,
      unit: "µs",
    });
  }
  return Promise.resolve();
}

/** From the summary's arrival to the request that follows it, as the record tells. */
export async function measureCompaction(bench: Bench): Promise<void> {
  heading("Compaction, window of 24,000 tokens");
  bench.endpoint.reset({ calls: 400, bytes: 4_096 });
  const args = runArguments(bench, [
    "--quiet",
    "--context-window",
    "24000",
    "--max-output-tokens",
    "2000",
    "--keep-verbatim",
    "3",
  ]);
  const id = args[args.indexOf("--run-id") + 1];
  await finish(start(bench.programs.agentd, args));
  const record = await Deno.readTextFile(`${bench.programs.scratch}/${id}/record.jsonl`);
  const waits: number[] = [];
  let summaryAt: number | null = null;
  for (const line of record.trimEnd().split("\n")) {
    const { type, at, purpose } = JSON.parse(line) as { type: string; at: number; purpose: string };
    if (type === "summary.made") summaryAt = at;
    else if (type === "model.requested" && purpose === "turn" && summaryAt !== null) {
      waits.push(at - summaryAt);
      summaryAt = null;
    }
  }
  console.log(`  ${waits.length} compactions`);
  if (waits.length > 0) {
    report({
      what: "time to compact (median, whole milliseconds)",
      value: median(waits),
      unit: "ms",
    });
  }
}
