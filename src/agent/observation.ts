/**
 * What came of a call, typed. `ok`, `truncated` and `partial` are successes; `error` is
 * the tool's own or the protocol's word; `unknown` may have happened; `refused` and `invalid` are
 * the harness's words: nothing was executed.
 */

import type { JsonObject } from "../core/json.ts";
import type { Part } from "../ports/model.ts";

/** Whole content kept apart, and how much of it the parts show. Sizes in bytes. */
export interface Excerpt {
  kept: number;
  total: number;
  /** Id for `artifact_read`. */
  artifact: string;
}

/** Whose word an error is. */
export type ErrorClass =
  /** The tool answered `isError: true`. */
  | "tool"
  /** A JSON-RPC error. */
  | "protocol"
  /** It never reached the tool, after retries. */
  | "transport"
  /** Deno's permissions, or the server's grant, forbid it. */
  | "permission"
  /** A subagent ended without completing. */
  | "subagent";

/** What came of one call. */
export type Observation =
  | { class: "ok"; parts: Part[]; structured: JsonObject | null }
  | {
    class: "error";
    error: ErrorClass;
    message: string;
    retryable: boolean;
    excerpt: Excerpt | null;
  }
  | { class: "truncated"; parts: Part[]; excerpt: Excerpt }
  | { class: "partial"; done: string; missing: string; parts: Part[]; excerpt: Excerpt | null }
  | { class: "unknown"; why: string }
  | { class: "refused"; why: string }
  | { class: "invalid"; why: string };

/** How an observation is told to the model, to the ledger and in telemetry. */
export type ObservationClass = Observation["class"];

/** Whether it is a success: something was done and its answer is here. */
export function isSuccess(came: { class: ObservationClass }): boolean {
  return came.class === "ok" || came.class === "truncated" || came.class === "partial";
}
