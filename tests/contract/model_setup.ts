/** What the suites of the model port share: a client on system ports, requests, and a closed port. */

import { Vault } from "../../src/core/secret.ts";
import { createModel, type ModelDeps } from "../../src/model/client.ts";
import type { ClockPort } from "../../src/ports/clock.ts";
import type { Message, ModelPort, ModelReply, ModelRequest } from "../../src/ports/model.ts";
import type { Fields } from "../../src/ports/telemetry.ts";
import { systemClock } from "../../src/sys/clock.ts";
import { systemHttp } from "../../src/sys/http.ts";
import { systemRandom } from "../../src/sys/random.ts";
import type { Endpoint, ModelSettings } from "../../src/wire/payload.ts";

export const REQUEST_TIMEOUT_MS = 30_000;
export const IDLE_TIMEOUT_MS = 20_000;

export function endpointAt(url: string, more: Partial<Endpoint> = {}): Endpoint {
  return {
    url,
    kind: "http",
    dialect: "openai",
    token: null,
    headers: {},
    probe: false,
    recording: null,
    ...more,
  };
}

export function recordedEndpoint(recording: string): Endpoint {
  return endpointAt("recorded:file", { kind: "recorded", recording });
}

export function settingsOf(
  endpoints: Endpoint[],
  more: Partial<ModelSettings> = {},
): ModelSettings {
  return {
    endpoints,
    name: "m",
    toolMode: "auto",
    maxOutputTokens: 1000,
    contextWindow: 128_000,
    temperature: null,
    reasoningEffort: null,
    requestTimeoutMs: REQUEST_TIMEOUT_MS,
    idleTimeoutMs: IDLE_TIMEOUT_MS,
    options: {},
    prices: null,
    recordTo: null,
    ...more,
  };
}

/** A client with everything it told and every wait before a retry; those waits take no time. */
export interface Rig {
  model: ModelPort;
  events: { event: string; fields: Fields }[];
  waits: number[];
  lines: string[];
}

export function rigOf(settings: ModelSettings, more: Partial<ModelDeps> = {}): Rig {
  const rig = { events: [], waits: [], lines: [] } as unknown as Rig;
  const timeouts = new Set([settings.requestTimeoutMs, settings.idleTimeoutMs, 250, 500, 10_000]);
  const clock: ClockPort = {
    ...systemClock,
    after(delayMs, fire) {
      // What is no timeout of an attempt is a wait before the next one.
      if (timeouts.has(delayMs)) return systemClock.after(delayMs, fire);
      rig.waits.push(delayMs);
      return systemClock.after(0, fire);
    },
  };
  rig.model = createModel({
    settings,
    vault: new Vault(),
    http: systemHttp,
    clock,
    random: systemRandom,
    telemetry: { emit: (event, fields) => void rig.events.push({ event, fields: fields ?? {} }) },
    record: (line) => void rig.lines.push(line),
    ...more,
  });
  return rig;
}

export const user = (text: string): Message => ({ role: "user", parts: [{ type: "text", text }] });

export function requestOf(messages: Message[], more: Partial<ModelRequest> = {}): ModelRequest {
  return {
    purpose: "turn",
    system: "You are a test.",
    messages,
    tools: [{ name: "fs__read", description: "Reads.", inputSchema: { type: "object" } }],
    toolChoice: "auto",
    outputSchema: null,
    traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    ...more,
  };
}

/** The conversation after a reply, each of its calls answered. */
export function answered(messages: Message[], reply: ModelReply, text = "result"): Message[] {
  return [
    ...messages,
    {
      role: "assistant",
      text: reply.text,
      calls: reply.calls,
      ...(reply.opaque === null ? {} : { opaque: reply.opaque }),
    },
    ...reply.calls.map((call): Message => ({
      role: "tool",
      callId: call.id,
      name: call.name,
      parts: [{ type: "text", text }],
      isError: false,
    })),
  ];
}

/** A port of this machine at which nothing listens. */
export function closedPort(): number {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  listener.close();
  return port;
}

export const never = new AbortController().signal;
