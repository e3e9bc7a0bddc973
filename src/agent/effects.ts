/** The effects of the loop: tool calls with their hooks, declared checks, `on_stop` hooks. */

import { isObject, type JsonObject } from "../core/json.ts";
import { assert } from "../core/assert.ts";
import { clip } from "../core/text.ts";
import { failed, type Outcome, success } from "../core/outcome.ts";
import type { BrokerPort } from "../ports/broker.ts";
import type { ClockPort } from "../ports/clock.ts";
import type { DigestPort } from "../ports/digest.ts";
import type { TelemetryPort } from "../ports/telemetry.ts";
import type { ToolFailure, ToolResult, ToolsPort } from "../ports/tools.ts";
import type { AgentPayload, HookEvent } from "../wire/payload.ts";
import type { CommandOutcome } from "../wire/worker.ts";
import type { CheckOutcome, CheckPhase } from "./event.ts";
import { failingPart, readProgress } from "./failing_part.ts";
import { maskTime } from "./mask.ts";
import type { Observation } from "./observation.ts";
import { checkName } from "./prompt.ts";
import { schemaFaults } from "./schema.ts";
import { type Shaped, type ShapeDeps, shapeResult } from "./shape.ts";
import type { PlannedCall } from "./plan.ts";
import { SELF_SERVER } from "../selftools/specs.ts";
import type { SelfToolHost } from "../selftools/host.ts";

/** Of a failed check, what the machine keeps. */
const DETAIL_CHARS_MAX = 4_000;
/** Of a tool's text, what an `after_observation` hook is given. */
const HOOK_TEXT_CHARS_MAX = 512 * 1024;

export interface EffectDeps extends ShapeDeps {
  payload: AgentPayload;
  broker: BrokerPort;
  tools: ToolsPort;
  selfTools: SelfToolHost;
  clock: ClockPort;
  digest: DigestPort;
  telemetry: TelemetryPort;
  /** A line of the record that decides nothing: what a hook did. */
  annotate: (type: "hook.ran", payload: JsonObject) => void;
  traceparent: () => string;
}

/** One call, executed: what came of it, and the subagent it started, if any. */
export interface Executed extends Shaped {
  ms: number;
  child: { id: string; path: string } | null;
}

/** Runs one call: `before_action` hooks, the tool, `after_observation` hooks, the shape. */
export async function executeCall(
  deps: EffectDeps,
  call: PlannedCall,
  key: string,
  signal: AbortSignal,
): Promise<Executed> {
  const { clock, telemetry } = deps;
  const startedMs = clock.monotonicMs();
  telemetry.emit("tool.call", {
    call: call.call,
    tool: call.tool.name,
    effect: call.effect,
    arguments: call.arguments,
  });
  const permitted = await askHooks(deps, call);
  let executed: Omit<Executed, "ms">;
  if (!permitted.ok) {
    const why = `blocked by a hook: ${permitted.failure}`;
    executed = {
      observation: { class: "refused", why },
      digest: await deps.digest.sha256(why),
      bytes: 0,
      child: null,
    };
  } else executed = await callTool(deps, { ...call, arguments: permitted.value }, key, signal);
  const ms = Math.round(clock.monotonicMs() - startedMs);
  telemetry.emit("tool.result", {
    call: call.call,
    tool: call.tool.name,
    class: executed.observation.class,
    bytes: executed.bytes,
    dur_ms: ms,
    ...errorFields(executed.observation),
  });
  return { ...executed, ms };
}

function errorFields(observation: Observation): JsonObject {
  if (observation.class === "error") {
    return { err: { type: observation.error, message: clip(observation.message, 300) } };
  }
  return observation.class === "unknown"
    ? { err: { type: "unknown", message: clip(observation.why, 300) } }
    : {};
}

async function callTool(
  deps: EffectDeps,
  call: PlannedCall,
  key: string,
  signal: AbortSignal,
): Promise<Omit<Executed, "ms">> {
  const { tool } = call;
  if (tool.server === SELF_SERVER) {
    const answer = await deps.selfTools.call(
      tool.remoteName,
      call.arguments,
      signal,
      call.showBytesMax,
    );
    if ("observation" in answer) {
      const { observation } = answer;
      const text = JSON.stringify(observation);
      return { observation, digest: await deps.digest.sha256(text), bytes: 0, child: null };
    }
    const shaped = await shapeResult(deps, call, answer.result);
    return { ...shaped, child: answer.child ?? null };
  }
  const result = await deps.tools.call(
    { tool, arguments: call.arguments, key, traceparent: deps.traceparent() },
    signal,
  );
  const heard = await showHooks(deps, call, result);
  return { ...await shapeResult(deps, call, heard), child: null };
}

/** `before_action`: each may replace the arguments or block; anything but exit 0 blocks. */
async function askHooks(
  deps: EffectDeps,
  call: PlannedCall,
): Promise<Outcome<JsonObject, string>> {
  let args = call.arguments;
  for (let index = 0; index < deps.payload.hooks.before_action.length; index++) {
    const outcome = await runHook(deps, "before_action", index, {
      call: call.call,
      tool: call.tool.name,
      arguments: args,
    });
    if (outcome.verdict !== "continue") return failed(outcome.reason || "no reason given");
    const { replacement } = outcome;
    if (!isObject(replacement) || !isObject(replacement.arguments)) continue;
    const faults = schemaFaults(call.tool.inputSchema, replacement.arguments);
    if (faults.length > 0) return failed(`its arguments do not fit the tool: ${faults.join("; ")}`);
    args = replacement.arguments;
  }
  return success(args);
}

/** `after_observation`: each may replace or withhold it, before anything of it is kept or shown. */
async function showHooks(
  deps: EffectDeps,
  call: PlannedCall,
  result: Outcome<ToolResult, ToolFailure>,
): Promise<Outcome<ToolResult, ToolFailure>> {
  if (!result.ok) return result;
  let { value } = result;
  for (let index = 0; index < deps.payload.hooks.after_observation.length; index++) {
    const text = value.parts.map((part) => part.type === "text" ? part.text : `[${part.type}]`)
      .join("\n");
    const outcome = await runHook(deps, "after_observation", index, {
      call: call.call,
      tool: call.tool.name,
      arguments: call.arguments,
      observation: {
        class: value.isError ? "error" : "ok",
        text: deps.mask(text.slice(0, HOOK_TEXT_CHARS_MAX)),
      },
    });
    const { replacement } = outcome;
    if (outcome.verdict === "block") {
      // It was executed: what is blocked is that the model sees the result.
      const why = `the result is withheld by a hook: ${outcome.reason || "no reason given"}`;
      return success({ parts: [{ type: "text", text: why }], structured: null, isError: true });
    }
    if (outcome.verdict !== "continue" || !isObject(replacement)) continue;
    const observation = isObject(replacement.observation) ? replacement.observation : replacement;
    if (typeof observation.text !== "string") continue;
    const media = value.parts.filter((part) => part.type !== "text");
    value = {
      parts: [{ type: "text", text: observation.text }, ...media],
      structured: null,
      isError: value.isError,
    };
  }
  return success(value);
}

async function runHook(deps: EffectDeps, event: HookEvent, index: number, input: JsonObject) {
  const { identity } = deps.payload;
  const outcome = await deps.broker.runHook(event, index, {
    event,
    run_id: identity.runId,
    agent_path: identity.path,
    ...input,
  });
  const command = deps.payload.hooks[event][index];
  assert(command !== undefined, "a hook that was not declared");
  deps.telemetry.emit("hook.result", {
    hook: event,
    command: command.join(" "),
    verdict: outcome.verdict,
    dur_ms: Math.round(outcome.durationMs),
    ...(outcome.verdict === "continue"
      ? {}
      : { err: { type: outcome.verdict, message: outcome.reason } }),
  }, outcome.verdict === "failed" ? "warn" : "info");
  deps.annotate("hook.ran", {
    hook: event,
    index,
    verdict: outcome.verdict,
    reason: outcome.reason,
    replaced: outcome.replacement !== null,
    ...(typeof input.call === "string" ? { call: input.call } : {}),
  });
  return outcome;
}

/** Runs the hooks of an event that can replace nothing; why one blocked, null if none did. */
export async function notifyHooks(
  deps: EffectDeps,
  event: HookEvent,
  input: JsonObject,
): Promise<string | null> {
  for (let index = 0; index < deps.payload.hooks[event].length; index++) {
    const outcome = await runHook(deps, event, index, input);
    if (outcome.verdict === "block") return outcome.reason || "no reason given";
  }
  return null;
}

/** Runs what is declared for a phase: artifacts side by side, then commands in order, or hooks. */
export async function runDeclared(
  deps: EffectDeps,
  phase: CheckPhase,
  signal: AbortSignal,
): Promise<CheckOutcome[]> {
  if (phase === "stop") return await runStopHooks(deps);
  const { task } = deps.payload;
  const outcomes: CheckOutcome[] = [];
  if (phase !== "turn") {
    outcomes.push(
      ...await Promise.all(
        task.require.map((item, index) => checkArtifact(deps, item, index, signal)),
      ),
    );
  }
  for (const [index, check] of task.checks.entries()) {
    if (phase === "turn" && check.when !== "turn") continue;
    const outcome = await deps.broker.runCheck(index, signal);
    outcomes.push(await judgeCommand(deps, "check", checkName(check), outcome));
  }
  return outcomes;
}

async function runStopHooks(deps: EffectDeps): Promise<CheckOutcome[]> {
  const outcomes: CheckOutcome[] = [];
  for (let index = 0; index < deps.payload.hooks.on_stop.length; index++) {
    const outcome = await runHook(deps, "on_stop", index, { status: "completed" });
    const passed = outcome.verdict !== "block";
    outcomes.push({
      kind: "hook",
      name: `on_stop ${deps.payload.hooks.on_stop[index]!.join(" ")}`,
      passed,
      detail: passed ? "" : outcome.reason,
      digest: await deps.digest.sha256(passed ? "passed" : outcome.reason),
      progress: null,
      ms: Math.round(outcome.durationMs),
    });
  }
  return outcomes;
}

/** A file by the broker; `server:uri` by reading the resource on its server. */
async function checkArtifact(
  deps: EffectDeps,
  item: string,
  index: number,
  signal: AbortSignal,
): Promise<CheckOutcome> {
  const resource = /^([A-Za-z0-9_-]+):(.+)$/.exec(item);
  if (resource !== null && deps.payload.servers.some((server) => server.name === resource[1])) {
    const startedMs = deps.clock.monotonicMs();
    const read = await deps.tools.readResource(resource[1]!, resource[2]!, signal);
    const detail = read.ok ? "" : clip(deps.mask(read.failure.message), 300);
    return {
      kind: "require",
      name: item,
      passed: read.ok,
      detail,
      digest: await deps.digest.sha256(`${read.ok}${maskTime(detail)}`),
      progress: null,
      ms: Math.round(deps.clock.monotonicMs() - startedMs),
    };
  }
  const outcome = await deps.broker.runRequire(index, signal);
  return await judgeCommand(deps, "require", item, outcome);
}

async function judgeCommand(
  deps: EffectDeps,
  kind: "check" | "require",
  name: string,
  outcome: CommandOutcome,
): Promise<CheckOutcome> {
  const passed = outcome.exitCode === 0;
  const output = deps.mask(outcome.output);
  const how = outcome.failure !== null
    ? `did not start: ${outcome.failure}`
    : outcome.timedOut
    ? `timed out after ${Math.round(outcome.durationMs / 1000)} s`
    : outcome.exitCode === null
    ? "ended by a signal"
    : `exit ${outcome.exitCode}`;
  const said = failingPart(output, DETAIL_CHARS_MAX);
  const detail = kind === "require" ? outcome.failure ?? "" : said === "" ? how : `${how}\n${said}`;
  return {
    kind,
    name,
    passed,
    detail: passed ? "" : detail,
    digest: await deps.digest.sha256(`${how}\n${maskTime(output)}`),
    progress: kind === "check" ? readProgress(output) : null,
    ms: Math.round(outcome.durationMs),
  };
}
