/** What a daemon hears of a root agent beside its end, and what it is asked by one. */

import type { Json, JsonObject } from "../core/json.ts";
import type { Outcome } from "../core/outcome.ts";
import type { AgentResult } from "../wire/result.ts";

/** What a daemon hears of a root agent beside its end. */
export interface TreeListener {
  ready?(): void;
  connected?(servers: string[]): void;
  updated?(server: string, uri: string, possibly: boolean): void;
  delivered?(id: string, result: AgentResult): void;
  subscribe?(
    op: "subscribe" | "unsubscribe",
    server: string,
    uri: string,
  ): Promise<Outcome<Json, string>>;
}

/** A root agent's wish to be woken when a resource changes; others have no listener. */
export async function serveSubscription(
  listener: TreeListener | undefined,
  op: "subscribe" | "unsubscribe",
  { server, uri }: JsonObject,
): Promise<{ ok: boolean; value: Json }> {
  if (!listener?.subscribe) {
    return { ok: false, value: { why: "subscriptions are for warm sessions" } };
  }
  if (typeof uri !== "string" || (server !== undefined && typeof server !== "string")) {
    return { ok: false, value: { why: "uri must be text" } };
  }
  const answer = await listener.subscribe(op, server ?? "", uri);
  return answer.ok
    ? { ok: true, value: answer.value }
    : { ok: false, value: { why: answer.failure } };
}
