/** What the machine asks for: actions of the driver, and its own next transition. */

import type { JsonObject } from "../core/json.ts";
import type { Message, ToolSpec } from "../ports/model.ts";
import type { Tool } from "../ports/tools.ts";
import type { AgentResult } from "../wire/result.ts";
import type { CheckPhase, Decision } from "./event.ts";

/** What the driver must do, in order. Everything before an effect is on disk before the effect. */
export type Action =
  | { do: "append"; decision: Decision }
  /** Connect the tool servers; answered by `tools.listed` or `server.down`. */
  | { do: "connect" }
  /** Answered by `model.answered` or `model.failed`. */
  | { do: "callModel"; request: PlannedRequest }
  /** Answered by `summary.made` or `summary.failed`. */
  | { do: "summarise"; request: PlannedRequest }
  /** Answered by `call.observed`. */
  | { do: "callTool"; call: PlannedCall }
  /** Answered by `checks.ran`. */
  | { do: "runChecks"; phase: CheckPhase }
  /** Withdraw whatever is on its way; nothing answers any more. */
  | { do: "abandon" }
  | { do: "stop"; result: AgentResult };

/** A request of the model, as the machine wants it sent. */
export interface PlannedRequest {
  purpose: "turn" | "summary";
  step: number;
  system: string;
  messages: readonly Message[];
  tools: readonly ToolSpec[];
  toolChoice: "auto" | "none";
  outputSchema: JsonObject | null;
}

/** A call that was found legal. */
export interface PlannedCall {
  call: string;
  tool: Tool;
  arguments: JsonObject;
  effect: "read_only" | "side_effect";
  /** Bytes of the result that the model is shown. */
  showBytesMax: number;
  /** Base64 bytes of images and audio that are carried; what is over it is described. */
  mediaBytesMax: number;
  /** How many of them. */
  mediaMax: number;
}

/**
 * What follows at once, without an event: `finish` the open turn, `assemble` the next request,
 * `compact` the context, `call` the model. Null: the next event decides.
 */
export type Next = "finish" | "assemble" | "compact" | "call" | null;
