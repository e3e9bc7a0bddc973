/** What the loop knows of models: one request in, one reply or one named failure out. */

import type { Json, JsonObject } from "../core/json.ts";
import type { Outcome } from "../core/outcome.ts";

/** A piece of a message. `data` is base64. */
export type Part =
  | { type: "text"; text: string }
  | { type: "image"; mimeType: string; data: string }
  | { type: "audio"; mimeType: string; data: string };

/** A call as the model wrote it. `name` is the wire name; `arguments` is its raw text. */
export interface ToolCall {
  /** Ties the result to the call; unique within a reply. */
  id: string;
  /** The wire name. */
  name: string;
  /** As the model wrote them: not yet parsed. */
  arguments: string;
}

/**
 * One message of the conversation. Messages are never changed once made, so an adapter may keep
 * what it renders of one in a WeakMap. `opaque` is carried back unchanged to the dialect that made
 * it (thinking blocks, for one).
 */
export type Message =
  | { role: "user"; parts: readonly Part[] }
  | {
    role: "assistant";
    text: string;
    calls: readonly ToolCall[];
    opaque?: { dialect: string; blocks: Json };
  }
  | {
    role: "tool";
    callId: string;
    name: string;
    parts: readonly Part[];
    isError: boolean;
    /** The harness's own words, shown after the result, at the end of a turn's last message. */
    note?: string;
  };

/** A tool as offered to the model. */
export interface ToolSpec {
  /** `[A-Za-z0-9_-]`, at most 64 characters, unique. */
  name: string;
  /** What the model reads of it. */
  description: string;
  /** JSON Schema of its arguments. */
  inputSchema: JsonObject;
}

/** What the loop asks of a model. */
export interface ModelRequest {
  /** A turn of the loop, or a summary for compaction. */
  purpose: "turn" | "summary";
  /** The system prompt. */
  system: string;
  /** The conversation, oldest first. */
  messages: readonly Message[];
  /** Empty: no tools are offered. */
  tools: readonly ToolSpec[];
  /** `none`: tools are shown for the cache's sake, but the model may only answer. */
  toolChoice: "auto" | "none";
  /** What a final answer must satisfy, for dialects that can ask for it. */
  outputSchema: JsonObject | null;
  /** W3C trace context, sent as a header. */
  traceparent: string;
}

/** Tokens of one reply, as the endpoint counted them. */
export interface Usage {
  /** Prompt tokens, cached ones included, in every dialect. */
  tokensIn: number;
  /** Completion tokens. */
  tokensOut: number;
  /** Prompt tokens that were cached. */
  tokensCached: number;
  /** The endpoint reported none: a quarter of the bytes. */
  estimated: boolean;
}

/** Why a reply ended; `repetition`: it only repeated itself and was cut off. */
export type FinishReason = "stop" | "tool_calls" | "length" | "refusal" | "repetition" | "other";

/** One whole reply. */
export interface ModelReply {
  /** Its words; may be empty beside calls. */
  text: string;
  /** The calls it proposes, in its order. */
  calls: readonly ToolCall[];
  /** Why it stopped. */
  finish: FinishReason;
  /** The wire's own refusal text, where it has such a field. */
  refusal: string | null;
  /** What the dialect wants back unchanged with the next request. */
  opaque: { dialect: string; blocks: Json } | null;
  /** What it cost. */
  usage: Usage;
  /** The model's name as the endpoint gave it. */
  model: string;
  /** Which endpoint answered. */
  endpoint: string;
  /** Requests sent for this reply, retries included. */
  attempts: number;
}

/**
 * Why there is no reply. `auth`, `quota`, `unreachable`, `not_found`, `uncovered` (a recording does
 * not hold this request) and `bad_request` abort the run; `context_length` compacts and retries
 * once; `tools_unsupported` switches to JSON mode in `auto`; `cancelled` is our own doing.
 */
export type ModelFailureClass =
  | "auth"
  | "quota"
  | "unreachable"
  | "not_found"
  | "bad_request"
  | "context_length"
  | "tools_unsupported"
  | "uncovered"
  | "cancelled";

/** There is no reply, and why. */
export interface ModelFailure {
  /** The closed reason. */
  class: ModelFailureClass;
  /** For people, with what to do about it where that is known. */
  message: string;
  /** Whether the same run may succeed later, unchanged. */
  retryable: boolean;
  /** The endpoint that failed last. */
  endpoint: string;
  /** Requests sent, retries included. */
  attempts: number;
}

/**
 * A model. Contract: transport retries, failover and the bound of a reply are below this port and
 * nowhere else; a call ends, at the latest, when `signal` aborts; it never throws for the world.
 */
export interface ModelPort {
  /** Asks once; see the contract above. */
  complete(request: ModelRequest, signal: AbortSignal): Promise<Outcome<ModelReply, ModelFailure>>;
}
