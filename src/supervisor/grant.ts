/**
 * What each process may do, from the settings: one PermissionSet type, rendered as Worker
 * permissions and as `--allow-…` flags (src/wire/permissions.ts) and as the table that people read
 * (permission_table.ts).
 */

import type { AgentPayload, PermissionSet } from "../wire/payload.ts";
import { NO_PERMISSIONS } from "../wire/permissions.ts";
import { CLEAN_ENVIRONMENT } from "../wire/environment.ts";

/** The parts of a payload that a grant is made from. */
export type GrantSource = Pick<AgentPayload, "model" | "servers"> & { directory: string };

/**
 * The loop Worker: net is the model's endpoints and the HTTP tool servers, read and write are the
 * agent's own directory, and there is nothing else.
 */
export function workerGrant(source: GrantSource): PermissionSet {
  const net = new Set<string>();
  for (const endpoint of source.model.endpoints) {
    if (endpoint.kind === "http") net.add(hostOf(endpoint.url));
  }
  for (const server of source.servers) if (server.kind === "http") net.add(hostOf(server.url));
  return {
    ...NO_PERMISSIONS,
    net: net.size === 0 ? false : [...net].sort(),
    read: [source.directory],
    write: [source.directory],
  };
}

/**
 * The agent process itself, where it runs from source: what its Worker gets, `run` for its group
 * and its servers, and the variables that it hands to them.
 */
export function processGrant(worker: PermissionSet): PermissionSet {
  return { ...worker, run: true, env: [...CLEAN_ENVIRONMENT] };
}

/** `host:port` as Deno's net permission has it. */
export function hostOf(url: string): string {
  const { hostname, port, protocol } = new URL(url);
  return `${hostname}:${port || (protocol === "https:" ? "443" : "80")}`;
}
