import assert from "node:assert/strict";
import { DEFAULT_LIMITS } from "../core/limits.ts";
import { assertAnswered, play, tool } from "../../tests/fakes/simulation.ts";
import type { AgentEvent } from "./event.ts";
import { initialState } from "./state.ts";
import { step } from "./step.ts";

type Resumed = Extract<AgentEvent, { type: "run.resumed" }>;

/** A run that ended by its steps, and what it does when it is resumed so. */
function resumedRun(more: Partial<Resumed>) {
  const played = play({
    tools: [tool("fs/read", { readOnly: true })],
    limits: { maxSteps: 2 },
    prices: { input: 1, cachedInput: 1, output: 1 },
    model: (turn) => ({ calls: [{ name: "fs__read", arguments: { path: `${turn}` } }] }),
    tool: (call) => `content of ${call.arguments.path}`,
  });
  assert.equal(played.result.status, "exhausted_steps");
  const { state } = played;
  const model = { ...state.model };
  step(state, {
    type: "run.resumed",
    at: state.at,
    limits: { ...DEFAULT_LIMITS, maxSteps: 9 },
    model,
    changes: [],
    ...more,
  });
  const actions = step(state, { type: "tools.listed", at: state.at, tools: [], resources: [] });
  const request = actions.find((action) => action.do === "callModel");
  assert.ok(request?.do === "callModel");
  return { state, request: request.request, model };
}

Deno.test("resumeRun: the model's window, prices and limits are those of now", () => {
  const { state } = resumedRun({
    limits: { ...DEFAULT_LIMITS, maxSteps: 9, compactAt: 0.5 },
    model: {
      name: "other",
      tool_mode: "auto",
      max_output_tokens: 2_000,
      context_window: 40_000,
      prices: null,
    },
  });
  assert.equal(state.markTokens, 20_000);
  assert.equal(state.counters.cost, null);
  assert.equal(state.limits.maxSteps, 9);
  assert.equal(state.last, null);
});

Deno.test("resumeRun: what an endpoint said of its window outlives the stop", () => {
  const { state, model } = resumedRun({});
  state.markTokens = 5_000;
  step(state, { type: "cancel.requested", at: state.at, reason: "sigterm" });
  step(state, {
    type: "run.resumed",
    at: state.at,
    limits: DEFAULT_LIMITS,
    model,
    changes: [],
  });
  assert.equal(state.markTokens, 5_000);
});

Deno.test("resumeRun: an endpoint without tools is spoken to in JSON from the first request on", () => {
  const native = resumedRun({});
  assert.ok(native.request.tools.length > 0);
  const { request } = resumedRun({ model: { ...native.model, tool_mode: "json" } });
  assert.equal(request.tools.length, 0);
  for (const message of request.messages) {
    assert.notEqual(message.role, "tool");
    if (message.role === "assistant") assert.equal(message.calls.length, 0);
  }
  assert.match(JSON.stringify(request.messages), /Result of fs__read: \[ok\]/);
});

Deno.test("resumeRun: a record of an earlier version, without the model, goes on as it was", () => {
  const { state } = resumedRun({ model: undefined });
  assert.equal(state.model.name, "scripted");
});

Deno.test("resumeRun: a run cut between call and answer is mended once, a second resume mends nothing more", () => {
  for (const readOnly of [false, true]) {
    const state = initialState();
    const used = tool("fs/act", { readOnly });
    const played = play({
      tools: [used],
      model: () => ({ calls: [1, 2].map((n) => ({ name: "fs__act", arguments: { n } })) }),
    });
    const cut = played.events.findIndex((event) => event.type === "call.observed");
    for (const event of played.events.slice(0, cut)) step(state, event);
    const resumed = (): string[] => {
      const event: AgentEvent = {
        type: "run.resumed",
        limits: state.limits,
        changes: [],
        at: state.at + 1,
      };
      return step(state, event).flatMap((action) =>
        action.do === "append" && action.decision.type === "call.abandoned"
          ? [action.decision.class]
          : []
      );
    };
    assert.deepEqual(resumed(), readOnly ? ["refused", "refused"] : ["unknown", "refused"]);
    const entries = state.transcript.entries.length;
    assert.deepEqual(resumed(), []);
    assert.equal(state.transcript.entries.length, entries);
    const actions = step(state, { type: "tools.listed", tools: [used], resources: [], at: 9_999 });
    const asked = actions.find((action) => action.do === "callModel");
    assert.ok(asked?.do === "callModel");
    assertAnswered(asked.request);
  }
});
