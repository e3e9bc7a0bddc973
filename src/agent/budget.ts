/** Check before, record after: what was spent, and what the next call will cost. */

import type { Usage } from "../ports/model.ts";
import type { Prices } from "../wire/payload.ts";

/** What a token is taken for where none were counted; of English prose and of JSON about right. */
export const BYTES_PER_TOKEN = 4;

/** Counters of an agent since its first start. */
export interface Counters {
  steps: number;
  modelCalls: number;
  toolCalls: number;
  tokensIn: number;
  tokensOut: number;
  tokensCached: number;
  estimated: boolean;
  /** USD; null when a price is unknown. */
  cost: number | null;
}

/** Nothing spent; `priced` says whether cost can be known. */
export function emptyCounters(priced: boolean): Counters {
  return {
    steps: 0,
    modelCalls: 0,
    toolCalls: 0,
    tokensIn: 0,
    tokensOut: 0,
    tokensCached: 0,
    estimated: false,
    cost: priced ? 0 : null,
  };
}

/** USD of one call. Cached prompt tokens have their own price. */
export function callCost(usage: Usage, prices: Prices): number {
  const fresh = Math.max(0, usage.tokensIn - usage.tokensCached);
  return (fresh * prices.input + usage.tokensCached * prices.cachedInput +
    usage.tokensOut * prices.output) / 1e6;
}

/** Records one model call. */
export function recordUsage(counters: Counters, usage: Usage, prices: Prices | null): void {
  counters.modelCalls++;
  counters.tokensIn += usage.tokensIn;
  counters.tokensOut += usage.tokensOut;
  counters.tokensCached += usage.tokensCached;
  counters.estimated ||= usage.estimated;
  if (prices !== null && counters.cost !== null) counters.cost += callCost(usage, prices);
}

/** The last prompt as the endpoint measured it, and how many bytes that was. */
export interface PromptSize {
  tokens: number;
  bytes: number;
}

/**
 * Tokens of the next prompt, without a tokenizer: the last measured size plus a quarter of the bytes
 * added since; in proportion where the context shrank; a quarter of the bytes before any measure.
 */
export function estimateTokens(bytes: number, last: PromptSize | null): number {
  if (last === null || last.bytes === 0) return Math.ceil(bytes / BYTES_PER_TOKEN);
  if (bytes >= last.bytes) {
    return last.tokens + Math.ceil((bytes - last.bytes) / BYTES_PER_TOKEN);
  }
  return Math.ceil(last.tokens * bytes / last.bytes);
}
