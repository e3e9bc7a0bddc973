/** Subagents: how soon they are there, what they take, what watching them costs. */

import { type Bench, isOurs, runArguments } from "./bench.ts";
import { finish, median, type Reading, readTree, type Running, start, sum } from "./measure.ts";
import { heading, report } from "./report.ts";

const IDLE_MS = 40_000;
/** Starting goes on for a while after the last child has asked: compiling, collecting, first looks. */
const SETTLE_MS = 10_000;
/** Spawns are admitted in bursts of eight, and two a second after. */
const BURST = 8;
const REFILL_MS = 4_500;

const CHILD = "Wait for word";
/** What each child of a crowd does when the word has come, where its work is measured. */
const WORK_TURNS = 20;

const spawnCall = (number: number) => ({
  name: "subagent_spawn",
  // Each is another call: the same one again would be a repeat.
  arguments: { objective: `${CHILD} ${number}.`, disposition: "async" },
});

interface Crowd {
  running: Running;
  /** Milliseconds from the reply that asks for a child to the child's first request, each. */
  firstCalls: number[];
  /** Resolves when every child has asked its model and waits. */
  waiting: Promise<void>;
  /** Lets the children answer, and ends the run. */
  release(): void;
}

/**
 * Starts a run whose agent has so many children, all waiting for their model; no tool servers. When
 * they are let go, each takes so many turns with a call of a self tool, and ends.
 */
function startCrowd(bench: Bench, children: number, extra: string[], turns = 0): Crowd {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const { promise: waiting, resolve: allWait } = Promise.withResolvers<void>();
  const firstCalls: number[] = [];
  let askedMs = 0;
  let asked = 0;
  bench.endpoint.reset({
    calls: 0,
    async say(task, replies) {
      if (task.includes(CHILD)) {
        if (replies === 0) {
          firstCalls.push(performance.now() - askedMs);
          if (firstCalls.length === children) allWait();
          await released;
        }
        return replies < turns
          ? { calls: [{ name: "subagent_status", arguments: {} }] }
          : { text: "Waited." };
      }
      if (asked < children) {
        if (replies > 0) await new Promise((resolve) => setTimeout(resolve, REFILL_MS));
        const first = asked;
        asked = Math.min(asked + BURST, children);
        askedMs = performance.now();
        return {
          calls: Array.from({ length: asked - first }, (_, index) => spawnCall(first + index)),
        };
      }
      await released;
      return { text: "All are there." };
    },
  });
  const args = runArguments(bench, [
    "--log-format",
    "json",
    "--max-children",
    String(children),
    "--max-subagents",
    String(children),
    ...extra,
  ], false);
  const running = start(bench.programs.agentd, args);
  const ended = running.ended.then(({ stderr }) => {
    throw new Error(`the run ended before its children waited\n${stderr.slice(-2_000)}`);
  });
  return { running, firstCalls, waiting: Promise.race([waiting, ended]), release };
}

/** One child, eight, thirty-two. */
export async function measureChildren(bench: Bench): Promise<void> {
  heading("Subagents");
  const hello: number[] = [];
  for (let round = 0; round < 9; round++) {
    hello.push((await finish(start(bench.programs.hello, []))).wallMs);
  }
  const one = startCrowd(bench, 1, []);
  await one.waiting;
  const tree = await readTree(one.running.pid);
  one.release();
  const { stderr } = await finish(one.running);
  report({
    what: "one child: from spawn to ready",
    value: readyMs(stderr),
    unit: "ms",
    base: { what: "compiled hello-world", value: median(hello) },
    goal: 3,
  });
  report({
    what: "one child: from spawn to its first model call",
    value: one.firstCalls[0]!,
    unit: "ms",
  });
  const pid = spawnedChild(stderr)?.child_pid;
  const child = tree.find((reading) => reading.pid === pid)!;
  report({
    what: "one child waiting: resident",
    value: child.residentMiB,
    unit: "MiB",
    base: { what: "compiled hello-world", value: (await waitingHello(bench)).residentMiB },
    goal: 1.5,
  });
  for (const count of [8, 32]) await measureCrowd(bench, count);
  for (const count of [1, 8, 32]) await measureWork(bench, count);
}

/** What children do side by side: turns of all of them in a second, the endpoint answering at once. */
async function measureWork(bench: Bench, count: number): Promise<void> {
  const crowd = startCrowd(bench, count, ["--deadline", "30m"], WORK_TURNS);
  await crowd.waiting;
  const startedMs = performance.now();
  crowd.release();
  await finish(crowd.running);
  const seconds = (performance.now() - startedMs) / 1000;
  report({
    what: `${count} children at work, their ends included`,
    value: count * (WORK_TURNS + 1) / seconds,
    unit: "turns/s",
  });
}

async function measureCrowd(bench: Bench, count: number): Promise<void> {
  const crowd = startCrowd(bench, count, ["--deadline", "30m"]);
  await crowd.waiting;
  report({
    what: `${count} children: the last one's first model call`,
    value: Math.max(...crowd.firstCalls),
    unit: "ms",
  });
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  const before = await readTree(crowd.running.pid);
  await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
  const after = await readTree(crowd.running.pid);
  const spentMs = sum(after, "cpuMs", isOurs) - sum(before, "cpuMs", isOurs);
  report({
    what: `${count} children waiting: CPU of all agentd processes`,
    value: spentMs / IDLE_MS * 100,
    unit: "% of a core",
    goal: count === 32 ? 1 : undefined,
  });
  report({
    what: `${count} children: detectors per child and minute`,
    value: spentMs / IDLE_MS * 60_000 / count,
    unit: "ms CPU",
  });
  const startedMs = performance.now();
  crowd.release();
  await finish(crowd.running);
  report({
    what: `${count} children: from their answers to the run's end`,
    value: performance.now() - startedMs,
    unit: "ms",
  });
}

type TelemetryLine = Record<string, unknown>;

function telemetryOf(stderr: string): TelemetryLine[] {
  return stderr.split("\n").filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as TelemetryLine);
}

/** The supervisor's line of the root's first child. */
function spawnedChild(stderr: string): TelemetryLine | undefined {
  return telemetryOf(stderr).find((line) => line.event === "subagent.spawn" && line.depth === 1);
}

/** Milliseconds from the child's spawn to its `ready`, by the telemetry of both. */
function readyMs(stderr: string): number {
  const spawned = spawnedChild(stderr);
  const ready = telemetryOf(stderr).find((line) =>
    line.event === "proc.ready" && line.comp === "broker" &&
    line.agent_path === spawned?.child_path
  );
  return Date.parse(String(ready?.ts)) - Date.parse(String(spawned?.ts));
}

/** The memory of a compiled hello-world that waits. */
export async function waitingHello(bench: Bench): Promise<Reading> {
  const hello = new Deno.Command(bench.programs.hello, {
    args: ["wait"],
    stdin: "piped",
    stdout: "piped",
  }).spawn();
  const reader = hello.stdout.getReader();
  await reader.read();
  const [reading] = await readTree(hello.pid);
  await hello.stdin.close();
  reader.releaseLock();
  await hello.stdout.cancel();
  await hello.status;
  return reading!;
}
