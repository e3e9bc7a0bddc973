/**
 * Frames between supervisor and agent: one JSON object a line, at most FRAME_BYTES_MAX, on the
 * agent's stdin and stdout. A malformed, unknown or oversized frame from an agent kills that agent.
 */

import type { Json, JsonObject } from "../core/json.ts";
import type { AgentPayload } from "./payload.ts";
import type { AgentResult, Status } from "./result.ts";

/** Version of the frames. */
export const CONTROL_VERSION = 1;

/** Why a run is told to end. */
export type CancelReason =
  | "sigint"
  | "sigterm"
  | "deadline"
  | "parent"
  | "tree_tokens"
  | "tree_cost"
  | "drain"
  | "replaced";

/** Usage of one agent so far; the supervisor keeps the tree's sum. */
export interface Progress {
  step: number;
  tokens: number;
  /** USD; null or left out where a price is unknown. */
  cost?: number | null;
  /** What goes on: coarse, for the detectors. */
  doing: "connecting" | "model" | "tools" | "verifying" | "compacting" | "waiting";
}

/** A child's end as its parent sees it. */
export interface ChildEnd {
  childId: string;
  path: string;
  status: Status | null;
  result: AgentResult;
}

/** A changed resource as delivered to a warm session: never its body. */
export interface Delivery {
  id: string;
  instruction: string;
  uris: string[];
}

/** Frames from supervisor to agent. */
export type ToAgent =
  | { v: 1; type: "start"; payload: AgentPayload; secrets: Record<string, string> }
  | { v: 1; type: "ping"; n: number }
  | { v: 1; type: "cancel"; reason: CancelReason }
  | { v: 1; type: "reply"; id: number; ok: boolean; value: Json }
  | { v: 1; type: "child_ended"; end: ChildEnd }
  | { v: 1; type: "deliver"; delivery: Delivery }
  /** To the watcher: subscriptions that agents made or gave up, each `server:uri`. */
  | { v: 1; type: "watch"; add: string[]; remove: string[] };

/** What an agent may ask of its supervisor. */
export type RequestOp =
  | "spawn"
  | "child_status"
  | "child_cancel"
  | "subscribe"
  | "unsubscribe";

/** Frames from agent to supervisor. */
export type FromAgent =
  | { v: 1; type: "ready" }
  | { v: 1; type: "pong"; n: number }
  | { v: 1; type: "progress"; progress: Progress }
  | { v: 1; type: "request"; id: number; op: RequestOp; arguments: JsonObject }
  /** The watcher's servers that are heard: at first, and whenever they are others. */
  | { v: 1; type: "connected"; servers: string[] }
  /** `possibly`: nobody saw it change, but while nobody looked it may have. */
  | { v: 1; type: "updated"; server: string; uri: string; possibly: boolean }
  | { v: 1; type: "delivered"; id: string; result: AgentResult }
  | { v: 1; type: "result"; result: AgentResult };
