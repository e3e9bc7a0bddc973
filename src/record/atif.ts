/** Export as ATIF, the Agent Trajectory Interchange Format of the Harbor framework. */

import type { Json, JsonObject } from "../core/json.ts";
import { VERSION } from "../core/version.ts";
import type { Part } from "../ports/model.ts";
import { observationText, partText } from "./artifacts.ts";
import type { AgentTranscript, TranscriptCall, TranscriptEntry } from "./transcript.ts";

/** The version of the format that is written. */
const ATIF_VERSION = "ATIF-v1.8";

const STEPS_NOTE =
  "final_metrics.total_steps counts the turns of the model; the steps are also the " +
  "prompts that it was given and what the runtime did.";

const IMAGES: ReadonlySet<string> = new Set(["image/jpeg", "image/png", "image/gif", "image/webp"]);
const SOUNDS: ReadonlySet<string> = new Set([
  "audio/wav",
  "audio/mpeg",
  "audio/mp4",
  "audio/aac",
  "audio/ogg",
  "audio/flac",
  "audio/webm",
  "audio/aiff",
]);

/** A run as one trajectory; subagents are embedded in it and referred to where they were started. */
export function toAtif(agents: readonly AgentTranscript[]): JsonObject {
  const [root, ...children] = agents;
  if (root === undefined) return {};
  const ids = new Map(children.map((child) => [child.path, trajectoryId(child)]));
  const embedded = children.map((child) => trajectory(child, ids, agents));
  return {
    ...trajectory(root, ids, agents),
    ...(embedded.length === 0 ? {} : { subagent_trajectories: embedded }),
  };
}

function trajectory(
  agent: AgentTranscript,
  children: ReadonlyMap<string, string>,
  agents: readonly AgentTranscript[],
): JsonObject {
  const steps: JsonObject[] = [];
  const add = (step: JsonObject): void => {
    steps.push({ step_id: steps.length + 1, ...step });
  };
  if (agent.system !== "") {
    add({ timestamp: agent.startedAt, source: "system", message: agent.system });
  }
  add({ timestamp: agent.startedAt, source: "user", message: agent.first });
  for (const entry of agent.entries) {
    const step = stepOf(entry, children);
    if (step !== null) add(step);
  }
  return {
    schema_version: ATIF_VERSION,
    session_id: agent.runId,
    trajectory_id: trajectoryId(agent),
    agent: {
      name: "agentd",
      version: VERSION,
      ...(agent.model === null ? {} : { model_name: agent.model }),
      ...(agent.tools.length === 0 ? {} : {
        tool_definitions: agent.tools.map((tool) => ({
          type: "function",
          function: {
            name: tool.name,
            description: tool.description,
            parameters: tool.inputSchema,
          },
        })),
      }),
      extra: { path: agent.path, agent_id: agent.agentId },
    },
    steps,
    // The format wants it said where the two numbers differ.
    ...(steps.length === agent.usage.steps ? {} : { notes: STEPS_NOTE }),
    final_metrics: finalMetrics(agent, costOf(agent, agents)),
  };
}

function trajectoryId(agent: { runId: string; path: string }): string {
  return `${agent.runId}/${agent.path}`;
}

function stepOf(entry: TranscriptEntry, children: ReadonlyMap<string, string>): JsonObject | null {
  switch (entry.kind) {
    case "user":
      return { timestamp: entry.ts, source: "user", message: entry.text };
    case "summary":
      return {
        timestamp: entry.ts,
        source: "system",
        message: entry.text,
        extra: { kind: "context_compacted", tokens: { ...entry.usage }, ms: entry.ms },
      };
    case "failed":
      return {
        timestamp: entry.ts,
        source: "system",
        message: `The model call failed: ${entry.message}`,
        extra: { kind: "model_failed", class: entry.failure },
      };
    case "turn":
      return turnStep(entry, children);
  }
}

function turnStep(
  turn: Extract<TranscriptEntry, { kind: "turn" }>,
  children: ReadonlyMap<string, string>,
): JsonObject {
  const { usage } = turn;
  return {
    timestamp: turn.ts,
    source: "agent",
    ...(turn.model === "" ? {} : { model_name: turn.model }),
    message: turn.text,
    ...(turn.calls.length === 0 ? {} : {
      tool_calls: turn.calls.map((call) => ({
        tool_call_id: call.call,
        function_name: call.wireName,
        arguments: call.arguments ?? {},
        ...(call.arguments === null ? { extra: { raw_arguments: call.rawArguments } } : {}),
      })),
      observation: {
        results: turn.calls.filter((call) => call.observation !== null)
          .map((call) => resultOf(call, children)),
      },
    }),
    metrics: {
      prompt_tokens: usage.tokensIn,
      completion_tokens: usage.tokensOut,
      cached_tokens: usage.tokensCached,
      ...(turn.cost === null ? {} : { cost_usd: turn.cost }),
      extra: { model_ms: turn.ms },
    },
    llm_call_count: 1,
    extra: {
      step: turn.step,
      verdict: turn.verdict,
      delta: turn.delta,
      idle: turn.idle,
      context_hash: turn.contextHash,
      signature: turn.signature,
      ...(turn.note === null ? {} : { note: turn.note }),
    },
  };
}

function resultOf(call: TranscriptCall, children: ReadonlyMap<string, string>): JsonObject {
  const observation = call.observation!;
  const child = call.child === null ? undefined : children.get(call.child);
  return {
    source_call_id: call.call,
    content: contentOf(observation),
    ...(child === undefined ? {} : { subagent_trajectory_ref: [{ trajectory_id: child }] }),
    extra: { class: observation.class, bytes: call.bytes, ms: call.ms },
  };
}

/** Text, or parts where there is something else that the format takes. */
function contentOf(observation: unknown): Json {
  const { parts } = observation as { parts?: Part[] };
  if (!Array.isArray(parts) || !parts.some(isMedia)) return observationText(observation);
  return parts.map((part): JsonObject => {
    if (!isMedia(part)) return { type: "text", text: partText(part) };
    const { type, mimeType, data } = part as Extract<Part, { data: string }>;
    return { type, source: { media_type: mimeType, path: `data:${mimeType};base64,${data}` } };
  });
}

function isMedia(part: Part): boolean {
  return (part.type === "image" && IMAGES.has(part.mimeType)) ||
    (part.type === "audio" && SOUNDS.has(part.mimeType));
}

/** An agent's cost with that of its subagents, as the format has it; null where one is unknown. */
function costOf(agent: AgentTranscript, agents: readonly AgentTranscript[]): number | null {
  let sum = 0;
  for (const { path, usage } of agents) {
    if (path !== agent.path && !path.startsWith(`${agent.path}.`)) continue;
    if (usage.cost === null) return null;
    sum += usage.cost;
  }
  return sum;
}

function finalMetrics(agent: AgentTranscript, cost: number | null): JsonObject {
  const { usage, end } = agent;
  return {
    total_prompt_tokens: usage.tokens_in,
    total_completion_tokens: usage.tokens_out,
    total_cached_tokens: usage.tokens_cached,
    ...(cost === null ? {} : { total_cost_usd: cost }),
    total_steps: usage.steps,
    extra: {
      status: end?.status ?? null,
      abort: end?.abort ?? null,
      reason: end?.reason ?? null,
      model_calls: usage.model_calls,
      tool_calls: usage.tool_calls,
      tokens_estimated: usage.tokens_estimated,
    },
  };
}
