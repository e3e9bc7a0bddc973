/** Where two rules of the loop meet: each is specified alone elsewhere, here is what they do together. */

import assert from "node:assert/strict";
import type { AgentEvent, CheckOutcome } from "../../src/agent/event.ts";
import type { Observation } from "../../src/agent/observation.ts";
import { readProposal } from "../../src/agent/action.ts";
import { step } from "../../src/agent/step.ts";
import type { Message } from "../../src/ports/model.ts";
import {
  assertAnswered,
  play,
  type Played,
  replay,
  type Scenario,
  tool,
  toolError,
  traceOf,
} from "../fakes/simulation.ts";

const READ = tool("fs/read", { readOnly: true });

function playWhole(scenario: Scenario): Played {
  const played = play(scenario);
  for (const request of played.requests) assertAnswered(request);
  assert.deepEqual(replay(played.events).decisions, played.decisions);
  return played;
}

function textOf(messages: readonly Message[]): string {
  return messages.map((message) =>
    message.role === "assistant"
      ? message.text
      : message.parts.map((part) => part.type === "text" ? part.text : "").join("\n")
  ).join("\n");
}

Deno.test("polls: a repeated error of a polled tool is no idleness, only a lack of success", () => {
  const played = playWhole({
    tools: [tool("ci/status", { readOnly: true, poll: true })],
    model: () => ({ calls: [{ name: "ci__status", arguments: {} }] }),
    tool: () => toolError("404: no such run yet"),
  });
  assert.equal(played.result.usage.steps, 8);
  assert.match(played.result.reason, /^failing:/);
  const late = playWhole({
    tools: [tool("ci/status", { readOnly: true, poll: true })],
    model: (turn) =>
      turn <= 7 ? { calls: [{ name: "ci__status", arguments: {} }] } : { text: "green" },
    tool: (_planned, nth) => nth < 7 ? toolError("404: no such run yet") : "green",
  });
  assert.equal(late.result.status, "completed");
});

Deno.test("checks: each check's graded signal is held against its own, whichever stands higher", () => {
  const graded = (name: string, done: number): CheckOutcome => ({
    kind: "check",
    name,
    passed: false,
    detail: "",
    digest: name,
    progress: { done, total: 10 },
    ms: 1,
  });
  const played = playWhole({
    tools: [{ ...READ, poll: true }],
    task: {
      checks: ["lint", "test"].map((name) => ({ command: [name], when: "turn", timeoutMs: 1 })),
    },
    limits: { maxSteps: 7 },
    model: () => ({ calls: [{ name: "fs__read", arguments: { path: "x" } }] }),
    tool: () => "same",
    check: (_phase, nth) => [graded("lint", 9), graded("test", nth)],
  });
  assert.deepEqual(
    traceOf(played).slice(2, 5).map((line) => line.split(" ").slice(0, 2).join(" ")),
    ["3 advanced", "4 advanced", "5 advanced"],
  );
});

Deno.test("json mode: a model that calls natively nonetheless reads what it called", () => {
  const played = playWhole({
    toolMode: "json",
    tools: [READ],
    model: (turn) =>
      turn === 1
        ? { calls: [{ name: "fs__read", arguments: { path: "a" } }] }
        : { text: '{"action":"final","result":"done"}' },
    tool: () => "content of a",
  });
  assert.equal(played.result.status, "completed");
  const [, reply, result] = played.requests[1]!.messages;
  assert.ok(reply?.role === "assistant");
  assert.equal(reply.text, '{"action":"tool","tool":"fs__read","arguments":{"path":"a"}}');
  assert.deepEqual(reply.calls, []);
  assert.equal(textOf([result!]), "Result of fs__read: [ok]\ncontent of a");
});

Deno.test("sessions: a compaction keeps what the delivery at hand asks for", () => {
  const { state } = play({ model: () => ({ text: "first done" }), contextWindow: 8_000 });
  let turn = 0;
  let first = 0;
  const answers: AgentEvent[] = [];
  let asked: readonly Message[] = [];
  const take = (event: AgentEvent) => {
    for (const action of step(state, event)) {
      const at = state.at + 1;
      const usage = { tokensIn: 0, tokensOut: 10, tokensCached: 0, estimated: true };
      if (action.do === "summarise") {
        answers.push({ type: "summary.made", at, text: "went on", usage, ms: 1 });
      } else if (action.do === "callModel") {
        asked = action.request.messages;
        const arguments_ = JSON.stringify({ id: "ledger", offset: first + ++turn });
        answers.push({
          type: "model.answered",
          at,
          text: turn < 20 ? "" : "second done",
          calls: turn < 20
            ? [{ id: `t${turn}`, name: "artifact_read", arguments: arguments_ }]
            : [],
          finish: "stop",
          refusal: null,
          opaque: null,
          usage,
          model: "m",
          endpoint: "e",
          attempts: 1,
          ms: 1,
          digest: `${turn}`,
        });
      } else if (action.do === "callTool") {
        const observation: Observation = {
          class: "ok",
          parts: [{ type: "text", text: `${first + turn} ${"x".repeat(5_000)}` }],
          structured: null,
        };
        const { call } = action.call;
        const digest = `d${first + turn}`;
        answers.push({
          type: "call.observed",
          at,
          call,
          observation,
          digest,
          bytes: 5_000,
          ms: 1,
          child: null,
        });
      }
    }
  };
  state.selfTools = { subagents: true, subscribe: false };
  state.limits = { ...state.limits, keepVerbatim: 50 };
  take({ type: "tools.listed", at: state.at, tools: [READ], resources: [] });
  for (const n of [2, 3]) {
    turn = 0;
    first = 100 * n;
    const delivery = { id: `d${n}`, instruction: `Task number ${n}`, uris: ["mem://a"] };
    take({ type: "delivered", at: state.at + 1, delivery, reconnect: false });
    for (let next = answers.shift(); next !== undefined; next = answers.shift()) take(next);
    assert.equal(state.phase.tag === "stopped" && state.phase.result.status, "completed");
    assert.match(textOf(asked), /went on/);
    assert.match(textOf(asked), new RegExp(`Task number ${n}\nChanged:\n- mem://a`));
    assert.equal(textOf(asked).includes("Task number 2"), n === 2);
  }
});

Deno.test("sessions: what one delivery left to be continued is not put before the next answer", () => {
  const played = play({
    model: () => ({ text: "The first half", finish: "length", tokensIn: 9_000 }),
    limits: { maxTokens: 17_000 },
  });
  assert.equal(played.result.status, "exhausted_tokens");
  const { state } = played;
  const at = state.at + 1;
  const delivery = { id: "d2", instruction: "Now the second task", uris: [], session: "s" };
  step(state, { type: "delivered", at, delivery, reconnect: false } as never);
  assert.equal(state.carried, null);
});

Deno.test("scope: a tool that is offered no more is told apart from one that never was", () => {
  const { state } = play({ model: () => ({ text: "done" }) });
  const listed = (tools: typeof READ[]) =>
    void step(state, { type: "tools.listed", at: state.at, tools, resources: [] });
  const faultOf = (name: string) => {
    const calls = [{ id: "a", name, arguments: "{}" }];
    const reply = { text: "", calls, finish: "tool_calls" as const, refusal: null };
    const proposal = readProposal(reply, {
      tools: state.tools,
      withdrawn: state.withdrawn,
      configured: "native",
      mode: "native",
      hasSchema: false,
      step: 1,
    });
    assert.ok(proposal.kind === "calls");
    return proposal.calls[0]!.fault;
  };
  listed([READ]);
  assert.equal(faultOf(READ.wireName), null);
  listed([]);
  assert.match(faultOf(READ.wireName)!, /is in scope any more: its server withdrew it, or what/);
  assert.match(faultOf("never__was")!, /^no tool named "never__was" is in scope$/);
  listed([READ]);
  assert.equal(faultOf(READ.wireName), null);
});
