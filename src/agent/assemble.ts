/** Assembling a turn: levers, estimate, stop checks, and the request that goes out. */

import { fnv64 } from "../core/hash.ts";
import { CATALOGUE_BYTES_MAX, TOOLS_MAX } from "../core/limits.ts";
import { byteLength } from "../core/text.ts";
import type { ToolSpec } from "../ports/model.ts";
import { selfTools } from "../selftools/specs.ts";
import { estimateTokens } from "./budget.ts";
import { renderCatalogue } from "./catalogue.ts";
import {
  contextHash,
  noteOnLast,
  projectMessages,
  rewriteAll,
  stubStale,
  transcriptBytes,
} from "./context.ts";
import { stopRun } from "./ending.ts";
import { childNote, lastNote, systemPrompt } from "./prompt.ts";
import { toJsonMode } from "./json_mode.ts";
import { type AgentState, type LastTurn, spent, type Turn } from "./state.ts";
import type { Action, Next, PlannedRequest } from "./plan.ts";
import { stopBeforeCall } from "./stops.ts";
import { childLines } from "./children.ts";

const REPLY_TOKENS_MIN = 256;
/** What the results of one turn take at the least, and the words around them. */
const RESULT_TOKENS_MIN = 1_024;
const NOTE_TOKENS = 256;

/** Renews everything that depends on which tools and resources there are. */
export function refreshScope(state: AgentState): void {
  const own = selfTools({
    resources: state.resources.length > 0,
    artifacts: state.listed.length > 0 || state.resources.length > 0 || state.selfTools.subagents,
    notes: state.notes,
    subagents: state.selfTools.subagents,
    subscribe: state.selfTools.subscribe,
  });
  const all = [...state.listed, ...own];
  state.tools = new Map(all.map((tool) => [tool.wireName, tool]));
  state.specs = all.map((tool): ToolSpec => ({
    name: tool.wireName,
    description: tool.description,
    inputSchema: tool.inputSchema,
  }));
  state.system = systemPrompt({
    task: state.task,
    limits: state.limits,
    tools: all,
    toolMode: state.toolMode,
    catalogue: renderCatalogue(state.resources, CATALOGUE_BYTES_MAX),
    notes: state.notes,
  });
  const offered = state.toolMode === "native" ? JSON.stringify(state.specs) : "";
  state.prefixBytes = byteLength(state.system) + byteLength(offered);
  state.prefixHash = fnv64(state.system + "\n" + offered);
}

/** Remembers which tools of `before` are offered no more: the model may still ask for them. */
export function noteWithdrawn(state: AgentState, before: ReadonlyMap<string, unknown>): void {
  const { withdrawn, tools } = state;
  for (const name of before.keys()) if (!tools.has(name)) withdrawn.add(name);
  for (const name of withdrawn) {
    if (tools.has(name) || withdrawn.size > TOOLS_MAX) withdrawn.delete(name);
  }
}

/** The endpoint takes no tools: actions are JSON objects in text from here on. */
export function useJsonMode(state: AgentState): void {
  state.toolMode = "json";
  rewriteAll(state.transcript, toJsonMode);
  refreshScope(state);
}

/** Tokens at which the context is compacted: a share of the window, and room for the reply. */
export function compactionMark(state: AgentState): number {
  const { context_window, max_output_tokens } = state.model;
  return Math.floor(
    Math.min(context_window * state.limits.compactAt, context_window - max_output_tokens),
  );
}

/** Bytes of the whole next prompt. */
export function promptBytes(state: AgentState): number {
  return state.prefixBytes + transcriptBytes(state.transcript);
}

/** Tokens of the next prompt, as estimated. */
export function estimateNext(state: AgentState): number {
  return estimateTokens(promptBytes(state), state.lastPrompt);
}

/**
 * From a judged turn to the next call: what subagents brought, lever 1, compaction if the estimate
 * is over the mark, the stop checks, the announcement of a last turn, the request.
 */
export function assemble(state: AgentState, out: Action[]): Next {
  if (state.ended.length > 0) {
    noteOnLast(state.transcript, childNote(childLines(state.ended)));
    state.ended = [];
  }
  const stubbed = stubStale(state.transcript, state.limits.keepVerbatim);
  if (stubbed.length > 0) {
    out.push({
      do: "append",
      decision: { type: "context.stubbed", step: state.counters.steps + 1, calls: stubbed },
    });
  }
  return estimateNext(state) >= state.markTokens ? "compact" : "call";
}

/** Checks and sends the turn's request. */
export function callModel(state: AgentState, out: Action[]): null {
  const estimate = estimateNext(state);
  const used = spent(state);
  const stop = stopBeforeCall(
    state.limits,
    used,
    state.cancel,
    estimate,
    estimateCost(state, estimate),
  );
  if (stop !== null) return stopRun(state, stop, out);
  const next = state.counters.steps + 1;
  if (state.last === null) {
    state.last = lastReason(state, estimate);
    state.lastStep = next;
    if (state.last !== null) noteOnLast(state.transcript, lastNote(state.last.why));
  } else if (next > state.lastStep) {
    return stopRun(state, {
      status: "exhausted_tokens",
      reason: `${state.last.budget}: the last turn was announced and is over: ${
        (lastReason(state, estimate) ?? state.last).why
      }`,
    }, out);
  }
  const request = planRequest(state, "turn");
  state.contextHash = contextHash(state.prefixHash, state.transcript);
  out.push({
    do: "append",
    decision: {
      type: "model.requested",
      step: state.counters.steps + 1,
      purpose: "turn",
      context_hash: state.contextHash,
      estimate,
      messages: request.messages.length,
      last: state.last?.why ?? null,
    },
  });
  out.push({ do: "callModel", request });
  state.phase = { tag: "calling" };
  return null;
}

/**
 * Why the coming call is the last that a budget allows; null if it is not. Another one after it must
 * fit, with a reply twice as long as any so far and the least that results can be cut to
 * ({@link roomTokens}): so the end comes after a warning, unless an endpoint counts by leaps.
 */
function lastReason(state: AgentState, estimate: number): LastTurn | null {
  const used = spent(state);
  const { limits, model } = state;
  if (used.steps + 1 >= limits.maxSteps) {
    return { budget: "steps", why: `turn ${limits.maxSteps} of ${limits.maxSteps}` };
  }
  const reply = Math.min(
    model.max_output_tokens,
    Math.max(REPLY_TOKENS_MIN, 2 * state.replyTokensMax),
    Math.ceil(limits.maxTokens / 8),
  );
  const both = 2 * (estimate + reply) + Math.min(RESULT_TOKENS_MIN, limits.maxTokens / 16);
  if (used.tokens + both >= limits.maxTokens) {
    return { budget: "tokens", why: `${used.tokens} of ${limits.maxTokens} tokens are used` };
  }
  if (limits.maxCost !== null && used.cost !== null && model.prices !== null) {
    const { input, output } = model.prices;
    const cost = (2 * estimate * input + 2 * reply * output) / 1e6;
    if (used.cost + cost >= limits.maxCost) {
      const why = `${used.cost.toFixed(4)} of ${limits.maxCost} USD are spent`;
      return { budget: "cost", why };
    }
  }
  return null;
}

/** Tokens that the results of the open turn may add, so that one more call fits after them. */
export function roomTokens(state: AgentState, turn: Turn): number {
  const { limits, model, markTokens } = state;
  const used = spent(state);
  const next = estimateTokens(promptBytes(state), state.lastPrompt) + turn.usage.tokensOut +
    NOTE_TOKENS;
  let left = limits.maxTokens - used.tokens;
  if (limits.maxCost !== null && used.cost !== null && model.prices !== null) {
    const price = model.prices.input / 1e6;
    if (price > 0) left = Math.min(left, (limits.maxCost - used.cost) / price);
  }
  // Results of one turn stay whole for the next: they may not fill the window by themselves.
  return Math.max(0, Math.min(left - next, markTokens / 2));
}

/** USD of the next prompt, uncached: the cautious side. */
export function estimateCost(state: AgentState, estimate: number): number {
  const { prices } = state.model;
  return prices === null ? 0 : estimate * prices.input / 1e6;
}

/** The request as it goes to the model port. */
export function planRequest(state: AgentState, purpose: "turn" | "summary"): PlannedRequest {
  const native = state.toolMode === "native" && purpose === "turn";
  return {
    purpose,
    step: state.counters.steps + 1,
    system: state.system,
    messages: projectMessages(state.transcript),
    tools: native ? state.specs : [],
    toolChoice: state.last === null && purpose === "turn" ? "auto" : "none",
    outputSchema: purpose === "turn" && state.toolMode === "native"
      ? state.task.outputSchema
      : null,
  };
}

/** The endpoint said the request is too long: believe it, and compact whatever the estimate says. */
export function forceCompaction(state: AgentState): Next {
  state.markTokens = Math.max(1, Math.min(state.markTokens, Math.floor(estimateNext(state) * 0.9)));
  return "compact";
}
