/** agentd inside another program: one run with its events and its result, as a typed API. */

import { BrokerLink } from "../agent/link.ts";
import { beginLoop } from "../agent/loop.ts";
import { Desk } from "../broker/desk.ts";
import { Servers } from "../broker/servers.ts";
import { loadSettings } from "../config/load.ts";
import { formatProblem } from "../config/problem.ts";
import type { Settings } from "../config/settings.ts";
import { makeUlid, toHex } from "../core/ids.ts";
import { formatIso } from "../core/time.ts";
import type { CancelReason } from "../wire/control.ts";
import { createToolHost } from "../mcp/tool_host.ts";
import type { Cancel, ClockPort } from "../ports/clock.ts";
import type { DigestPort } from "../ports/digest.ts";
import type { FilesPort } from "../ports/files.ts";
import type { ModelPort } from "../ports/model.ts";
import type { SignalsPort } from "../ports/signals.ts";
import { RECORD_FILE } from "../record/append.ts";
import { pause } from "../record/pause.ts";
import { cursorAfter, readRecord, RECORD_START } from "../record/read.ts";
import { rootPayload } from "../supervisor/payload.ts";
import type { TelemetryPort } from "../ports/telemetry.ts";
import type { ToolsPort } from "../ports/tools.ts";
import type { AgentPayload } from "../wire/payload.ts";
import type { SupervisorPorts } from "../supervisor/ports.ts";
import { runOnce } from "../supervisor/run.ts";
import { explainTrifecta, judgeGrant } from "../supervisor/rule_of_two.ts";
import { cleanEnvironment } from "../wire/environment.ts";
import type { RecordLine } from "../wire/record.ts";
import { type AgentResult, failedResult, type RunResult } from "../wire/result.ts";
import { exitCode } from "./exit_code.ts";

/** What {@link runAgent} is told. */
export interface RunAgentOptions {
  /** The task. */
  instruction: string;
  /**
   * Every other option of `agentd run`, by its name in the configuration file or on the command line
   * without dashes: `{ max_steps: "20", "allow-read": ["./docs"], mcp: ["docs=node server.js"] }`.
   */
  options?: Readonly<Record<string, string | readonly string[]>>;
  /** Variables that secrets and `AGENT_…` options are read from; none by default. */
  env?: Readonly<Record<string, string>>;
  /** Where relative paths start; the process's own directory by default. */
  cwd?: string;
  /** Ends the run as `cancelled` when it aborts. */
  signal?: AbortSignal;
  /**
   * `process` (default): supervisor, agent process, narrowed Worker, as the command line has it.
   * With a model port: the same loop inside this process, without isolation, for tests.
   */
  driver?: "process" | { model: ModelPort };
}

/** A run under way. */
export interface AgentRun {
  /** The lines of the run's record as they are written: what happened and what was decided. */
  events: AsyncIterable<RecordLine>;
  /** How it ended. Rejects with a {@link ConfigurationError} if nothing was started. */
  result: Promise<RunResult>;
}

/** The options were not valid; nothing was started. `problems` names each. */
export class ConfigurationError extends Error {
  /** The class's name, as errors print it. */
  override name = "ConfigurationError";
  /** One line each. */
  readonly problems: readonly string[];

  /** Makes the error of these problems. */
  constructor(problems: readonly string[]) {
    super(`Cannot run: ${problems.join("; ")}`);
    this.problems = problems;
  }
}

/** Effects that an embedded run needs. */
export interface EmbedPorts extends SupervisorPorts {
  digest: DigestPort;
  fetch: typeof fetch;
  cwd: string;
  home: string | null;
  uid: number | null;
}

const FOLLOW_INTERVAL_MS = 50;

/** Runs an agent over ports; {@link AgentRun} is there at once. */
export function embedAgent(ports: EmbedPorts, options: RunAgentOptions): AgentRun {
  const begun = begin(ports, options);
  const over = new AbortController();
  const result = begun.then((run) => run.result).finally(() => over.abort());
  // Whoever only iterates hears of a failure through `result`; it must not crash the process.
  result.catch(() => {});
  return { result, events: follow(ports, begun.then((run) => run.path), over.signal) };
}

async function begin(
  ports: EmbedPorts,
  options: RunAgentOptions,
): Promise<{ path: string; result: Promise<RunResult> }> {
  const loaded = await settingsOf(ports, options);
  const runId = loaded.runId ?? makeUlid(ports.clock.wallMs(), ports.random.bytes(10));
  const settings: Settings = {
    ...loaded,
    runId,
    log: { ...loaded.log, level: "error", quiet: true },
  };
  const path = `${settings.runDirectory}/${runId}/${RECORD_FILE}`;
  const { driver = "process" } = options;
  const result = driver === "process"
    ? runInProcesses(ports, settings, options.signal)
    : runInside(ports, settings, driver.model, options.signal);
  return { path, result };
}

async function settingsOf(ports: EmbedPorts, options: RunAgentOptions): Promise<Settings> {
  const flags: Record<string, readonly string[]> = { instruction: [options.instruction] };
  for (const [name, value] of Object.entries(options.options ?? {})) {
    flags[name.replace(/^--/, "").replaceAll("-", "_")] = typeof value === "string"
      ? [value]
      : value;
  }
  const loaded = await loadSettings({
    purpose: "run",
    flags,
    env: options.env ?? {},
    cwd: options.cwd ?? ports.cwd,
    home: ports.home,
    uid: ports.uid,
    files: ports.files,
    readStdin: () => Promise.resolve({ ok: false, failure: "an embedded run has no stdin" }),
    stderrIsTerminal: false,
    notice: () => {},
    judge: (servers, tools) => {
      const verdict = judgeGrant(servers, tools);
      return verdict.trifecta ? explainTrifecta(verdict) : null;
    },
  });
  if (!loaded.ok) throw new ConfigurationError(loaded.failure.map(formatProblem));
  return loaded.value;
}

async function runInProcesses(
  ports: EmbedPorts,
  settings: Settings,
  signal: AbortSignal | undefined,
): Promise<RunResult> {
  // The host's signals stay the host's: an abort is what ends this run.
  const end = await runOnce(settings, { ...ports, signals: abortAsSignal(signal) });
  if (!end.ok) throw new ConfigurationError([end.failure.message]);
  const { signal: caught, forced: _forced, artifact: _artifact, directory: _directory, ...rest } =
    end.value;
  return composeResult(rest, settings, caught);
}

/** A signal port whose SIGTERM is an abort. */
function abortAsSignal(signal: AbortSignal | undefined): SignalsPort {
  return {
    on(name, handle): Cancel {
      if (signal === undefined || name !== "SIGTERM") return () => {};
      const fire = () => handle();
      if (signal.aborted) queueMicrotask(fire);
      else signal.addEventListener("abort", fire, { once: true });
      return () => signal.removeEventListener("abort", fire);
    },
  };
}

/** The same loop, record, tool host and broker desk, all in this process. */
async function runInside(
  ports: EmbedPorts,
  settings: Settings,
  model: ModelPort,
  signal: AbortSignal | undefined,
): Promise<RunResult> {
  const startedWallMs = ports.clock.wallMs();
  const payload = insidePayload(ports, settings, startedWallMs);
  const { identity } = payload;
  const ended = Promise.withResolvers<AgentResult>();
  const { link, tools, close } = connectInside(ports, settings, payload, ended.resolve);
  const driver = beginLoop({
    ...ports,
    payload,
    vault: settings.vault,
    model,
    tools,
    broker: link,
    telemetry: SILENT,
    ended: ended.resolve,
  });
  const cancel = () => driver?.cancel("sigterm" satisfies CancelReason);
  if (signal?.aborted) cancel();
  signal?.addEventListener("abort", cancel, { once: true });
  const { artifact: _artifact, evidence: _evidence, ...result } = await ended.promise;
  signal?.removeEventListener("abort", cancel);
  await close();
  const end = {
    run_id: identity.runId,
    ...result,
    started_at: formatIso(startedWallMs),
    ended_at: formatIso(ports.clock.wallMs()),
    record: `${identity.directory}/${RECORD_FILE}`,
  };
  return composeResult(end, settings, result.status === "cancelled" ? "SIGTERM" : null);
}

const SILENT: TelemetryPort = { emit: () => {} };

function insidePayload(ports: EmbedPorts, settings: Settings, startedWallMs: number): AgentPayload {
  const identity = {
    runId: settings.runId!,
    agentId: makeUlid(startedWallMs, ports.random.bytes(10)),
    path: "0",
    depth: 0,
    directory: `${settings.runDirectory}/${settings.runId}`,
    traceId: toHex(ports.random.bytes(16)),
    parentSpanId: null,
  };
  const alone = { ...settings, limits: { ...settings.limits, maxSubagents: 0 } };
  const deadlineWallMs = startedWallMs + settings.limits.deadlineMs;
  return rootPayload(alone, identity, { kind: "fresh" }, deadlineWallMs);
}

/** Tool host and broker desk, joined without a channel between processes. */
function connectInside(
  ports: EmbedPorts,
  settings: Settings,
  payload: AgentPayload,
  ended: (result: AgentResult) => void,
): { link: BrokerLink; tools: ToolsPort; close: () => Promise<void> } {
  const { vault } = settings;
  const environment = cleanEnvironment(ports.env);
  const servers = new Servers({ ...ports, payload, vault, environment, telemetry: SILENT });
  const link: BrokerLink = new BrokerLink((message) => desk.receive(message));
  const desk: Desk = new Desk({
    ...ports,
    payload,
    vault,
    environment,
    // No group of its own: nothing is swept that this process may need.
    groupId: -1,
    telemetry: SILENT,
    servers,
    toSupervisor: () => {},
    toWorker: (message) => void link.receive(message),
    up: () => {},
    failed: (message) => ended(failedResult("crashed", message)),
    ended,
  });
  const tools = createToolHost({
    ...ports,
    servers: payload.servers,
    tools: payload.tools,
    identity: payload.identity,
    vault,
    openServer: (name, aborted) => link.openServer(name, aborted),
    telemetry: SILENT,
  });
  const close = async () => {
    await tools.close();
    desk.stop();
    await servers.closeAll();
  };
  return { link, tools, close };
}

function composeResult(
  end: Omit<RunResult, "exit_code">,
  settings: Settings,
  signal: "SIGINT" | "SIGTERM" | null,
): RunResult {
  const code = exitCode({ ...end, mode: settings.mode, signal, forced: false });
  const { run_id, status, abort, ...rest } = end;
  return { run_id, status, abort, exit_code: code, ...rest };
}

/** The record's lines as they come, until the run is over and nothing is left to read. */
async function* follow(
  ports: { files: FilesPort; clock: ClockPort },
  path: Promise<string>,
  over: AbortSignal,
): AsyncGenerator<RecordLine> {
  const record = await path.catch(() => null);
  if (record === null) return;
  let cursor = RECORD_START;
  for (;;) {
    // Asked before reading: what is written before the end is then still seen.
    const last = over.aborted;
    for (const item of readRecord(ports.files, record, cursor)) {
      if (item.kind !== "line") break;
      cursor = cursorAfter(item);
      yield item.line;
    }
    if (last) return;
    await pause(ports.clock, FOLLOW_INTERVAL_MS, over);
  }
}
