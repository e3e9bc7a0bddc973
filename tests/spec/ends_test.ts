/** Ends of trees of the real program: whoever dies, and however, nothing is alive two seconds later. */

import assert from "node:assert/strict";
import { programs } from "../program.ts";
import { assertGone, living, posixTest } from "../supervised/harness.ts";
import { type AgentsRan, type AgentsSpec, resultText, runAgents, spawn } from "./agents.ts";
import { type Started, survivors } from "./harness.ts";

const HOSTILE = decodeURIComponent(new URL("../hostile/", import.meta.url).pathname);
const LIBRARY = decodeURIComponent(new URL("../fakes/library.mjs", import.meta.url).pathname);

/**
 * A server that works, beside one that ignores SIGTERM and strays in sessions of their own: one below
 * it, and one whose parents were gone before anybody looked.
 */
const strayServer = (mark: string) =>
  `lib=sh -c 'sh ${HOSTILE}leave_at_once.sh ${mark}; sh ${HOSTILE}leave_group.sh ${mark} & ` +
  `exec node ${LIBRARY}'`;

/** Waits for what must come, but not for ever. */
async function until(holds: () => Promise<boolean>): Promise<void> {
  const endMs = performance.now() + 30_000;
  while (!await holds()) assert.ok(performance.now() < endMs, "it never came");
}

interface End {
  name: string;
  args?(mark: string): string[];
  act(started: Started, mark: string): void | Promise<void>;
  check(facts: AgentsRan): void;
}

const ENDS: End[] = [
  {
    name: "SIGKILL of the supervisor",
    act: ({ signal }) => signal("SIGKILL"),
    check: ({ ran }) => assert.equal(ran.signal, "SIGKILL"),
  },
  {
    name: "SIGKILL of the supervisor, while programs leave their groups one after the other",
    args: (mark) => [
      "--mcp",
      `often=sh -c 'sh ${HOSTILE}leave_deeper.sh ${mark} & exec node ${LIBRARY}'`,
    ],
    act: ({ signal }) => signal("SIGKILL"),
    check: ({ ran }) => assert.equal(ran.signal, "SIGKILL"),
  },
  {
    name: "SIGTERM to the supervisor",
    act: ({ signal }) => signal("SIGTERM"),
    check: ({ ran, of }) => {
      assert.equal(ran.code, 143, ran.stderr);
      assert.equal(ran.json.status, "cancelled");
      assert.deepEqual(of("subagent.exit").map((line) => line.child_path), ["0.1.1", "0.1", "0"]);
    },
  },
  {
    name: "a second signal",
    args: (
      mark,
    ) => ["--hook", `on_stop=sh -c 'sleep 60; : stop-${mark}'`, "--drain-timeout", "60s"],
    async act({ signal }, mark) {
      signal("SIGINT");
      await until(async () => {
        const lines = await living(`: stop-${mark}`);
        return lines.filter((line) => line.includes("sleep")).length >= 2;
      });
      signal("SIGINT");
    },
    check: ({ ran, of }) => {
      assert.equal(ran.code, 130, ran.stderr);
      assert.equal(ran.json.status, "cancelled");
      const killed = of("subagent.signal").filter((line) => line.child_path === "0");
      assert.deepEqual(killed.map((line) => line.signal), ["SIGKILL"]);
    },
  },
  {
    name: "SIGKILL of the root agent",
    act: ({ agents }) => Deno.kill(agents[0]!, "SIGKILL"),
    check: ({ ran, record }) => {
      assert.equal(ran.json.status, "crashed", ran.stderr);
      assert.match(ran.json.reason, /SIGKILL/);
      for (const path of ["0", "0.1", "0.1.1"]) {
        const ends = record(path).filter((line) => line.type === "run.ended");
        assert.equal(ends.length, 1, path);
      }
    },
  },
  {
    name: "SIGKILL of an agent in the middle, whose parent goes on",
    act: ({ agents }) => Deno.kill(agents[1]!, "SIGKILL"),
    check: ({ ran, asked, record }) => {
      assert.equal(ran.json.status, "completed", ran.stderr);
      assert.match(resultText(asked("The root.")[1]), /"status":"crashed".*SIGKILL/);
      assert.equal(record("0.1").at(-1).status, "crashed");
      assert.equal(record("0.1.1").at(-1).status, "cancelled");
    },
  },
];

const TREE: AgentsSpec["script"] = {
  routes: [
    { when: "GRANDCHILD", replies: [{ hang: true }] },
    {
      when: "CHILD",
      by: "turn",
      replies: [{ calls: [spawn("GRANDCHILD: wait", { disposition: "async" })] }, { hang: true }],
    },
    { when: "The root.", by: "turn", replies: [{ calls: [spawn("CHILD")] }, { text: "alone" }] },
  ],
};

for (const program of programs()) {
  for (const end of ENDS) {
    posixTest(`ends (${program.name}): ${end.name}: nothing is left of three agents`, async () => {
      const mark = `mark-${crypto.randomUUID()}`;
      let groups: number[] = [];
      await runAgents(program, {
        script: TREE,
        args: ["--mcp", strayServer(mark), ...end.args?.(mark) ?? []],
        on: {
          event: "loop.start",
          path: "0.1.1",
          act: async (started) => {
            groups = [...started.agents];
            // Of each agent two strays, beside the server's shell child, itself ignoring SIGTERM.
            await until(async () => (await living(`stray-of-${mark}`)).length >= 6);
            await end.act(started, mark);
          },
        },
      }, async (facts) => {
        assert.equal(groups.length, 3, facts.ran.stderr);
        assert.deepEqual(await survivors(groups), []);
        await assertGone(mark);
        end.check(facts);
      });
    });
  }

  posixTest(
    `ends (${program.name}): a tool server that eats memory takes its agent only`,
    async () => {
      const greedy = `sh -c 'test -e eat && exec sh ${HOSTILE}eat_memory.sh; exec node ${LIBRARY}'`;
      await runAgents(program, {
        script: {
          routes: [
            { when: "CHILD", by: "turn", replies: [{ text: "never asked" }] },
            {
              when: "The root.",
              by: "turn",
              replies: [
                { calls: [{ name: "fs__write", arguments: { path: "eat", content: "" } }] },
                { calls: [spawn("CHILD", { tools: ["lib/*"] })] },
                { text: "alone" },
              ],
            },
          ],
        },
        args: ["--mcp", `lib=${greedy}`, "--allow-write=.", "--max-memory", "400MiB"],
      }, async ({ ran, asked, of, record }) => {
        assert.equal(ran.json.status, "completed", ran.stderr);
        const told = resultText(asked("The root.")[2]);
        assert.match(told, /"status":"crashed".*memory: .* resident, at most 400MiB/);
        assert.equal(of("limit.exceeded")[0].limit, "memory");
        assert.equal(record("0.1").at(-1).status, "crashed");
        assert.deepEqual(await survivors(of("subagent.spawn").map((line) => line.child_pid)), []);
      });
    },
  );
}
