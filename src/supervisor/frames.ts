/** Frames from an agent, checked strictly: whoever breaks the grammar is no agent of ours. */

import { isObject, type Json, type JsonObject, parseJson } from "../core/json.ts";
import { RESULT_ITEMS_MAX, RESULT_REASON_CHARS_MAX } from "../core/limits.ts";
import { failed, type Outcome, success } from "../core/outcome.ts";
import { clip } from "../core/text.ts";
import { CONTROL_VERSION, type FromAgent, type Progress, type RequestOp } from "../wire/control.ts";
import {
  type Abort,
  type AgentResult,
  type Status,
  STATUSES,
  type UsageTotals,
  type Verification,
  type VerificationItem,
} from "../wire/result.ts";

const OPS: ReadonlySet<string> = new Set<RequestOp>([
  "spawn",
  "child_status",
  "child_cancel",
  "subscribe",
  "unsubscribe",
]);
const DOING: ReadonlySet<string> = new Set<Progress["doing"]>([
  "connecting",
  "model",
  "tools",
  "verifying",
  "compacting",
  "waiting",
]);
const ITEM_KINDS: ReadonlySet<string> = new Set<VerificationItem["kind"]>([
  "schema",
  "require",
  "check",
  "hook",
]);
const ABORTS: ReadonlySet<string> = new Set<Abort>(["intelligence", "mcp"]);
const SHOWN_CHARS_MAX = 200;

/** Parses one line of an agent's stdout. The failure says what is wrong with it. */
export function parseFromAgent(line: string): Outcome<FromAgent, string> {
  const parsed = parseJson(line);
  if (!parsed.ok) return failed(`not JSON: ${clip(line, SHOWN_CHARS_MAX)}`);
  const frame = parsed.value;
  if (!isObject(frame)) return failed(`no object: ${clip(line, SHOWN_CHARS_MAX)}`);
  if (frame.v !== CONTROL_VERSION) {
    return failed(`version ${show(frame.v)}, not ${CONTROL_VERSION}`);
  }
  switch (frame.type) {
    case "ready":
      return success({ v: 1, type: "ready" });
    case "pong":
      return isCount(frame.n)
        ? success({ v: 1, type: "pong", n: frame.n })
        : bad("pong.n", frame.n);
    case "progress":
      return parseProgress(frame.progress);
    case "request":
      return parseRequest(frame);
    case "connected":
      return isTexts(frame.servers)
        ? success({ v: 1, type: "connected", servers: frame.servers })
        : bad("connected.servers", frame.servers);
    case "updated":
      return parseUpdated(frame);
    case "delivered": {
      const result = parseResult(frame.result);
      if (typeof frame.id !== "string") return bad("delivered.id", frame.id);
      return result.ok
        ? success({ v: 1, type: "delivered", id: frame.id, result: result.value })
        : result;
    }
    case "result": {
      const result = parseResult(frame.result);
      return result.ok ? success({ v: 1, type: "result", result: result.value }) : result;
    }
    default:
      return failed(`unknown type ${show(frame.type)}`);
  }
}

function parseProgress(value: Json | undefined): Outcome<FromAgent, string> {
  if (
    !isObject(value) || !isCount(value.step) || !isCount(value.tokens) ||
    typeof value.doing !== "string" || !DOING.has(value.doing) || !isCost(value.cost ?? null)
  ) return bad("progress", value);
  const { step, tokens, doing, cost = null } = value;
  const progress = { step, tokens, cost, doing } as Progress;
  return success({ v: 1, type: "progress", progress });
}

function parseUpdated({ server, uri, possibly }: JsonObject): Outcome<FromAgent, string> {
  return typeof server === "string" && typeof uri === "string" && typeof possibly === "boolean"
    ? success({ v: 1, type: "updated", server, uri, possibly })
    : bad("updated", { server: server ?? null, uri: uri ?? null, possibly: possibly ?? null });
}

function parseRequest(frame: JsonObject): Outcome<FromAgent, string> {
  if (!isCount(frame.id)) return bad("request.id", frame.id);
  if (typeof frame.op !== "string" || !OPS.has(frame.op)) return bad("request.op", frame.op);
  if (!isObject(frame.arguments)) return bad("request.arguments", frame.arguments);
  return success({
    v: 1,
    type: "request",
    id: frame.id,
    op: frame.op as RequestOp,
    arguments: frame.arguments,
  });
}

/** An agent's result as it may be believed: every member of the right kind, nothing else kept. */
function parseResult(value: Json | undefined): Outcome<AgentResult, string> {
  if (!isObject(value)) return bad("result", value);
  const { status, abort, reason, retryable, resumable, partial, artifact } = value;
  const known = typeof status === "string" && (STATUSES as readonly string[]).includes(status);
  if (!known && status !== null) return bad("result.status", status);
  if (abort !== null && !(typeof abort === "string" && ABORTS.has(abort))) {
    return bad("result.abort", abort);
  }
  if ((status === null) === (abort === null)) {
    return failed("result: status and abort exclude each other");
  }
  if (typeof reason !== "string") return bad("result.reason", reason);
  if (artifact !== null && typeof artifact !== "string") return bad("result.artifact", artifact);
  if (
    typeof retryable !== "boolean" || typeof resumable !== "boolean" || typeof partial !== "boolean"
  ) return failed("result: retryable, resumable and partial are truth values");
  const verification = parseVerification(value.verification);
  if (!verification.ok) return verification;
  const usage = parseUsage(value.usage);
  if (!usage.ok) return usage;
  return success({
    status: status as Status | null,
    abort: abort as Abort | null,
    reason: clip(reason, RESULT_REASON_CHARS_MAX),
    retryable,
    resumable,
    partial,
    result: value.result ?? null,
    artifact: artifact === null ? null : clip(artifact, SHOWN_CHARS_MAX),
    verification: verification.value,
    usage: usage.value,
  });
}

function parseVerification(value: Json | undefined): Outcome<Verification, string> {
  if (value === "none declared") return success(value);
  if (
    !isObject(value) || typeof value.passed !== "boolean" || !Array.isArray(value.items) ||
    value.items.length > RESULT_ITEMS_MAX
  ) return bad("result.verification", value);
  const items: VerificationItem[] = [];
  for (const item of value.items) {
    if (
      !isObject(item) || typeof item.kind !== "string" || !ITEM_KINDS.has(item.kind) ||
      typeof item.name !== "string" || typeof item.passed !== "boolean" ||
      typeof item.passed_before !== "boolean" || typeof item.detail !== "string"
    ) return bad("result.verification.items", item);
    const { kind, name, passed, passed_before, detail } = item;
    items.push({ kind: kind as VerificationItem["kind"], name, passed, passed_before, detail });
  }
  return success({ passed: value.passed, items });
}

function parseUsage(value: Json | undefined): Outcome<UsageTotals, string> {
  if (!isObject(value)) return bad("result.usage", value);
  const { steps, model_calls, tool_calls, tokens_in, tokens_out, tokens_cached } = value;
  const { tokens_estimated, cost } = value;
  if (
    !isCount(steps) || !isCount(model_calls) || !isCount(tool_calls) || !isCount(tokens_in) ||
    !isCount(tokens_out) || !isCount(tokens_cached) || typeof tokens_estimated !== "boolean" ||
    !isCost(cost)
  ) return bad("result.usage", value);
  return success({
    steps,
    model_calls,
    tool_calls,
    tokens_in,
    tokens_out,
    tokens_cached,
    tokens_estimated,
    cost,
  });
}

function isCount(value: Json | undefined): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

function isCost(value: Json | undefined): value is number | null {
  return value === null || (typeof value === "number" && value >= 0);
}

function isTexts(value: Json | undefined): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

function bad(name: string, value: Json | undefined): { ok: false; failure: string } {
  return failed(`${name} is ${show(value)}`);
}

function show(value: Json | undefined): string {
  return clip(value === undefined ? "missing" : JSON.stringify(value), SHOWN_CHARS_MAX);
}
