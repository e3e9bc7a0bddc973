/** JSON-RPC messages as they come from strangers, made safe for the SDK. */

import { isObject, type JsonObject } from "../core/json.ts";
import { TOOL_RESULT_BYTES_MAX } from "../core/limits.ts";
import { formatSize } from "../core/units.ts";
import type { Message } from "./sdk.ts";

/**
 * Marks, by identity, an answer made here in place of one over the size limit: no server can forge
 * it, since what a server sends is parsed anew.
 */
export const OVERSIZED = Object.freeze({ agentd: "oversized" });

/** Marks, by identity, an answer made here for a request whose stream ended without one. */
export const STREAM_ENDED = Object.freeze({ agentd: "stream_ended" });

/** JSON-RPC's code for an implementation's own errors. */
const IMPLEMENTATION_ERROR = -32000;
const INTERNAL_ERROR = -32603;

/** The answer made here in place of one of `bytes` bytes that was dropped. */
export function oversizedAnswer(id: number, bytes: number): Message {
  return errorAnswer(
    id,
    `the result of ${formatSize(bytes)} is over the limit of ${formatSize(TOOL_RESULT_BYTES_MAX)}`,
    OVERSIZED,
  );
}

/** The answer made here for a request whose response stream ended without one. */
export function streamEndedAnswer(id: number): Message {
  return errorAnswer(id, "the connection ended before the answer came", STREAM_ENDED);
}

function errorAnswer(id: number, message: string, data: unknown): Message {
  return { jsonrpc: "2.0", id, error: { code: IMPLEMENTATION_ERROR, message, data } };
}

/**
 * A JSON value as a message that the SDK takes, or undefined if it is none. An answer with a
 * malformed body becomes an error answer, so that its request does not wait for its timeout.
 */
export function toMessage(value: unknown): Message | undefined {
  if (!isObject(value) || value.jsonrpc !== "2.0") return undefined;
  if (typeof value.method === "string") return value as unknown as Message;
  if (typeof value.id !== "number" && typeof value.id !== "string") return undefined;
  if (value.error !== undefined) {
    return { jsonrpc: "2.0", id: value.id, error: toError(value.error) };
  }
  if (isObject(value.result)) return value as unknown as Message;
  return {
    jsonrpc: "2.0",
    id: value.id,
    error: { code: INTERNAL_ERROR, message: "the server's answer has no result object" },
  };
}

function toError(value: unknown): { code: number; message: string; data?: unknown } {
  const error: JsonObject = isObject(value) ? value : {};
  return {
    code: Number.isSafeInteger(error.code) ? error.code as number : INTERNAL_ERROR,
    message: typeof error.message === "string" ? error.message : "no message",
    data: error.data,
  };
}

const HEAD_ID = /^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15})\s*,/;
const TAIL_ID = /,\s*"id"\s*:\s*(\d{1,15})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$/;
const HEAD_METHOD = /^\s*\{\s*(?:"(?:jsonrpc|id)"\s*:\s*(?:"[^"]*"|\d+)\s*,\s*)*"method"\s*:/;

/** The request that a dropped line answers, as far as its two ends tell. */
export function answeredId(head: string, tail: string): number | undefined {
  if (HEAD_METHOD.test(head)) return undefined;
  const match = HEAD_ID.exec(head) ?? TAIL_ID.exec(tail);
  return match ? Number(match[1]) : undefined;
}
