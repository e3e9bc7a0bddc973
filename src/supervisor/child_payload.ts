/** What a child is told: its parent's payload, narrowed, with an identity of its own. */

import type { AgentPayload } from "../wire/payload.ts";
import type { Node } from "./fleet.ts";
import { workerGrant } from "./grant.ts";
import type { Order } from "./order.ts";
import { grantedServers } from "./rule_of_two.ts";

/**
 * A child's payload. Tools, servers, bounds and permissions are the parent's or less; checks and
 * artifacts of the run are the root's to satisfy; hooks that guard actions hold for everyone. Its own
 * clock starts when it does, so its time is what is left of the node's, `leftMs`.
 */
export function childPayload(
  parent: AgentPayload,
  order: Order,
  node: Node,
  run: { runDirectory: string; deadlineWallMs: number; leftMs: number },
): AgentPayload {
  const directory = `${run.runDirectory}/agents/${node.path}`;
  const tools = { ...parent.tools, grant: [...node.grant] };
  const servers = grantedServers(parent.servers, tools);
  const model = {
    ...parent.model,
    recordTo: parent.model.recordTo === null
      ? null
      : `${directory}/${fileName(parent.model.recordTo)}`,
  };
  return {
    ...parent,
    identity: {
      ...parent.identity,
      agentId: node.id,
      path: node.path,
      depth: node.depth,
      directory,
    },
    start: { kind: "fresh" },
    task: {
      instruction: order.instruction,
      system: parent.task.system,
      seeds: order.seeds,
      outputSchema: order.outputSchema,
      require: [],
      checks: [],
    },
    model,
    servers,
    tools,
    limits: {
      ...parent.limits,
      maxSteps: Math.min(order.maxSteps ?? Infinity, parent.limits.maxSteps),
      maxTokens: node.maxTokens,
      maxCost: node.maxCost,
      deadlineMs: Math.max(1, Math.floor(run.leftMs)),
    },
    deadlineWallMs: run.deadlineWallMs,
    worker: workerGrant({ model, servers, directory }),
    hooks: { ...parent.hooks, on_stop: [] },
    selfTools: {
      subagents: parent.selfTools.subagents && node.depth < parent.limits.maxDepth,
      subscribe: false,
    },
  };
}

function fileName(path: string): string {
  return path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1);
}
