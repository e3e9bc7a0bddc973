/**
 * Resume, from outside: the whole tree is killed with SIGKILL at lines of the record of a 30-turn
 * job, resumed, and compared with the run that nobody disturbed.
 *
 * `AGENTD_KILL_LINES=all` kills at every line, a number at so many; `AGENTD_SEED` chooses them.
 */

import assert from "node:assert/strict";
import { contentOf, jobOfTurns, startCarefulModel } from "../fakes/careful_model.ts";
import { type Program, programs } from "../program.ts";
import { type Ran, runProgram, survivors, withDirectory } from "./harness.ts";

const JOB = jobOfTurns(30);
const LEDGER_SERVER = decodeURIComponent(
  new URL("../fakes/ledger_server.ts", import.meta.url).pathname,
);
const DIALECTS = ["openai", "anthropic"] as const;

interface Attempt {
  project: string;
  runs: string;
  record: string;
  args: string[];
}

async function withAttempt(
  url: string,
  dialect: string,
  use: (attempt: Attempt) => Promise<void>,
): Promise<void> {
  await withDirectory(async ({ project, runs }) => {
    await Deno.mkdir(`${project}/out`);
    const ledger = `${project}/ledger.txt`;
    await use({
      project,
      runs,
      record: `${runs}/job/record.jsonl`,
      args: [
        "run",
        "Do every item",
        ...["--intelligence", url, "--dialect", dialect, "--model", "careful"],
        ...["--allow-read=.", "--allow-write=out", "--allow-trifecta"],
        "--mcp",
        `ledger=${Deno.execPath()} run --no-prompt --allow-read=${ledger} --allow-write=${ledger} ${LEDGER_SERVER} ${ledger}`,
        ...["--keep-verbatim", "1000", "--run-id", "job", "--run-dir", runs],
        ...["--output", "json", "--log-format", "json"],
      ],
    });
  });
}

/** Runs the job and kills all of it as soon as the record has so many lines; the lines it had then. */
async function killAt(program: Program, attempt: Attempt, line: number): Promise<number> {
  let over = false;
  const watching = Promise.withResolvers<void>();
  const agents: number[] = [];
  const ran = runProgram(program, {
    args: attempt.args,
    cwd: attempt.project,
    on: {
      event: "subagent.spawn",
      async act(started) {
        agents.push(...started.agents);
        while (!over && countLines(attempt.record) < line) await turn();
        // The supervisor first: it must not get to write the end of what was killed.
        started.signal("SIGKILL");
        for (const group of started.agents) {
          try {
            Deno.kill(-group, "SIGKILL");
          } catch { /* it is gone already */ }
        }
        watching.resolve();
      },
    },
  });
  await ran.finally(() => over = true);
  await watching.promise;
  assert.deepEqual(await survivors(agents), []);
  return countLines(attempt.record);
}

/** One round of the event loop. */
function turn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}

function countLines(path: string): number {
  try {
    return Deno.readFileSync(path).reduce((sum, byte) => byte === 10 ? sum + 1 : sum, 0);
  } catch {
    return 0;
  }
}

/** What the job leaves in the world: every file with its content, every line of the ledger. */
function effectsOf(project: string): { files: Record<string, string>; items: number[] } {
  const files: Record<string, string> = {};
  for (const { name } of Deno.readDirSync(`${project}/out`)) {
    // What a write that was killed half-way leaves beside its target; the target is whole or not there.
    if (/^\.agentd-[0-9a-f]+\.tmp$/.test(name)) continue;
    files[name] = Deno.readTextFileSync(`${project}/out/${name}`);
  }
  const lines = Deno.readTextFileSync(`${project}/ledger.txt`).trimEnd().split("\n");
  const items = lines.map((text) => Number(/^item=(\d+) key=job:\d+$/.exec(text)![1]));
  return { files, items: items.sort((a, b) => a - b) };
}

const ITEMS = Array.from({ length: JOB.items }, (_, i) => i + 1);
const EXPECTED = {
  files: Object.fromEntries(ITEMS.map((k) => [`${k}.txt`, contentOf(k)])),
  items: ITEMS,
};

/** Why a run that was killed and resumed is not as it should be; else null. */
function faultOf(attempt: Attempt, resumed: Ran): string | null {
  const finished = /it ended completed, and nothing is left to do/.test(resumed.stderr);
  if (resumed.code !== 0 && !(finished && resumed.code === 2)) {
    return `exit ${resumed.code}: ${resumed.stderr.slice(-1_000)}`;
  }
  try {
    assert.deepEqual(effectsOf(attempt.project), EXPECTED);
  } catch (error) {
    return String(error);
  }
  const steps = finished ? JOB.turns : resumed.json.usage.steps;
  return Math.abs(steps - JOB.turns) <= 1 ? null : `${steps} steps`;
}

/** A small generator, so that a seed names the lines. */
function* numbersOf(seed: number): Generator<number> {
  for (let state = seed >>> 0;;) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    yield state / 2 ** 32;
  }
}

function linesToKillAt(total: number, count: number, seed: number): number[] {
  const numbers = numbersOf(seed);
  return Array.from({ length: count }, () => 1 + Math.floor(numbers.next().value! * total));
}

const asked = Deno.env.get("AGENTD_KILL_LINES");
const seed = Number(Deno.env.get("AGENTD_SEED") ?? Math.floor(Math.random() * 1e9));

for (const program of programs()) {
  const few = program.name === "source" && programs().length > 1;
  const count = asked === undefined ? few ? 3 : 12 : Number(asked);
  Deno.test(`resume (${program.name}): a tree killed at lines of its record goes on to the same end`, async () => {
    const model = startCarefulModel(JOB);
    try {
      let total = 0;
      await withAttempt(model.url, "openai", async (attempt) => {
        const whole = await runProgram(program, { args: attempt.args, cwd: attempt.project });
        assert.equal(whole.code, 0, whole.stderr.slice(-2_000));
        assert.equal(whole.json.usage.steps, JOB.turns);
        assert.deepEqual(effectsOf(attempt.project), EXPECTED);
        total = countLines(attempt.record);
      });
      const lines = asked === "all"
        ? Array.from({ length: total }, (_, i) => i + 1)
        : linesToKillAt(total, count, seed);
      console.log(`${lines.length} of ${total} lines, AGENTD_SEED=${seed}`);
      const faults: string[] = [];
      for (const [index, line] of lines.entries()) {
        const dialect = DIALECTS[index % 2]!;
        await withAttempt(model.url, dialect, async (attempt) => {
          const had = await killAt(program, attempt, line);
          const resumed = await runProgram(program, {
            args: ["resume", "job", "--run-dir", attempt.runs],
            cwd: attempt.project,
          });
          const fault = faultOf(attempt, resumed);
          if (fault !== null) {
            faults.push(`seed ${seed}, killed at ${line} (${had}, ${dialect}): ${fault}`);
          }
          const replayed = await runProgram(program, {
            args: ["replay", "job", "--run-dir", attempt.runs],
            cwd: attempt.project,
          });
          if (replayed.code !== 0) {
            faults.push(`seed ${seed}, killed at ${line}: ${replayed.stdout}`);
          }
        });
      }
      assert.deepEqual(faults, []);
      assert.deepEqual(model.faults(), []);
    } finally {
      await model.close();
    }
  });
}
