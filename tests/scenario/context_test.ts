/** The context's levers: what gives way, what never does, and what a turn costs late in a long run. */

import assert from "node:assert/strict";
import { compactWithout } from "../../src/agent/compaction.ts";
import { initialState } from "../../src/agent/state.ts";
import type { Message } from "../../src/ports/model.ts";
import {
  assertAnswered,
  play,
  replay,
  type Scenario,
  tool,
  toolError,
} from "../fakes/simulation.ts";

const READ = tool("fs/read", { readOnly: true });
const GET = tool("http/get");

function textOf(messages: readonly Message[]): string {
  return messages.map((message) =>
    message.role === "assistant"
      ? message.text
      : message.parts.map((part) => part.type === "text" ? part.text : "").join("\n") +
        (message.role === "tool" ? message.note ?? "" : "")
  ).join("\n");
}

/** Sixty turns of fat results through a narrow window; the 403 comes at turn 3. */
function longRun(more: Partial<Scenario> = {}): Scenario {
  return {
    tools: [READ, GET],
    contextWindow: 14_000,
    limits: { maxSteps: 100, maxTokens: 100_000_000 },
    model: (turn, request) => ({
      text: `thinking about part ${turn}: ${"because ".repeat(60)}`,
      ...(turn <= 60
        ? {
          calls: [
            turn === 3
              ? { name: "http__get", arguments: '{"url":"https://api.example/orders"}' }
              : { name: "fs__read", arguments: `{"path":"part-${turn}.txt"}` },
          ],
        }
        : {}),
      // An endpoint that measures a prompt at a quarter of its bytes.
      tokensIn: Math.ceil((textOf(request.messages).length + request.system.length + 400) / 4),
    }),
    tool: (planned) =>
      planned.tool.name === "http/get"
        ? toolError("403 Forbidden: the token expired on 2026-06-01, ask for scope orders:read")
        : `content of ${planned.arguments.path}: ${"x".repeat(6_000)}`,
    ...more,
  };
}

Deno.test("context: a 403 hidden at turn 3 of 60 is in the last request after four compactions", () => {
  const played = play(longRun());
  assert.equal(played.result.status, "completed");
  const compactions = played.decisions.filter((decision) => decision.type === "context.compacted");
  assert.ok(compactions.length >= 4, `${compactions.length} compactions`);
  const last = textOf(played.requests.at(-1)!.messages);
  assert.match(last, /403 Forbidden: the token expired on 2026-06-01, ask for scope orders:read/);
  for (const request of played.requests) assertAnswered(request);
  assert.deepEqual(replay(played.events).decisions, played.decisions);
});

Deno.test("context: a summary that claims what never happened stands beside the ledger that says so", () => {
  const played = play(longRun({ summary: () => "All tests passed and everything is deployed." }));
  const last = textOf(played.requests.at(-1)!.messages);
  assert.match(last, /All tests passed/);
  assert.match(last, /where a summary disagrees, this holds/);
  assert.doesNotMatch(last.split("All tests passed")[0]!, /deploy/);
});

Deno.test("context: after a compaction a claim of tests that never ran is decided by the check", () => {
  let isFixed = false;
  const run = longRun({
    task: { checks: [{ command: ["npm", "test"], when: "final", timeoutMs: 1 }] },
    summary: () => "All tests passed.",
    check: () => [{
      kind: "check",
      name: "npm test",
      passed: isFixed,
      detail: isFixed ? "" : "exit 1\n2 tests fail",
      digest: `${isFixed}`,
      progress: null,
      ms: 1,
    }],
  });
  const played = play({
    ...run,
    tools: [READ, GET, tool("fs/fix")],
    model: (turn, request) => {
      const heard = textOf(request.messages);
      if (turn <= 30) return run.model(turn, request);
      if (isFixed || !heard.includes("2 tests fail")) return { text: "All tests passed." };
      return { calls: [{ name: "fs__fix", arguments: {} }] };
    },
    tool: (planned, nth) => {
      if (planned.tool.name === "fs/fix") isFixed = true;
      return run.tool!(planned, nth);
    },
  });
  const judged = played.decisions.flatMap((decision) =>
    decision.type === "verify.judged" ? [decision.passed] : []
  );
  assert.ok(played.decisions.some((decision) => decision.type === "context.compacted"));
  assert.deepEqual(judged, [false, true]);
  assert.equal(played.result.status, "completed");
});

Deno.test("context: a summary longer than what it replaces is not used, a failing one not needed", () => {
  for (const summary of [() => "word ".repeat(200_000), () => null]) {
    const played = play(longRun({ summary }));
    assert.equal(played.result.status, "completed");
    const compactions = played.decisions.filter((decision) =>
      decision.type === "context.compacted"
    );
    assert.ok(
      compactions.every((decision) =>
        decision.type === "context.compacted" && !decision.summarised
      ),
    );
  }
});

Deno.test("context: the second try keeps the summary that the first was made with", () => {
  // Five results fill the window: only without them is there room for anything.
  const played = play(longRun({
    limits: { maxSteps: 100, maxTokens: 100_000_000, keepVerbatim: 50 },
    summary: (nth) => `plan of compaction ${nth}`,
  }));
  const compactions = played.decisions.flatMap((decision) =>
    decision.type === "context.compacted" ? [decision] : []
  );
  assert.equal(played.result.status, "completed");
  const second = compactions.filter(({ attempt }) => attempt === 2);
  assert.ok(second.length > 0);
  assert.ok(second.every(({ summarised }) => summarised));
  assert.match(textOf(played.requests.at(-1)!.messages), /plan of compaction \d+/);
});

Deno.test("context: a summary that is shorter than what it replaces and still too long gives way", () => {
  const played = play(longRun({
    limits: { maxSteps: 100, maxTokens: 100_000_000, keepVerbatim: 50 },
    summary: () => "word ".repeat(5_400),
    tool: (planned) => `content of ${planned.arguments.path}: ${"x".repeat(14_000)}`,
    model: (turn) => ({
      tokensIn: 0,
      ...(turn > 6
        ? { text: "done" }
        : { calls: [{ name: "fs__read", arguments: `{"path":"part-${turn}.txt"}` }] }),
    }),
  }));
  assert.equal(played.result.status, "completed");
});

Deno.test("context: a summary that cannot be made leaves the one before in force", () => {
  const played = play(longRun({ summary: (nth) => nth === 1 ? "the plan" : null }));
  assert.equal(played.result.status, "completed");
  assert.match(textOf(played.requests.at(-1)!.messages), /summary of the earlier turns:\nthe plan/);
});

Deno.test("context: a summary that a hook forbids is no model call", () => {
  const state = initialState();
  const failure = {
    class: "cancelled" as const,
    message: "blocked",
    retryable: false,
    endpoint: "",
    attempts: 0,
  };
  compactWithout(state, { type: "summary.failed", failure, ms: 0, at: 0 }, []);
  assert.equal(state.counters.modelCalls, 0);
});

Deno.test("context: pinned content over the mark ends by name at the first try", () => {
  let summaries = 0;
  const played = play({
    task: { instruction: "word ".repeat(20_000) },
    contextWindow: 8_000,
    model: () => ({ text: "never asked" }),
    summary: () => `summary ${++summaries}`,
  });
  assert.equal(played.result.status, "exhausted_tokens");
  assert.match(played.result.reason, /^context:/);
  assert.equal(summaries, 0);
  assert.equal(played.requests.length, 0);
});

Deno.test("context: a context-length error compacts and is sent once more, the second ends by name", () => {
  const scenario = (failures: number): Scenario => {
    let failed = 0;
    return longRun({
      contextWindow: 1_000_000,
      model: (turn, request) =>
        turn > 6 && failed++ < failures
          ? { fail: { class: "context_length", message: "maximum context length is 8192" } }
          : turn > 9
          ? { text: "done" }
          : {
            text: "because ".repeat(1_000),
            calls: [{ name: "fs__read", arguments: { path: `p${turn}` } }],
            tokensIn: Math.ceil((textOf(request.messages).length + request.system.length) / 4),
          },
    });
  };
  const once = play(scenario(1));
  assert.equal(once.result.status, "completed");
  const tries = once.decisions.filter((decision) => decision.type === "context.compacted").length;
  assert.ok(tries === 1 || tries === 2, `${tries} tries`);
  const twice = play(scenario(99));
  assert.equal(twice.result.status, "exhausted_tokens");
  assert.match(twice.result.reason, /^context:/);
});

Deno.test("context: an endpoint that finds the first request too long is quoted", () => {
  const played = play({
    model: () => ({ fail: { class: "context_length", message: "maximum context length is 100" } }),
  });
  assert.equal(played.result.status, "exhausted_tokens");
  assert.match(
    played.result.reason,
    /^context: the endpoint finds the request too long.*\(maximum context length is 100\)$/,
  );
  assert.equal(played.requests.length, 1);
});

Deno.test("context: the last five results stay whole, older ones name tool, arguments and artifact", () => {
  const played = play({
    tools: [READ],
    model: (turn) =>
      turn <= 9
        ? { calls: [{ name: "fs__read", arguments: { path: `p${turn}` } }] }
        : { text: "done" },
    tool: (planned) => `content of ${planned.arguments.path} ${"y".repeat(2_000)}`,
  });
  const results = played.requests.at(-1)!.messages.filter((message) => message.role === "tool");
  const whole = results.filter((message) => textOf([message]).includes("yyyy"));
  assert.equal(results.length, 9);
  assert.equal(whole.length, 5);
  const stub = textOf([results[0]!]);
  assert.match(stub, /fs\/read \{"path":"p1"\} -> ok, \d+ bytes; artifact_read \{"id":"c1-1"\}/);
});

Deno.test("context: images of one turn leave room for the next, however many and small", () => {
  const played = play({
    tools: [READ],
    model: (turn) =>
      turn === 1
        ? { calls: [1, 2, 3].map((n) => ({ name: "fs__read", arguments: { path: `p${n}` } })) }
        : { text: "done" },
    tool: (planned) => ({
      class: "ok",
      parts: Array.from({ length: Math.min(100, planned.mediaMax) }, () => ({
        type: "image",
        mimeType: "image/png",
        data: "aGk=",
      })),
      structured: null,
    }),
  });
  assert.equal(played.result.status, "completed");
  assert.deepEqual(played.calls.map((call) => call.mediaMax), [10, 10, 10]);
});

Deno.test("context: results of one turn are all seen once, however many", () => {
  const played = play({
    tools: [READ],
    model: (turn) =>
      turn === 1
        ? {
          calls: Array.from(
            { length: 12 },
            (_, n) => ({ name: "fs__read", arguments: { path: `p${n}` } }),
          ),
        }
        : { text: "done" },
    tool: (planned) => `content of ${planned.arguments.path} ${"y".repeat(2_000)}`,
  });
  const results = played.requests.at(-1)!.messages.filter((message) => message.role === "tool");
  assert.equal(results.filter((message) => textOf([message]).includes("yyyy")).length, 12);
});

Deno.test("context: a turn that did not advance is told so at the end of its last message", () => {
  const played = play({
    tools: [READ],
    model: (turn) =>
      turn <= 3 ? { calls: [{ name: "fs__read", arguments: { path: "x" } }] } : { text: "done" },
    tool: () => "same",
  });
  const messages = played.requests.at(-1)!.messages;
  const last = messages.at(-1)!;
  assert.ok(last.role === "tool");
  assert.match(last.note!, /fs\/read \{"path":"x"\} answered ok as before \(attempt 3\)/);
  assert.match(last.note!, /2 of 3 such turns/);
  assert.match(last.note!, /Left: 37 of 40 turns/);
  assert.equal(messages.filter((message) => message.role === "user").length, 1);
});

Deno.test("context: the hash is the same for the same context and differs with one word", () => {
  const hashes = (word: string) =>
    play({ task: { instruction: word }, model: () => ({ text: "done" }) }).decisions.flatMap((
      decision,
    ) => decision.type === "model.requested" ? [decision.context_hash] : []);
  assert.deepEqual(hashes("a"), hashes("a"));
  assert.notDeepEqual(hashes("a"), hashes("b"));
});

Deno.test("context: 2,000 turns stay under the window with a bounded transcript", () => {
  let most = 0;
  const played = play({
    tools: [READ],
    contextWindow: 64_000,
    limits: { maxSteps: 3_000, maxTokens: 1e12, maxCalls: 5_000, deadlineMs: 1e12 },
    model: (turn, request) => {
      const tokens = Math.ceil((textOf(request.messages).length + request.system.length) / 4);
      most = Math.max(most, tokens);
      return turn <= 2_000
        ? { calls: [{ name: "fs__read", arguments: { path: `p${turn}` } }], tokensIn: tokens }
        : { text: "done", tokensIn: tokens };
    },
    tool: (planned) => `content of ${planned.arguments.path} ${"z".repeat(16_000)}`,
  });
  assert.equal(played.result.status, "completed");
  assert.ok(most < 64_000, `${most} tokens`);
  assert.ok(played.state.transcript.entries.length < 2_000);
  assert.ok(played.state.ledger.entries.size <= 2_000);
});
