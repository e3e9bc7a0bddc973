/** The one place where agent processes come from, and the bytes of their control channel. */

import {
  FRAME_BYTES_MAX,
  FRAME_CHARS_BURST_MAX,
  FRAME_CHARS_PER_SECOND_MAX,
  FRAME_QUEUE_BYTES_MAX,
  FRAMES_BURST_MAX,
  FRAMES_PER_SECOND_MAX,
} from "../core/limits.ts";
import { type Outcome, success } from "../core/outcome.ts";
import { TokenBucket } from "../core/token_bucket.ts";
import { type ClockPort, withinTurns } from "../ports/clock.ts";
import type { ExitStatus, ProcessPort, SpawnFailure, SpawnSpec } from "../ports/process.ts";
import type { ProgramPort } from "../ports/self.ts";
import { AGENT_ID_VARIABLE, agentEnvironment } from "../wire/environment.ts";
import type { FromAgent, ToAgent } from "../wire/control.ts";
import { encodeFrame, FrameWriter, readLines } from "../wire/frame_stream.ts";
import type { PermissionSet } from "../wire/payload.ts";
import { permissionFlags } from "../wire/permissions.ts";
import { parseFromAgent } from "./frames.ts";

/** What starting an agent process needs. */
export interface SpawnPorts {
  clock: ClockPort;
  process: ProcessPort;
  program: ProgramPort;
  env(name: string): string | undefined;
  /** Words put before the command, such as `setpriv --pdeathsig KILL`; empty: none. */
  wrapper: readonly string[];
}

/** What an agent process reports. `exited` comes last, once, after everything it had written. */
export interface AgentListener {
  frame(frame: FromAgent): void;
  /** Its next line is no frame; nothing more is read. */
  broken(message: string): void;
  outputEnded(): void;
  exited(exit: ExitStatus): void;
}

/** A running agent process. */
export interface AgentProcess {
  pid: number;
  /** Queues a frame without waiting; false where the agent does not take it. */
  send(frame: ToAgent): boolean;
  /** Closes its stdin, which tells it that nobody is left. */
  closeInput(): void;
}

/** How long after its exit an agent's last output may take to be read. */
const OUTPUT_WAIT_MS = 500;

/** What starts an agent: permissions count from source only, argv holds no word of the task. */
function agentSpec(ports: SpawnPorts, process: PermissionSet, agentId: string): SpawnSpec {
  const { program } = ports;
  const flags = permissionFlags(process, program.code);
  const words = [...ports.wrapper, program.command, ...program.args(["__agent"], flags)];
  return {
    command: words[0]!,
    args: words.slice(1),
    env: {
      ...agentEnvironment(ports.env),
      ...program.environment,
      [AGENT_ID_VARIABLE]: agentId,
    },
    clearEnv: true,
    detached: true,
    stdin: "piped",
    stdout: "piped",
    stderr: "inherit",
  };
}

/** Starts an agent process. Nothing has been told to it yet. */
export function spawnAgent(
  ports: SpawnPorts,
  process: PermissionSet,
  agentId: string,
  listener: AgentListener,
): Outcome<AgentProcess, SpawnFailure> {
  const spawned = ports.process.spawn(agentSpec(ports, process, agentId));
  if (!spawned.ok) return spawned;
  const child = spawned.value;
  const input = new FrameWriter(child.stdin!, FRAME_QUEUE_BYTES_MAX);
  const read = readFrames(ports.clock, child.stdout!, listener);
  void (async () => {
    const exit = await child.exited;
    await withinTurns(ports.clock, OUTPUT_WAIT_MS, read);
    void input.close();
    listener.exited(exit);
  })();
  return success({
    pid: child.pid,
    send: (frame) => {
      const bytes = encodeFrame(frame);
      return bytes.length <= FRAME_BYTES_MAX && input.send(bytes);
    },
    closeInput: () => void input.close(),
  });
}

async function readFrames(
  clock: ClockPort,
  stdout: ReadableStream<Uint8Array>,
  listener: AgentListener,
): Promise<void> {
  const bucketOf = (burst: number, perSecond: number) =>
    new TokenBucket(burst, 1_000 / perSecond, clock.monotonicMs());
  const frames = bucketOf(FRAMES_BURST_MAX, FRAMES_PER_SECOND_MAX);
  const chars = bucketOf(FRAME_CHARS_BURST_MAX, FRAME_CHARS_PER_SECOND_MAX);
  let whole = true;
  const broken = (message: string) => {
    whole = false;
    listener.broken(message);
    return false;
  };
  await readLines(stdout, FRAME_BYTES_MAX, (event) => {
    if (event.type === "oversized") return broken(`a frame over ${FRAME_BYTES_MAX} bytes`);
    if (event.type === "invalid") return broken("a frame that is no UTF-8");
    const nowMs = clock.monotonicMs();
    if (frames.take(1, nowMs) > 0) {
      return broken(`more than ${FRAMES_PER_SECOND_MAX} frames a second`);
    }
    if (chars.take(event.text.length, nowMs) > 0) {
      return broken(`more than ${FRAME_CHARS_PER_SECOND_MAX} characters a second`);
    }
    const frame = parseFromAgent(event.text);
    if (!frame.ok) return broken(frame.failure);
    listener.frame(frame.value);
    return true;
  });
  if (whole) listener.outputEnded();
}
