/**
 * Export as OpenTelemetry spans after the GenAI conventions, in the JSON form of OTLP: one span for
 * each agent, model call and tool call. Ids follow from the record, so that a run exported twice is
 * the same trace.
 */

import { fnv64 } from "../core/hash.ts";
import type { JsonObject } from "../core/json.ts";
import { failed, type Outcome, success } from "../core/outcome.ts";
import { parseIso } from "../core/time.ts";
import { VERSION } from "../core/version.ts";
import type { HttpPort } from "../ports/http.ts";
import type { AgentTranscript, TranscriptCall, TranscriptEntry } from "./transcript.ts";

const KIND_INTERNAL = 1;
const KIND_CLIENT = 3;
const STATUS_OK = 1;
const STATUS_ERROR = 2;

/** The body of a POST to `/v1/traces`. */
export function toOtlp(agents: readonly AgentTranscript[]): JsonObject {
  const traceId = agents[0]?.traceId || (fnv64(agents[0]?.runId ?? "").repeat(2));
  const spans = agents.flatMap((agent) => agentSpans(agent, agents, traceId));
  return {
    resourceSpans: [{
      resource: {
        attributes: attributes({
          "service.name": "agentd",
          "service.version": VERSION,
          "agentd.run_id": agents[0]?.runId ?? "",
        }),
      },
      scopeSpans: [{ scope: { name: "agentd", version: VERSION }, spans }],
    }],
  };
}

function agentSpans(
  agent: AgentTranscript,
  agents: readonly AgentTranscript[],
  traceId: string,
): JsonObject[] {
  const own = spanId(agent, "agent");
  const { end, usage } = agent;
  const failure = end !== null && end.status !== "completed"
    ? end.status ?? `abort_${end.abort}`
    : null;
  const spans: JsonObject[] = [{
    traceId,
    spanId: own,
    ...parentOf(agent, agents),
    name: "invoke_agent agentd",
    kind: KIND_INTERNAL,
    startTimeUnixNano: nanos(agent.startedAt, 0),
    endTimeUnixNano: nanos(agent.lastAt, 0),
    attributes: attributes({
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.agent.name": "agentd",
      "gen_ai.agent.id": agent.agentId,
      "gen_ai.conversation.id": agent.runId,
      "gen_ai.request.model": agent.model,
      "gen_ai.usage.input_tokens": usage.tokens_in,
      "gen_ai.usage.output_tokens": usage.tokens_out,
      "gen_ai.usage.cache_read.input_tokens": usage.tokens_cached,
      "agentd.agent_path": agent.path,
      "agentd.status": end?.status ?? null,
      "agentd.abort": end?.abort ?? null,
      "error.type": failure,
    }),
    status: failure === null
      ? (end === null ? {} : { code: STATUS_OK })
      : { code: STATUS_ERROR, message: end?.reason ?? "" },
  }];
  agent.entries.forEach((entry, i) => {
    if (entry.kind === "user") return;
    spans.push(modelSpan(agent, entry, i, traceId, own));
    if (entry.kind !== "turn") return;
    for (const call of entry.calls) {
      if (call.ms !== null) spans.push(toolSpan(agent, call, traceId, own));
    }
  });
  return spans;
}

/**
 * A subagent hangs on the call that started it, else on the agent above it. The first agent is the
 * root of the trace: the span that its telemetry names above it is the supervisor's, which is none.
 */
function parentOf(agent: AgentTranscript, agents: readonly AgentTranscript[]): JsonObject {
  const path = agent.path.slice(0, Math.max(0, agent.path.lastIndexOf(".")));
  const parent = agents.find((other) => other.path === path);
  if (parent === undefined) return {};
  for (const entry of parent.entries) {
    if (entry.kind !== "turn") continue;
    const call = entry.calls.find((candidate) => candidate.child === agent.path);
    if (call) return { parentSpanId: spanId(parent, call.call) };
  }
  return { parentSpanId: spanId(parent, "agent") };
}

function modelSpan(
  agent: AgentTranscript,
  entry: Exclude<TranscriptEntry, { kind: "user" }>,
  index: number,
  traceId: string,
  parentSpanId: string,
): JsonObject {
  const model = (entry.kind === "turn" ? entry.model : "") || agent.model || "";
  const base = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": entry.kind === "summary" ? null : providerOf(entry.endpoint),
    "gen_ai.request.model": agent.model,
    "gen_ai.conversation.id": agent.runId,
    "gen_ai.agent.id": agent.agentId,
    "server.address": entry.kind === "summary" ? null : hostOf(entry.endpoint),
  };
  const more: Record<string, string | number | null | string[]> = entry.kind === "failed"
    ? { "error.type": entry.failure }
    : {
      "gen_ai.usage.input_tokens": entry.usage.tokensIn,
      "gen_ai.usage.output_tokens": entry.usage.tokensOut,
      "gen_ai.usage.cache_read.input_tokens": entry.usage.tokensCached,
      ...(entry.kind === "summary" ? { "agentd.purpose": "summary" } : {
        "gen_ai.response.model": entry.model,
        "gen_ai.response.finish_reasons": [entry.finish],
        "agentd.step": entry.step,
        "agentd.verdict": entry.verdict,
        "agentd.delta": entry.delta,
        "agentd.context_hash": entry.contextHash,
      }),
    };
  return {
    traceId,
    spanId: spanId(agent, `model ${index}`),
    parentSpanId,
    name: `chat ${model}`.trim(),
    kind: KIND_CLIENT,
    startTimeUnixNano: nanos(entry.ts, -entry.ms),
    endTimeUnixNano: nanos(entry.ts, 0),
    attributes: attributes({ ...base, ...more }),
    status: entry.kind === "failed" ? { code: STATUS_ERROR, message: entry.message } : {},
  };
}

function toolSpan(
  agent: AgentTranscript,
  call: TranscriptCall,
  traceId: string,
  parentSpanId: string,
): JsonObject {
  const { observation } = call;
  const kind = observation?.class ?? "unknown";
  const wrong = kind === "error" || kind === "unknown";
  return {
    traceId,
    spanId: spanId(agent, call.call),
    parentSpanId,
    name: `execute_tool ${call.tool}`,
    kind: KIND_INTERNAL,
    startTimeUnixNano: nanos(call.ts!, -call.ms!),
    endTimeUnixNano: nanos(call.ts!, 0),
    attributes: attributes({
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": call.tool,
      "gen_ai.tool.call.id": call.call,
      "gen_ai.tool.type": "function",
      "gen_ai.conversation.id": agent.runId,
      "gen_ai.agent.id": agent.agentId,
      "agentd.observation": kind,
      "agentd.observation_bytes": call.bytes,
      "error.type": observation?.class === "error" ? observation.error : wrong ? kind : null,
    }),
    status: wrong ? { code: STATUS_ERROR } : {},
  };
}

/** What is null is left out. Whole numbers are text, as OTLP's JSON wants 64-bit integers. */
function attributes(
  values: Record<string, string | number | null | string[]>,
): JsonObject[] {
  const out: JsonObject[] = [];
  for (const [key, value] of Object.entries(values)) {
    if (value === null || value === "") continue;
    out.push({ key, value: attributeValue(value) });
  }
  return out;
}

function attributeValue(value: string | number | string[]): JsonObject {
  if (typeof value === "string") return { stringValue: value };
  if (typeof value === "number") {
    return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
  }
  return { arrayValue: { values: value.map((item) => ({ stringValue: item })) } };
}

function spanId(agent: AgentTranscript, name: string): string {
  return fnv64(`${agent.runId}\n${agent.path}\n${name}`);
}

function nanos(ts: string, shiftMs: number): string {
  return `${Math.round((parseIso(ts) ?? 0) + shiftMs)}000000`;
}

function hostOf(endpoint: string): string | null {
  return URL.canParse(endpoint) ? new URL(endpoint).hostname : null;
}

/** The well-known name of the endpoint's provider, else its host. */
function providerOf(endpoint: string): string | null {
  const host = hostOf(endpoint);
  if (host === null) return null;
  if (host.endsWith("anthropic.com")) return "anthropic";
  if (host.endsWith("openai.com")) return "openai";
  return host;
}

/** Why spans could not be delivered. */
export interface OtlpFailure {
  message: string;
}

/** Posts spans to an endpoint; a URL without a path gets `/v1/traces`. One attempt, no redirect. */
export async function sendOtlp(
  http: HttpPort,
  endpoint: string,
  body: JsonObject,
  signal: AbortSignal,
): Promise<Outcome<void, OtlpFailure>> {
  const url = new URL(endpoint);
  if (url.pathname === "/" || url.pathname === "") url.pathname = "/v1/traces";
  const reply = await http.send({
    method: "POST",
    url: url.href,
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    redirect: "error",
  }, signal);
  if (!reply.ok) {
    return failed({ message: `Cannot send spans to ${url.host}: ${reply.failure.message}` });
  }
  await reply.value.body?.cancel();
  const { status } = reply.value;
  return status >= 200 && status < 300
    ? success(undefined)
    : failed({ message: `Cannot send spans to ${url.host}: it answered ${status}` });
}
