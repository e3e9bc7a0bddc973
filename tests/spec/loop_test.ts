/** The loop on the wire: what an endpoint of either dialect is sent, turn by turn. */

import assert from "node:assert/strict";
import {
  call,
  type Case,
  conversation,
  type Loose,
  runCases,
  systemOf,
  toolNames,
} from "./wire_case.ts";

const imagesOf = (body: Loose): number =>
  conversation(body).split(/"type":"image(?:_url)?"/).length - 1;

const json = (value: Loose) => ({ text: `Here it is:\n${JSON.stringify(value)}\nDone.` });

const CASES: Case[] = [
  {
    name: "JSON actions from the start: no tools offered, a call, a repair, an answer",
    script: {
      replies: [
        json({ action: "tool", tool: "lib__count", arguments: {} }),
        { text: "I think I should look again." },
        json({ action: "final", result: { n: 1 } }),
      ],
    },
    args: ["--tool-mode", "json"],
    check: ({ ran, bodies }) => {
      assert.equal(ran.json.status, "completed");
      assert.deepEqual(ran.json.result, { n: 1 });
      assert.equal(ran.json.usage.tool_calls, 1);
      for (const body of bodies) assert.equal(body.tools, undefined);
      assert.match(systemOf(bodies[0]), /lib__count/);
      assert.match(conversation(bodies[1]), /Result of lib__count: \[ok\]\\ncount 1/);
      assert.match(conversation(bodies[2]), /the reply held no action/);
    },
  },
  {
    name: "JSON actions: of several in one reply the first is taken, and the model is told",
    args: ["--tool-mode", "json"],
    script: {
      replies: [
        {
          text: '{"action":"tool","tool":"lib__count","arguments":{}}\nResult of lib__count: 7\n' +
            '{"action":"final","result":"seven"}',
        },
        { text: '{"action":"final","result":"one"}' },
      ],
    },
    check: ({ ran, bodies }) => {
      assert.equal(ran.json.result, "one");
      assert.equal(ran.json.usage.tool_calls, 1);
      assert.match(
        conversation(bodies[1]),
        /Only the first action of your reply was taken\. One more action in it did not happen/,
      );
    },
  },
  {
    name: "JSON actions: a final without a result, or with an empty one, is no answer",
    args: ["--tool-mode", "json"],
    script: {
      replies: [
        { text: '{"action":"final"}' },
        { text: '{"action":"final","result":"  "}' },
        { text: '{"action":"final","result":null}' },
      ],
    },
    code: 1,
    check: ({ ran, bodies }) => {
      assert.equal(ran.json.status, "stalled");
      for (const body of bodies.slice(1)) {
        assert.match(conversation(body), /the final answer was empty/);
      }
    },
  },
  {
    name: "JSON actions: a call alone is no partial result",
    args: ["--tool-mode", "json", "--max-steps", "2"],
    script: {
      replies: [{ text: '```json\n{"action":"tool","tool":"lib__count","arguments":{}}\n```' }],
      loop: true,
    },
    code: 7,
    check: ({ ran }) => assert.deepEqual([ran.json.partial, ran.json.result], [false, null]),
  },
  {
    name: "JSON actions: the words beside a call are a partial result",
    args: ["--tool-mode", "json", "--max-steps", "2"],
    script: {
      replies: [{ text: 'Six so far. {"action":"tool","tool":"lib__count","arguments":{}}' }],
      loop: true,
    },
    code: 3,
    check: ({ ran }) =>
      assert.deepEqual([ran.json.partial, ran.json.result], [true, "Six so far."]),
  },
  {
    name: "JSON actions: a claim that failed is a partial result without its wrapping",
    args: ["--tool-mode", "json", "--check", "false"],
    script: { replies: [json({ action: "final", result: "It is done." })], loop: true },
    code: 3,
    check: ({ ran }) => assert.equal(ran.json.result, "It is done."),
  },
  {
    name: "JSON actions: what a schema permits is an answer, empty or not",
    args: ["--tool-mode", "json", "--output-schema", "schema.json"],
    files: { "schema.json": '{"type":["string","null"]}' },
    script: { replies: [{ text: '{"action":"final","result":""}' }] },
    check: ({ ran }) => assert.deepEqual([ran.json.status, ran.json.result], ["completed", ""]),
  },
  {
    name: "auto: an endpoint that takes no tools is spoken to in JSON actions",
    script: {
      replies: [
        { status: 400, body: { error: { message: "this model does not support tools" } } },
        json({ action: "tool", tool: "lib__count", arguments: {} }),
        json({ action: "final", status: "refused", reason: "only counted" }),
      ],
    },
    code: 5,
    check: ({ ran, bodies }) => {
      assert.equal(ran.json.status, "refused");
      assert.equal(ran.json.reason, "only counted");
      assert.ok(toolNames(bodies[0]).includes("lib__count"));
      assert.equal(bodies[1].tools, undefined);
      assert.match(systemOf(bodies[1]), /exactly one JSON object/);
    },
  },
  {
    name: "auto: an action in the text of a reply without calls is taken as one",
    script: {
      replies: [json({ action: "tool", tool: "lib__count", arguments: {} }), { text: "one" }],
    },
    check: ({ ran }) => {
      assert.equal(ran.json.usage.tool_calls, 1);
      assert.equal(ran.json.result, "one");
    },
  },
  {
    name: "an image in a result is shown to the model",
    script: { replies: [{ calls: [call("lib__picture")] }, { text: "a dot" }] },
    check: ({ bodies }) => assert.equal(imagesOf(bodies[1]), 1),
  },
  {
    name: "NUL, lone surrogates and forged words of the runtime reach no endpoint",
    script: {
      replies: [
        { text: "odd \u0000 and \ud83d", calls: [call("lib__odd")] },
        { calls: [{ name: "lib__big", arguments: '{"bytes": 10, "note": "\\ud800\\u0000"}' }] },
        { text: "ok" },
      ],
    },
    check: ({ ran, bodies }) => {
      assert.equal(ran.json.status, "completed");
      const text = conversation(bodies.at(-1));
      assert.ok(JSON.parse(text).length > 3);
      assert.match(text, /before\uFFFDnul \uFFFDlone/);
      assert.doesNotMatch(text, /\[agentd\] forged/);
      assert.doesNotMatch(text, /\\u0000|\\ud8/);
    },
  },
  {
    name: "three results of 5 MB in one turn: bounded together, each kept whole",
    script: {
      replies: [
        { calls: [1, 2, 3].map((n) => call("lib__big", { bytes: 5_000_000, n })) },
        { calls: [call("artifact_read", { id: "c1-2", offset: 4_999_000 })] },
        { calls: [call("artifact_read", { id: "c1-3", pattern: "RESULT 3" })] },
        { text: "ok" },
      ],
    },
    check: async ({ ran, bodies, directory }) => {
      assert.equal(ran.json.status, "completed");
      const text = conversation(bodies[1]);
      assert.ok(text.length < 70_000, `${text.length}`);
      for (const id of ["c1-1", "c1-2", "c1-3"]) {
        assert.match(text, new RegExp(`truncated kept=\\d+ total=5000000 artifact=..?"${id}`));
        const { size } = await Deno.stat(`${directory}/artifacts/${id}`);
        assert.equal(size, 5_000_000);
      }
      const page = conversation(bodies[2]);
      assert.match(page, /\[ok\]\\nbytes 4999000 to 5000000 of 5000000, the end/);
      const found = conversation(bodies[3]);
      assert.match(found, /\[ok\]\\n\d+ of its lines match \(5000000 bytes in all\)/);
      assert.match(found, /more lines match/);
    },
  },
  {
    name: "200 calls in one reply: sixteen run, and the next request is valid",
    script: {
      replies: [
        { calls: Array.from({ length: 200 }, (_, n) => call("lib__big", { bytes: 10, n })) },
        { text: "ok" },
      ],
    },
    check: ({ ran, bodies }) => {
      assert.equal(ran.json.status, "completed");
      assert.equal(ran.json.usage.tool_calls, 16);
      assert.match(conversation(bodies[1]), /more than 16 calls in one reply/);
      assert.match(conversation(bodies[1]), /72 more calls of the same reply ended so/);
    },
  },
  {
    name: "a reply that only repeats itself is cut off while it streams, then the run goes on",
    script: { replies: [{ text: "again ", times: 20_000 }, { text: "fine" }] },
    check: ({ ran, bodies }) => {
      assert.equal(ran.json.result, "fine");
      assert.equal(ran.json.usage.steps, 2);
      assert.equal(ran.json.usage.tokens_estimated, true);
      assert.match(conversation(bodies[1]), /only repeated itself and was cut off/);
      assert.ok(conversation(bodies[1]).length < 4_000);
    },
  },
  {
    name: "a text cut at the output limit is continued once, also inside a JSON action",
    script: {
      replies: [
        { text: '{"action":"final","result":"The answer ', finish: "FINISH" },
        { text: 'is 42."}' },
      ],
    },
    args: ["--tool-mode", "json"],
    check: ({ ran, bodies }) => {
      assert.equal(ran.json.result, "The answer is 42.");
      assert.match(conversation(bodies[1]), /Continue exactly where it stopped/);
      assert.doesNotMatch(conversation(bodies[1]), /try another way/);
    },
  },
  {
    name: "a call cut at the output limit is explained, and nothing is executed",
    script: {
      replies: [
        { calls: [{ name: "lib__count", arguments: '{"n": "ab' }], finish: "FINISH" },
        { text: "ok" },
      ],
    },
    args: ["--max-output-tokens", "500"],
    check: ({ ran, bodies }) => {
      assert.equal(ran.json.usage.tool_calls, 0);
      assert.match(conversation(bodies[1]), /cut off at 500 tokens in the middle of a tool call/);
    },
  },
  {
    name: "a window that leaves no room is refused at the start, with the arithmetic",
    script: { replies: [{ text: "never" }] },
    args: ["--context-window", "9000", "--max-output-tokens", "8192"],
    code: 2,
    check: ({ ran, bodies }) => {
      assert.equal(bodies.length, 0);
      assert.match(ran.stderr, /9[,.]?000/);
      assert.match(ran.stderr, /8[,.]?192/);
      assert.match(ran.stderr, /808/);
    },
  },
  {
    name: "a required server that dies for good aborts the run, not forty paid steps",
    script: { replies: [{ calls: [call("lib__die")] }], loop: true },
    code: 6,
    check: ({ ran, bodies }) => {
      assert.equal(ran.json.abort, "mcp");
      assert.match(ran.json.reason, /lib/);
      assert.ok(bodies.length <= 6, `${bodies.length} requests`);
    },
  },
  {
    name:
      "resources: counted in the catalogue, listed in pages, read, templates shown, lists renewed",
    script: {
      replies: [
        { calls: [call("resource_list", { prefix: "lib://shelf3/" })] },
        { calls: [call("resource_list", { query: "search" })] },
        { calls: [call("resource_read", { uri: "lib://shelf3/book8" })] },
        { calls: [call("resource_list")] },
        { calls: [call("lib__grow")] },
        // The lists are read anew beside the run: it goes on for a while.
        { calls: [call("lib__count")], delayMs: 50, repeat: 30 },
        { calls: [call("resource_list", { query: "new/" })] },
        { text: "ok" },
      ],
    },
    check: ({ ran, bodies }) => {
      assert.equal(ran.json.status, "completed");
      const system = systemOf(bodies[0]);
      assert.match(system, /251 resources, too many to list; by URI prefix/);
      assert.match(system, /lib:\/\/shelf3\/… 50/);
      assert.ok(!system.includes("body of"));
      assert.match(
        conversation(bodies[1]),
        /lib:\/\/shelf3\/book248 book248: Book number 248 \(348 bytes\)/,
      );
      assert.match(conversation(bodies[2]), /lib:\/\/search\/\{word\} search \(template\)/);
      assert.match(conversation(bodies[3]), /body of lib:\/\/shelf3\/book8/);
      assert.match(conversation(bodies[4]), /151 more: cursor \\\\?"100/);
      assert.ok(!toolNames(bodies[5]).includes("lib__shelve"));
      const last = bodies.at(-1);
      assert.match(systemOf(last), /252 resources/);
      assert.ok(toolNames(last).includes("lib__shelve"));
      assert.match(conversation(last), /lib:\/\/new\/one one: New/);
    },
  },
  {
    name: "a result over 8 KiB is kept as an artifact too",
    script: {
      replies: [{ text: Array.from({ length: 1_500 }, (_, n) => `fact ${n}`).join(", ") + "end" }],
    },
    check: async ({ ran, directory }) => {
      assert.ok(ran.json.result.endsWith("end"));
      const kept = await Deno.readTextFile(`${directory}/artifacts/result-1`);
      assert.equal(kept, ran.json.result);
    },
  },
  {
    name: "a check of every turn whose graded line rises is progress, and the model reads it",
    script: {
      replies: [
        ...Array.from(
          { length: 6 },
          (_, turn) => ({ calls: [call("lib__big", { bytes: 10, n: turn % 2 })] }),
        ),
        { text: "ok" },
      ],
    },
    args: ["--config", "checks.yaml"],
    files: {
      "checks.yaml": "verify:\n  checks:\n    - command: sh grade.sh\n      when: turn\n",
      // Five turns rise, by a file that counts how often it was asked.
      "grade.sh":
        'echo x >> asked; n=$(wc -l < asked); echo "work $n" >&2; echo "PROGRESS $n/6"; echo "bye" >&2; [ "$n" -ge 6 ]\n',
    },
    check: ({ ran, bodies }) => {
      assert.equal(ran.json.status, "completed");
      assert.match(
        conversation(bodies[2]),
        /Checks after this turn:\\n- `sh grade.sh` \(3 of 6\) failed/,
      );
      const steps = ran.lines.filter((line) => line.event === "loop.step");
      assert.deepEqual(steps.slice(1, 5).map((line) => line.verdict), Array(4).fill("advanced"));
    },
  },
  {
    name: "usage that is not reported is estimated and marked",
    script: { replies: [{ text: "ok", usage: null }] },
    check: ({ ran }) => {
      assert.equal(ran.json.usage.tokens_estimated, true);
      assert.ok(ran.json.usage.tokens_in > 100);
      assert.ok(ran.json.usage.tokens_out >= 1);
    },
  },
];

runCases("loop", CASES);
