/** Telemetry lines on stderr: the closed set of events and their shape. */

/** Every event there is; no other name is ever emitted. */
export const EVENTS = [
  "proc.start",
  "proc.ready",
  "proc.shutdown",
  "proc.exit",
  "config.loaded",
  "config.invalid",
  "mcp.connect",
  "mcp.connect.fail",
  "mcp.disconnect",
  "mcp.tool.changed",
  "trigger.armed",
  "trigger.fired",
  "trigger.skipped",
  "subscribe",
  "unsubscribe",
  "resource.updated",
  "subagent.spawn",
  "subagent.refused",
  "subagent.exit",
  "subagent.signal",
  "subagent.stuck",
  "subagent.restart",
  "limit.exceeded",
  "scope.trifecta",
  "permission.denied",
  "loop.start",
  "loop.step",
  "loop.final",
  "loop.error",
  "intel.call",
  "intel.retry",
  "intel.result",
  "tool.call",
  "tool.result",
  "action.invalid",
  "verify.result",
  "context.stubbed",
  "context.compacted",
  "hook.result",
] as const;

/** One of {@link EVENTS}. */
export type EventName = (typeof EVENTS)[number];

/** How much a line matters. */
export type Level = "debug" | "info" | "warn" | "error";

/** Everything is at info but these two. */
export const DEBUG_EVENTS: ReadonlySet<EventName> = new Set(["context.stubbed", "intel.call"]);

/** Levels in order: a line is written if it ranks no lower than what is asked for. */
export const LEVEL_RANK: Readonly<Record<Level, number>> = { debug: 0, info: 1, warn: 2, error: 3 };

/** Who speaks: on every line of one process. */
export interface TelemetryContext {
  run_id: string | null;
  agent_id: string | null;
  agent_path: string | null;
  /** `supervisor`, `broker`, `loop`, `watcher`, `toolserver`. */
  comp: string;
  pid: number;
  trace_id: string | null;
  span_id: string | null;
  parent_span_id: string | null;
}

/** One line: its head, who speaks, and the fields of its event. */
export type TelemetryLine = { ts: string; level: Level; event: EventName } & TelemetryContext & {
  [field: string]: unknown;
};
