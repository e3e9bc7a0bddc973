/**
 * The terminal line, from outside: SIGTERM at random moments leaves exactly one terminal line, nothing alive,
 * and a record that replays and can be resumed.
 *
 * `AGENTD_TERM_TIMES` is how often, `AGENTD_SEED` chooses the moments.
 */

import assert from "node:assert/strict";
import { type Program, programs } from "../program.ts";
import type { Script, ScriptReply } from "../fakes/model_server_process.ts";
import { survivors } from "./harness.ts";
import { type Place, withPlace } from "./recorded_run.ts";

const TIMES = Number(Deno.env.get("AGENTD_TERM_TIMES") ?? 6);
const SEED = Number(Deno.env.get("AGENTD_SEED") ?? Math.floor(Math.random() * 1e9));
/** Longer than the job takes, so that some signals come after its end. */
const MOMENT_MS_MAX = 900;

const JOB: Script = {
  by: "turn",
  replies: [
    ...Array.from({ length: 20 }, (_, k): ScriptReply => ({
      calls: [
        { name: "fs__write", arguments: { path: `${k}.txt`, content: `${k}` } },
        { name: "fs__stat", arguments: { path: `${k}.txt` } },
      ],
      delayMs: 5,
    })),
    { text: "Done." },
  ],
};

interface Outcome {
  code: number;
  signal: string | null;
  agents: number[];
}

/** Runs the job and sends SIGTERM after so many milliseconds. */
async function terminate(
  program: Program,
  place: Place,
  id: string,
  afterMs: number,
): Promise<Outcome> {
  const child = new Deno.Command(program.command, {
    args: [
      ...program.args,
      ...["run", "Write", "--intelligence", place.url, "--allow-write=.", "--allow-read=."],
      ...["--run-dir", place.runs, "--run-id", id, "--log-format", "json"],
    ],
    cwd: place.project,
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).spawn();
  const timer = setTimeout(() => child.kill("SIGTERM"), afterMs);
  let text = "";
  for await (const chunk of child.stderr.pipeThrough(new TextDecoderStream())) text += chunk;
  const { code, signal } = await child.status;
  clearTimeout(timer);
  const agents = [...text.matchAll(/"event":"subagent.spawn".*?"child_pid":(\d+)/g)];
  return { code, signal, agents: agents.map((match) => Number(match[1])) };
}

for (const program of programs()) {
  Deno.test(`SIGTERM (${program.name}): at any moment, one terminal line`, () =>
    withPlace(program, JOB, async (place) => {
      console.log(`${TIMES} times, AGENTD_SEED=${SEED}`);
      let state = SEED >>> 0;
      for (let i = 0; i < TIMES; i++) {
        state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
        const afterMs = Math.floor(state / 2 ** 32 * MOMENT_MS_MAX);
        const at = `seed ${SEED}, ${i}: after ${afterMs} ms`;
        const { code, signal, agents } = await terminate(program, place, `t${i}`, afterMs);
        assert.deepEqual(await survivors(agents), [], at);
        const text = await Deno.readTextFile(`${place.runs}/t${i}/record.jsonl`).catch(() => "");
        if (text === "") {
          // Too early for anything to have begun.
          assert.ok(code === 143 || signal === "SIGTERM", `${at}: exit ${code}`);
          continue;
        }
        assert.ok(text.endsWith("\n"), at);
        const lines = text.trimEnd().split("\n").map((line) => JSON.parse(line));
        const ends = lines.filter((line) => line.type === "run.ended");
        assert.equal(ends.length, 1, at);
        assert.equal(lines.at(-1), ends[0], at);
        const { status } = ends[0];
        const exit = `${at}: ${status}, exit ${code}, signal ${signal}`;
        // Done already, the process may still be ended before it has handed over its result.
        if (status === "completed") assert.ok(code === 0 || signal === "SIGTERM", exit);
        else assert.deepEqual([status, code, signal], ["cancelled", 143, null], exit);
        if (i % 4 !== 0) continue;
        await place.agentd(0, "replay", `t${i}`);
        await place.agentd(status === "completed" ? 2 : 0, "resume", `t${i}`);
      }
    }));
}
