/** One request to a server with everything that may befall it: time, loss, retries. */

import { backoffMs } from "../core/backoff.ts";
import type { JsonObject } from "../core/json.ts";
import { PROGRESS_EXTENSIONS_MAX, TRANSPORT_BACKOFF } from "../core/limits.ts";
import { failed, type Outcome, success } from "../core/outcome.ts";
import { formatDuration } from "../core/units.ts";
import { type ClockPort, pause } from "../ports/clock.ts";
import type { RandomPort } from "../ports/random.ts";
import type { ToolFailure, ToolResult } from "../ports/tools.ts";
import type { Connection } from "./connection.ts";
import { classifyError, type Fault, finalFault } from "./failure.ts";
import type { ServerLink } from "./server_link.ts";
import { TimeLimit } from "./timing.ts";

/** One request. */
export interface Attempt {
  link: ServerLink;
  /** Limits one attempt, from the moment it is sent. */
  timeoutMs: number;
  /** It cannot have had an effect, or may have it again under the same key. */
  repeatable: boolean;
  /** The operator declared that the same key has its effect only once. */
  idempotent: boolean;
  /** Sends it over a connection. */
  send(connection: Connection, signal: AbortSignal, onProgress: () => void): Promise<unknown>;
  /** Reads the answer; undefined if it is malformed. */
  read(raw: unknown): ToolResult | undefined;
}

/** What retries need. */
export interface CallDeps {
  clock: ClockPort;
  random: RandomPort;
}

/** Restarts that a retry leaves for the rest of the run. */
const RESTARTS_KEPT = 1;

/**
 * Sends a request until it is answered, it may not be repeated, or TRANSPORT_BACKOFF is used up.
 * What never left is sent again; what is lost only if it is repeatable. Time that ran out is the
 * tool's own and no failure of the transport; only what is declared idempotent is then sent once
 * more, since under its key that settles whether it happened.
 */
export async function callWithRetries(
  deps: CallDeps,
  attempt: Attempt,
  signal: AbortSignal,
): Promise<Outcome<ToolResult, ToolFailure>> {
  let sessions = 0;
  let timeouts = 0;
  for (let retries = 0;;) {
    const outcome = await callOnce(deps, attempt, signal);
    if (outcome.ok) return outcome;
    const { failure, remedy } = outcome.failure;
    if (remedy === "oversized") return success(tooLarge(failure.message));
    if (signal.aborted) return failed(failure);
    if (remedy === "session" && sessions++ === 0) continue;
    if (remedy === "timeout") {
      if (attempt.idempotent && timeouts++ === 0 && attempt.link.alive) continue;
      return failed(failure);
    }
    const mayRepeat = failure.class === "not_sent" || attempt.repeatable;
    if (remedy === "no" || !mayRepeat || retries >= TRANSPORT_BACKOFF.attemptsMax) {
      return failed(failure);
    }
    // A call that kills its server each time must not take the run with it.
    const costly = failure.class === "lost" && attempt.link.restartsLeft <= RESTARTS_KEPT;
    if (!attempt.link.alive || costly) return failed(failure);
    retries++;
    const delayMs = backoffMs(TRANSPORT_BACKOFF, retries, deps.random.unit());
    if (!await pause(deps.clock, delayMs, signal)) return failed(failure);
  }
}

async function callOnce(
  deps: CallDeps,
  attempt: Attempt,
  signal: AbortSignal,
): Promise<Outcome<ToolResult, Fault>> {
  const { link, timeoutMs } = attempt;
  if (signal.aborted) return failed(finalFault("not_sent", "the run was cancelled"));
  const limit = new TimeLimit(deps.clock, timeoutMs, signal, PROGRESS_EXTENSIONS_MAX);
  let connection: Connection | null = null;
  try {
    const acquired = await link.acquire(limit.signal);
    if (!acquired.ok) return failed({ failure: acquired.failure, remedy: "no" });
    connection = acquired.value;
    limit.extend();
    const raw = await attempt.send(connection, limit.signal, () => limit.extend());
    const result = attempt.read(raw);
    return result === undefined
      ? failed(finalFault("protocol", "the server's result is malformed"))
      : success(result);
  } catch (error) {
    if (connection === null) throw error;
    if (limit.cause === "timeout") {
      const message = `no answer within ${formatDuration(timeoutMs)}`;
      return failed({
        failure: { class: "lost", message, retryable: attempt.repeatable },
        remedy: "timeout",
      });
    }
    if (limit.cause === "cancelled") {
      return failed(finalFault("cancelled", "the call was withdrawn"));
    }
    const fault = classifyError(connection.sdk, error, connection.hadSession);
    if (fault.remedy === "session") link.sessionLost(connection);
    return failed(fault);
  } finally {
    limit.clear();
  }
}

/** The tool ran and answered; its answer was too large to take. */
function tooLarge(message: string): ToolResult {
  const text = `The tool answered, but ${message}, so it was dropped. Ask for less at once.`;
  return { parts: [{ type: "text", text }], structured: null, isError: true };
}

/** `_meta` of a call. */
export function callMeta(runId: string, key: string, traceparent: string): JsonObject {
  return { "agentd/run_id": runId, "agentd/idempotency_key": key, traceparent };
}
