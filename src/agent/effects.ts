/** The effects of the loop: tool calls with their hooks, declared checks, `on_stop` hooks. */

import type { Json, JsonObject } from "../core/json.ts";
import { CHECK_DETAIL_CHARS_MAX } from "../core/limits.ts";
import { clip, withoutControls } from "../core/text.ts";
import type { BrokerPort } from "../ports/broker.ts";
import type { ClockPort } from "../ports/clock.ts";
import type { DigestPort } from "../ports/digest.ts";
import type { TelemetryPort } from "../ports/telemetry.ts";
import type { ToolsPort } from "../ports/tools.ts";
import type { AgentPayload } from "../wire/payload.ts";
import type { CommandOutcome } from "../wire/worker.ts";
import type { CheckOutcome, CheckPhase } from "./event.ts";
import { failingPart, readProgress } from "./failing_part.ts";
import type { Hooks } from "./hooks.ts";
import { maskTime } from "./mask.ts";
import type { Observation } from "./observation.ts";
import { checkName } from "./prompt.ts";
import { type Shaped, type ShapeDeps, shapeResult } from "./shape.ts";
import type { PlannedCall } from "./plan.ts";
import { SELF_SERVER } from "../selftools/specs.ts";
import type { SelfToolHost } from "../selftools/host.ts";

/** What effects need. */
export interface EffectDeps extends ShapeDeps {
  payload: AgentPayload;
  broker: BrokerPort;
  tools: ToolsPort;
  selfTools: SelfToolHost;
  clock: ClockPort;
  digest: DigestPort;
  telemetry: TelemetryPort;
  hooks: Hooks;
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
  const permitted = await deps.hooks.beforeAction(call);
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
    const { evidence } = answer;
    const own = evidence === undefined
      ? {}
      : { digest: await deps.digest.sha256(maskTime(evidence)) };
    if ("observation" in answer) {
      const { observation } = answer;
      const digest = await deps.digest.sha256(JSON.stringify(observation));
      return { observation, digest, ...own, bytes: 0, child: null };
    }
    // Resources and subagents bring in what strangers wrote, like any tool.
    const heard = await deps.hooks.afterObservation(call, answer.result);
    const shaped = await shapeResult(deps, call, heard);
    return { ...shaped, ...own, child: answer.child ?? null };
  }
  const result = await deps.tools.call(
    { tool, arguments: call.arguments, key, traceparent: deps.traceparent() },
    signal,
  );
  const heard = await deps.hooks.afterObservation(call, result);
  return { ...await shapeResult(deps, call, heard), child: null };
}

/**
 * Runs what is declared for a phase: artifacts side by side, then commands in order, or hooks, which
 * are shown the result that is claimed.
 */
export async function runDeclared(
  deps: EffectDeps,
  phase: CheckPhase,
  signal: AbortSignal,
  result: Json,
): Promise<CheckOutcome[]> {
  if (phase === "stop") return await askStopHooks(deps, result);
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

async function askStopHooks(deps: EffectDeps, result: Json): Promise<CheckOutcome[]> {
  const answers = await deps.hooks.onFinal(result);
  return await Promise.all(answers.map(async ({ name, passed, reason, ms }) => ({
    kind: "hook" as const,
    name,
    passed,
    detail: reason,
    digest: await deps.digest.sha256(passed ? "passed" : reason),
    progress: null,
    ms,
  })));
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
  const streams = [outcome.stdout, outcome.stderr].map((text) => withoutControls(deps.mask(text)));
  const how = outcome.failure !== null
    ? `did not start: ${outcome.failure}`
    : outcome.timedOut
    ? `timed out after ${Math.round(outcome.durationMs / 1000)} s`
    : outcome.exitCode === null
    ? "ended by a signal"
    : `exit ${outcome.exitCode}`;
  const said = failingPart(output, CHECK_DETAIL_CHARS_MAX);
  const detail = kind === "require" ? outcome.failure ?? "" : said === "" ? how : `${how}\n${said}`;
  return {
    kind,
    name,
    passed,
    detail: passed ? "" : detail,
    // Each stream alone: how they fell together is chance, and no news.
    digest: await deps.digest.sha256([how, ...streams.map(maskTime)].join("\n")),
    progress: kind === "check" ? readProgress(streams[0]!) ?? readProgress(streams[1]!) : null,
    ms: Math.round(outcome.durationMs),
  };
}
