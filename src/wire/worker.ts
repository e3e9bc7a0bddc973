/**
 * Messages between an agent's main thread (the broker) and its loop Worker. The Worker names
 * servers, checks and hooks by their place in the operator's configuration; it can name no command.
 */

import type { Json, JsonObject } from "../core/json.ts";
import type { AgentPayload, HookEvent } from "./payload.ts";
import type { CancelReason, ChildEnd, Delivery, FromAgent, RequestOp } from "./control.ts";
import type { AgentResult } from "./result.ts";

/** How a declared command ended. */
export interface CommandOutcome {
  /** Null: did not start, or was ended by a signal or by its time limit. */
  exitCode: number | null;
  timedOut: boolean;
  /** stdout and stderr as they came, bounded: in what order is chance where both were written. */
  output: string;
  /** Each alone, bounded. */
  stdout: string;
  stderr: string;
  /** Bytes it printed in all. */
  totalBytes: number;
  /** Why it did not start. */
  failure: string | null;
  durationMs: number;
}

/** How a hook ended. */
export interface HookOutcome {
  /** `continue`, `block` (exit 2), `failed` (anything else, or time out). */
  verdict: "continue" | "block" | "failed";
  /** JSON from stdout, if it printed any. */
  replacement: Json | null;
  /** Why what it printed cannot be used; null if it can, or it printed nothing. */
  ignored: string | null;
  reason: string;
  durationMs: number;
}

/** Messages from broker to loop. */
export type ToWorker =
  | { type: "start"; payload: AgentPayload; secrets: Record<string, string> }
  | { type: "cancel"; reason: CancelReason }
  | { type: "reply"; id: number; ok: boolean; value: Json }
  /** A stdio server's process is up; its bytes come and go through the port. */
  | { type: "server_opened"; id: number; pid: number; port: MessagePort }
  | { type: "server_failed"; id: number; message: string; stderr: string }
  | { type: "command_ended"; id: number; outcome: CommandOutcome }
  | { type: "hook_ended"; id: number; outcome: HookOutcome }
  | { type: "child_ended"; end: ChildEnd }
  | { type: "deliver"; delivery: Delivery }
  | { type: "watch"; add: string[]; remove: string[] };

/** Messages from loop to broker. */
export type FromWorker =
  | { type: "up" }
  /** Start the stdio or built-in server of this name; again after a death. */
  | { type: "open_server"; id: number; server: string }
  | { type: "run_check"; id: number; index: number }
  /** Whether the path `task.require[index]` exists; answered by `command_ended`, exit 0 if so. */
  | { type: "run_require"; id: number; index: number }
  | { type: "run_hook"; id: number; event: HookEvent; index: number; input: JsonObject }
  | { type: "cancel_command"; id: number }
  | { type: "request"; id: number; op: RequestOp; arguments: JsonObject }
  | {
    type: "forward";
    frame: Extract<FromAgent, { type: "progress" | "connected" | "updated" | "delivered" }>;
  }
  | { type: "result"; result: AgentResult }
  /** An uncaught error: the loop is over. Said here, so that the runtime prints nothing unmasked. */
  | { type: "failed"; message: string };

/** Bytes of a tool server's stdout that may be under way to the Worker before reading pauses. */
export const PORT_WINDOW_BYTES = 1024 * 1024;

/**
 * What passes through a stdio server's port. From the broker: chunks of its stdout as they come
 * (never parsed), then `exited`. From the Worker: whole lines for its stdin, `taken` (so many more
 * bytes of stdout were read: the broker stops reading while more than PORT_WINDOW_BYTES are not
 * taken), or `close`.
 */
export type ServerPortMessage =
  | Uint8Array
  | { type: "exited"; code: number; signal: string | null; stderr: string }
  | { type: "taken"; bytes: number }
  | { type: "close" };
