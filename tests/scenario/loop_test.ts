/** The traces that the loop is specified by: a script in, verdicts and a named end out. */

import assert from "node:assert/strict";
import type { CheckOutcome } from "../../src/agent/event.ts";
import {
  assertAnswered,
  play,
  replay,
  type Scenario,
  tool,
  toolError,
  traceOf,
} from "../fakes/simulation.ts";

const READ = tool("fs/read", { readOnly: true });
const call = (name: string, args: Record<string, string | number> = {}) => ({
  name,
  arguments: args,
});
const checkOutcome = (passed: boolean, detail: string): CheckOutcome => ({
  kind: "check",
  name: "test",
  passed,
  detail: passed ? "" : detail,
  digest: detail,
  progress: null,
  ms: 1,
});
const missing = (): CheckOutcome => ({
  kind: "require",
  name: "/out/a.md",
  passed: false,
  detail: "",
  digest: "exit 1",
  progress: null,
  ms: 1,
});

/** Name, scenario, the trace it must give. */
const ROWS: [string, Scenario, string[]][] = [
  ["four identical ENOENT reads are stalled at turn 4", {
    tools: [READ],
    model: () => ({ calls: [call("fs__read", { path: "config.yaml" })] }),
    tool: () => toolError("ENOENT: no such file"),
  }, [
    "1 failed 1 idle 0 fs/read:error+",
    "2 repeated 0 idle 1 fs/read:error",
    "3 repeated 0 idle 2 fs/read:error",
    "4 refused 0 idle 3 fs/read:refused",
    "stalled (idle)",
  ]],
  ["A, B, A, B, A with unchanged answers is stalled at turn 5", {
    tools: [READ],
    model: (turn) => ({ calls: [call("fs__read", { path: turn % 2 === 1 ? "a" : "b" })] }),
    tool: (planned) => `content of ${planned.arguments.path}`,
  }, [
    "1 advanced 1 idle 0 fs/read:ok+",
    "2 advanced 1 idle 0 fs/read:ok+",
    "3 repeated 0 idle 1 fs/read:ok",
    "4 repeated 0 idle 2 fs/read:ok",
    "5 repeated 0 idle 3 fs/read:ok",
    "stalled (idle)",
  ]],
  ["garbage for ever is stalled at turn 3", {
    toolMode: "json",
    model: (turn) => ({ text: `garbage ${turn}` }),
  }, [
    "1 invalid 0 idle 1",
    "2 invalid 0 idle 2",
    "3 invalid 0 idle 3",
    "stalled (idle)",
  ]],
  ["the same failing claim is stalled at turn 4", {
    task: { require: ["/out/a.md"] },
    model: () => ({ text: "done" }),
    check: () => [missing()],
  }, [
    "1 failed 1 idle 0",
    "2 repeated 0 idle 1",
    "3 repeated 0 idle 2",
    "4 repeated 0 idle 3",
    "stalled (idle)",
  ]],
  ["a failing claim in ever new words is stalled at turn 4", {
    task: { require: ["/out/a.md"] },
    model: (turn) => ({ text: `done, attempt ${turn}` }),
    check: () => [missing()],
  }, [
    "1 failed 1 idle 0",
    "2 repeated 0 idle 1",
    "3 repeated 0 idle 2",
    "4 repeated 0 idle 3",
    "stalled (idle)",
  ]],
  ["prose that changes around the same failing call is still stalled", {
    tools: [READ],
    model: (turn) => ({ text: `thought ${turn}`, calls: [call("fs__read", { path: "x" })] }),
    tool: () => toolError("EACCES"),
  }, [
    "1 failed 1 idle 0 fs/read:error+",
    "2 repeated 0 idle 1 fs/read:error",
    "3 repeated 0 idle 2 fs/read:error",
    "4 refused 0 idle 3 fs/read:refused",
    "stalled (idle)",
  ]],
  ["white space and key order make no new call", {
    tools: [READ],
    model: (turn) => ({
      calls: [{
        name: "fs__read",
        arguments: turn % 2 === 1 ? '{"a":1,"b":2}' : '{ "b": 2,\n "a": 1 }',
      }],
    }),
    tool: () => "same",
  }, [
    "1 advanced 1 idle 0 fs/read:ok+",
    "2 repeated 0 idle 1 fs/read:ok",
    "3 repeated 0 idle 2 fs/read:ok",
    "4 refused 0 idle 3 fs/read:refused",
    "stalled (idle)",
  ]],
  ["a status that differs only in its timestamp is stalled", {
    tools: [tool("ci/status", { readOnly: true })],
    model: () => ({ calls: [call("ci__status")] }),
    tool: (_planned, nth) => `running at 2026-06-25T10:11:${10 + nth}Z, uptime: ${nth * 7}s`,
  }, [
    "1 advanced 1 idle 0 ci/status:ok+",
    "2 repeated 0 idle 1 ci/status:ok",
    "3 repeated 0 idle 2 ci/status:ok",
    "4 refused 0 idle 3 ci/status:refused",
    "stalled (idle)",
  ]],
  ["an explicit inability is refused", {
    model: () => ({ calls: [call("task_refuse", { reason: "no such file exists" })] }),
  }, ["1 answered 1 idle 0 self/task_refuse:ok", "refused (no such file exists)"]],
  ["the wire's own refusal is refused", {
    model: () => ({ text: "", refusal: "policy" }),
  }, ["1 answered 1 idle 0", "refused (policy)"]],
  ["prose that sounds like a refusal is an answer", {
    model: () => ({ text: "I cannot do this." }),
  }, [
    "1 answered 1 idle 0",
    "completed (the model gave a final answer; nothing was declared to verify it)",
  ]],
  ["a question is an answer where nothing is declared", {
    model: () => ({ text: "Shall I commit?" }),
  }, [
    "1 answered 1 idle 0",
    "completed (the model gave a final answer; nothing was declared to verify it)",
  ]],
  ["a question is fed back where something is declared", {
    tools: [tool("fs/write")],
    task: { require: ["/out/a.md"] },
    model: (turn) =>
      turn === 1
        ? { text: "Shall I write it?" }
        : turn === 2
        ? { calls: [call("fs__write", { path: "/out/a.md" })] }
        : { text: "written" },
    check: (
      _phase,
      nth,
    ) => [nth < 3 ? missing() : { ...missing(), passed: true, digest: "exit 0" }],
  }, [
    "1 failed 1 idle 0",
    "2 advanced 1 idle 0 fs/write:ok+",
    "3 answered 1 idle 0",
    "completed (the final answer passed everything that was declared)",
  ]],
  ["a final beside owned children waits for them, reads what they brought, and is given anew", {
    child: (planned) => `0.${planned.call.slice(-1)}`,
    model: (turn) =>
      turn === 1
        ? {
          calls: [1, 2].map((n) =>
            call("subagent_spawn", { objective: `part ${n}`, disposition: "async" })
          ),
        }
        : { text: `done at ${turn}` },
  }, [
    "1 advanced 2 idle 0 self/subagent_spawn:ok+ self/subagent_spawn:ok+",
    "2 advanced 2 idle 0",
    "3 answered 1 idle 0",
    "completed (the model gave a final answer; nothing was declared to verify it)",
  ]],
  ["a confident done with the artifact missing is fed back, mended, completed", {
    tools: [tool("fs/write")],
    task: { require: ["/out/a.md"] },
    model: (turn) =>
      turn === 2 ? { calls: [call("fs__write", { path: "/out/a.md" })] } : { text: "done" },
    check: (
      _phase,
      nth,
    ) => [nth < 3 ? missing() : { ...missing(), passed: true, digest: "exit 0" }],
  }, [
    "1 failed 1 idle 0",
    "2 advanced 1 idle 0 fs/write:ok+",
    "3 answered 1 idle 0",
    "completed (the final answer passed everything that was declared)",
  ]],
  ["eight turns of new errors without one success are stalled", {
    tools: [READ],
    model: (turn) => ({ calls: [call("fs__read", { path: `f${turn}` })] }),
    tool: (planned) => toolError(`ENOENT ${planned.arguments.path}`),
  }, [
    ...[1, 2, 3, 4, 5, 6, 7, 8].map((turn) => `${turn} failed 1 idle 0 fs/read:error+`),
    "stalled (failing)",
  ]],
  ["an unknown outcome is its own verdict and no evidence", {
    tools: [tool("shop/order")],
    model: (turn) => turn < 3 ? { calls: [call("shop__order", { id: turn })] } : { text: "done" },
    tool: () => ({ class: "unknown", why: "the answer is lost" }),
  }, [
    "1 unknown 0 idle 1 shop/order:unknown",
    "2 unknown 0 idle 2 shop/order:unknown",
    "3 answered 1 idle 0",
    "completed (the model gave a final answer; nothing was declared to verify it)",
  ]],
  ["steps run out with one turn's warning", {
    tools: [READ],
    limits: { maxSteps: 3 },
    model: (turn) => ({ text: `at ${turn}`, calls: [call("fs__read", { path: `f${turn}` })] }),
    tool: (planned) => `content of ${planned.arguments.path}`,
  }, [
    "1 advanced 1 idle 0 fs/read:ok+",
    "2 advanced 1 idle 0 fs/read:ok+",
    "3 refused 0 idle 1 fs/read:refused",
    "exhausted_steps (steps)",
  ]],
  ["tokens run out before the call that would exceed them", {
    tools: [READ],
    limits: { maxTokens: 20_000 },
    model: (turn) => ({ calls: [call("fs__read", { path: `f${turn}` })], tokensIn: 6_000 }),
    tool: (planned) => `content of ${planned.arguments.path}`,
  }, [
    "1 advanced 1 idle 0 fs/read:ok+",
    "2 advanced 1 idle 0 fs/read:ok+",
    "3 refused 0 idle 1 fs/read:refused",
    "exhausted_tokens (tokens)",
  ]],
  ["refused credentials are an abort", {
    model: () => ({ fail: { class: "auth", message: "401" } }),
  }, ["abort intelligence (auth)"]],
  ["a graded check that rises is progress, whatever else repeats", {
    tools: [READ],
    task: { checks: [{ command: ["test"], when: "turn", timeoutMs: 1 }] },
    limits: { maxSteps: 9 },
    model: (turn) =>
      turn < 7 ? { calls: [call("fs__read", { path: "x", n: turn % 2 })] } : { text: "done" },
    tool: () => "same",
    check: (phase, nth) => [{
      ...checkOutcome(phase === "final", "2 of 9"),
      progress: { done: Math.min(nth, 6), total: 9 },
    }],
  }, [
    "1 advanced 2 idle 0 fs/read:ok+",
    "2 advanced 1 idle 0 fs/read:ok+",
    "3 advanced 1 idle 0 fs/read:ok",
    "4 advanced 1 idle 0 fs/read:ok",
    "5 advanced 1 idle 0 fs/read:ok",
    "6 repeated 0 idle 1 fs/read:ok",
    "7 answered 1 idle 0",
    "completed (the final answer passed everything that was declared)",
  ]],
];

for (const [name, scenario, trace] of ROWS) {
  Deno.test(`step: ${name}`, () => {
    const played = play(scenario);
    assert.deepEqual(traceOf(played), trace);
    for (const request of played.requests) assertAnswered(request);
    assert.deepEqual(replay(played.events).decisions, played.decisions);
  });
}

Deno.test("step: a counter tool that always changes is never stalled", () => {
  const played = play({
    tools: [tool("count/next")],
    limits: { maxSteps: 30 },
    model: (turn) => turn < 30 ? { calls: [call("count__next")] } : { text: "30" },
    tool: (_planned, nth) => `count ${nth}`,
  });
  assert.equal(played.result.status, "completed");
  assert.equal(played.calls.length, 29);
});

Deno.test("step: a call repeated among real progress is refused at the 4th and detected at the 7th attempt", () => {
  const played = play({
    tools: [READ],
    model: (turn) => ({
      calls: [call("fs__read", { path: turn % 2 === 0 ? "same" : `new ${turn}` })],
    }),
    tool: (planned) => `content of ${planned.arguments.path}`,
  });
  assert.equal(played.result.status, "loop_detected");
  const refused = played.decisions.flatMap((decision) =>
    decision.type === "call.refused" ? [decision.step] : []
  );
  assert.deepEqual(refused, [8, 10, 12, 14]);
  assert.equal(played.result.usage.steps, 14);
});

Deno.test("step: a polled job that finishes at the 30th poll completes when declared", () => {
  const scenario = (poll: boolean): Scenario => ({
    tools: [tool("ci/status", { readOnly: true, poll })],
    model: (turn) => turn <= 30 ? { calls: [call("ci__status")] } : { text: "green" },
    tool: (_planned, nth) => nth < 30 ? "running" : "green",
  });
  assert.equal(play(scenario(true)).result.status, "completed");
  assert.equal(play(scenario(false)).result.status, "stalled");
});

Deno.test("step: of 200 calls in one reply 16 run, and each has one result", () => {
  const played = play({
    tools: [READ],
    model: (turn) =>
      turn === 1
        ? {
          calls: Array.from({ length: 200 }, (_, index) => call("fs__read", { path: `f${index}` })),
        }
        : { text: "done" },
    tool: (planned) => `content of ${planned.arguments.path}`,
  });
  assert.equal(played.calls.length, 16);
  assert.equal(played.decisions.filter((decision) => decision.type === "call.refused").length, 184);
  assertAnswered(played.requests[1]!);
  assert.equal(
    played.requests[1]!.messages.filter((message) => message.role === "tool").length,
    200,
  );
});

Deno.test("step: a stop in the middle of a turn of nine calls answers every call once", () => {
  const calls = Array.from({ length: 9 }, (_, index) => call("fs__write", { path: `f${index}` }));
  const played = play({
    tools: [tool("fs/write")],
    model: () => ({ calls }),
    tool: (planned) => `wrote ${planned.arguments.path}`,
    cancelAt: { nth: 6, reason: "sigterm" },
  });
  assert.equal(played.result.status, "cancelled");
  const abandoned = played.decisions.flatMap((decision) =>
    decision.type === "call.abandoned" ? [`${decision.call} ${decision.class}`] : []
  );
  // Two were answered; the third was on its way; the other six were never sent.
  assert.deepEqual(abandoned, [
    "c1-3 unknown",
    ...[4, 5, 6, 7, 8, 9].map((n) => `c1-${n} refused`),
  ]);
  const judged = played.decisions.find((decision) => decision.type === "turn.judged");
  assert.equal(judged?.type === "turn.judged" && judged.actions.length, 9);
});

Deno.test("step: a long honest job is never flagged", () => {
  const kinds = [
    (turn: number) => call("fs__read", { path: "big", offset: turn * 100 }),
    () => call("ci__status"),
    (turn: number) => call("fs__move", { from: `a${turn}`, to: `b${turn}` }),
  ];
  const played = play({
    tools: [READ, tool("ci/status", { readOnly: true }), tool("fs/move")],
    limits: { maxSteps: 200, maxCalls: 1000 },
    model: (turn) => turn <= 150 ? { calls: [kinds[turn % 3]!(turn)] } : { text: "done" },
    tool: (planned, nth) =>
      planned.tool.name === "ci/status" ? `answer ${nth}` : JSON.stringify(planned.arguments),
  });
  assert.equal(played.result.status, "completed");
  assert.equal(played.result.usage.steps, 151);
});

Deno.test("step: serial calls are sent one after the other, read-only ones together", () => {
  const order: string[] = [];
  const run = (readOnly: boolean) => {
    order.length = 0;
    const played = play({
      tools: [tool("a/x", { readOnly })],
      model: (turn) =>
        turn === 1 ? { calls: [call("a__x", { n: 1 }), call("a__x", { n: 2 })] } : { text: "." },
      tool: (planned) => String(planned.arguments.n),
    });
    return played.decisions.map((decision) => decision.type).filter((type) =>
      type.startsWith("call")
    );
  };
  assert.deepEqual(run(true), ["call.intended", "call.intended"]);
  assert.deepEqual(run(false), ["call.intended", "call.intended"]);
});

Deno.test("step: a reply cut in the middle of a call says so and executes nothing", () => {
  const played = play({
    tools: [READ],
    model: (turn) =>
      turn === 1
        ? { calls: [{ name: "fs__read", arguments: '{"path": "/a/b' }], finish: "length" }
        : { text: "done" },
  });
  assert.equal(played.calls.length, 0);
  const told = JSON.stringify(played.requests[1]!.messages);
  assert.match(told, /cut off at 1000 tokens in the middle of a tool call/);
});

Deno.test("step: a cut text is continued once and joined", () => {
  const played = play({
    model: (turn) => turn === 1 ? { text: "The answer is ", finish: "length" } : { text: "42." },
  });
  assert.equal(played.result.result, "The answer is 42.");
  assert.equal(played.result.status, "completed");
});

Deno.test("step: what a rejected proposal echoes is at most 800 characters", () => {
  for (const noise of ["[1]", '"text"', "null", "x".repeat(1_000_000)]) {
    const played = play({
      tools: [READ],
      model: (turn) =>
        turn === 1 ? { calls: [{ name: "fs__read", arguments: noise }] } : { text: "done" },
    });
    const result = played.requests[1]!.messages.find((message) => message.role === "tool");
    assert.ok(result?.role === "tool");
    const text = result.parts.map((part) => part.type === "text" ? part.text : "").join("");
    assert.match(text, /^\[invalid\]/);
    assert.ok(text.length < 1_000, `${text.length}`);
    assert.equal(played.calls.length, 0);
  }
});

Deno.test("step: tools unsupported switches to JSON actions in auto, and aborts in native", () => {
  const scenario = (toolMode: "auto" | "native"): Scenario => ({
    toolMode,
    tools: [READ],
    model: (turn) =>
      turn === 1
        ? { fail: { class: "tools_unsupported" } }
        : turn === 2
        ? { text: 'Sure: {"action":"tool","tool":"fs__read","arguments":{"path":"{\\"}"}} ok?' }
        : { text: '{"action":"final","result":{"n":1}}' },
    tool: (planned) => `content of ${planned.arguments.path}`,
  });
  const played = play(scenario("auto"));
  assert.equal(played.result.status, "completed");
  assert.deepEqual(played.result.result, { n: 1 });
  assert.equal(played.calls[0]!.arguments.path, '{"}');
  assert.equal(played.requests[1]!.tools.length, 0);
  assert.match(played.requests[1]!.system, /fs__read/);
  assert.equal(play(scenario("native")).result.abort, "intelligence");
});

Deno.test("step: an answer that quotes an action object is an answer", () => {
  const prose = "word ".repeat(200);
  const played = play({
    tools: [READ],
    model: () => ({
      text: `${prose} For example {"action":"tool","tool":"fs__read","arguments":{}} ${prose}`,
    }),
  });
  assert.equal(played.result.status, "completed");
  assert.equal(played.calls.length, 0);
});

Deno.test("verify: with a schema the result is the parsed value, fenced or not", () => {
  const schema = { type: "object", required: ["n"], properties: { n: { type: "integer" } } };
  for (const text of ['{"n":1}', 'Here:\n```json\n{"n": 1}\n```\n', 'Result: {"n":1} as asked']) {
    const played = play({ task: { outputSchema: schema }, model: () => ({ text }) });
    assert.deepEqual(played.result.result, { n: 1 });
    assert.equal(played.result.status, "completed");
  }
  const failing = play({
    task: { outputSchema: schema },
    model: (turn) => ({ text: turn === 1 ? '{"m":1}' : '{"n":2}' }),
  });
  assert.match(JSON.stringify(failing.requests[1]!.messages.at(-1)), /required property/);
  assert.deepEqual(failing.result.result, { n: 2 });
});

Deno.test("verify: a check that passed before the first turn is said to prove little", () => {
  const played = play({
    task: { checks: [{ command: ["test"], when: "final", timeoutMs: 1 }] },
    model: () => ({ text: "done" }),
    check: () => [checkOutcome(true, "fine")],
  });
  assert.deepEqual(played.result.verification, {
    passed: true,
    items: [{ kind: "check", name: "test", passed: true, passed_before: true, detail: "" }],
  });
});

Deno.test("verify: a stop hook that blocks is a failed verification, asked once per final", () => {
  let asked = 0;
  const played = play({
    stopHooks: 1,
    model: (turn) => ({ text: `answer ${turn}` }),
    check: () => [{
      kind: "hook",
      name: "on_stop guard",
      passed: ++asked > 1,
      detail: "not committed",
      digest: `h${asked}`,
      progress: null,
      ms: 1,
    }],
  });
  assert.equal(played.result.status, "completed");
  assert.equal(played.result.result, "answer 2");
  assert.match(JSON.stringify(played.requests[1]!.messages), /not committed/);
});
