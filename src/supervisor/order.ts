/** What a parent orders of a child, read from a request whose every word may be a lie. */

import { findSchemaFaults } from "../config/json_schema.ts";
import { isObject, type Json, type JsonObject } from "../core/json.ts";
import {
  OBJECTIVE_CHARS_MAX,
  SEED_BYTES_MAX,
  SEEDS_MAX,
  TOOL_SCHEMA_BYTES_MAX,
} from "../core/limits.ts";
import { failed, type Outcome, success } from "../core/outcome.ts";
import { byteLength, clip, toWellFormed } from "../core/text.ts";
import { parseDurationMs } from "../core/units.ts";
import type { Seed } from "../wire/payload.ts";
import type { Disposition } from "./fleet.ts";

/** A child's task in its parent's words, within bounds. */
export interface Order {
  instruction: string;
  outputSchema: JsonObject | null;
  seeds: Seed[];
  /** `server/tool` globs; null: the parent's own grant. */
  tools: string[] | null;
  maxSteps: number | null;
  maxTokens: number | null;
  deadlineMs: number | null;
  disposition: Disposition;
}

const DISPOSITIONS: readonly Disposition[] = ["sync", "async", "detach"];
const TOOLS_MAX = 64;
/** As the configuration has it: `server/tool`, or a server alone; `!` removes. */
const GLOB = /^!?[^\s/!][^\s/]*(\/\S+)?$/;

/** Reads the arguments of `subagent_spawn`; a failure is what to tell the parent. */
export function parseOrder(args: JsonObject): Outcome<Order, string> {
  const { objective, output_schema, tools, disposition } = args;
  if (typeof objective !== "string" || objective.trim() === "") {
    return failed("an objective is required: what the subagent must achieve, complete in itself");
  }
  const schema = readSchema(output_schema);
  if (!schema.ok) return schema;
  if (tools !== undefined && !isGlobs(tools)) {
    return failed(`tools must be at most ${TOOLS_MAX} server/tool globs`);
  }
  const wanted = disposition ?? "sync";
  if (!DISPOSITIONS.includes(wanted as Disposition)) {
    return failed("disposition must be sync, async or detach");
  }
  const limits = parseLimits(args.limits);
  if (!limits.ok) return limits;
  const seeds = parseSeeds(args.seed);
  if (!seeds.ok) return seeds;
  const instruction = instructionOf(args, objective);
  if (!instruction.ok) return instruction;
  return success({
    instruction: instruction.value,
    outputSchema: schema.value,
    seeds: seeds.value,
    tools: tools ?? null,
    ...limits.value,
    disposition: wanted as Disposition,
  });
}

/** A schema that no answer could ever satisfy would cost a whole agent to find out. */
function readSchema(value: Json | undefined): Outcome<JsonObject | null, string> {
  if (value === undefined) return success(null);
  if (!isObject(value)) return failed("output_schema must be a JSON Schema object");
  const bytes = byteLength(JSON.stringify(value));
  if (bytes > TOOL_SCHEMA_BYTES_MAX) {
    return failed(`output_schema is ${bytes} bytes, at most ${TOOL_SCHEMA_BYTES_MAX}`);
  }
  const [fault] = findSchemaFaults(value);
  if (fault === undefined) return success(value);
  return failed(
    `output_schema is no JSON Schema: ${clip(`${fault.pointer} ${fault.message}`, 300)}`,
  );
}

/** The instruction: the objective, then labelled what the parent said beside it. */
function instructionOf(args: JsonObject, objective: string): Outcome<string, string> {
  const parts = [objective.trim()];
  const more = [
    ["Output format", args.output_format],
    ["Tool guidance", args.guidance],
    ["Boundaries", args.boundaries],
  ] as const;
  for (const [label, value] of more) {
    if (value === undefined || value === "") continue;
    if (typeof value !== "string") return failed(`${label.toLowerCase()} must be text`);
    parts.push(`${label}: ${value.trim()}`);
  }
  const text = toWellFormed(parts.join("\n\n"));
  return text.length > OBJECTIVE_CHARS_MAX
    ? failed(`the order is ${text.length} characters long, at most ${OBJECTIVE_CHARS_MAX}`)
    : success(text);
}

function parseSeeds(value: Json | undefined): Outcome<Seed[], string> {
  if (value === undefined) return success([]);
  if (!Array.isArray(value) || value.length > SEEDS_MAX) {
    return failed(`seed must be a list of at most ${SEEDS_MAX} slices`);
  }
  const seeds: Seed[] = [];
  let bytes = 0;
  for (const item of value) {
    if (!isObject(item) || typeof item.label !== "string") {
      return failed("each seed needs a label, and text or a resource");
    }
    const seed: Seed = { label: toWellFormed(item.label) };
    if (typeof item.text === "string") seed.text = toWellFormed(item.text);
    if (typeof item.resource === "string") seed.resource = item.resource;
    if (seed.text === undefined && seed.resource === undefined) {
      return failed(`the seed ${seed.label} needs text or a resource`);
    }
    bytes += byteLength(seed.label) + byteLength(seed.text ?? "") + byteLength(seed.resource ?? "");
    seeds.push(seed);
  }
  return bytes > SEED_BYTES_MAX
    ? failed(`the seeds are ${bytes} bytes in all, at most ${SEED_BYTES_MAX}`)
    : success(seeds);
}

type OrderLimits = Pick<Order, "maxSteps" | "maxTokens" | "deadlineMs">;

function parseLimits(value: Json | undefined): Outcome<OrderLimits, string> {
  if (value === undefined) return success({ maxSteps: null, maxTokens: null, deadlineMs: null });
  if (!isObject(value)) return failed("limits must be an object");
  const { max_steps, max_tokens, deadline } = value;
  if (max_steps !== undefined && !isPositive(max_steps)) {
    return failed("limits.max_steps must be a whole number from 1 on");
  }
  if (max_tokens !== undefined && !isPositive(max_tokens)) {
    return failed("limits.max_tokens must be a whole number from 1 on");
  }
  const deadlineMs = deadline === undefined
    ? null
    : typeof deadline === "string"
    ? parseDurationMs(deadline) ?? 0
    : 0;
  if (deadlineMs === 0) return failed("limits.deadline must be a duration such as 90s or 5m");
  return success({
    maxSteps: max_steps ?? null,
    maxTokens: max_tokens ?? null,
    deadlineMs,
  });
}

function isPositive(value: Json): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 1;
}

function isGlobs(value: Json): value is string[] {
  return Array.isArray(value) && value.length <= TOOLS_MAX &&
    value.every((item) => typeof item === "string" && item.length <= 256 && GLOB.test(item));
}
