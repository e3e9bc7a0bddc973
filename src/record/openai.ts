/** Export as messages of the chat-completions dialect, with the tools that were offered. */

import type { JsonObject } from "../core/json.ts";
import { renderObservation } from "../agent/render.ts";
import { type AgentTranscript, partsText, type TranscriptEntry } from "./transcript.ts";

/**
 * A run as `{messages, tools}`, the form that chat endpoints and fine-tuning files take; subagents
 * under `subagents`, each with its path. Call ids are the run's own, and so unique.
 */
export function toOpenai(agents: readonly AgentTranscript[]): JsonObject {
  const [root, ...children] = agents;
  if (root === undefined) return { messages: [] };
  return {
    ...conversation(root),
    ...(children.length === 0
      ? {}
      : { subagents: children.map((child) => ({ path: child.path, ...conversation(child) })) }),
  };
}

function conversation(agent: AgentTranscript): JsonObject {
  const messages: JsonObject[] = [];
  if (agent.system !== "") messages.push({ role: "system", content: agent.system });
  messages.push({ role: "user", content: agent.first });
  for (const entry of agent.entries) messages.push(...messagesOf(entry));
  return {
    ...(agent.model === null ? {} : { model: agent.model }),
    messages,
    ...(agent.tools.length === 0 ? {} : {
      tools: agent.tools.map((tool) => ({
        type: "function",
        function: {
          name: tool.name,
          description: tool.description,
          parameters: tool.inputSchema,
        },
      })),
    }),
  };
}

function messagesOf(entry: TranscriptEntry): JsonObject[] {
  if (entry.kind === "user") return [{ role: "user", content: entry.text }];
  if (entry.kind !== "turn") return [];
  const calls = entry.calls;
  const messages: JsonObject[] = [{
    role: "assistant",
    content: entry.text,
    ...(calls.length === 0 ? {} : {
      tool_calls: calls.map((call) => ({
        id: call.call,
        type: "function",
        function: {
          name: call.wireName,
          arguments: call.rawArguments === ""
            ? JSON.stringify(call.arguments ?? {})
            : call.rawArguments,
        },
      })),
    }),
  }];
  for (const call of calls) {
    const content = call.observation === null
      ? "[unknown] the run was cut off before the answer came"
      : partsText(renderObservation(call.observation));
    messages.push({ role: "tool", tool_call_id: call.call, content });
  }
  if (entry.note === null) return messages;
  // Notes ride at the end of the turn's last message; a reply of the model takes none.
  const last = messages.at(-1)!;
  if (last.role === "tool") last.content = `${last.content}\n${entry.note}`;
  else messages.push({ role: "user", content: entry.note });
  return messages;
}
