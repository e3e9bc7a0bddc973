/** The loop's side of hooks: what the operator's commands may change, block or hear of. */

import { isObject, type Json, type JsonObject } from "../core/json.ts";
import { assert } from "../core/assert.ts";
import { HOOKS_AT_ONCE_MAX } from "../core/limits.ts";
import { failed, type Outcome, success } from "../core/outcome.ts";
import type { BrokerPort } from "../ports/broker.ts";
import type { TelemetryPort } from "../ports/telemetry.ts";
import type { ToolFailure, ToolResult } from "../ports/tools.ts";
import type { AgentPayload, HookEvent } from "../wire/payload.ts";
import type { AgentResult } from "../wire/result.ts";
import type { HookOutcome } from "../wire/worker.ts";
import type { PlannedCall } from "./plan.ts";
import { schemaFaults } from "./schema.ts";
import { resultText } from "./shape.ts";

/** What hooks need. */
export interface HookDeps {
  payload: AgentPayload;
  broker: BrokerPort;
  telemetry: TelemetryPort;
  /** Replaces every known secret. */
  mask: (text: string) => string;
  /** A line of the record that decides nothing, on disk when it returns. */
  annotate: (type: "hook.ran", payload: JsonObject) => void;
}

/** How one `on_stop` hook answered a final. */
export interface StopAnswer {
  /** The command as people name it. */
  name: string;
  passed: boolean;
  reason: string;
  ms: number;
}

/** What a hook's answer came to. */
interface Ran extends HookOutcome {
  /** The JSON object that it printed. */
  answer: JsonObject | null;
}

const NO_REASON = "no reason given";

/** The hooks of one agent, each event's in the order of the configuration. */
export class Hooks {
  readonly #deps: HookDeps;
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(deps: HookDeps) {
    this.#deps = deps;
  }

  /** `before_action`: the arguments to call with, or why the call is blocked. */
  async beforeAction(call: PlannedCall): Promise<Outcome<JsonObject, string>> {
    let args = call.arguments;
    for (const index of this.#indexes("before_action")) {
      const ran = await this.#run("before_action", index, {
        call: call.call,
        tool: call.tool.name,
        arguments: args,
      }, (answer) => "arguments" in answer ? { arguments: answer.arguments! } : null);
      if (ran.verdict !== "continue") return failed(ran.reason || NO_REASON);
      const given = ran.answer?.arguments;
      if (given === undefined) continue;
      // What the operator meant to replace must not go out as it was.
      if (!isObject(given)) return failed("its arguments are no JSON object");
      const faults = schemaFaults(call.tool.inputSchema, given);
      if (faults.length > 0) {
        return failed(`its arguments do not fit the tool: ${faults.join("; ")}`);
      }
      args = given;
    }
    return success(args);
  }

  /** `after_observation`: the result as the hooks leave it, before anything of it is kept or shown. */
  async afterObservation(
    call: PlannedCall,
    result: Outcome<ToolResult, ToolFailure>,
  ): Promise<Outcome<ToolResult, ToolFailure>> {
    let heard = result;
    for (const index of this.#indexes("after_observation")) {
      const ran = await this.#run("after_observation", index, {
        call: call.call,
        tool: call.tool.name,
        arguments: call.arguments,
        observation: {
          class: heard.ok && !heard.value.isError ? "ok" : "error",
          text: this.#deps.mask(heard.ok ? resultText(heard.value) : heard.failure.message),
        },
      }, (answer) => textOf(answer) === undefined ? null : { observation: true });
      if (ran.verdict === "block") {
        // It was executed: what is blocked is that the model sees the result.
        heard = withText(
          heard,
          `the result is withheld by a hook: ${ran.reason || NO_REASON}`,
          true,
        );
        continue;
      }
      const text = ran.answer === null ? undefined : textOf(ran.answer);
      if (ran.verdict === "continue" && text !== undefined) heard = withText(heard, text, false);
    }
    return heard;
  }

  /** `before_compaction`: why nothing may be summarised, null if it may. */
  async beforeCompaction(archive: string): Promise<string | null> {
    for (const index of this.#indexes("before_compaction")) {
      const ran = await this.#run("before_compaction", index, { archive });
      if (ran.verdict === "block") return ran.reason || NO_REASON;
    }
    return null;
  }

  /** `on_stop` before a final is accepted: each hook's answer. */
  async onFinal(result: Json): Promise<StopAnswer[]> {
    const answers: StopAnswer[] = [];
    for (const index of this.#indexes("on_stop")) {
      const input = { status: "completed", abort: null, reason: "", partial: false, result };
      const ran = await this.#run("on_stop", index, input);
      const passed = ran.verdict !== "block";
      answers.push({
        name: `on_stop ${this.#command("on_stop", index)}`,
        passed,
        reason: passed ? "" : ran.reason || NO_REASON,
        ms: Math.round(ran.durationMs),
      });
    }
    return answers;
  }

  /** `on_stop` of any other end: the hooks are told of it, and can change nothing any more. */
  async onStop(result: AgentResult): Promise<void> {
    const { status, abort, reason, partial } = result;
    const end = { status, abort, reason, partial, result: result.result };
    for (const index of this.#indexes("on_stop")) {
      // The record has its last line: what this hook does is telemetry.
      await this.#run("on_stop", index, end, undefined, false);
    }
  }

  #indexes(event: HookEvent): number[] {
    return this.#deps.payload.hooks[event].map((_command, index) => index);
  }

  #command(event: HookEvent, index: number): string {
    const command = this.#deps.payload.hooks[event][index];
    assert(command !== undefined, "a hook that was not declared");
    return command.join(" ");
  }

  /**
   * Runs one hook and tells of it. `used` says what of its answer counts, null if nothing does; left
   * out, what it prints is its own affair.
   */
  async #run(
    event: HookEvent,
    index: number,
    input: JsonObject,
    used?: (answer: JsonObject) => JsonObject | null,
    recorded = true,
  ): Promise<Ran> {
    const { broker, payload, telemetry, annotate } = this.#deps;
    const { runId, path } = payload.identity;
    await this.#enter();
    const outcome = await broker.runHook(event, index, {
      event,
      run_id: runId,
      agent_path: path,
      ...input,
    }).finally(() => this.#leave());
    const { verdict, replacement, reason } = outcome;
    const answer = verdict === "continue" && isObject(replacement) ? replacement : null;
    const counts = answer === null ? null : used?.(answer) ?? null;
    const said = verdict !== "continue"
      ? reason
      : used === undefined
      ? null
      : outcome.ignored ?? unused(replacement, counts);
    telemetry.emit("hook.result", {
      hook: event,
      command: this.#command(event, index),
      verdict,
      dur_ms: Math.round(outcome.durationMs),
      ...(said === null
        ? {}
        : { err: { type: verdict === "continue" ? "output" : verdict, message: said } }),
    }, verdict === "failed" || (verdict === "continue" && said !== null) ? "warn" : "info");
    if (recorded) {
      annotate("hook.ran", {
        hook: event,
        index,
        verdict,
        reason: said ?? "",
        replaced: counts !== null,
        ...(typeof input.call === "string" ? { call: input.call } : {}),
        // Arguments that replace others are what is sent: the record must name them before.
        ...(counts !== null && "arguments" in counts ? { arguments: counts.arguments! } : {}),
      });
    }
    return { ...outcome, answer };
  }

  /** Calls of a turn run side by side; their hooks wait for each other beyond a bound. */
  async #enter(): Promise<void> {
    if (this.#running >= HOOKS_AT_ONCE_MAX) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    this.#running++;
  }

  #leave(): void {
    this.#running--;
    this.#waiting.shift()?.();
  }
}

/** Why JSON that a hook printed changed nothing; null if it did, or printed none. */
function unused(replacement: Json | null, counts: JsonObject | null): string | null {
  return replacement === null || counts !== null
    ? null
    : "it printed JSON that replaces nothing; it is not used";
}

/** The text that stands for a result: `{"observation": {"text": …}}`, or either part of it alone. */
function textOf(answer: JsonObject): string | undefined {
  if (typeof answer.observation === "string") return answer.observation;
  const observation = isObject(answer.observation) ? answer.observation : answer;
  return typeof observation.text === "string" ? observation.text : undefined;
}

function withText(
  result: Outcome<ToolResult, ToolFailure>,
  text: string,
  isError: boolean,
): Outcome<ToolResult, ToolFailure> {
  if (!result.ok) return failed({ ...result.failure, message: text });
  const media = isError ? [] : result.value.parts.filter((part) => part.type !== "text");
  return success({
    parts: [{ type: "text", text }, ...media],
    structured: null,
    isError: isError || result.value.isError,
  });
}
