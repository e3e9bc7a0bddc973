/** Telemetry for people: short lines, and most events not at all. */

import { TEXT_LINE_CHARS_MAX } from "../core/config_limits.ts";
import { clip, withoutControls } from "../core/text.ts";
import type { TelemetryLine } from "./telemetry.ts";

const ACTIONS_SHOWN_MAX = 6;

/**
 * A line as people read it, without its line feed; null where it says nothing that they need. One
 * line a turn: step, verdict, new evidence, actions, tokens, time. Subagents' lines begin with their
 * path. No colours, no control characters.
 */
export function formatText(line: TelemetryLine): string | null {
  const text = describe(line);
  if (text === null) return null;
  const path = line.agent_path === null || line.agent_path === "0" ? "" : `[${line.agent_path}] `;
  const mark = line.level === "error" ? "error: " : line.level === "warn" ? "warning: " : "";
  const flat = withoutControls(`${path}${mark}${text}`).replace(/\s*\n\s*/g, " ");
  return clip(flat, TEXT_LINE_CHARS_MAX);
}

function describe(line: TelemetryLine): string | null {
  switch (line.event) {
    case "config.loaded":
      return typeof line.notice === "string" ? line.notice : null;
    case "config.invalid":
      return textOf(line.message) ?? errorOf(line);
    case "mcp.connect":
      return describeServer(line);
    case "mcp.connect.fail":
      return `cannot connect ${line.server}: ${errorOf(line) ?? "it did not start"}`;
    case "mcp.disconnect":
      // At info it was closed on purpose, at the end of a run.
      return line.level === "info" ? null : `lost ${line.server}${because(line)}`;
    case "mcp.tool.changed":
      return `${line.server}/${line.tool ?? "*"} changed${
        line.refused === true ? " and is refused" : ""
      }`;
    case "loop.start":
      return `run ${line.run_id}${line.resumed === true ? " goes on" : ""}${
        typeof line.max_steps === "number" ? `, at most ${line.max_steps} turns` : ""
      }`;
    case "loop.step":
      return describeStep(line);
    case "loop.final":
      return describeEnd(line);
    case "loop.error":
      return errorOf(line);
    default:
      return describeRest(line);
  }
}

function describeRest(line: TelemetryLine): string | null {
  switch (line.event) {
    case "action.invalid":
      return `invalid proposal: ${line.why}`;
    case "verify.result":
      return line.passed === true
        ? "verified"
        : `not verified: ${listOf(line.failed) || "the claim failed its checks"}`;
    case "context.compacted":
      return `compacted the context${
        typeof line.tokens_before === "number"
          ? ` from ${thousands(line.tokens_before)} to ${thousands(line.tokens_after)} tokens`
          : ""
      }`;
    case "intel.retry":
      if (typeof line.next === "string" && line.next !== line.endpoint) {
        return `${line.endpoint}${because(line)}; trying ${
          line.next === "recorded" ? "the recorded model" : line.next
        }`;
      }
      return `retrying the model${because(line)}${
        typeof line.wait_ms === "number" && line.wait_ms > 0 ? ` in ${seconds(line.wait_ms)}` : ""
      }`;
    case "trigger.armed":
    case "trigger.fired":
    case "trigger.skipped":
      return `${line.event.slice("trigger.".length)}${
        ["name", "slot", "route", "uri", "at"].map((key) =>
          textOf(line[key]) === null ? "" : ` ${line[key]}`
        ).join("")
      }${because(line)}`;
    case "subagent.spawn":
    case "subagent.exit":
      // The root is everyone's own run.
      return line.child_path === "0"
        ? null
        : `subagent ${line.child_path} ${
          line.event === "subagent.spawn"
            ? "started"
            : `ended: ${line.status ?? line.abort ?? "crashed"}`
        }`;
    case "subagent.refused":
      return `subagent refused${because(line)}`;
    case "subagent.signal":
    case "subagent.stuck":
    case "subagent.restart":
      return `${line.event.slice("subagent.".length)} ${line.child_path ?? ""} ${
        textOf(line.signal) ?? ""
      }${because(line)}`.replace(/ +/g, " ");
    case "limit.exceeded":
      return `limit ${line.limit ?? ""} exceeded${because(line)}`.replace(/ +/g, " ");
    case "scope.trifecta":
      return `untrusted input, sensitive data and egress in one agent${because(line)}`;
    case "permission.denied":
      return `permission denied${because(line)}`;
    case "proc.shutdown":
      return `stopping${because(line)}`;
    case "hook.result":
      return line.verdict === "continue"
        ? null
        : `hook ${line.hook ?? ""} ${line.verdict}${because(line)}`.replace(/ +/g, " ");
    default:
      return line.level === "error" || line.level === "warn"
        ? `${line.event}${because(line)}`
        : null;
  }
}

/** That a server is connected, or what it writes where no message is: the event is shared. */
function describeServer(line: TelemetryLine): string | null {
  if (typeof line.stray === "string") {
    return `${line.server}: bytes on stdout that are no message (${line.stray})`;
  }
  if (typeof line.stderr === "string") {
    return line.stderr.trim() === "" ? null : `${line.server}: ${line.stderr}`;
  }
  if (typeof line.stderr_suppressed === "number") {
    return `${line.server}:${
      count(line.stderr_suppressed, "more line", "more lines").slice(1)
    } on its stderr`;
  }
  return `connected ${line.server}${count(line.tools, "tool", "tools")}${
    count(line.resources, "resource", "resources")
  }`;
}

function describeStep(line: TelemetryLine): string {
  const actions = Array.isArray(line.actions) ? line.actions.map(describeAction) : [];
  const shown = actions.slice(0, ACTIONS_SHOWN_MAX).join(", ");
  const more = actions.length > ACTIONS_SHOWN_MAX
    ? ` and ${actions.length - ACTIONS_SHOWN_MAX} more`
    : "";
  const delta = typeof line.delta === "number" && line.delta > 0 ? ` +${line.delta}` : "";
  const tokens = typeof line.tokens_in === "number"
    ? `${thousands(line.tokens_in)} in, ${thousands(line.tokens_out)} out`
    : "";
  const spent = typeof line.model_ms === "number"
    ? seconds(line.model_ms + (typeof line.tools_ms === "number" ? line.tools_ms : 0))
    : "";
  const verdict = `${line.verdict}${delta}`;
  return [
    `turn ${String(line.step).padStart(2)}`,
    verdict.padEnd(12),
    shown + more,
    tokens,
    spent,
  ].filter((part) => part.trim() !== "").join("  ").trimEnd();
}

/** `docs/read`, with its class where it is not ok. */
function describeAction(action: unknown): string {
  if (typeof action === "object" && action !== null && "tool" in action) {
    const { tool, class: kind } = action as { tool: unknown; class?: unknown };
    return kind === undefined || kind === "ok" ? String(tool) : `${tool} (${kind})`;
  }
  const text = String(action);
  const at = text.lastIndexOf(":");
  if (at === -1) return text;
  const kind = text.slice(at + 1);
  return kind === "ok" ? text.slice(0, at) : `${text.slice(0, at)} (${kind})`;
}

function describeEnd(line: TelemetryLine): string {
  const end = textOf(line.status) ?? `aborted (${line.abort})`;
  const steps = typeof line.steps === "number"
    ? ` after ${line.steps} ${line.steps === 1 ? "turn" : "turns"}`
    : "";
  const reason = textOf(line.reason);
  const partial = line.partial === true ? "; the result is partial" : "";
  return `${end}${steps}${reason === null || reason === end ? "" : `: ${reason}`}${partial}`;
}

function textOf(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}

function errorOf(line: TelemetryLine): string | null {
  const error = line.err as { message?: unknown } | undefined;
  return textOf(error?.message);
}

function because(line: TelemetryLine): string {
  const why = textOf(line.why) ?? textOf(line.reason) ?? errorOf(line);
  return why === null ? "" : `: ${why}`;
}

function listOf(value: unknown): string {
  return Array.isArray(value) ? value.map(String).join(", ") : "";
}

function count(value: unknown, one: string, many: string): string {
  return typeof value === "number" && value > 0 ? `, ${value} ${value === 1 ? one : many}` : "";
}

function thousands(value: unknown): string {
  return String(value ?? 0).replace(/\B(?=(\d{3})+$)/g, ",");
}

function seconds(durationMs: number): string {
  return `${(durationMs / 1000).toFixed(1)} s`;
}
