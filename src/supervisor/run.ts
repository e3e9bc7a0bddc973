/** Mode once: one run from its directory to its end. */

import type { Settings } from "../config/settings.ts";
import { failed, type Outcome, success } from "../core/outcome.ts";
import { formatIso } from "../core/time.ts";
import type { Start } from "../wire/payload.ts";
import type { RunResult } from "../wire/result.ts";
import type { FilesPort } from "../ports/files.ts";
import { RECORD_FILE } from "../record/append.ts";
import { readTail } from "../record/read.ts";
import { holdRun } from "../record/runs.ts";
import type { SupervisorPorts } from "./ports.ts";
import { deliverRecording } from "./recording.ts";
import { openRoot, type RunProblem } from "./root.ts";
import type { Tree } from "./tree.ts";

export type { RunProblem } from "./root.ts";

/** How a run begins. */
export interface RunOptions {
  start: Start;
  /** Lines of the record that is gone on with, as they were read; left out: nobody looked. */
  lines?: number;
}

/** A run as it ended; the exit code is the command line's business. */
export interface OnceEnd extends Omit<RunResult, "exit_code"> {
  /** The first signal that this process got. */
  signal: "SIGINT" | "SIGTERM" | null;
  /** A second signal came: every group was killed at once. */
  forced: boolean;
  /** Set when the value is kept as an artifact of the run. */
  artifact: string | null;
  /** The run's directory. */
  directory: string;
}

/** Runs the root agent once, to its end. Signals to this process wind it down. Never rejects. */
export async function runOnce(
  settings: Settings,
  ports: SupervisorPorts,
  options: RunOptions = { start: { kind: "fresh" } },
): Promise<Outcome<OnceEnd, RunProblem>> {
  const opened = openRoot(settings, ports, {
    runId: settings.runId,
    start: options.start,
    instruction: null,
    attachments: [],
    listener: { ready: () => telemetry.emit("proc.ready") },
  });
  if (!opened.ok) return opened;
  const { runId, directory, startedWallMs, telemetry, tree } = opened.value;
  const held = await holdRun(ports, directory);
  if (!held.ok) return held;
  const problem = movedOn(ports.files, directory, runId, options.lines);
  if (problem !== null) {
    held.value.release();
    return failed(problem);
  }
  const stopper = listenForSignals(ports, tree, (reason) => {
    telemetry.emit("proc.shutdown", { reason });
  });
  tree.start();
  telemetry.emit("proc.start", { mode: settings.mode });
  const { artifact, ...result } = await tree.ended;
  stopper.cancel();
  deliverRecording(settings, ports.files, telemetry, directory);
  held.value.release();
  telemetry.emit("proc.exit", { status: result.status, abort: result.abort });
  return success({
    run_id: runId,
    ...result,
    started_at: formatIso(startedWallMs),
    ended_at: formatIso(ports.clock.wallMs()),
    record: `${directory}/record.jsonl`,
    signal: stopper.signal(),
    forced: stopper.forced(),
    artifact,
    directory,
  });
}

/** What was decided from a record holds for that record alone: another may have gone on meanwhile. */
function movedOn(
  files: FilesPort,
  directory: string,
  runId: string,
  lines: number | undefined,
): RunProblem | null {
  if (lines === undefined) return null;
  const tail = readTail(files, `${directory}/${RECORD_FILE}`);
  if (tail?.last?.seq === lines) return null;
  const message =
    `Cannot resume run ${runId}: its record has changed since it was read; look again`;
  return { class: "running", message };
}

interface Stopper {
  signal(): "SIGINT" | "SIGTERM" | null;
  forced(): boolean;
  cancel(): void;
}

/** The first signal winds down, the second kills. */
function listenForSignals(
  ports: SupervisorPorts,
  tree: Tree,
  onFirst: (reason: "sigint" | "sigterm") => void,
): Stopper {
  let first: "SIGINT" | "SIGTERM" | null = null;
  let forced = false;
  const handle = (signal: "SIGINT" | "SIGTERM") => () => {
    const reason = signal === "SIGINT" ? "sigint" : "sigterm";
    if (first === null) {
      first = signal;
      onFirst(reason);
      tree.stop(reason);
    } else {
      forced = true;
      tree.kill(reason);
    }
  };
  const cancels = [
    ports.signals.on("SIGINT", handle("SIGINT")),
    ports.signals.on("SIGTERM", handle("SIGTERM")),
  ];
  return {
    signal: () => first,
    forced: () => forced,
    cancel: () => cancels.forEach((cancel) => cancel()),
  };
}
