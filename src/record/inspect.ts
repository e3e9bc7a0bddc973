/** `agentd inspect RUN`: a run, iteration by iteration, as a table or as JSON, also while it runs. */

import { parseIso } from "../core/time.ts";
import { formatSize } from "../core/units.ts";
import { type ClockPort, pause } from "../ports/clock.ts";
import type { FilesPort } from "../ports/files.ts";
import type { LockPort } from "../ports/lock.ts";
import { RECORD_FILE } from "./append.ts";
import {
  type Column,
  type CommandOutput,
  countOf,
  formatCost,
  formatCount,
  formatElapsed,
  oneLine,
  renderTable,
  usageError,
} from "./output.ts";
import { describeFault, isForeignVersion, refusal } from "./read.ts";
import { isRunning, type RunPlace, type RunState } from "./runs.ts";
import {
  type AgentTrace,
  type Iteration,
  type RunTrace,
  subagentRecords,
  type TraceAction,
  TraceBuilder,
  traceRun,
} from "./trace.ts";
import { endAdvice, endSentence } from "./advice.ts";

const ACTIONS_CHARS_MAX = 40;
const FOLLOW_INTERVAL_MS = 250;

/** What looking at a run needs. */
export interface InspectDeps {
  files: FilesPort;
  clock: ClockPort;
  lock: LockPort;
}

/** Reads a run's records into one trace. */
export async function readRunTrace(deps: InspectDeps, place: RunPlace): Promise<RunTrace> {
  const agents = traceRun(deps.files, place.directory);
  return composeTrace(place, agents, await stateOf(deps, place, agents[0]!));
}

/** How the run stands, by its root agent's record and its lock. */
export async function stateOf(
  deps: InspectDeps,
  place: RunPlace,
  root: AgentTrace,
): Promise<RunState> {
  if (root.fault !== null) return "damaged";
  if (root.end !== null) return "ended";
  return await isRunning(deps, place.directory) ? "running" : "interrupted";
}

/** The agents' traces, the root's first, as one run. */
export function composeTrace(place: RunPlace, agents: AgentTrace[], state: RunState): RunTrace {
  const root = agents[0]!;
  const startedMs = parseIso(root.started_at ?? "");
  const lastMs = parseIso(root.last_at ?? "");
  return {
    run_id: place.id,
    state,
    status: root.end?.status ?? null,
    abort: root.end?.abort ?? null,
    reason: endSentence(root.end, state),
    advice: endAdvice(root, state, place.id),
    first_non_advancing: root.first_non_advancing,
    started_at: root.started_at,
    last_at: root.last_at,
    elapsed_ms: startedMs !== undefined && lastMs !== undefined ? lastMs - startedMs : 0,
    agents,
  };
}

/** `agentd inspect RUN` and `--json`. Damage in a record is shown, and exits 1. */
export async function inspectCommand(
  deps: InspectDeps,
  place: RunPlace,
  options: { json: boolean },
): Promise<CommandOutput> {
  const trace = await readRunTrace(deps, place);
  const { fault } = trace.agents[0]!;
  if (fault && isForeignVersion(fault)) return usageError(refusal("inspect", place, fault));
  const damaged = trace.agents.some((agent) => agent.fault !== null);
  const stdout = options.json ? JSON.stringify(trace, null, 2) + "\n" : renderTrace(trace);
  return { exitCode: damaged ? 1 : 0, stdout, stderr: faultLines(trace.agents) };
}

/** One line for every record that is torn or damaged. */
export function faultLines(agents: readonly AgentTrace[]): string {
  let lines = "";
  for (const agent of agents) {
    if (agent.fault) {
      lines += `agentd: Cannot read all of ${agent.record}: ${describeFault(agent.fault)}\n`;
    }
    if (agent.torn_bytes > 0) {
      lines +=
        `agentd: ${agent.record}: a torn last line of ${agent.torn_bytes} bytes was dropped\n`;
    }
  }
  return lines;
}

const COLUMNS: readonly Column[] = [
  { head: "STEP" },
  { head: "ACTIONS" },
  { head: "OBSERVED" },
  { head: "VERDICT" },
  { head: "DELTA", right: true },
  { head: "IDLE", right: true },
  { head: "TOKENS", right: true },
  { head: "CACHED", right: true },
  { head: "MODEL", right: true },
  { head: "TOOLS", right: true },
  { head: "" },
];

/** The table and the footer. */
function renderTrace(trace: RunTrace): string {
  const rows = orderRows(trace.agents).map(({ agent, iteration }) => row(agent, iteration));
  return `${headLine(trace)}\n${renderTable(COLUMNS, rows)}\n${footer(trace)}`;
}

function headLine(trace: RunTrace): string {
  const root = trace.agents[0]!;
  const parts = [
    trace.run_id,
    trace.state === "ended" ? trace.status ?? `abort ${trace.abort}` : trace.state,
    `model ${oneLine(root.model ?? "–", 60)}`,
    `started ${(trace.started_at ?? "–").slice(0, 19).replace("T", " ")}`,
  ];
  return `${parts.join(" · ")}\n${oneLine(root.instruction, 100)}\n`;
}

/** Subagents come where their parent stood when they began. */
function orderRows(agents: readonly AgentTrace[]): { agent: AgentTrace; iteration: Iteration }[] {
  const rows: { agent: AgentTrace; iteration: Iteration }[] = [];
  const visit = (agent: AgentTrace): void => {
    const children = agents.filter((other) => parentOf(other.path) === agent.path);
    for (const iteration of agent.iterations) {
      while (children[0] && (children[0].started_at ?? "") < iteration.ts) {
        visit(children.shift()!);
      }
      rows.push({ agent, iteration });
    }
    children.forEach(visit);
  };
  const known = new Set(agents.map((agent) => agent.path));
  for (const agent of agents) if (!known.has(parentOf(agent.path))) visit(agent);
  return rows;
}

function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf(".")));
}

function row(agent: AgentTrace, iteration: Iteration): string[] {
  const depth = agent.path.split(".").length - 1;
  const name = depth === 0
    ? String(iteration.step)
    : `${"  ".repeat(depth)}${agent.path} #${iteration.step}`;
  return [
    name,
    shortActions(iteration),
    shortObservations(iteration.actions),
    iteration.verdict,
    String(iteration.delta),
    String(iteration.idle),
    formatCount(iteration.tokens_in + iteration.tokens_out),
    formatCount(iteration.tokens_cached),
    formatElapsed(iteration.model_ms),
    formatElapsed(iteration.tools_ms),
    iteration.step === agent.first_non_advancing && iteration.delta === 0
      ? "<- first without new evidence"
      : "",
  ];
}

/** What an iteration did in a few words: `fs/read x3, fs/list`. */
export function shortActions(iteration: Iteration): string {
  if (iteration.actions.length === 0) return iteration.verdict === "answered" ? "(answer)" : "–";
  const counts = new Map<string, number>();
  for (const { tool } of iteration.actions) counts.set(tool, (counts.get(tool) ?? 0) + 1);
  const parts = [...counts].map(([tool, count]) => count === 1 ? tool : `${tool} x${count}`);
  return oneLine(parts.join(", "), ACTIONS_CHARS_MAX);
}

/** What came back, by class, with its size: `ok 1.2KiB, error 80B`. */
export function shortObservations(actions: readonly TraceAction[]): string {
  const sums = new Map<string, { count: number; bytes: number }>();
  for (const action of actions) {
    const sum = sums.get(action.class) ?? { count: 0, bytes: 0 };
    sum.count++;
    sum.bytes += action.bytes ?? 0;
    sums.set(action.class, sum);
  }
  return [...sums].map(([name, { count, bytes }]) =>
    `${name}${count > 1 ? ` x${count}` : ""}${bytes > 0 ? ` ${formatSize(bytes)}` : ""}`
  ).join(", ") || "–";
}

function footer(trace: RunTrace): string {
  const usage = sumUsage(trace.agents);
  const agents = trace.agents.length === 1 ? "" : ` in ${trace.agents.length} agents`;
  const estimated = usage.estimated ? ", partly estimated" : "";
  const lines = [
    `Total: ${countOf(usage.steps, "step")}${agents}, ${
      countOf(usage.modelCalls, "model call")
    }, ` +
    `${countOf(usage.toolCalls, "tool call")}, ${countOf(usage.tokens, "token")} ` +
    `(${formatCount(usage.cached)} cached${estimated}), cost ${formatCost(usage.cost)}, ` +
    formatElapsed(trace.elapsed_ms),
    oneLine(trace.reason, 600),
    oneLine(trace.advice, 300),
  ];
  return lines.join("\n") + "\n";
}

function sumUsage(agents: readonly AgentTrace[]) {
  const sum = {
    steps: 0,
    modelCalls: 0,
    toolCalls: 0,
    tokens: 0,
    cached: 0,
    cost: 0 as number | null,
    estimated: false,
  };
  for (const { usage } of agents) {
    sum.steps += usage.steps;
    sum.modelCalls += usage.model_calls;
    sum.toolCalls += usage.tool_calls;
    sum.tokens += usage.tokens_in + usage.tokens_out;
    sum.cached += usage.tokens_cached;
    sum.cost = sum.cost === null || usage.cost === null ? null : sum.cost + usage.cost;
    sum.estimated ||= usage.tokens_estimated;
  }
  return sum;
}

const FOLLOW_WIDTHS = [8, ACTIONS_CHARS_MAX, 20, 9, 5, 4, 9, 9, 7, 7];

/**
 * `--follow`: prints each iteration as it is judged and the footer when the run is over, or when its
 * supervisor is gone. With `json`, one JSON object a line. Ends early when `signal` aborts.
 */
export async function followCommand(
  deps: InspectDeps,
  place: RunPlace,
  options: { json: boolean },
  write: (text: string) => void,
  signal: AbortSignal,
): Promise<CommandOutput> {
  const root = new TraceBuilder("0", `${place.directory}/${RECORD_FILE}`);
  const builders = new Map<string, TraceBuilder>([["0", root]]);
  const shown = new Map<string, number>();
  if (!options.json) write(followLine(COLUMNS.map((column) => column.head)));
  for (;;) {
    // Asked before reading: what is written before the lock is given up is then still seen.
    const alive = await isRunning(deps, place.directory);
    for (const { path, record } of subagentRecords(deps.files, place.directory)) {
      if (!builders.has(path)) builders.set(path, new TraceBuilder(path, record));
    }
    for (const builder of builders.values()) {
      if (builder.trace.fault === null) builder.read(deps.files);
      const { trace } = builder;
      for (const iteration of trace.iterations.slice(shown.get(trace.path) ?? 0)) {
        write(
          options.json
            ? JSON.stringify({ path: trace.path, ...iteration }) + "\n"
            : followLine(row(trace, iteration)),
        );
      }
      shown.set(trace.path, trace.iterations.length);
    }
    if (root.trace.fault !== null || !alive || signal.aborted) break;
    await pause(deps.clock, FOLLOW_INTERVAL_MS, signal);
  }
  const agents = [...builders.values()].map((builder) => builder.trace);
  const trace = composeTrace(place, agents, await stateOf(deps, place, root.trace));
  if (options.json) write(JSON.stringify({ ...trace, agents: undefined }) + "\n");
  else write("\n" + footer(trace));
  const exitCode = agents.some((agent) => agent.fault !== null) ? 1 : 0;
  return { exitCode, stdout: "", stderr: faultLines(agents) };
}

function followLine(cells: readonly string[]): string {
  return cells.map((cell, i) => {
    const width = FOLLOW_WIDTHS[i] ?? 0;
    return COLUMNS[i]!.right ? cell.padStart(width) : cell.padEnd(width);
  }).join("  ").trimEnd() + "\n";
}
