/**
 * Budgets over arbitrary runs against an endpoint that counts a prompt at a quarter of its bytes: the
 * end by tokens or cost comes after one turn's warning, and within the limit but for one reply.
 */

import assert from "node:assert/strict";
import fc from "fast-check";
import { byteLength } from "../../src/core/text.ts";
import type { PlannedRequest } from "../../src/agent/plan.ts";
import { play, tool } from "../fakes/simulation.ts";

const READ = tool("fs/read", { readOnly: true });

/** What a wire's body is about as long as, in tokens. */
function measure(request: PlannedRequest): number {
  let bytes = byteLength(request.system) + byteLength(JSON.stringify(request.tools));
  for (const message of request.messages) {
    bytes += 24;
    if (message.role === "assistant") {
      bytes += byteLength(message.text);
      for (const call of message.calls) bytes += 24 + call.name.length + call.arguments.length;
      continue;
    }
    for (const part of message.parts) bytes += part.type === "text" ? byteLength(part.text) : 0;
    if (message.role === "tool") bytes += byteLength(message.note ?? "");
  }
  return Math.ceil(bytes / 4);
}

const run = fc.record({
  maxTokens: fc.integer({ min: 20_000, max: 300_000 }),
  priced: fc.boolean(),
  window: fc.constantFrom(16_000, 64_000, 128_000),
  /** Calls and characters of a reply, bytes of each result, turn by turn. */
  turns: fc.array(
    fc.record({
      calls: fc.integer({ min: 1, max: 6 }),
      chars: fc.integer({ min: 0, max: 1_000 }),
      bytes: fc.integer({ min: 10, max: 40_000 }),
    }),
    { minLength: 1, maxLength: 8 },
  ),
});

Deno.test("assemble: the end of a budget comes after one turn's warning", () => {
  let ended = 0;
  fc.assert(
    fc.property(run, (drawn) => {
      const at = (turn: number) => drawn.turns[turn % drawn.turns.length]!;
      let replies = 0;
      const played = play({
        tools: [READ],
        contextWindow: drawn.window,
        limits: {
          maxSteps: 2_000,
          maxCalls: 10_000,
          deadlineMs: 1e9,
          maxTokens: drawn.priced ? 1e12 : drawn.maxTokens,
          maxCost: drawn.priced ? drawn.maxTokens / 1e6 : null,
        },
        prices: { input: 1, cachedInput: 0.1, output: 1 },
        model: (turn, request) => {
          const { calls, chars } = at(turn);
          const tokensOut = Math.ceil((chars + calls * 60) / 4);
          replies = Math.max(replies, tokensOut);
          return {
            text: "t".repeat(chars),
            calls: Array.from({ length: calls }, (_, n) => ({
              name: "fs__read",
              arguments: { path: `${turn}-${n}` },
            })),
            tokensIn: measure(request),
            tokensOut,
          };
        },
        tool: (planned, nth) =>
          `${planned.call} `.padEnd(Math.min(at(nth).bytes, planned.showBytesMax), "r"),
      });
      const { result } = played;
      if (result.status !== "exhausted_tokens" || result.reason.startsWith("context")) return;
      ended++;
      assert.match(result.reason, drawn.priced ? /^cost:/ : /^tokens:/);
      assert.ok(
        result.usage.tokens_in + result.usage.tokens_out <= drawn.maxTokens + replies,
        `${result.usage.tokens_in + result.usage.tokens_out} of ${drawn.maxTokens}`,
      );
      const last = played.decisions.findLast((decision) =>
        decision.type === "model.requested" && decision.purpose === "turn"
      );
      // What did not fit even once had nobody to warn.
      if (last === undefined) return;
      assert.ok(last.type === "model.requested" && last.last !== null, result.reason);
      const words = JSON.stringify(played.requests.at(-1)!.messages.at(-1));
      assert.match(words, /This is the last turn/);
      assert.equal(played.requests.at(-1)!.toolChoice, "none");
    }),
    { numRuns: Number(Deno.env.get("AGENTD_PROPERTY_RUNS") ?? 1_000) / 5 },
  );
  assert.ok(ended > 20, `only ${ended} runs ended by their budget`);
});
