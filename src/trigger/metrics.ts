/**
 * A daemon's figures, and their Prometheus text exposition. Names are stable: a dashboard made from
 * one version reads the next.
 */

import { STATUSES } from "../wire/result.ts";
import type { AgentResult } from "../wire/result.ts";

type Kind = "counter" | "gauge" | "histogram";

interface Family {
  name: string;
  kind: Kind;
  help: string;
  /** Label names, in order. */
  labels: readonly string[];
}

/** Upper bounds of durations, in seconds. */
const SECONDS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800];

/** Series of one family; beyond it, new label values are counted as `other`. */
const SERIES_MAX = 1_000;

const FAMILIES = {
  runs: family("agentd_runs_total", "counter", "Runs that ended.", ["status"]),
  starts: family("agentd_runs_started_total", "counter", "Runs that were started.", ["trigger"]),
  turns: family("agentd_turns_total", "counter", "Turns of ended runs.", []),
  tokens: family("agentd_tokens_total", "counter", "Tokens of ended runs.", ["direction"]),
  calls: family("agentd_tool_calls_total", "counter", "Tool calls by outcome.", ["outcome"]),
  verdicts: family("agentd_verdicts_total", "counter", "Turns by verdict.", ["verdict"]),
  duration: family("agentd_run_duration_seconds", "histogram", "From start to end of a run.", []),
  inflight: family("agentd_runs_in_flight", "gauge", "Runs in progress.", []),
  sessions: family("agentd_sessions", "gauge", "Warm sessions alive.", []),
  depth: family("agentd_queue_depth", "gauge", "Entries that wait in a route's queue.", ["route"]),
  received: family("agentd_events_total", "counter", "Changes that came in.", ["route"]),
  coalesced: family("agentd_events_coalesced_total", "counter", "Changes merged.", ["route"]),
  dropped: family("agentd_events_dropped_total", "counter", "Changes dropped.", [
    "route",
    "reason",
  ]),
  retried: family("agentd_events_retried_total", "counter", "Changes put back.", ["route"]),
  skipped: family("agentd_triggers_skipped_total", "counter", "Triggers without a run.", [
    "reason",
  ]),
  restarts: family("agentd_restarts_total", "counter", "Processes started again.", ["what"]),
  refusals: family("agentd_spawn_refusals_total", "counter", "Subagents refused.", []),
  late: family("agentd_fire_lateness_seconds", "histogram", "Fire after its slot.", []),
  lag: family("agentd_loop_lag_seconds", "gauge", "Lateness of the supervisor's own loop.", []),
  ready: family("agentd_ready", "gauge", "1 when triggers are armed and servers connected.", []),
  up: family("agentd_uptime_seconds", "gauge", "Since the daemon started.", []),
} as const satisfies Record<string, Family>;

/** A family of figures. */
export type MetricName = keyof typeof FAMILIES;

function family(name: string, kind: Kind, help: string, labels: readonly string[]): Family {
  return { name, kind, help, labels };
}

interface Histogram {
  counts: number[];
  sum: number;
  count: number;
}

/** All figures of one daemon. */
export class Metrics {
  readonly #values = new Map<MetricName, Map<string, number>>();
  readonly #histograms = new Map<MetricName, Histogram>();

  constructor() {
    // What is known to be possible is there from the start: a rate over it needs its zero.
    for (const status of [...STATUSES, "abort_intelligence", "abort_mcp"]) {
      this.add("runs", 0, status);
    }
    for (const direction of ["in", "out", "cached"]) this.add("tokens", 0, direction);
    for (const name of ["turns", "refusals"] as const) this.add(name, 0);
    for (const name of ["inflight", "sessions", "ready", "lag"] as const) this.set(name, 0);
  }

  /** Adds to a counter. */
  add(name: MetricName, by: number, ...labels: string[]): void {
    const series = this.#series(name);
    const key = this.#key(series, labels);
    series.set(key, (series.get(key) ?? 0) + by);
  }

  /** Sets a gauge, or a counter that is counted elsewhere. */
  set(name: MetricName, value: number, ...labels: string[]): void {
    const series = this.#series(name);
    series.set(this.#key(series, labels), value);
  }

  /** One observation of a histogram, in seconds. */
  observe(name: MetricName, seconds: number): void {
    let histogram = this.#histograms.get(name);
    if (histogram === undefined) {
      histogram = { counts: SECONDS.map(() => 0), sum: 0, count: 0 };
      this.#histograms.set(name, histogram);
    }
    const at = SECONDS.findIndex((bound) => seconds <= bound);
    if (at !== -1) histogram.counts[at]!++;
    histogram.sum += seconds;
    histogram.count++;
  }

  /** A figure as it is; for tests and reports. */
  get(name: MetricName, ...labels: string[]): number {
    return this.#values.get(name)?.get(labels.join("\n")) ?? 0;
  }

  /** A run or a delivery is over. */
  countEnd(result: AgentResult, durationMs: number): void {
    this.add("runs", 1, result.status ?? `abort_${result.abort}`);
    this.add("turns", result.usage.steps);
    this.add("tokens", result.usage.tokens_in, "in");
    this.add("tokens", result.usage.tokens_out, "out");
    this.add("tokens", result.usage.tokens_cached, "cached");
    this.observe("duration", durationMs / 1000);
  }

  /** The text exposition, version 0.0.4. */
  render(): string {
    const lines: string[] = [];
    for (const [name, { name: metric, kind, help, labels }] of Object.entries(FAMILIES)) {
      const series = this.#values.get(name as MetricName);
      const histogram = this.#histograms.get(name as MetricName);
      if (series === undefined && histogram === undefined) continue;
      lines.push(`# HELP ${metric} ${help}`, `# TYPE ${metric} ${kind}`);
      for (const [key, value] of series ?? []) {
        lines.push(`${metric}${renderLabels(labels, key === "" ? [] : key.split("\n"))} ${value}`);
      }
      if (histogram !== undefined) lines.push(...renderHistogram(metric, histogram));
    }
    return lines.join("\n") + "\n";
  }

  #series(name: MetricName): Map<string, number> {
    let series = this.#values.get(name);
    if (series === undefined) {
      series = new Map();
      this.#values.set(name, series);
    }
    return series;
  }

  #key(series: Map<string, number>, labels: string[]): string {
    const key = labels.map((label) => label.replaceAll("\n", " ")).join("\n");
    if (series.has(key) || series.size < SERIES_MAX) return key;
    return labels.map(() => "other").join("\n");
  }
}

function renderLabels(names: readonly string[], values: readonly string[]): string {
  if (names.length === 0) return "";
  const escape = (text: string) => text.replaceAll("\\", "\\\\").replaceAll('"', '\\"');
  return `{${names.map((name, i) => `${name}="${escape(values[i] ?? "")}"`).join(",")}}`;
}

function renderHistogram(metric: string, histogram: Histogram): string[] {
  let cumulative = 0;
  const lines = SECONDS.map((bound, i) => {
    cumulative += histogram.counts[i]!;
    return `${metric}_bucket{le="${bound}"} ${cumulative}`;
  });
  lines.push(`${metric}_bucket{le="+Inf"} ${histogram.count}`);
  lines.push(`${metric}_sum ${histogram.sum}`, `${metric}_count ${histogram.count}`);
  return lines;
}
