/** What a self tool answers with. */

import type { Json } from "../core/json.ts";
import { type Outcome, success } from "../core/outcome.ts";
import type { Observation } from "../agent/observation.ts";
import type { ToolFailure, ToolResult } from "../ports/tools.ts";

/**
 * A result like any tool's, or an observation that only the harness can make. `evidence`: what of it
 * may be new, where ids and counts of the harness's own stand around it.
 */
export type SelfToolAnswer =
  & { evidence?: string }
  & (
    | { result: Outcome<ToolResult, ToolFailure>; child?: { id: string; path: string } }
    | { observation: Observation }
  );

/** A text result. */
export function text(content: string): SelfToolAnswer {
  return {
    result: success({ parts: [{ type: "text", text: content }], structured: null, isError: false }),
  };
}

/** A domain error: the call was executed and says no. */
export function domainError(message: string): SelfToolAnswer {
  return {
    result: success({ parts: [{ type: "text", text: message }], structured: null, isError: true }),
  };
}

/** A refusal by the runtime. */
export function refuse(why: string): SelfToolAnswer {
  return { observation: { class: "refused", why } };
}

/** What a reply says, in words. */
export function wordsOf(value: Json): string {
  if (typeof value === "string") return value;
  if (
    typeof value === "object" && value !== null && !Array.isArray(value) &&
    typeof value.why === "string"
  ) {
    return typeof value.cap === "string" ? `${value.why} (${value.cap})` : value.why;
  }
  return JSON.stringify(value);
}
