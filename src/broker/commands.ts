/** Declared commands of one agent, checks and hooks: bounded in time and output, nothing left. */

import { withoutControls } from "../core/text.ts";
import type { Vault } from "../core/secret.ts";
import { type ClockPort, withinTurns } from "../ports/clock.ts";
import type { ChildProcess, ProcessPort } from "../ports/process.ts";
import type { CommandOutcome } from "../wire/worker.ts";
import { descendantsOf, orphansOf } from "../core/process_tree.ts";
import { BoundedOutput } from "./bounded_output.ts";

/** What running a command needs. */
export interface CommandDeps {
  vault: Vault;
  environment: Readonly<Record<string, string>>;
  workingDirectory: string;
  /** The agent's process group: what a command leaves behind is looked for there. */
  groupId: number;
  clock: ClockPort;
  process: ProcessPort;
}

/** One command to run, with its bounds. */
export interface CommandSpec {
  command: readonly string[];
  timeoutMs: number;
  outputBytesMax: number;
  /** Written to its stdin, which is then closed; null: no stdin. */
  input: string | null;
  signal: AbortSignal;
  /** Whether to look for what it left behind although its pipes closed. */
  thorough: boolean;
}

/** A pipe that stays open this long after its process ended is held by what it left behind. */
const PIPE_GRACE_MS = 50;

/** Runs a command to its end, its time limit or an abort. Never rejects. */
export async function runCommand(deps: CommandDeps, spec: CommandSpec): Promise<CommandOutcome> {
  const { clock, process } = deps;
  const startMs = clock.monotonicMs();
  // Only what was not there before can have been left by this command.
  const before = spec.thorough ? await groupOf(deps) : new Set<number>();
  if (spec.signal.aborted) return ended(deps, startMs, null, { failure: "cancelled" });
  const spawned = process.spawn({
    command: spec.command[0] ?? "",
    args: spec.command.slice(1),
    env: deps.environment,
    clearEnv: true,
    cwd: deps.workingDirectory,
    detached: false,
    stdin: spec.input === null ? "null" : "piped",
    stdout: "piped",
    stderr: "piped",
  });
  if (!spawned.ok) {
    const why = spawned.failure.class === "not_found"
      ? `the command ${spec.command[0]} does not exist`
      : spawned.failure.message;
    return ended(deps, startMs, null, { failure: deps.vault.mask(why) });
  }
  const child = spawned.value;
  const output = new BoundedOutput(spec.outputBytesMax);
  if (child.stdin && spec.input !== null) void feed(child.stdin, spec.input);
  const pipes = Promise.all([
    output.read(child.stdout!, "stdout"),
    output.read(child.stderr!, "stderr"),
  ]);
  let timedOut = false;
  const kill = () => void killTree(deps, child);
  const cancelTimer = clock.after(spec.timeoutMs, () => {
    timedOut = true;
    kill();
  });
  spec.signal.addEventListener("abort", kill, { once: true });
  const exit = await child.exited;
  cancelTimer();
  spec.signal.removeEventListener("abort", kill);
  const closed = await withinTurns(clock, PIPE_GRACE_MS, pipes);
  if (spec.thorough || timedOut || !closed) await killOrphans(deps, before);
  if (!await withinTurns(clock, PIPE_GRACE_MS, pipes)) output.stop();
  await pipes;
  return ended(deps, startMs, output, {
    exitCode: timedOut || exit.signal !== null || spec.signal.aborted ? null : exit.code,
    timedOut,
    failure: null,
  });
}

function ended(
  deps: CommandDeps,
  startMs: number,
  output: BoundedOutput | null,
  fields: Partial<CommandOutcome>,
): CommandOutcome {
  const text = (part: string) => withoutControls(deps.vault.mask(part));
  return {
    exitCode: null,
    timedOut: false,
    failure: null,
    output: text(output?.text("both") ?? ""),
    stdout: deps.vault.mask(output?.text("stdout") ?? ""),
    stderr: text(output?.text("stderr") ?? ""),
    totalBytes: output?.totalBytes ?? 0,
    durationMs: Math.round(deps.clock.monotonicMs() - startMs),
    ...fields,
  };
}

async function feed(stdin: WritableStream<Uint8Array>, text: string): Promise<void> {
  const writer = stdin.getWriter();
  try {
    await writer.write(new TextEncoder().encode(text));
    await writer.close();
  } catch { /* it did not read all of its input, which is its own affair */ }
}

async function groupOf(deps: CommandDeps): Promise<Set<number>> {
  const rows = await deps.process.table();
  return new Set(rows.filter((row) => row.groupId === deps.groupId).map((row) => row.pid));
}

async function killTree(deps: CommandDeps, child: ChildProcess): Promise<void> {
  const rows = await deps.process.table();
  for (const row of descendantsOf(rows, [child.pid])) deps.process.signal(row.pid, "SIGKILL");
  deps.process.signal(child.pid, "SIGKILL");
}

async function killOrphans(deps: CommandDeps, before: ReadonlySet<number>): Promise<void> {
  const rows = await deps.process.table();
  for (const row of orphansOf(rows, deps.groupId)) {
    if (!before.has(row.pid)) deps.process.signal(row.pid, "SIGKILL");
  }
}
