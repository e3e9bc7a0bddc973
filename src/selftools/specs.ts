/** The runtime's own tools as the model sees them. Descriptions are prompt text. */

import type { JsonObject } from "../core/json.ts";
import type { Tool } from "../ports/tools.ts";

/** Names no tool server can take. */
export const SELF_TOOL_NAMES = [
  "task_refuse",
  "resource_list",
  "resource_read",
  "artifact_read",
  "note_write",
  "note_read",
  "subagent_spawn",
  "subagent_status",
  "subagent_await",
  "subagent_cancel",
  "subscribe",
  "unsubscribe",
] as const;

/** One of {@link SELF_TOOL_NAMES}. */
export type SelfToolName = (typeof SELF_TOOL_NAMES)[number];

/** The server name that stands before a self tool. */
export const SELF_SERVER = "self";

/** What can work in this run. */
export interface SelfToolScope {
  resources: boolean;
  artifacts: boolean;
  notes: boolean;
  subagents: boolean;
  subscribe: boolean;
}

/** The self tools of a scope, in their fixed order. */
export function selfTools(scope: SelfToolScope): Tool[] {
  const names: SelfToolName[] = ["task_refuse"];
  if (scope.resources) names.push("resource_list", "resource_read");
  if (scope.artifacts) names.push("artifact_read");
  if (scope.notes) names.push("note_write", "note_read");
  if (scope.subagents) {
    names.push("subagent_spawn", "subagent_status", "subagent_await", "subagent_cancel");
  }
  if (scope.subscribe) names.push("subscribe", "unsubscribe");
  return names.map((name) => ({
    name: `${SELF_SERVER}/${name}`,
    server: SELF_SERVER,
    remoteName: name,
    wireName: name,
    description: SPECS[name].description,
    inputSchema: SPECS[name].inputSchema,
    readOnly: SPECS[name].readOnly,
    idempotent: false,
    poll: SPECS[name].poll ?? false,
  }));
}

interface Spec {
  description: string;
  inputSchema: JsonObject;
  readOnly: boolean;
  /** Asking again is its purpose: repeats are no sign of a spin. */
  poll?: boolean;
}

function object(properties: JsonObject, required: string[] = []): JsonObject {
  return { type: "object", properties, required, additionalProperties: false };
}

const text = { type: "string" };
const strings = { type: "array", items: { type: "string" }, maxItems: 64 };

const SPECS: Record<SelfToolName, Spec> = {
  task_refuse: {
    description: "End the run because the task cannot or must not be done. Say why.",
    inputSchema: object({ reason: { type: "string", minLength: 1, maxLength: 4000 } }, ["reason"]),
    readOnly: true,
  },
  resource_list: {
    description:
      "List resources of the tool servers, by URI prefix or by a word in URI, name or description.",
    inputSchema: object({
      prefix: text,
      query: text,
      cursor: { type: "string", description: "From the previous page." },
    }),
    readOnly: true,
  },
  resource_read: {
    description: "Read the current content of a resource.",
    inputSchema: object({
      uri: { type: "string", minLength: 1 },
      server: { type: "string", description: "Needed only if two servers have the same URI." },
    }, ["uri"]),
    readOnly: true,
  },
  artifact_read: {
    description:
      "Read a result that was cut or left out, by the id shown with it: a part by offset and length in bytes, or the lines that match a pattern.",
    inputSchema: object({
      id: { type: "string", minLength: 1, maxLength: 64 },
      offset: { type: "integer", minimum: 0 },
      length: { type: "integer", minimum: 1, maximum: 16384 },
      pattern: {
        type: "string",
        minLength: 1,
        maxLength: 200,
        description: "Plain text to look for.",
      },
    }, ["id"]),
    readOnly: true,
  },
  note_write: {
    description: "Append to the run's notes, which outlive any shortening of this conversation.",
    inputSchema: object({ text: { type: "string", minLength: 1, maxLength: 16384 } }, ["text"]),
    readOnly: false,
  },
  note_read: {
    description: "Read the run's notes.",
    inputSchema: object({}),
    readOnly: true,
  },
  subagent_spawn: {
    description:
      "Give a part of the task to a new agent with a clean context. It sees only what you write here. sync waits for its result; async goes on and is awaited later; detach is not awaited.",
    inputSchema: object({
      objective: {
        type: "string",
        minLength: 1,
        description: "What it must achieve, complete in itself.",
      },
      output_format: { type: "string", description: "What its answer must look like." },
      output_schema: { type: "object", description: "JSON Schema that its answer must satisfy." },
      guidance: { type: "string", description: "Which tools to use and how." },
      boundaries: { type: "string", description: "What it must not do." },
      seed: {
        type: "array",
        maxItems: 16,
        items: object({ label: text, text, resource: text }, ["label"]),
      },
      tools: { ...strings, description: "server/tool globs, within your own." },
      limits: object({
        max_steps: { type: "integer", minimum: 1 },
        max_tokens: { type: "integer", minimum: 1 },
        deadline: { type: "string" },
      }),
      disposition: { type: "string", enum: ["sync", "async", "detach"] },
    }, ["objective"]),
    readOnly: false,
  },
  subagent_status: {
    description: "How your subagents are doing.",
    inputSchema: object({ ids: strings }),
    readOnly: true,
    poll: true,
  },
  subagent_await: {
    description:
      "Wait until subagents are over, all of which you do not know the end yet if none is named, and get their results.",
    inputSchema: object({
      ids: strings,
      timeout: { type: "string", description: "As in 30s or 5m." },
    }),
    readOnly: true,
    poll: true,
  },
  subagent_cancel: {
    description: "Stop a subagent.",
    inputSchema: object({ id: { type: "string", minLength: 1 } }, ["id"]),
    readOnly: false,
  },
  subscribe: {
    description: "Be woken with a new message when a resource changes.",
    inputSchema: object({ uri: { type: "string", minLength: 1 }, server: text }, ["uri"]),
    readOnly: false,
  },
  unsubscribe: {
    description: "No longer be woken when a resource changes.",
    inputSchema: object({ uri: { type: "string", minLength: 1 }, server: text }, ["uri"]),
    readOnly: false,
  },
};
