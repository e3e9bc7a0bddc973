/** Decisions as telemetry: the same facts that the record gets, in the closed events. */

import type { TelemetryPort } from "../ports/telemetry.ts";
import type { AgentEvent, Decision } from "./event.ts";

/** Emits what a decision says, if it says anything outside; `checksMs`: what its checks took. */
export function narrateDecision(
  telemetry: TelemetryPort,
  decision: Decision,
  checksMs: number,
): void {
  switch (decision.type) {
    case "turn.judged":
      narrateTurn(telemetry, decision);
      break;
    case "action.invalid":
      telemetry.emit("action.invalid", { step: decision.step, why: decision.why });
      break;
    case "call.refused":
      if (decision.class === "invalid") {
        telemetry.emit("action.invalid", {
          step: decision.step,
          tool: decision.tool,
          why: decision.why,
        });
      }
      break;
    case "verify.judged":
      telemetry.emit("verify.result", {
        step: decision.step,
        passed: decision.passed,
        failed: decision.items.filter((item) => !item.passed).map((item) =>
          `${item.kind} ${item.name}`
        ),
        dur_ms: checksMs,
      });
      break;
    case "context.stubbed":
      telemetry.emit("context.stubbed", { step: decision.step, calls: decision.calls.length });
      break;
    case "context.compacted":
      telemetry.emit("context.compacted", {
        step: decision.step,
        attempt: decision.attempt,
        summarised: decision.summarised,
        tokens_before: decision.before,
        tokens_after: decision.after,
        turns_dropped: decision.turns_dropped,
      });
      break;
    case "run.ended":
      narrateEnd(telemetry, decision);
      break;
    case "model.requested":
    case "call.intended":
    case "call.abandoned":
    case "checks.requested":
      break;
  }
}

type DecisionOf<Type extends Decision["type"]> = Extract<Decision, { type: Type }>;

function narrateTurn(telemetry: TelemetryPort, decision: DecisionOf<"turn.judged">): void {
  telemetry.emit("loop.step", {
    step: decision.step,
    verdict: decision.verdict,
    delta: decision.delta,
    idle: decision.idle,
    context_hash: decision.context_hash,
    signature: decision.signature,
    actions: decision.actions.map((action) => `${action.tool}:${action.class}`),
    tokens_in: decision.tokens_in,
    tokens_out: decision.tokens_out,
    cost: decision.cost,
    model_ms: decision.model_ms,
    tools_ms: decision.tools_ms,
  });
}

function narrateEnd(telemetry: TelemetryPort, decision: DecisionOf<"run.ended">): void {
  telemetry.emit("loop.final", {
    status: decision.status,
    abort: decision.abort,
    reason: decision.reason,
    partial: decision.partial,
    steps: decision.usage.steps,
    tokens_in: decision.usage.tokens_in,
    tokens_out: decision.usage.tokens_out,
    tool_calls: decision.usage.tool_calls,
    cost: decision.usage.cost,
  });
}

/** Emits what an event says. */
export function narrateEvent(telemetry: TelemetryPort, event: AgentEvent): void {
  switch (event.type) {
    case "run.started":
      telemetry.emit("loop.start", { resumed: false, max_steps: event.limits.maxSteps });
      break;
    case "run.resumed":
      telemetry.emit("loop.start", { resumed: true, max_steps: event.limits.maxSteps });
      break;
    case "model.failed":
    case "summary.failed":
      telemetry.emit("loop.error", {
        dur_ms: event.ms,
        err: { type: event.failure.class, message: event.failure.message },
      }, "error");
      break;
    case "server.down":
      telemetry.emit("loop.error", {
        server: event.failure.server,
        err: { type: "server_down", message: event.failure.message },
      }, "error");
      break;
    default:
      break;
  }
}
