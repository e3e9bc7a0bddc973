/** `agentd run` in the modes that go on, and the lock that any mode may take. */

import { outputFileOf } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import { contextOf } from "./settings.ts";
import { formatIso } from "../core/time.ts";
import type { RunEnd } from "../ports/runs.ts";
import type { TelemetryPort } from "../ports/telemetry.ts";
import { createRuns } from "../supervisor/runs.ts";
import {
  acquireLock,
  type DaemonOutcome,
  type DaemonPorts,
  runDaemon,
  tellSkipped,
} from "../trigger/run.ts";
import type { RunResult } from "../wire/result.ts";
import { EXIT_OK, EXIT_USAGE, exitCode } from "./exit_code.ts";
import { replaceOutput, resultText } from "./output.ts";
import type { CliPorts } from "./ports.ts";
import { withSpans } from "./spans.ts";

/** Runs a daemon to its end; the exit code. */
export async function runDaemonSettings(ports: CliPorts, settings: Settings): Promise<number> {
  const outputFile = outputFileOf(settings);
  const daemonPorts: DaemonPorts = {
    ...ports,
    runs: withSpans(ports, settings, createRuns(settings, ports)),
    locks: ports.lock,
    telemetry: openTelemetry(ports, settings),
    report: (end, span) => report(ports, settings, outputFile, end, span),
  };
  const ended = await runDaemon(settings, daemonPorts);
  if (!ended.ok) {
    ports.terminal.writeError(`agentd: ${ended.failure.message}\n`);
    return EXIT_USAGE;
  }
  const { end, message } = ended.value;
  if (message !== "") ports.terminal.writeError(`agentd: ${message}\n`);
  return daemonExitCode(settings, end, ended.value);
}

/** Does something under the lock that `--lock` names; a second start leaves at once, with 0. */
export async function runLocked(
  ports: CliPorts,
  settings: Settings,
  act: () => Promise<number>,
): Promise<number> {
  const locked = await acquireLock(
    settings,
    { files: ports.files, locks: ports.lock },
    settings.lock!,
  );
  if (!locked.ok) {
    ports.terminal.writeError(`agentd: ${locked.failure.message}\n`);
    return EXIT_USAGE;
  }
  if (locked.value === "held") {
    tellSkipped({ telemetry: openTelemetry(ports, settings) }, settings.lock!);
    ports.terminal.writeError(`agentd: ${settings.lock} is running already\n`);
    return EXIT_OK;
  }
  try {
    return await act();
  } finally {
    locked.value?.release();
  }
}

function daemonExitCode(
  settings: Settings,
  end: DaemonOutcome["end"],
  { signal }: DaemonOutcome,
): number {
  return exitCode({
    mode: settings.mode,
    status: null,
    abort: end === "credentials" ? "intelligence" : end === "required_server" ? "mcp" : null,
    partial: false,
    signal,
    forced: end === "killed",
    bound: end === "lifetime" || end === "lifetime_tokens" ? end : null,
  });
}

function openTelemetry(ports: CliPorts, settings: Settings): TelemetryPort {
  return ports.openTelemetry(contextOf(ports), settings.log, settings.vault);
}

/** One run's result, as it ends: a text, or one JSON object a line; in a file, the newest alone. */
function report(
  ports: CliPorts,
  settings: Settings,
  outputFile: string | null,
  end: RunEnd,
  span: { startedWallMs: number; endedWallMs: number },
): void {
  const text = settings.output === "json"
    ? JSON.stringify(resultOf(settings, end, span)) + "\n"
    : resultText(end.result.result);
  if (text === "") return;
  const { partial, result, status, abort, reason } = end.result;
  if (partial && result !== null) {
    ports.terminal.writeError(
      `agentd: ${end.runId}: the result is partial: ${status ?? abort} (${reason})\n`,
    );
  }
  if (outputFile === null) {
    if (!ports.terminal.queueOut(text)) {
      ports.terminal.writeError(`agentd: ${end.runId}: Cannot write the result to stdout\n`);
    }
    return;
  }
  const written = replaceOutput(ports, outputFile, text);
  if (written.ok) return;
  ports.terminal.writeError(`agentd: Cannot write the result: ${written.failure.message}\n`);
  ports.terminal.queueOut(text);
}

/** As of a run of its own: `exit_code` is what mode once would have ended with. */
function resultOf(
  settings: Settings,
  { runId, result }: RunEnd,
  span: { startedWallMs: number; endedWallMs: number },
): RunResult {
  return {
    run_id: runId,
    status: result.status,
    abort: result.abort,
    exit_code: exitCode({
      mode: "once",
      status: result.status,
      abort: result.abort,
      partial: result.partial && result.result !== null,
      signal: null,
      forced: false,
    }),
    retryable: result.retryable,
    resumable: result.resumable,
    partial: result.partial,
    result: result.result,
    reason: result.reason,
    verification: result.verification,
    usage: result.usage,
    started_at: formatIso(span.startedWallMs),
    ended_at: formatIso(span.endedWallMs),
    record: `${settings.runDirectory}/${runId}/record.jsonl`,
  };
}
