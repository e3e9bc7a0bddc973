/**
 * The corpus's scripted trajectories: what honest work and what spinning look like from the loop's
 * place, each played through the machine with limits that never bind.
 */

import type { CheckOutcome } from "../../src/agent/event.ts";
import type { Limits } from "../../src/core/limits.ts";
import {
  play,
  type Played,
  type Say,
  type Scenario,
  tool,
  toolError,
} from "../fakes/simulation.ts";
import { type Trajectory, turnsOf } from "./trajectory.ts";

const READ = tool("fs/read", { readOnly: true });
const LIST = tool("fs/list", { readOnly: true });
const EDIT = tool("fs/edit");
const TEST = tool("exec/run");
const STATUS = tool("ci/status", { readOnly: true });
const POLLED = tool("ci/wait", { readOnly: true, poll: true });
const TOOLS = [READ, LIST, EDIT, TEST, STATUS, POLLED];

const act = (name: string, args: Record<string, string | number> = {}): Say => ({
  calls: [{ name, arguments: args }],
});
const read = (path: string): Say => act("fs__read", { path });
const edit = (path: string, n: number): Say => act("fs__edit", { path, n });
const DONE: Say = { text: "done" };

/** What a model says and tools answer, and what that is an example of. */
export interface Script extends Pick<Scenario, "tool" | "check" | "task"> {
  name: string;
  /** Left out: good. */
  spinFrom?: number;
  /** Turns after which the script is over, for those that end by no final. */
  turns?: number;
  say: (turn: number) => Say;
}

const failing = (name: string, digest: string): CheckOutcome => ({
  kind: "check",
  name,
  passed: false,
  detail: digest,
  digest,
  progress: null,
  ms: 1,
});
const CHECKED = { checks: [{ command: ["test"], when: "final" as const, timeoutMs: 1 }] };

const GOOD: Script[] = [
  {
    name: "one big file by rising offsets",
    say: (turn) => turn <= 40 ? act("fs__read", { path: "big.log", offset: turn * 200 }) : DONE,
    tool: (call) => `lines from ${call.arguments.offset}`,
  },
  {
    name: "a call whose answer changes each time",
    say: (turn) => turn <= 30 ? act("ci__status") : DONE,
    tool: (_call, nth) => `queue length ${100 - nth}`,
  },
  {
    name: "list, read, move with new names",
    say: (turn) => {
      if (turn > 60) return DONE;
      const n = Math.ceil(turn / 3);
      return [act("fs__list", { path: "in" }), read(`in/${n}.txt`), edit(`out/${n}.txt`, n)][
        (turn - 1) % 3
      ]!;
    },
    tool: (call, nth) =>
      call.tool.name === "fs/list" ? `${30 - Math.ceil(nth / 3)} files` : `${call.arguments.path}`,
  },
  {
    name: "a polled job of 30 polls",
    say: (turn) => turn <= 30 ? act("ci__wait") : DONE,
    tool: (_call, nth) => nth < 30 ? "running" : "passed",
  },
  {
    name: "edit and test until the tests pass",
    say: (turn) =>
      turn > 20
        ? DONE
        : turn % 2 === 1
        ? edit("src/a.ts", turn)
        : act("exec__run", { command: "test" }),
    // The fourth edit changes nothing in what fails.
    tool: (call, nth) =>
      call.tool.name === "exec/run"
        ? `${[9, 8, 6, 6, 5, 4, 3, 2, 1, 0][nth / 2 - 1]} of 9 tests fail`
        : `edited ${nth}`,
  },
  {
    name: "three edits in a row that change nothing in what fails",
    say: (turn) =>
      turn > 14
        ? DONE
        : turn % 2 === 1
        ? edit("src/a.ts", turn)
        : act("exec__run", { command: "test" }),
    tool: (call, nth) =>
      call.tool.name === "exec/run"
        ? `${[4, 4, 4, 4, 2, 1, 0][nth / 2 - 1]} of 9 tests fail`
        : `edited ${nth}`,
  },
  {
    name: "looking for a file through six guesses",
    say: (turn) =>
      turn <= 6 ? read(`guess-${turn}.toml`) : turn === 7 ? act("fs__list", { path: "." }) : DONE,
    tool: (call) =>
      call.tool.name === "fs/list" ? "config.yaml" : toolError(`ENOENT ${call.arguments.path}`),
  },
  {
    name: "the same file read again after each change",
    say: (turn) => turn > 16 ? DONE : turn % 2 === 1 ? read("a.ts") : edit("a.ts", turn),
    tool: (call, nth) => call.tool.name === "fs/read" ? `version ${nth}` : `edited ${nth}`,
  },
  {
    name: "a note looked up now and then among new work",
    say: (turn) => turn > 12 ? DONE : turn % 5 === 0 ? read("plan.md") : read(`file-${turn}`),
    tool: (call) => `content of ${call.arguments.path}`,
  },
  {
    name: "two last looks before the end",
    say: (turn) => turn <= 4 ? read(`f${turn}`) : turn <= 6 ? read("f1") : DONE,
    tool: (call) => `content of ${call.arguments.path}`,
  },
  {
    name: "a claim that fails, is mended twice, and holds",
    task: CHECKED,
    say: (turn) => turn === 2 || turn === 4 ? edit("out.md", turn) : { text: `done ${turn}` },
    tool: (_call, nth) => `edited ${nth}`,
    check: (_phase, nth) => [
      nth <= 3
        ? failing("test", `${4 - nth} links are dead`)
        : { ...failing("test", "fine"), passed: true },
    ],
  },
  {
    name: "a service that is down for six calls, each in its own words",
    say: (turn) => turn <= 7 ? act("ci__status", { attempt: turn }) : DONE,
    tool: (_call, nth) => nth < 7 ? toolError(`503 from node ${nth}`) : "up",
  },
  {
    name: "a build that is asked for twice too early",
    say: (turn) => turn === 1 ? edit("a", 1) : turn <= 4 ? act("ci__status") : DONE,
    tool: (call, nth) => call.tool.name === "fs/edit" ? "edited" : nth < 4 ? "running" : "passed",
  },
  {
    name: "several reads side by side, some of them known",
    say: (turn) =>
      turn > 8 ? DONE : {
        calls: [turn, turn + 1, 2 * turn].map((n) => ({
          name: "fs__read",
          arguments: { path: `part-${n}` },
        })),
      },
    tool: (call) => `content of ${call.arguments.path}`,
  },
  {
    name: "two bad calls, then work",
    say: (turn) =>
      turn <= 2
        ? { calls: [{ name: "fs__read", arguments: '{"path": ' }] }
        : turn <= 6
        ? read(`f${turn}`)
        : DONE,
    tool: (call) => `content of ${call.arguments.path}`,
  },
];

const SPIN: Script[] = [
  {
    name: "one missing file again and again",
    spinFrom: 2,
    say: () => read("config.yaml"),
    tool: () => toolError("ENOENT: no such file"),
  },
  {
    name: "A, B, A, B with unchanged answers",
    spinFrom: 3,
    say: (turn) => read(turn % 2 === 1 ? "a" : "b"),
    tool: (call) => `content of ${call.arguments.path}`,
  },
  {
    name: "A, B, C round and round",
    spinFrom: 4,
    say: (turn) => read(["a", "b", "c"][turn % 3]!),
    tool: (call) => `content of ${call.arguments.path}`,
  },
  { name: "empty replies", spinFrom: 1, say: () => ({ text: "" }) },
  {
    name: "tools that do not exist",
    spinFrom: 1,
    say: (turn) => act(`fs__open_${turn}`, { path: "a" }),
  },
  {
    name: "the same failing claim",
    spinFrom: 2,
    task: CHECKED,
    say: (turn) => ({ text: `It is done now, really (${turn}).` }),
    check: () => [failing("test", "out.md is missing")],
  },
  {
    name: "new prose around one failing call",
    spinFrom: 2,
    say: (turn) => ({ text: `Let me try again, ${turn}.`, ...read("x") }),
    tool: () => toolError("EACCES"),
  },
  {
    name: "a status that differs in its timestamp only",
    spinFrom: 2,
    say: () => act("ci__status"),
    tool: (_call, nth) => `queued at 2026-03-04T10:11:${10 + nth}Z, waiting ${nth * 3}s`,
  },
  {
    name: "one call among real progress, for ever",
    spinFrom: 4,
    say: (turn) => read(turn % 2 === 0 ? "same" : `new-${turn}`),
    tool: (call) => `content of ${call.arguments.path}`,
    turns: 30,
  },
  {
    name: "guesses without end",
    spinFrom: 4,
    say: (turn) => read(`guess-${turn}`),
    tool: (call) => toolError(`ENOENT ${call.arguments.path}`),
  },
  {
    name: "an edit and its undoing",
    spinFrom: 3,
    say: (turn) => edit("a.ts", turn % 2),
    tool: () => "edited",
  },
  {
    name: "the same tests without a change",
    spinFrom: 2,
    say: () => act("exec__run", { command: "test" }),
    tool: (_call, nth) => `3 of 9 tests fail (took ${1 + nth / 10}s)`,
  },
  {
    name: "a job watched that was never declared as polled",
    spinFrom: 2,
    say: () => act("ci__status"),
    tool: () => "running",
  },
  {
    name: "work, then a spin",
    spinFrom: 13,
    say: (turn) => read(turn <= 12 ? `f${turn}` : "f12"),
    tool: (call) => `content of ${call.arguments.path}`,
  },
  {
    name: "two calls in a turn, both known",
    spinFrom: 2,
    say: () => ({
      calls: ["a", "b"].map((path) => ({ name: "fs__read", arguments: { path } })),
    }),
    tool: (call) => `content of ${call.arguments.path}`,
  },
];

const SPIN_TURNS = 20;
const TURNS_MAX = 100;
const NEVER = 1_000_000;

/** Every script, good ones first. */
export const SCRIPTS: readonly Script[] = [...GOOD, ...SPIN];

/** Plays a script under some limits. */
export function playScript(script: Script, limits: Partial<Limits>): Played {
  return play({
    tools: TOOLS,
    model: script.say,
    ...(script.tool === undefined ? {} : { tool: script.tool }),
    ...(script.check === undefined ? {} : { check: script.check }),
    ...(script.task === undefined ? {} : { task: script.task }),
    // The last turn of a budget may only answer: it is no part of the script.
    limits: { maxSteps: (script.turns ?? TURNS_MAX) + 1, maxCalls: NEVER, ...limits },
  });
}

/** Every scripted trajectory, played to its end. */
export function scriptedTrajectories(): Trajectory[] {
  return SCRIPTS.map((script): Trajectory => {
    const isSpin = script.spinFrom !== undefined;
    const never = { idleLimit: NEVER, failLimit: NEVER, repeatCap: NEVER };
    const length = script.turns ?? (isSpin ? SPIN_TURNS : TURNS_MAX);
    const { lines } = playScript(script, { ...never, maxSteps: length + 1 });
    return {
      name: script.name,
      label: isSpin ? "spin" : "good",
      ...(script.spinFrom === undefined ? {} : { spinFrom: script.spinFrom }),
      source: "scenario",
      turns: turnsOf(lines).slice(0, length),
    };
  });
}
