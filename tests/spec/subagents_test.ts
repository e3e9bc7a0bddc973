/** Subagents through the whole program: what a child is told, what its parent hears, what is refused. */

import assert from "node:assert/strict";
import { programs } from "../program.ts";
import { posixTest } from "../supervised/harness.ts";
import {
  type AgentsRan,
  type AgentsSpec,
  conversation,
  resultLines,
  resultText,
  runAgents,
  spawn,
} from "./agents.ts";

const ROOT = "The root.";

interface Case extends AgentsSpec {
  name: string;
  check(facts: AgentsRan): void | Promise<void>;
}

const call = (name: string, args: Record<string, unknown> = {}) =>
  ({ name, arguments: args }) as { name: string; arguments: never };
const LIBRARY = decodeURIComponent(new URL("../fakes/library.mjs", import.meta.url).pathname);

/** Text that does not repeat itself, so that nobody cuts it. */
const longText = Array.from({ length: 1_500 }, (_, index) => `line ${index};`).join(" ");

const CASES: Case[] = [
  {
    name: "a child reads its order whole, answers in its schema, and has a record of its own",
    script: {
      routes: [
        {
          when: "KID",
          by: "turn",
          replies: [{ text: "It is about plants, I would say." }, { text: '{"topic":"plants"}' }],
        },
        {
          when: ROOT,
          by: "turn",
          replies: [
            {
              text: "I keep my own plan to myself.",
              calls: [spawn("KID: find the topic", {
                output_format: "one word",
                output_schema: {
                  type: "object",
                  properties: { topic: { type: "string" } },
                  required: ["topic"],
                  additionalProperties: false,
                },
                guidance: "look first",
                boundaries: "send nothing",
                seed: [
                  { label: "page", text: "leaves and roots" },
                  { label: "shelf", resource: "mem://shelf" },
                ],
                tools: ["lib/count"],
                limits: { max_steps: 5, max_tokens: 60_000, deadline: "50s" },
              })],
            },
            { text: "plants" },
          ],
        },
      ],
    },
    args: ["--mcp", `lib=node ${LIBRARY}`],
    check: ({ ran, asked, record, of }) => {
      assert.equal(ran.json.status, "completed", ran.stderr);
      const [first, second] = asked("KID");
      const told = conversation(first);
      for (
        const words of [
          "KID: find the topic",
          "Output format: one word",
          "Tool guidance: look first",
          "Boundaries: send nothing",
          '<seed label=\\\\\\"page\\\\\\">\\\\nleaves and roots',
          "resource_read: mem://shelf",
        ]
      ) assert.ok(JSON.stringify(told).includes(words), `${words} in ${told}`);
      const system = first.messages[0].content;
      assert.match(system, /At most 5 turns.* 60000 tokens, (4\d|50)(\.\d+)?s\./);
      assert.match(system, /satisfies this JSON Schema/);
      assert.ok(!JSON.stringify(first).includes("my own plan"), "the parent's transcript");
      const names = first.tools.map((tool: { function: { name: string } }) => tool.function.name);
      assert.deepEqual(names.filter((name: string) => name.startsWith("lib")), ["lib__count"]);
      assert.match(conversation(second), /schema: the answer holds no JSON value/);
      const [line] = resultLines(resultText(asked(ROOT)[1]));
      assert.deepEqual(line.result, { topic: "plants" });
      assert.deepEqual([line.path, line.status, line.usage.steps], ["0.1", "completed", 2]);
      assert.ok(!JSON.stringify(asked(ROOT)[1]).includes("It is about plants"), "its transcript");
      const own = record("0.1");
      assert.deepEqual([own[0].type, own.at(-1).type], ["run.started", "run.ended"]);
      assert.deepEqual([own[0].identity.path, own[0].identity.depth], ["0.1", 1]);
      assert.equal(own[0].identity.agentId, line.child_id);
      assert.equal(of("subagent.exit").at(0).tokens, line.usage.tokens);
    },
  },
  {
    name: "resources that are declared to be more than a child's tools are kept from it",
    script: {
      routes: [
        {
          when: "KID",
          by: "turn",
          replies: [
            {
              calls: [
                call("resource_list"),
                call("resource_read", { uri: "lib://shelf0/book0" }),
                call("resource_read", { uri: "lib://shelf0/book0", server: "lib" }),
              ],
            },
            { text: "nothing" },
          ],
        },
        {
          when: ROOT,
          by: "turn",
          replies: [
            { calls: [call("resource_read", { uri: "lib://shelf0/book0" })] },
            { calls: [spawn("KID", { tools: ["lib/count"] })] },
            { text: "seen" },
          ],
        },
      ],
    },
    files: {
      "agentd.json": JSON.stringify({
        mcp_servers: { lib: { command: "node", args: [LIBRARY] } },
        tools: { "lib/*": { legs: ["sensitive"] }, "lib/count": { legs: ["egress"] } },
      }),
    },
    args: ["--config", "agentd.json"],
    check: ({ ran, asked }) => {
      assert.equal(ran.json.status, "completed", ran.stderr);
      assert.match(resultText(asked(ROOT)[1]), /^\[ok/);
      const [first, second] = asked("KID");
      assert.ok(!JSON.stringify(first).includes("lib://"), "the catalogue");
      // One answer each, the last one first.
      assert.match(resultText(second), /^\[(?:refused|invalid)/);
      assert.ok(!conversation(second).includes("Book number"));
    },
  },
  {
    name: "a long result is an artifact with a summary, which the parent can page through",
    script: {
      routes: [
        { when: "KID", by: "turn", replies: [{ text: longText }] },
        {
          when: ROOT,
          by: "turn",
          replies: [
            { calls: [spawn("KID")] },
            { calls: [call("subagent_await", { ids: ["0.1"] })] },
            // {{last}} is JSON with the artifact's id; the server fills texts only.
            { text: "{{last}}" },
          ],
        },
      ],
    },
    check: ({ ran, asked, directory }) => {
      const [line] = resultLines(resultText(asked(ROOT)[1]));
      assert.equal(line.result, undefined);
      assert.equal(line.bytes, longText.length);
      assert.ok(longText.startsWith(line.summary.slice(0, 900)) && line.summary.length <= 1_001);
      assert.equal(Deno.readTextFileSync(`${directory}/artifacts/${line.artifact}`), longText);
      assert.equal(resultLines(resultText(asked(ROOT)[2]))[0].artifact, line.artifact);
      assert.equal(ran.json.status, "completed");
    },
  },
  {
    name: "three async children, one await: waited for without a model call",
    script: {
      routes: [
        { when: "KID", by: "turn", replies: [{ text: "found {{n}}", delayMs: 700 }] },
        {
          when: ROOT,
          by: "turn",
          replies: [
            {
              calls: [1, 2, 3].map((number) => spawn(`KID ${number}`, { disposition: "async" })),
            },
            { calls: [call("subagent_await")] },
            { text: "all three" },
          ],
        },
      ],
    },
    check: ({ ran, asked, record }) => {
      assert.equal(ran.json.status, "completed", ran.stderr);
      assert.equal(ran.json.result, "all three");
      assert.equal(asked(ROOT).length, 3);
      const lines = resultLines(resultText(asked(ROOT)[2]));
      assert.deepEqual(lines.map(({ path, status }) => [path, status]), [
        ["0.1", "completed"],
        ["0.2", "completed"],
        ["0.3", "completed"],
      ]);
      assert.doesNotMatch(conversation(asked(ROOT)[2]), /Subagents that ended/, "told once");
      for (const path of ["0.1", "0.2", "0.3"]) assert.equal(record(path).at(-1).type, "run.ended");
    },
  },
  {
    name:
      "an await that is late is partial; status, cancel, and an await without names do the rest",
    script: {
      routes: [
        { when: "KID slow", replies: [{ hang: true }] },
        { when: "KID quick", by: "turn", replies: [{ text: "quick" }] },
        {
          when: ROOT,
          by: "turn",
          replies: [
            {
              calls: [
                spawn("KID quick", { disposition: "async" }),
                spawn("KID slow", { disposition: "async" }),
              ],
            },
            { calls: [call("subagent_await", { ids: ["0.1"] })] },
            { calls: [call("subagent_await", { ids: ["0.1", "0.2"], timeout: "1500ms" })] },
            { calls: [call("subagent_status", { ids: ["0.2"] })] },
            { calls: [call("subagent_await", { timeout: "soon" })] },
            { calls: [call("subagent_cancel", { id: "0.2" })] },
            { calls: [call("subagent_await")] },
            { calls: [call("subagent_await"), call("subagent_cancel", { id: "0.9" })] },
            { text: "enough" },
          ],
        },
      ],
    },
    check: ({ ran, asked }) => {
      assert.equal(ran.json.status, "completed", ran.stderr);
      const root = asked(ROOT);
      const partial = resultText(root[3]);
      assert.match(partial, /^\[partial/);
      assert.match(partial, /still running: /);
      assert.deepEqual(resultLines(partial).map(({ path }) => path), ["0.1"]);
      const [status] = JSON.parse(resultText(root[4]).split("\n")[1]!);
      assert.deepEqual([status.path, status.status, status.doing], ["0.2", "running", "model"]);
      assert.match(resultText(root[5]), /^\[error.*\n?.*timeout must be a duration/s);
      assert.match(resultText(root[6]), /is being stopped/);
      // The first child has been told of already.
      assert.match(resultText(root[7]), /"path":"0.2","status":"cancelled"/);
      assert.doesNotMatch(resultText(root[7]), /"path":"0.1"/);
      assert.match(resultText(root[8], 1), /no subagents to wait for/);
      assert.match(resultText(root[8]), /^\[refused.*no subagent/s);
    },
  },
  {
    name:
      "a final while owned children run is not accepted: they are awaited, and wake their parent",
    script: {
      routes: [
        { when: "KID", by: "turn", replies: [{ text: "the missing part", delayMs: 900 }] },
        {
          when: ROOT,
          by: "turn",
          replies: [
            { calls: [spawn("KID", { disposition: "async" })] },
            { text: "done without it" },
            { text: "done with it" },
          ],
        },
      ],
    },
    check: ({ ran, asked }) => {
      assert.equal(ran.json.status, "completed", ran.stderr);
      assert.equal(ran.json.result, "done with it");
      assert.match(conversation(asked(ROOT)[2]), /Subagents that ended:.*the missing part/);
    },
  },
  {
    name: "a detached child is not awaited; what is cut with the root is named",
    script: {
      routes: [
        { when: "KID", replies: [{ hang: true }] },
        {
          when: ROOT,
          by: "turn",
          replies: [{ calls: [spawn("KID", { disposition: "detach" })] }, { text: "gone on" }],
        },
      ],
    },
    check: ({ ran, record }) => {
      assert.equal(ran.json.status, "completed", ran.stderr);
      assert.match(ran.json.reason, /cancelled subagents: 0\.1$/);
      assert.equal(record("0.1").at(-1).status, "cancelled");
    },
  },
  {
    name: "a child whose time is up ends by itself, and its parent goes on",
    script: {
      routes: [
        { when: "KID", replies: [{ hang: true }] },
        {
          when: ROOT,
          by: "turn",
          replies: [
            { calls: [spawn("KID", { limits: { deadline: "4s" } })] },
            { text: "without it" },
          ],
        },
      ],
    },
    check: ({ ran, asked, of, record }) => {
      assert.equal(ran.json.status, "completed", ran.stderr);
      assert.match(resultText(asked(ROOT)[1]), /"status":"deadline"/);
      assert.equal(record("0.1").at(-1).status, "deadline");
      assert.deepEqual(of("subagent.signal"), [], "nobody had to be killed");
    },
  },
  {
    name: "a resumed run is told of the children that it lost, and waits for none of them",
    script: {
      routes: [
        { when: "KID", replies: [{ hang: true }] },
        {
          when: ROOT,
          by: "order",
          replies: [
            { calls: [spawn("KID", { disposition: "async" })] },
            // Long enough to be killed in; the resumed run may get it, if that came sooner.
            { text: "went on alone", delayMs: 15_000 },
            { text: "went on alone" },
          ],
        },
      ],
    },
    on: {
      event: "loop.start",
      path: "0.1",
      act: ({ agents }) => Deno.kill(agents[0]!, "SIGKILL"),
    },
    check: async ({ ran, asked, again }) => {
      assert.equal(ran.json.status, "crashed", ran.stderr);
      const resumed = await again(["resume", "tree"]);
      assert.equal(resumed.json.status, "completed", resumed.stderr);
      assert.equal(resumed.json.result, "went on alone");
      assert.match(
        conversation(asked(ROOT).at(-1)),
        /Subagents that ended:.*\(0\.1\) cancelled: the run was cut while it ran/,
      );
      const replayed = await again(["replay", "tree"]);
      assert.equal(replayed.code, 0, replayed.stdout + replayed.stderr);
    },
  },
  {
    name: "nobody outlives the deadline of the run",
    // The child ends a tenth of it before the root: time enough to be reaped first, on a busy machine.
    args: ["--deadline", "6s"],
    script: {
      routes: [
        { when: "KID", replies: [{ hang: true }] },
        { when: ROOT, by: "turn", replies: [{ calls: [spawn("KID")] }, { hang: true }] },
      ],
    },
    check: ({ ran, of, record }) => {
      assert.equal(ran.code, 124, ran.stderr);
      assert.equal(record("0.1").at(-1).status, "deadline");
      assert.deepEqual(of("subagent.signal"), []);
      assert.deepEqual(of("subagent.exit").map((line) => line.child_path), ["0.1", "0"]);
    },
  },
  {
    name: "at the tree's ceiling nothing is granted any more and the root is exhausted",
    args: ["--tree-tokens", "20000"],
    script: {
      routes: [
        {
          when: "KID",
          by: "turn",
          replies: [
            {
              calls: [call("subagent_status")],
              usage: { prompt_tokens: 15_000, completion_tokens: 10 },
            },
            { calls: [call("subagent_status")] },
          ],
        },
        {
          when: ROOT,
          by: "turn",
          replies: [
            {
              text: "Half of it is known.",
              calls: [spawn("KID")],
              usage: { prompt_tokens: 6_000, completion_tokens: 10 },
            },
            { text: "never asked" },
          ],
        },
      ],
    },
    check: ({ ran, asked, of, record }) => {
      assert.equal(ran.json.status, "exhausted_tokens", ran.stderr);
      assert.equal(ran.code, 3);
      assert.equal(ran.json.result, "Half of it is known.");
      assert.match(ran.json.reason, /tree/);
      assert.equal(asked(ROOT).length, 1);
      assert.equal(of("limit.exceeded")[0].limit, "tree_tokens");
      assert.equal(record("0.1").at(-1).status, "exhausted_tokens");
    },
  },
  {
    name: "the cost of the whole tree is bounded, not that of each agent alone",
    args: ["--config", "agentd.json", "--max-cost", "0.03"],
    files: {
      "agentd.json": JSON.stringify({
        model: { prices: { input: 1, cached_input: 1, output: 1 }, max_output_tokens: 1_000 },
      }),
    },
    script: {
      routes: [
        {
          when: "KID",
          by: "turn",
          loop: true,
          replies: [{
            calls: [call("subagent_status")],
            usage: { prompt_tokens: 8_000, completion_tokens: 10 },
            delayMs: 400,
          }],
        },
        {
          when: ROOT,
          by: "turn",
          replies: [
            {
              text: "Both are at it.",
              calls: [1, 2].map((number) => spawn(`KID ${number}`, { disposition: "async" })),
              usage: { prompt_tokens: 4_000, completion_tokens: 10 },
            },
            { hang: true },
          ],
        },
      ],
    },
    check: ({ ran, of }) => {
      assert.equal(ran.json.status, "exhausted_tokens", ran.stderr);
      assert.match(ran.json.reason, /^cost: the budget of the whole tree/);
      assert.equal(ran.json.result, "Both are at it.");
      const [limit] = of("limit.exceeded");
      assert.deepEqual([limit.limit, limit.bound], ["tree_cost", 0.03]);
      // Two calls of each beside the root's; their own bounds would have let them make three.
      for (const exit of of("subagent.exit")) assert.ok(exit.tokens <= 2 * 8_010, `${exit.tokens}`);
    },
  },
  {
    name: "each refusal says which cap",
    args: [
      ...["--max-children", "20", "--max-subagents", "9", "--max-calls-per-turn", "40"],
      ...["--tools", "lib/*"],
    ],
    script: {
      routes: [
        { when: "KID", by: "turn", replies: [{ text: "ok" }] },
        {
          when: ROOT,
          by: "turn",
          replies: [
            {
              calls: [
                spawn("KID wide", { tools: ["web/*"] }),
                spawn("KID wider", { tools: ["*"] }),
                spawn("  "),
                spawn("KID late", { limits: { deadline: "some day" } }),
                spawn("KID seeded", { seed: [{ label: "empty" }] }),
                ...Array.from(
                  { length: 20 },
                  (_, index) => spawn(`KID ${index}`, { disposition: "async" }),
                ),
              ],
            },
            { calls: [call("subagent_await")], delayMs: 1_200 },
            {
              calls: [
                spawn("KID ninth", { disposition: "async" }),
                spawn("KID tenth", { disposition: "async" }),
              ],
            },
            { calls: [call("subagent_await")] },
            { text: "refused where it had to be" },
          ],
        },
      ],
    },
    check: ({ ran, asked, of }) => {
      assert.equal(ran.json.status, "completed", ran.stderr);
      const caps = of("subagent.refused").map((line) => line.cap);
      assert.deepEqual(caps.slice(0, 5), ["scope", "scope", "order", "order", "order"]);
      // A slow machine may take so long over eight that more are let in, up to the cap of the run: then
      // the rate refuses none here (fleet_test.ts holds it to its numbers).
      assert.ok(caps.slice(5).every((cap) => cap === "rate" || cap === "max_subagents"));
      assert.equal(caps.at(-1), "max_subagents");
      assert.equal(of("subagent.spawn").length, 1 + 9);
      const texts: string[] = asked(ROOT)[1].messages.filter((message: { role: string }) =>
        message.role === "tool"
      ).map((message: { content: string }) => message.content);
      assert.match(
        texts[0]!,
        /^\[refused.*web\/\* is wider than the parent's own tools \(scope\)/s,
      );
      assert.ok(
        !caps.includes("rate") ||
          texts.some((text) =>
            /^\[refused.*at most 8 subagents at once and 2 a second \(rate\)/s.test(text)
          ),
      );
      assert.match(resultText(asked(ROOT)[3]), /9 subagents in one run \(max_subagents\)/);
    },
  },
  {
    name: "children at a time, and depth: the deepest are not offered what they may not do",
    args: ["--max-children", "1", "--max-depth", "1"],
    script: {
      routes: [
        {
          when: "KID",
          by: "turn",
          replies: [{ calls: [spawn("KID of KID")] }, { text: "alone", delayMs: 500 }],
        },
        {
          when: ROOT,
          by: "turn",
          replies: [
            {
              calls: [
                spawn("KID one", { disposition: "async" }),
                spawn("KID two", { disposition: "async" }),
              ],
            },
            { calls: [call("subagent_await")] },
            { text: "one at a time" },
          ],
        },
      ],
    },
    check: ({ ran, asked, of }) => {
      assert.equal(ran.json.status, "completed", ran.stderr);
      assert.match(
        resultText(asked(ROOT)[1]),
        /1 subagents of one agent at a time \(max_children\)/,
      );
      const [first, second] = asked("KID one");
      assert.ok(!JSON.stringify(first.tools).includes("subagent_spawn"));
      assert.match(resultText(second), /^\[invalid/);
      assert.equal(of("subagent.spawn").length, 2);
    },
  },
];

for (const program of programs()) {
  for (const { name, check, ...spec } of CASES) {
    posixTest(`subagents (${program.name}): ${name}`, () => runAgents(program, spec, check));
  }
}
