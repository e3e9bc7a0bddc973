/** Mode once: one run from its directory to its end. */

import { assert } from "../core/assert.ts";
import { makeUlid, toHex } from "../core/ids.ts";
import { AGENT_START_TIMEOUT_MS, KILL_RUNG_MS, TERM_RUNG_MS } from "../core/limits.ts";
import { failed, type Outcome, success } from "../core/outcome.ts";
import { formatIso } from "../core/time.ts";
import type { Settings } from "../config/settings.ts";
import type { CancelReason } from "../wire/control.ts";
import type { AgentIdentity, Start } from "../wire/payload.ts";
import type { RunResult } from "../wire/result.ts";
import { Agent, planFor } from "./agent.ts";
import { processGrant } from "./grant.ts";
import { rootPayload } from "./payload.ts";
import type { SupervisorPorts } from "./ports.ts";

export interface RunOptions {
  start: Start;
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

/** Why a run did not begin: a user's mistake or a full disk. Nothing was started. */
export interface RunProblem {
  message: string;
}

/** Runs the root agent once, to its end. Signals to this process wind it down. Never rejects. */
export async function runOnce(
  settings: Settings,
  ports: SupervisorPorts,
  options: RunOptions = { start: { kind: "fresh" } },
): Promise<Outcome<OnceEnd, RunProblem>> {
  const { clock, random } = ports;
  const startedWallMs = clock.wallMs();
  const runId = settings.runId ?? makeUlid(startedWallMs, random.bytes(10));
  const directory = `${settings.runDirectory}/${runId}`;
  const made = makeRunDirectory(ports, directory, options.start.kind === "resume");
  if (!made.ok) return made;
  const identity: AgentIdentity = {
    runId,
    agentId: makeUlid(startedWallMs, random.bytes(10)),
    path: "0",
    depth: 0,
    directory,
    traceId: toHex(random.bytes(16)),
    parentSpanId: toHex(random.bytes(8)),
  };
  const telemetry = ports.openTelemetry(
    {
      run_id: runId,
      agent_id: null,
      agent_path: null,
      comp: "supervisor",
      pid: ports.pid,
      trace_id: identity.traceId,
      span_id: identity.parentSpanId,
      parent_span_id: null,
    },
    settings.log,
    settings.vault,
  );
  const payload = rootPayload(
    settings,
    identity,
    options.start,
    startedWallMs + settings.limits.deadlineMs,
  );
  const plan = planFor(
    payload,
    clock.monotonicMs() + settings.limits.deadlineMs,
    Math.max(0, settings.drainTimeoutMs - TERM_RUNG_MS - KILL_RUNG_MS),
    AGENT_START_TIMEOUT_MS,
  );
  const agent = new Agent(
    { ...ports, wrapper: [], telemetry, vault: settings.vault },
    {
      ready: () => telemetry.emit("proc.ready"),
      progress: () => {},
      frame: () => {},
    },
  );
  const stopper = listenForSignals(ports, agent, (reason) => {
    telemetry.emit("proc.shutdown", { reason });
  });
  agent.start(payload, processGrant(payload.worker), plan);
  telemetry.emit("proc.start", { mode: settings.mode });
  telemetry.emit("subagent.spawn", { child_path: "0", depth: 0, child_pid: agent.pid });
  const { artifact, ...result } = await agent.ended;
  stopper.cancel();
  telemetry.emit("subagent.exit", {
    child_path: "0",
    child_pid: agent.pid,
    status: result.status,
    abort: result.abort,
  });
  telemetry.emit("proc.exit", { status: result.status, abort: result.abort });
  const { usage, verification, ...rest } = result;
  return success({
    run_id: runId,
    ...rest,
    verification,
    usage,
    started_at: formatIso(startedWallMs),
    ended_at: formatIso(clock.wallMs()),
    record: `${directory}/record.jsonl`,
    signal: stopper.signal(),
    forced: stopper.forced(),
    artifact,
    directory,
  });
}

function makeRunDirectory(
  ports: SupervisorPorts,
  directory: string,
  resumed: boolean,
): Outcome<void, RunProblem> {
  assert(
    directory.startsWith("/") || /^[A-Za-z]:/.test(directory),
    "the run directory is absolute",
  );
  const exists = ports.files.lstat(directory).ok;
  if (exists && !resumed) {
    return failed({ message: `Cannot start the run: ${directory} exists already` });
  }
  if (resumed && !exists) return failed({ message: `Cannot resume the run: no ${directory}` });
  const made = ports.files.makeDirectory(directory);
  return made.ok
    ? made
    : failed({ message: `Cannot make the run's directory: ${made.failure.message}` });
}

interface Stopper {
  signal(): "SIGINT" | "SIGTERM" | null;
  forced(): boolean;
  cancel(): void;
}

/** The first signal winds down, the second kills. */
function listenForSignals(
  ports: SupervisorPorts,
  agent: Agent,
  onFirst: (reason: CancelReason) => void,
): Stopper {
  let first: "SIGINT" | "SIGTERM" | null = null;
  let forced = false;
  const handle = (signal: "SIGINT" | "SIGTERM") => () => {
    const reason = signal === "SIGINT" ? "sigint" : "sigterm";
    if (first === null) {
      first = signal;
      onFirst(reason);
      agent.stop(reason);
    } else {
      forced = true;
      agent.kill(reason);
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
