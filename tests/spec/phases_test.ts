/** SIGTERM in each phase of a run: cancelled, 143, and two seconds later nothing of it is alive. */

import assert from "node:assert/strict";
import { chatCompletion } from "../fakes/chat_completion.ts";
import { programs } from "../program.ts";
import { posixTest } from "../supervised/harness.ts";
import { aliveInGroups, runProgram, withDirectory } from "./harness.ts";

// deno-lint-ignore no-explicit-any
type Body = any;

/** What the endpoint does with a request: an answer, or null for never. */
type Reply = { content: string | null; calls?: [string, unknown][]; promptTokens?: number } | null;

interface Phase {
  name: string;
  args(sleep: string): string[];
  reply(body: Body, turn: number): Reply;
  /** Set: the phase has come when this word is in a command line; else when the endpoint hangs. */
  word?: string;
}

const call = (name: string, args: unknown): Reply => ({ content: null, calls: [[name, args]] });
const done: Reply = { content: "done" };

const PHASES: Phase[] = [
  {
    name: "connecting",
    args: (sleep) => ["--mcp", `mute=sh -c 'trap "" TERM; ${sleep}; ${sleep}'`, "x"],
    reply: () => done,
    word: "sleep",
  },
  { name: "model", args: () => ["x"], reply: () => null },
  {
    name: "tool",
    args: (sleep) => [`--allow-run=${sleep.split(" ")[0]}`, "x"],
    reply: () => null,
    word: "sleep",
  },
  { name: "verifying", args: (sleep) => ["--check", sleep, "x"], reply: () => done, word: "sleep" },
  {
    name: "in a hook",
    args: (sleep) => ["--hook", `before_action=${sleep}`, "--allow-read=.", "x"],
    reply: () => call("fs__list", { path: "." }),
    word: "sleep",
  },
  {
    name: "compacting",
    args: () => [
      "--allow-read=.",
      "--keep-verbatim",
      "1",
      "--idle-limit",
      "40",
      "--fail-limit",
      "40",
      "x",
    ],
    // Long prose for six turns, then a context that is nearly full.
    reply: ({ tools, messages }, turn) =>
      turn > 0 && (!(tools?.length > 0) || /summar/i.test(JSON.stringify(messages.at(-1))))
        ? null
        : {
          content: `Thought ${turn}: ${"I looked around. ".repeat(2_000)}`,
          calls: [["fs__list", { path: ".", depth: turn + 1 }]],
          promptTokens: turn < 6 ? 1_000 : 100_000,
        },
  },
  {
    name: "with a subagent",
    args: () => ["x"],
    reply: ({ messages }) =>
      JSON.stringify(messages).includes("a part of it")
        ? null
        : call("subagent_spawn", { objective: "a part of it" }),
  },
];

function serve(phase: Phase, sleep: string, hung: () => void, over: Promise<void>) {
  let count = 0;
  return Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const body = await request.json();
    const turn = body.messages.filter((message: Body) => message.role === "assistant").length;
    const reply = phase.name === "tool"
      ? call("exec__run", { argv: sleep.split(" ") })
      : phase.reply(body, turn);
    if (reply === null) {
      hung();
      await over;
      return new Response(null, { status: 499 });
    }
    const calls = reply.calls ?? [];
    return chatCompletion({
      text: reply.content,
      calls: calls.map(([name, args]) => ({ id: `c${++count}`, name, arguments: args })),
      tokensIn: reply.promptTokens,
    });
  });
}

/** Waits for what must come, but not for ever: a phase that never comes is a failed test. */
async function within(waitMs: number, what: Promise<void>): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, waitMs);
  await Promise.race([what, late.promise]);
  clearTimeout(timer);
}

/** Groups of living processes whose command line holds a text. */
async function groupsOf(text: string): Promise<number[]> {
  const { stdout } = await new Deno.Command("ps", { args: ["-eww", "-o", "pgid=,args="] }).output();
  return new TextDecoder().decode(stdout).split("\n").filter((line) =>
    line.includes(text) && !line.includes("--check") && !line.includes("--mcp") &&
    !line.includes("--hook")
  ).map((line) => parseInt(line));
}

async function terminateIn(
  phase: Phase,
  program: ReturnType<typeof programs>[number],
  serial: number,
): Promise<void> {
  await withDirectory(async ({ project, runs }) => {
    // A length of sleep that no other test has.
    const word = `1${serial}.${Deno.pid}`;
    const sleep = `${await Deno.realPath("/bin/sleep")} ${word}`;
    const hung = Promise.withResolvers<void>();
    const over = Promise.withResolvers<void>();
    const endpoint = serve(phase, sleep, hung.resolve, over.promise);
    const groups = new Set<number>();
    let signalledMs = 0;
    try {
      const ran = await runProgram(program, {
        cwd: project,
        args: [
          "run",
          "--intelligence",
          `http://127.0.0.1:${endpoint.addr.port}/v1`,
          "--model",
          "m",
          "--run-dir",
          runs,
          "--log-format",
          "json",
          "--output",
          "json",
          "--allow-trifecta",
          "--deadline",
          "1m",
          ...phase.args(sleep),
        ],
        on: {
          event: "loop.start",
          act: async (started) => {
            if (phase.word) { while ((await groupsOf(word)).length === 0); }
            else await within(20_000, hung.promise);
            for (const group of [...started.agents, ...await groupsOf(word)]) groups.add(group);
            signalledMs = performance.now();
            started.signal("SIGTERM");
          },
        },
      });
      let alive = await aliveInGroups([...groups]);
      while (alive.length > 0 && performance.now() - signalledMs < 2_000) {
        alive = await aliveInGroups([...groups]);
      }
      assert.deepEqual(alive, []);
      assert.deepEqual(await groupsOf(word), []);
      assert.equal(ran.code, 143, ran.stderr.slice(-1500));
      assert.equal(ran.json.status, "cancelled");
      assert.ok(groups.size > 0);
    } finally {
      over.resolve();
      await endpoint.shutdown();
    }
  });
}

let serial = 0;
for (const program of programs()) {
  for (const phase of PHASES) {
    const own = ++serial;
    posixTest(
      `SIGTERM (${program.name}): ${phase.name}: nothing is alive two seconds later`,
      () => terminateIn(phase, program, own),
    );
  }
}
