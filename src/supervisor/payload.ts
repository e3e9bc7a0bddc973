/** From settings to what one agent is told. Identity and bounds are minted here, by nobody else. */

import type { Settings } from "../config/settings.ts";
import type { AgentIdentity, AgentPayload, Start } from "../wire/payload.ts";
import { workerGrant } from "./grant.ts";

/** The root agent's payload of one run. */
export function rootPayload(
  settings: Settings,
  identity: AgentIdentity,
  start: Start,
  deadlineWallMs: number,
): AgentPayload {
  const { limits } = settings;
  const subagents = limits.maxDepth > 0 && limits.maxChildren > 0 && limits.maxSubagents > 0;
  return {
    identity,
    start,
    task: settings.task,
    model: settings.model,
    servers: settings.servers,
    tools: settings.tools,
    limits,
    deadlineWallMs,
    worker: workerGrant({ ...settings, directory: identity.directory }),
    hooks: settings.hooks,
    notes: settings.notes,
    selfTools: { subagents, subscribe: start.kind === "warm" },
    log: settings.log,
    durability: settings.durability,
    workingDirectory: settings.workingDirectory,
    configuration: settings.configuration,
  };
}
