/** agentd inside another program: one run with its events and its result, as a typed API. */

import { loadSettings } from "../config/load.ts";
import { OPTIONS } from "../config/options.ts";
import { formatProblem, type Problem, problem } from "../config/problem.ts";
import type { Settings } from "../config/settings.ts";
import { didYouMean } from "../config/suggest.ts";
import { makeUlid } from "../core/ids.ts";
import { type Cancel, type ClockPort, pause } from "../ports/clock.ts";
import type { DigestPort } from "../ports/digest.ts";
import type { FilesPort } from "../ports/files.ts";
import type { HttpPort } from "../ports/http.ts";
import type { ModelPort } from "../ports/model.ts";
import type { SignalsPort } from "../ports/signals.ts";
import { RECORD_FILE } from "../record/append.ts";
import { cursorAfter, readRecord, RECORD_START } from "../record/read.ts";
import type { SupervisorPorts } from "../supervisor/ports.ts";
import { runOnce } from "../supervisor/run.ts";
import { explainTrifecta, judgeGrant } from "../supervisor/rule_of_two.ts";
import type { RecordLine } from "../wire/record.ts";
import type { RunResult } from "../wire/result.ts";
import { runInside } from "./embed_inside.ts";
import { exitCode } from "./exit_code.ts";
import { findModel } from "./find_model.ts";

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
  http: HttpPort;
  fetch: typeof fetch;
  cwd: string;
  home: string | null;
  uid: number | null;
}

const FOLLOW_INTERVAL_MS = 50;
const OPTION_NAMES = OPTIONS.map((option) => option.name);

/** Options of daemons, and of how the command line speaks: nothing of an embedded run does that. */
const WITHOUT_EFFECT: ReadonlySet<string> = new Set([
  "health_file",
  "listen",
  "lock",
  "log_content",
  "log_format",
  "log_level",
  "otlp_endpoint",
  "output",
  "output_file",
  "quiet",
]);

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
  const { driver = "process" } = options;
  const loaded = await settingsOf(ports, options);
  const runId = loaded.runId ?? makeUlid(ports.clock.wallMs(), ports.random.bytes(10));
  const settings: Settings = {
    ...loaded,
    runId,
    log: { ...loaded.log, level: "error", quiet: true },
  };
  const path = `${settings.runDirectory}/${runId}/${RECORD_FILE}`;
  const result = driver === "process"
    ? runInProcesses(ports, await withModel(ports, settings), options.signal)
    : runInside(ports, settings, driver.model, options.signal).then((end) =>
      composeResult(end, settings, end.status === "cancelled" ? "SIGTERM" : null)
    );
  return { path, result };
}

async function settingsOf(ports: EmbedPorts, options: RunAgentOptions): Promise<Settings> {
  const flags: Record<string, readonly string[]> = { instruction: [options.instruction] };
  const problems: Problem[] = [];
  for (const [written, value] of Object.entries(options.options ?? {})) {
    const name = written.replace(/^--/, "").replaceAll("-", "_");
    const why = name === "instruction"
      ? "it is an option of its own"
      : !OPTION_NAMES.includes(name)
      ? `there is no such option; ${didYouMean(name, OPTION_NAMES)}`.replace(/; $/, "")
      : WITHOUT_EFFECT.has(name)
      ? "it has no effect in an embedded run"
      : null;
    if (why !== null) problems.push(problem(written, undefined, why));
    else flags[name] = typeof value === "string" ? [value] : value;
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
  if (!loaded.ok) problems.push(...loaded.failure);
  else if (loaded.value.mode !== "once") {
    problems.push(
      problem("mode", loaded.value.mode, "an embedded run is one run: its mode is once"),
    );
  }
  if (!loaded.ok || problems.length > 0) {
    throw new ConfigurationError(problems.map(formatProblem));
  }
  return loaded.value;
}

/** The settings with a model that is there. */
async function withModel(ports: EmbedPorts, settings: Settings): Promise<Settings> {
  let told = "";
  const found = await findModel({
    ...ports,
    terminal: {
      writeError(text) {
        told += text;
        return true;
      },
    },
  }, settings);
  if (found === null) throw new ConfigurationError([told.replace(/^agentd: /, "").trim()]);
  return found;
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

function composeResult(
  end: Omit<RunResult, "exit_code">,
  settings: Settings,
  signal: "SIGINT" | "SIGTERM" | null,
): RunResult {
  const partial = end.partial && end.result !== null;
  const code = exitCode({ ...end, mode: settings.mode, partial, signal, forced: false });
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
