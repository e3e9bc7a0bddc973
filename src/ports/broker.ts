import type { Json, JsonObject } from "../core/json.ts";
import type { Progress, RequestOp } from "../wire/control.ts";
import type { HookEvent } from "../wire/payload.ts";
import type { CommandOutcome, HookOutcome } from "../wire/worker.ts";

/**
 * What the loop asks of its process's main thread. Everything is named by its place in the operator's
 * configuration. Contract: every request is answered; an aborted command is answered as ended.
 */
export interface BrokerPort {
  runCheck(index: number, signal: AbortSignal): Promise<CommandOutcome>;
  runRequire(index: number, signal: AbortSignal): Promise<CommandOutcome>;
  runHook(event: HookEvent, index: number, input: JsonObject): Promise<HookOutcome>;
  /** To the supervisor, through the control channel. */
  request(op: RequestOp, args: JsonObject): Promise<{ ok: boolean; value: Json }>;
  progress(progress: Progress): void;
}
