/** From settings to what one agent is told. Identity and bounds are minted here, by nobody else. */

import { type SecretText, Vault } from "../core/secret.ts";
import type { Settings } from "../config/settings.ts";
import type { AgentIdentity, AgentPayload, Start } from "../wire/payload.ts";
import { workerGrant } from "./grant.ts";
import { recordingInside } from "./recording.ts";

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
    model: recordingInside(settings.model, identity.directory),
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

/** The secrets that one agent needs: those that its model and its servers refer to. */
export function secretsFor(payload: AgentPayload, all: Vault): Vault {
  const needed = new Vault();
  const take = (text: SecretText | null) => {
    for (const part of text ?? []) {
      if (typeof part === "string" || needed.has(part.secret)) continue;
      const secret = all.get(part.secret);
      if (secret) needed.add(part.secret, secret.reveal());
    }
  };
  for (const endpoint of payload.model.endpoints) {
    take(endpoint.token);
    Object.values(endpoint.headers).forEach(take);
  }
  for (const server of payload.servers) {
    if (server.kind === "stdio") Object.values(server.env).forEach(take);
    else if (server.kind === "http") Object.values(server.headers).forEach(take);
  }
  return needed;
}
