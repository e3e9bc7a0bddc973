import assert from "node:assert/strict";
import type { JsonObject } from "../../src/core/json.ts";
import { FRAME_BYTES_MAX } from "../../src/core/limits.ts";
import {
  assertGone,
  type Line,
  posixTest,
  supervise,
  type Supervised,
  withDirectory,
} from "./harness.ts";
import type { Scenario } from "./settings.ts";

type Script = Record<string, unknown>;
type Reply = {
  ok: boolean;
  value: { child_id: string; path: string; depth: number; why: string; cap: string };
};

/** A step that orders a child which does what its own script says. */
function spawn(script: Script, more: JsonObject = {}): Script {
  return {
    type: "request",
    op: "spawn",
    arguments: { objective: JSON.stringify(script), disposition: "async", ...more },
  };
}

const ask = (...steps: Script[]): Script => ({ do: "ask", steps });
const awaitChildren = (count: number): Script => ({ type: "await_children", count });
const wait: Script = { do: "wait" };
const done: Script = { do: "complete" };
const progress = (tokens: number): Script => ({
  type: "tell",
  message: {
    type: "forward",
    frame: { v: 1, type: "progress", progress: { step: 1, tokens, doing: "model" } },
  },
});

type End = Awaited<Supervised["end"]>;

function scenario(
  name: string,
  scenario: Omit<Scenario, "directory">,
  during: (run: Supervised) => Promise<unknown>,
  after: (end: End, directory: string) => void,
): void {
  posixTest(name, () =>
    withDirectory(async (directory) => {
      const run = await supervise({ ...scenario, directory });
      await during(run);
      const end = await run.end;
      await assertGone(directory);
      await run.drained;
      after(end, directory);
    }));
}

const nothing = () => Promise.resolve();
const spawned = (path: string) => (line: Line) =>
  line.event === "subagent.spawn" && line.child_path === path;
const ready = (path: string) => (line: Line) =>
  line.event === "proc.ready" && line.comp === "broker" && line.agent_path === path;
const of = (lines: Line[], event: string) => lines.filter((line) => line.event === event);

scenario(
  "Tree: a child's result comes to its parent, with a path and a depth that nobody asked for",
  { script: ask(spawn(done, { path: "0.7", depth: 0, child_id: "mine" }), awaitChildren(1)) },
  nothing,
  ({ end, lines }, directory) => {
    assert.equal(end?.status, "completed");
    const [reply, ends] = end!.result as unknown as [
      Reply,
      { path: string; childId: string; result: { result: string } }[],
    ];
    assert.equal(reply.value.path, "0.1");
    assert.equal(reply.value.depth, 1);
    assert.notEqual(reply.value.child_id, "mine");
    assert.equal(ends[0]!.childId, reply.value.child_id);
    assert.equal(ends[0]!.result.result, "done");
    const line = of(lines, "subagent.spawn")[1]!;
    assert.deepEqual([line.child_path, line.depth, typeof line.child_pid], ["0.1", 1, "number"]);
    assert.ok(Deno.statSync(`${directory}/runs/${end!.run_id}/agents/0.1`).isDirectory);
  },
);

interface Row {
  name: string;
  cap: string;
  why: RegExp;
  script: Script;
  scenario?: Partial<Scenario>;
}

const refusals: Row[] = [
  {
    name: "an order without objective",
    cap: "order",
    why: /objective is required/,
    script: { type: "request", op: "spawn", arguments: { objective: " " } },
  },
  {
    name: "tools wider than the parent's",
    cap: "scope",
    why: /web\/\* is wider/,
    script: spawn(done, { tools: ["web/*"] }),
    scenario: { settings: { tools: { grant: ["docs/*"], rules: [], timeoutMs: 1000, pin: true } } },
  },
  {
    name: "one deeper than the deepest",
    cap: "max_depth",
    why: /depth 0/,
    script: spawn(done),
    scenario: { limits: { maxDepth: 0 } },
  },
  {
    name: "no subagents at all",
    cap: "max_subagents",
    why: /0 subagents/,
    script: spawn(done),
    scenario: { limits: { maxSubagents: 0 } },
  },
];

for (const row of refusals) {
  scenario(
    `Tree: refuses ${row.name}, and says which cap`,
    { script: ask(row.script), ...row.scenario },
    nothing,
    ({ end, lines }) => {
      const [reply] = end!.result as unknown as Reply[];
      assert.equal(reply!.ok, false);
      assert.equal(reply!.value.cap, row.cap);
      assert.match(reply!.value.why, row.why);
      assert.equal(of(lines, "subagent.refused")[0]?.cap, row.cap);
      assert.equal(of(lines, "subagent.spawn").length, 1);
    },
  );
}

scenario(
  "Tree: caps children of one agent, then lets one more in when one is over",
  {
    script: ask(
      spawn(wait),
      spawn(wait),
      spawn(wait),
      { type: "request", op: "child_cancel", arguments: { id: "0.1" } },
      awaitChildren(1),
      spawn(wait),
      { type: "request", op: "child_status", arguments: {} },
    ),
    limits: { maxChildren: 2 },
  },
  nothing,
  ({ end }) => {
    const [one, two, three, cancelled, ends, four, status] = end!.result as unknown as [
      Reply,
      Reply,
      Reply,
      Reply,
      { status: string }[],
      Reply,
      { value: { path: string; status: string }[] },
    ];
    assert.deepEqual([one.ok, two.ok, three.ok, three.value.cap], [
      true,
      true,
      false,
      "max_children",
    ]);
    assert.equal(cancelled.ok, true);
    assert.equal(ends[0]!.status, "cancelled");
    assert.equal(four.value.path, "0.3");
    assert.deepEqual(status.value.map((child) => [child.path, child.status]), [
      ["0.1", "cancelled"],
      ["0.2", "running"],
      ["0.3", "running"],
    ]);
    assert.match(end!.reason, /cancelled subagents: 0.2, 0.3$/);
  },
);

const bomb = (depth: number): Script =>
  depth === 0 ? wait : ask(...[1, 2, 3, 4, 5].map(() => spawn(bomb(depth - 1))), { type: "wait" });

for (const [cap, maxSubagents] of [["max_subagents", 5], ["rate", 64]] as const) {
  scenario(
    `Tree: every agent spawns five more: ${cap} holds, all die with the root`,
    { script: bomb(3), limits: { maxSubagents } },
    async (run) => {
      await run.seen((line) => line.event === "subagent.refused" && line.cap === cap);
      run.signal("SIGTERM");
    },
    ({ end, lines }) => {
      assert.equal(end?.status, "cancelled");
      assert.ok(of(lines, "subagent.spawn").length <= Math.min(maxSubagents, 16) + 1);
    },
  );
}

const chain = ask(spawn(ask(spawn(wait), { type: "wait" })), { type: "wait" });

scenario(
  "Tree: SIGTERM ends the deepest first",
  { script: chain },
  async (run) => {
    await run.seen(ready("0.1.1"));
    run.signal("SIGTERM");
  },
  ({ end, lines }) => {
    assert.equal(end?.status, "cancelled");
    assert.deepEqual(of(lines, "subagent.exit").map((line) => line.child_path), [
      "0.1.1",
      "0.1",
      "0",
    ]);
  },
);

scenario(
  "Tree: SIGKILL of the supervisor leaves nothing of the tree",
  { script: chain },
  async (run) => {
    await run.seen(ready("0.1.1"));
    run.signal("SIGKILL");
  },
  ({ end }) => assert.equal(end, null),
);

scenario(
  "Tree: the death of an agent takes what is below it, and is told to its parent",
  { script: ask(spawn(ask(spawn(wait), { type: "wait" })), awaitChildren(1)) },
  async (run) => {
    const { child_pid } = await run.seen(spawned("0.1"));
    await run.seen(ready("0.1.1"));
    Deno.kill(child_pid as number, "SIGKILL");
  },
  ({ end, lines }) => {
    assert.equal(end?.status, "completed");
    const [, ends] = end!.result as unknown as [Reply, { path: string; status: string }[]];
    assert.deepEqual(ends.map((child) => [child.path, child.status]), [["0.1", "crashed"]]);
    const exits = of(lines, "subagent.exit").map((line) => [line.child_path, line.status]);
    assert.ok(exits.some(([path, status]) => path === "0.1.1" && status === "cancelled"));
  },
);

scenario(
  "Tree: a child that breaks the protocol is killed; its parent goes on",
  {
    script: ask(
      spawn({ do: "raw", steps: [{ type: "request", id: -1, op: "spawn", arguments: {} }] }),
      awaitChildren(1),
    ),
  },
  nothing,
  ({ end }) => {
    assert.equal(end?.status, "completed");
    const [, ends] = end!.result as unknown as [
      Reply,
      { status: string; result: { reason: string } }[],
    ];
    assert.equal(ends[0]!.status, "crashed");
    assert.match(ends[0]!.result.reason, /request.id is -1/);
  },
);

/** What an agent may not say, and what its end is said to be. */
const outlaws: [text: string, reason: RegExp, more?: { times?: number; bytes?: number[] }][] = [
  ["no frame\n", /not JSON: no frame/],
  ["[1]\n", /no object/],
  ['{"v":2,"type":"pong","n":1}\n', /version 2, not 1/],
  ['{"v":1,"type":"rule"}\n', /unknown type "rule"/],
  ['{"v":1,"type":"ready"}\n', /`ready` came twice/],
  ['{"v":1,"type":"pong","n":-1}\n', /pong.n is -1/],
  ['{"v":1,"type":"progress","progress":{"step":0,"tokens":1.5,"doing":"model"}}\n', /progress is/],
  ['{"v":1,"type":"request","id":1,"op":"kill","arguments":{}}\n', /request.op is "kill"/],
  ['{"v":1,"type":"result","result":{"status":"completed","abort":"mcp"}}\n', /exclude each other/],
  ["[".repeat(40_000) + "\n", /not JSON/],
  ["x\n", /no UTF-8/, { bytes: [0xff, 0xfe] }],
  // The broker's own frame may end it before it is too long.
  ["xxxxxxxxxxxxxxxx", /a frame over 8388608 bytes|not JSON: xxx/, { times: 600_000 }],
  ['{"v":1,"type":"pong","n":0}\n', /more than 200 frames a second/, { times: 20_000 }],
  [
    JSON.stringify({ v: 1, type: "pong", n: 0, more: "x".repeat(30_000) }) + "\n",
    /more than 4194304 characters a second/,
    { times: 1_900 },
  ],
];

for (const [place, part] of Object.entries({ some: outlaws.slice(0, 7), more: outlaws.slice(7) })) {
  const orders = part.map(([text, , more]) => spawn({ do: "write", text, ...more }));
  scenario(
    `Tree: children that say what no agent may are killed, each alone: ${place}`,
    { script: ask(...orders, spawn(done), awaitChildren(part.length + 1)) },
    nothing,
    ({ end }) => {
      assert.equal(end?.status, "completed");
      const ends = (end!.result as unknown[]).at(-1) as {
        path: string;
        status: string;
        result: { reason: string };
      }[];
      const byPath = new Map(ends.map((child) => [child.path, child]));
      for (const [index, [text, reason]] of part.entries()) {
        const child = byPath.get(`0.${index + 1}`)!;
        assert.equal(child.status, "crashed", text.slice(0, 80));
        assert.match(child.result.reason, reason);
      }
      assert.equal(byPath.get(`0.${part.length + 1}`)!.status, "completed");
    },
  );
}

scenario(
  "Tree: a result that fills a frame is left out of what the parent hears; its end is not",
  {
    // Its own frame holds it, just; the parent's has a few words more.
    script: ask(
      spawn({ do: "complete_at_length", chars: FRAME_BYTES_MAX - 380 }),
      awaitChildren(1),
    ),
  },
  nothing,
  ({ end }) => {
    const [, ends] = end!.result as unknown as [
      Reply,
      { status: string; result: { result: unknown; reason: string } }[],
    ];
    assert.equal(ends[0]!.status, "completed");
    assert.equal(ends[0]!.result.result, null);
    assert.match(ends[0]!.result.reason, /over the size of a frame/);
  },
);

scenario(
  "Tree: a child that claims tokens that nobody can have used costs the others nothing",
  {
    script: ask(
      spawn(ask(progress(Number.MAX_SAFE_INTEGER), progress(1)), {
        limits: { max_tokens: 100 },
      }),
      awaitChildren(1),
      spawn(done),
      awaitChildren(2),
    ),
  },
  nothing,
  ({ end, lines }) => {
    assert.equal(end?.status, "completed");
    const exit = of(lines, "subagent.exit").find((line) => line.child_path === "0.1")!;
    assert.equal(exit.tokens, 100 + 128_000 + 8_192);
    assert.equal(of(lines, "limit.exceeded").length, 0);
  },
);

scenario(
  "Tree: at the ceiling of its tokens the whole tree drains and the root is exhausted",
  {
    script: ask(spawn(ask(progress(1500), { type: "wait" })), { type: "wait" }),
    limits: { treeTokensMax: 1000 },
  },
  nothing,
  ({ end, lines }) => {
    assert.equal(end?.status, "exhausted_tokens");
    assert.equal(of(lines, "limit.exceeded")[0]?.limit, "tree_tokens");
  },
);

scenario(
  "Tree: who is to be stopped hears of no end, and so begins no turn on it",
  {
    // The child's end and the ceiling come in one moment.
    script: ask(spawn(ask(progress(1500))), awaitChildren(1)),
    limits: { treeTokensMax: 1000 },
  },
  nothing,
  ({ end }) => assert.deepEqual([end?.status, end?.result], ["exhausted_tokens", null]),
);

scenario(
  "Tree: a detached child outlives its parent, not the root",
  {
    script: ask(
      spawn(ask(spawn(wait, { disposition: "detach" }))),
      awaitChildren(1),
      { type: "request", op: "child_status", arguments: {} },
    ),
  },
  nothing,
  ({ end, lines }) => {
    assert.equal(end?.status, "completed");
    assert.match(end!.reason, /cancelled subagents: 0.1.1$/);
    const exits = of(lines, "subagent.exit").map((line) => line.child_path);
    assert.deepEqual(exits, ["0.1", "0", "0.1.1"]);
  },
);
