/** From settings to what one agent is told. Identity and bounds are minted here, by nobody else. */

import { type SecretText, Vault } from "../core/secret.ts";
import type { Settings } from "../config/settings.ts";
import type {
  AgentIdentity,
  AgentPayload,
  ModelSettings,
  ServerSettings,
  Start,
} from "../wire/payload.ts";
import { workerGrant } from "./grant.ts";
import { KEY_LIKE } from "./rule_of_two.ts";
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

/**
 * The built-in servers with the variables that `env` grants them, by value. Those named like keys
 * become secrets: they are added to the vault and travel apart.
 */
export function withEnvironment(
  servers: readonly ServerSettings[],
  variables: Readonly<Record<string, string>>,
  vault: Vault,
): ServerSettings[] {
  return servers.map((server) => {
    if (server.kind !== "builtin" || server.permissions.env === false) return server;
    const granted = server.permissions.env;
    const names = granted === true ? Object.keys(variables) : granted;
    const environment: Record<string, SecretText> = {};
    for (const name of names) {
      const value = variables[name];
      if (value === undefined) continue;
      if (!KEY_LIKE.test(name)) environment[name] = [value];
      else {
        vault.add(`env:${name}`, value);
        environment[name] = [{ secret: `env:${name}` }];
      }
    }
    return { ...server, environment };
  });
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
    else Object.values(server.environment ?? {}).forEach(take);
  }
  return needed;
}

/** What one call of a model can take at most. */
export function largestCall(model: ModelSettings): { tokens: number; cost: number | null } {
  const { contextWindow, maxOutputTokens, prices } = model;
  return {
    tokens: contextWindow + maxOutputTokens,
    cost: prices === null
      ? null
      : (contextWindow * prices.input + maxOutputTokens * prices.output) / 1_000_000,
  };
}
