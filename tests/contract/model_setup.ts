/** What the suites of the model port share: a client on system ports, requests, and a closed port. */

import { Vault } from "../../src/core/secret.ts";
import { createModel, type ModelDeps } from "../../src/model/client.ts";
import type { ClockPort } from "../../src/ports/clock.ts";
import type { RandomPort } from "../../src/ports/random.ts";
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

/**
 * A client with everything it told and every wait before a retry. Those waits take no time. The
 * timers of an attempt run by the clock, or, with `manual`, only when a test fires them.
 */
export interface Rig {
  model: ModelPort;
  events: { event: string; fields: Fields }[];
  waits: number[];
  lines: string[];
  /** Whether a timer of this kind is armed; fires it, as if its time had passed. */
  isArmed(kind: TimerKind): boolean;
  fire(kind: TimerKind): void;
}

export type TimerKind = "request" | "idle";

/** Waits before a retry are below this, or asked for by the endpoint in whole seconds. */
const BACKOFF_MS_MAX = 400;

export function rigOf(
  settings: ModelSettings,
  more: Partial<ModelDeps> & { manual?: boolean } = {},
): Rig {
  const { manual, ...deps } = more;
  const events: Rig["events"] = [];
  const waits: number[] = [];
  const lines: string[] = [];
  const armed = new Map<TimerKind, () => void>();
  let passedMs = 0;
  const kinds = new Map<number, TimerKind>([
    [settings.requestTimeoutMs, "request"],
    [settings.idleTimeoutMs, "idle"],
  ]);
  const clock: ClockPort = {
    ...systemClock,
    monotonicMs: () => systemClock.monotonicMs() + passedMs,
    after(delayMs, fire) {
      const kind = kinds.get(delayMs);
      if (kind !== undefined && manual === true) {
        armed.set(kind, fire);
        return () => {
          if (armed.get(kind) === fire) armed.delete(kind);
        };
      }
      const isWait = delayMs < BACKOFF_MS_MAX && delayMs !== LINGER_MS ||
        delayMs >= 1_000 && delayMs <= 60_000 && kind === undefined && delayMs !== TRAILER_MS &&
          delayMs !== MODELS_MS;
      if (!isWait) return systemClock.after(delayMs, fire);
      waits.push(delayMs);
      return systemClock.after(0, fire);
    },
  };
  const model = createModel({
    settings,
    vault: new Vault(),
    http: systemHttp,
    clock,
    random: steadyRandom,
    telemetry: { emit: (event, fields) => void events.push({ event, fields: fields ?? {} }) },
    record: (line) => void lines.push(line),
    ...deps,
  });
  return {
    model,
    events,
    waits,
    lines,
    isArmed: (kind) => armed.has(kind),
    fire(kind) {
      const fire = armed.get(kind);
      armed.delete(kind);
      passedMs += kind === "request" ? settings.requestTimeoutMs : settings.idleTimeoutMs;
      fire?.();
    },
  };
}

/** Times of the client that are no wait before a retry. */
const LINGER_MS = 250;
const TRAILER_MS = 2_000;
const MODELS_MS = 10_000;

/** Jitter that never comes to one of the times above. */
const steadyRandom: RandomPort = { ...systemRandom, unit: () => 0.9 };

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
