/** How an agent's children are doing, as it may read it. */

import type { Json } from "../core/json.ts";
import type { Progress } from "../wire/control.ts";
import type { AgentResult } from "../wire/result.ts";
import type { Fleet, Node } from "./fleet.ts";

/** What is known of one child beside the fleet's account of it. */
export interface ChildFacts {
  end: AgentResult | null;
  progress: Progress | null;
}

/** The children of `path`, all or those named by id or path; nobody else's. */
export function listChildren(
  fleet: Fleet,
  path: string,
  ids: Json | undefined,
  factsOf: (node: Node) => ChildFacts,
): Json {
  const wanted = Array.isArray(ids) ? ids : [];
  const children = [...fleet.nodes.values()].filter((node) =>
    node.parent === path &&
    (wanted.length === 0 || wanted.includes(node.id) || wanted.includes(node.path))
  );
  return children.map((node) => {
    const { end, progress } = factsOf(node);
    return {
      child_id: node.id,
      path: node.path,
      status: end ? end.status ?? `abort ${end.abort}` : "running",
      doing: end ? null : progress?.doing ?? "starting",
      steps: end?.usage.steps ?? progress?.step ?? 0,
      tokens: node.tokens,
    };
  });
}
