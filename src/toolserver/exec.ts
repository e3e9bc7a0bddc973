/** The exec server: one tool, `run`, that starts granted programs, never a shell of its own. */

import {
  EXEC_ARGUMENT_BYTES_MAX,
  EXEC_ARGUMENTS_MAX,
  EXEC_ENVIRONMENT_MAX,
  EXEC_GRACE_MS,
  EXEC_OUTPUT_BYTES_MAX,
  EXEC_PIPE_LINGER_MS,
  EXEC_STDIN_BYTES_MAX,
  EXEC_TIMEOUT_MS_DEFAULT,
  EXEC_TIMEOUT_MS_MAX,
  PATH_CHARS_MAX,
} from "../core/tool_limits.ts";
import { type ClockPort, withinTurns } from "../ports/clock.ts";
import type { ChildProcess, ExitStatus, ProcessPort, SpawnFailure } from "../ports/process.ts";
import type { PermissionSet } from "../wire/payload.ts";
import { sandboxCommand } from "./bwrap.ts";
import type { BuiltTools } from "./fs.ts";
import type { GroupSignal, ServerOrder } from "./messages.ts";
import { OutputTail } from "./output_tail.ts";
import { isAbsolute, resolvePath } from "./paths.ts";
import {
  type Answer,
  type Arguments,
  type BuiltinTool,
  errorAnswer,
  quote,
  textAnswer,
  ToolError,
} from "./tool.ts";

/** Groups of commands, which only the main thread may send signals to. */
export interface GroupsPort {
  started(groupId: number): void;
  /** Kills what is left of the group; resolves when that is done. */
  ended(groupId: number): Promise<void>;
  signal(groupId: number, signal: GroupSignal): void;
}

/** What the tool works with. */
export interface ExecDeps {
  process: Pick<ProcessPort, "spawn">;
  clock: ClockPort;
  groups: GroupsPort;
  order: ServerOrder;
}

/** The tools of exec for a grant. */
export function buildExecTools(deps: ExecDeps): BuiltTools {
  const { permissions, workingDirectory, sandbox } = deps.order;
  return {
    tools: [runTool(deps)],
    withheld: {},
    instructions: `run starts: ${describePrograms(permissions)}. Commands start in ` +
      `${workingDirectory}${sandbox === "bwrap" ? ", in a sandbox with a read-only root" : ""}.`,
  };
}

function runTool(deps: ExecDeps): BuiltinTool {
  return {
    name: "run",
    description:
      "Run one granted program and wait for its end. argv is passed as it is: no shell, " +
      "so no pipes, globs or $VARIABLES. Answers stdout, stderr and the exit status; long output " +
      "keeps head and tail. What the program leaves running is killed when it ends.",
    inputSchema: {
      type: "object",
      properties: {
        argv: {
          type: "array",
          items: { type: "string" },
          minItems: 1,
          description: "Program (a name on PATH or an absolute path) and its arguments.",
        },
        cwd: { type: "string", description: "Default: the working directory." },
        stdin: { type: "string" },
        timeout: {
          type: "number",
          exclusiveMinimum: 0,
          maximum: EXEC_TIMEOUT_MS_MAX / 1000,
          description: `Seconds; default ${EXEC_TIMEOUT_MS_DEFAULT / 1000}.`,
        },
        env: {
          type: "object",
          additionalProperties: { type: "string" },
          description: "Variables on top of a clean environment.",
        },
      },
      required: ["argv"],
    },
    annotations: {
      readOnlyHint: false,
      destructiveHint: true,
      idempotentHint: false,
      openWorldHint: true,
    },
    run: (args, signal) => runCommand(deps, args, signal),
  };
}

async function runCommand(
  deps: ExecDeps,
  args: Arguments,
  cancelled: AbortSignal,
): Promise<Answer> {
  const { order } = deps;
  const argv = readArgv(args);
  const cwd = resolvePath(order.workingDirectory, args.text("cwd", PATH_CHARS_MAX, "."));
  const stdin = args.optionalText("stdin", EXEC_STDIN_BYTES_MAX);
  const timeoutMs = 1000 *
    args.positive("timeout", EXEC_TIMEOUT_MS_MAX / 1000, EXEC_TIMEOUT_MS_DEFAULT / 1000);
  const env = { ...order.environment, ...readEnvironment(args) };
  const command = order.sandbox === "bwrap"
    ? sandboxCommand(argv, cwd, order.permissions, env)
    : argv;
  if (cancelled.aborted) throw new ToolError("Cannot run: the call was cancelled.");
  const spawned = deps.process.spawn({
    command: command[0]!,
    args: command.slice(1),
    env,
    clearEnv: true,
    cwd: order.sandbox === "bwrap" ? "/" : cwd,
    detached: order.groups,
    stdin: stdin === null ? "null" : "piped",
    stdout: "piped",
    stderr: "piped",
  });
  if (!spawned.ok) throw notStarted(spawned.failure, argv[0]!, cwd, order.permissions);
  const child = spawned.value;
  deps.groups.started(child.pid);
  const run = new Run(deps, child, timeoutMs, cancelled);
  const ended = await run.wait(stdin);
  return describeEnd(ended, timeoutMs);
}

function readArgv(args: Arguments): string[] {
  const argv = args.texts("argv", EXEC_ARGUMENTS_MAX);
  const program = argv[0];
  if (program === undefined || program === "") {
    throw new ToolError("Cannot run: argv is empty; its first item is the program.");
  }
  for (const argument of argv) {
    if (argument.includes("\0")) {
      throw new ToolError("Cannot run: an argument has a NUL character, which no program can get.");
    }
    if (argument.length > EXEC_ARGUMENT_BYTES_MAX) {
      throw new ToolError(
        `Cannot run: an argument is ${argument.length} characters long, at most ` +
          `${EXEC_ARGUMENT_BYTES_MAX} are taken; use stdin or a file.`,
      );
    }
  }
  if (/[\\/]/.test(program) && !isAbsolute(program)) {
    throw new ToolError(
      `Cannot run ${quote(program)}: name a program on PATH or give its absolute path.`,
    );
  }
  return argv;
}

function readEnvironment(args: Arguments): Record<string, string> {
  const env = args.textMap("env", EXEC_ENVIRONMENT_MAX);
  for (const [name, value] of Object.entries(env)) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
      throw new ToolError(`Cannot set ${quote(name)}: that is no name of a variable.`);
    }
    // With these a granted program becomes any program; Deno refuses them as well.
    if (/^(?:(?:LD|DYLD)_.*|PATH)$/i.test(name)) {
      throw new ToolError(`Cannot set ${name}: it would make the program another one.`);
    }
    if (value.includes("\0") || value.length > EXEC_ARGUMENT_BYTES_MAX) {
      throw new ToolError(`Cannot set ${name}: its value has a NUL character or is too long.`);
    }
  }
  return env;
}

function notStarted(
  failure: SpawnFailure,
  program: string,
  cwd: string,
  permissions: PermissionSet,
): ToolError {
  switch (failure.class) {
    case "denied":
      return new ToolError(
        /NotCapable|Requires run access/i.test(failure.message) || permissions.run === false
          ? `Cannot run ${quote(program)}: it is not granted. This server may run ` +
            `${describePrograms(permissions)} (${failure.message.split(",")[0]}).`
          : `Cannot run ${quote(program)}: the system does not permit it (${failure.message}).`,
      );
    case "not_found":
      return new ToolError(
        /entity not found|cannot find/i.test(failure.message)
          ? `Cannot run ${quote(program)}: there is no such program on PATH.`
          : `Cannot run ${quote(program)}: the program, or the directory ${cwd}, does not exist.`,
      );
    default:
      return new ToolError(`Cannot run ${quote(program)}: ${failure.message}.`);
  }
}

function describePrograms(permissions: PermissionSet): string {
  if (permissions.run === true) return "any program";
  return permissions.run === false ? "nothing" : permissions.run.join(", ");
}

interface Ended {
  status: ExitStatus;
  stdout: OutputTail;
  stderr: OutputTail;
  why: "itself" | "timeout" | "cancelled";
  /** Something that left the group still holds the pipes. */
  held: boolean;
}

/** One command from its start to its end. */
class Run {
  readonly #deps: ExecDeps;
  readonly #child: ChildProcess;
  readonly #timeoutMs: number;
  readonly #cancelled: AbortSignal;
  #why: Ended["why"] = "itself";
  #stopKill = () => {};

  constructor(deps: ExecDeps, child: ChildProcess, timeoutMs: number, cancelled: AbortSignal) {
    this.#deps = deps;
    this.#child = child;
    this.#timeoutMs = timeoutMs;
    this.#cancelled = cancelled;
  }

  async wait(stdin: string | null): Promise<Ended> {
    const child = this.#child;
    const stdout = new OutputTail(EXEC_OUTPUT_BYTES_MAX);
    const stderr = new OutputTail(EXEC_OUTPUT_BYTES_MAX);
    const readers = [child.stdout!.getReader(), child.stderr!.getReader()] as const;
    const drained = Promise.all([drain(readers[0], stdout), drain(readers[1], stderr)]);
    if (stdin !== null) feed(child.stdin!, stdin);
    const stopTimer = this.#deps.clock.after(this.#timeoutMs, () => this.#stop("timeout"));
    const cancel = () => this.#stop("cancelled");
    this.#cancelled.addEventListener("abort", cancel, { once: true });
    const status = await child.exited;
    stopTimer();
    this.#stopKill();
    this.#cancelled.removeEventListener("abort", cancel);
    await this.#deps.groups.ended(child.pid);
    const held = await this.#linger(drained);
    if (held) { for (const reader of readers) reader.cancel().catch(() => {}); }
    await drained;
    return { status, stdout, stderr, why: this.#why, held };
  }

  #stop(why: Ended["why"]): void {
    if (this.#why !== "itself") return;
    this.#why = why;
    const { groups, clock } = this.#deps;
    groups.signal(this.#child.pid, "SIGTERM");
    this.#stopKill = clock.after(EXEC_GRACE_MS, () => groups.signal(this.#child.pid, "SIGKILL"));
  }

  /** Whether the pipes are still open a while after the end. */
  async #linger(drained: Promise<unknown>): Promise<boolean> {
    return !await withinTurns(this.#deps.clock, EXEC_PIPE_LINGER_MS, drained);
  }
}

async function drain(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  output: OutputTail,
): Promise<void> {
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      output.add(value);
    }
  } catch { /* a pipe that breaks has nothing more to say */ }
}

async function feed(stream: WritableStream<Uint8Array>, text: string): Promise<void> {
  const writer = stream.getWriter();
  try {
    await writer.write(new TextEncoder().encode(text));
    await writer.close();
  } catch { /* the program does not read it: its own affair */ }
}

function describeEnd(ended: Ended, timeoutMs: number): Answer {
  const texts: string[] = [];
  if (ended.stdout.totalBytes > 0) texts.push(ended.stdout.render());
  if (ended.stderr.totalBytes > 0) texts.push(`stderr:\n${ended.stderr.render()}`);
  const { status, why } = ended;
  const how = status.signal === null ? `Exit status ${status.code}.` : `Ended by ${status.signal}.`;
  const notes = why === "timeout"
    ? [`Timed out after ${timeoutMs / 1000} s and was stopped with everything it started.`, how]
    : why === "cancelled"
    ? ["The call was cancelled and the program stopped with everything it started.", how]
    : [how];
  if (ended.held) {
    notes.push("A process that left its group still held the output open; it may be running.");
  }
  texts.push(notes.join(" "));
  return why === "itself" && status.signal === null
    ? textAnswer(...texts)
    : { ...errorAnswer(""), blocks: texts.map((text) => ({ type: "text", text })) };
}
