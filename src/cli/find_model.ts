/** Whether one of the servers that `auto` hopes for is there, asked before anything starts. */

import { PROBE_TIMEOUT_MS } from "../core/config_limits.ts";
import type { Settings } from "../config/settings.ts";
import { fetchJson } from "../model/exchange.ts";
import { namesOf } from "../model/listing.ts";
import type { Endpoint } from "../wire/payload.ts";
import { NO_MODEL, NO_MODEL_ADVICE } from "./output.ts";
import type { CliPorts } from "./ports.ts";

/** The effects of looking. */
export type ModelPorts = Pick<CliPorts, "clock" | "http"> & {
  terminal: Pick<CliPorts["terminal"], "writeError">;
};

/**
 * The settings with those endpoints alone that are there; null, which is told, if all were only
 * hoped for and none answers. Where an endpoint was configured, nothing is asked.
 */
export async function findModel<Found extends Pick<Settings, "model">>(
  ports: ModelPorts,
  settings: Found,
): Promise<Found | null> {
  const { endpoints } = settings.model;
  if (!endpoints.every((endpoint) => endpoint.probe)) return settings;
  const answers = await Promise.all(endpoints.map((endpoint) => hasModel(ports, endpoint)));
  const found = endpoints.filter((_endpoint, index) => answers[index]);
  if (found.length > 0) return { ...settings, model: { ...settings.model, endpoints: found } };
  const asked = endpoints.map((endpoint) => endpoint.url).join(", ");
  ports.terminal.writeError(
    `agentd: ${NO_MODEL}: no key is set, and nothing answers at ${asked} with a model; nothing was started\n` +
      `${NO_MODEL_ADVICE}\n`,
  );
  return null;
}

/** A server that lists a model; something else on its port, and one without any, does not. */
async function hasModel(ports: ModelPorts, endpoint: Endpoint): Promise<boolean> {
  const listed = await fetchJson(
    ports,
    { method: "GET", url: `${endpoint.url}/models`, headers: {} },
    { requestTimeoutMs: PROBE_TIMEOUT_MS, idleTimeoutMs: Infinity },
    new AbortController().signal,
  );
  return listed.ok && namesOf(listed.value).length > 0;
}
