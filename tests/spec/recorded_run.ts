/** A run that was recorded, and the commands that look at it: what tests of records begin with. */

import assert from "node:assert/strict";
import type { Program } from "../program.ts";
import {
  type LoggedRequest,
  type Script,
  startModelServer,
} from "../fakes/model_server_process.ts";
import { type Ran, runProgram, withDirectory } from "./harness.ts";

/** Four turns: a list, a read, the same read again, and an answer. */
export const FOUR_TURNS: Script = {
  replies: [
    { text: "I look.", calls: [{ name: "fs__list", arguments: { path: "." } }] },
    { calls: [{ name: "fs__read", arguments: { path: "a.txt" } }] },
    { calls: [{ name: "fs__read", arguments: { path: "a.txt" } }] },
    { text: "The file says hello." },
  ],
};

/** Where the run was made. */
export interface Place {
  project: string;
  runs: string;
  /** The model's endpoint. */
  url: string;
  /** Runs agentd there; the exit code must be the one given. */
  agentd(code: number, ...args: string[]): Promise<Ran>;
  completions(): Promise<LoggedRequest[]>;
  /** What the model answers from now on. */
  script(script: Script): Promise<void>;
}

/** A place without a run. */
export async function withPlace(
  program: Program,
  script: Script,
  use: (place: Place) => Promise<void>,
): Promise<void> {
  await using server = await startModelServer(script);
  await withDirectory(async ({ project, runs }) => {
    await Deno.writeTextFile(`${project}/a.txt`, "hello\n");
    await use({
      project,
      runs,
      url: server.url,
      agentd: async (code, ...args) => {
        const ran = await runProgram(program, { args: [...args, "--run-dir", runs], cwd: project });
        const said = `${ran.stdout.slice(-2_000)}${ran.stderr.slice(-2_000)}`;
        assert.equal(ran.code, code, `${args.join(" ")}\n${said}`);
        return ran;
      },
      script: (next) => server.script(next),
      completions: () => server.completions(),
    });
  });
}

/** A place with the run of {@link FOUR_TURNS}. */
export function withRun(program: Program, use: (place: Place) => Promise<void>): Promise<void> {
  return withPlace(program, FOUR_TURNS, async (place) => {
    const model = ["--intelligence", place.url];
    await place.agentd(0, "run", "Say what is there", ...model, "--allow-read=.");
    await use(place);
  });
}
