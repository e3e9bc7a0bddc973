/** Whether an order may become a subagent at all, before the tree's own caps are asked. */

import type { JsonObject } from "../core/json.ts";
import { failed, type Outcome, success } from "../core/outcome.ts";
import type { TelemetryPort } from "../ports/telemetry.ts";
import type { AgentPayload } from "../wire/payload.ts";
import { type Order, parseOrder } from "./order.ts";
import { explainTrifecta, judgeGrant, narrowGrant } from "./rule_of_two.ts";

/** An order that is sound, with the grant that its agent will have. */
export interface Judged {
  order: Order;
  grant: string[];
}

/** What speaks against an order itself. */
export interface OrderRefusal {
  cap: "order" | "scope" | "trifecta";
  why: string;
}

/** Reads and judges what a parent asks for: sound, within its scope, within the Rule of Two. */
export function judgeOrder(
  parent: { path: string; payload: AgentPayload },
  args: JsonObject,
  allowTrifecta: boolean,
  telemetry: TelemetryPort,
): Outcome<Judged, OrderRefusal> {
  const { path, payload: { tools, servers } } = parent;
  const order = parseOrder(args);
  if (!order.ok) return failed({ cap: "order", why: order.failure });
  const grant = narrowGrant(tools.grant, order.value.tools ?? tools.grant);
  if (!grant.ok) {
    telemetry.emit("permission.denied", { parent_path: path, tool: grant.failure }, "warn");
    return failed({ cap: "scope", why: `${grant.failure} is wider than the parent's own tools` });
  }
  const verdict = judgeGrant(servers, { ...tools, grant: grant.value });
  if (verdict.trifecta) {
    telemetry.emit("scope.trifecta", {
      parent_path: path,
      allowed: allowTrifecta,
      by: verdict.by,
    }, "warn");
    if (!allowTrifecta) return failed({ cap: "trifecta", why: explainTrifecta(verdict) });
  }
  return success({ order: order.value, grant: grant.value });
}
