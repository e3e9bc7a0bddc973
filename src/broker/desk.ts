/**
 * Serves the loop Worker's messages. The Worker may be subverted: it names servers, checks and
 * hooks that the operator declared, by name or place, and nothing else reaches a process.
 */

import {
  CHECK_OUTPUT_BYTES_MAX,
  COMMANDS_AT_ONCE_MAX,
  HOOK_OUTPUT_BYTES_MAX,
  HOOK_TIMEOUT_MS,
} from "../core/limits.ts";
import { isObject, parseJson } from "../core/json.ts";
import { clip } from "../core/text.ts";
import type { TelemetryPort } from "../ports/telemetry.ts";
import type { FromAgent } from "../wire/control.ts";
import type { AgentPayload } from "../wire/payload.ts";
import type { AgentResult } from "../wire/result.ts";
import type { CommandOutcome, FromWorker, HookOutcome, ToWorker } from "../wire/worker.ts";
import { type CommandDeps, runCommand } from "./commands.ts";
import type { Servers } from "./servers.ts";

/** What serving the Worker needs. */
export interface DeskDeps extends Omit<CommandDeps, "workingDirectory"> {
  payload: AgentPayload;
  telemetry: TelemetryPort;
  servers: Servers;
  toSupervisor(frame: FromAgent): void;
  toWorker(message: ToWorker, transfer?: Transferable[]): void;
  /** The Worker's code runs. */
  up(): void;
  ended(result: AgentResult): void;
  failed(message: string): void;
}

const FORWARDED: ReadonlySet<string> = new Set(["progress", "connected", "updated", "delivered"]);
const REASON_CHARS_MAX = 2_000;
const REQUIRE_TIMEOUT_MS = 5_000;

/** Takes the Worker's messages and sees to each. */
export class Desk {
  /** Whether any declared command was started. */
  ranCommands = false;
  readonly #deps: DeskDeps;
  readonly #commandDeps: CommandDeps;
  readonly #commands = new Map<number, AbortController>();
  #up = false;

  constructor(deps: DeskDeps) {
    this.#deps = deps;
    this.#commandDeps = { ...deps, workingDirectory: deps.payload.workingDirectory };
  }

  /** One message of the Worker; what it may not say is dropped. */
  receive(raw: unknown): void {
    if (!isObject(raw) || typeof raw.type !== "string") return;
    const message = raw as unknown as FromWorker;
    switch (message.type) {
      case "up":
        if (!this.#up) this.#deps.up();
        this.#up = true;
        break;
      case "open_server":
        void this.#openServer(message.id, String(message.server));
        break;
      case "run_check":
        void this.#runCheck(message.id, message.index);
        break;
      case "run_require":
        void this.#runRequire(message.id, message.index);
        break;
      case "run_hook":
        void this.#runHook(message);
        break;
      case "cancel_command":
        this.#commands.get(message.id)?.abort();
        break;
      case "request":
        this.#deps.toSupervisor({
          v: 1,
          type: "request",
          id: message.id,
          op: message.op,
          arguments: message.arguments,
        });
        break;
      case "forward":
        if (isObject(message.frame) && FORWARDED.has(message.frame.type)) {
          this.#deps.toSupervisor({ ...message.frame, v: 1 });
        }
        break;
      case "failed":
        this.#deps.failed(String(message.message));
        break;
      case "result":
        this.#deps.ended(message.result);
        break;
    }
  }

  /** Ends every command under way. */
  stop(): void {
    for (const command of this.#commands.values()) command.abort();
  }

  async #openServer(id: number, name: string): Promise<void> {
    const opened = await this.#deps.servers.open(name);
    if (opened.ok) {
      const { pid, port } = opened.value;
      this.#deps.toWorker({ type: "server_opened", id, pid, port }, [port]);
    } else this.#deps.toWorker({ type: "server_failed", id, ...opened.failure });
  }

  async #runCheck(id: number, index: number): Promise<void> {
    const check = this.#deps.payload.task.checks[index];
    const outcome = check
      ? await this.#run(id, check.command, check.timeoutMs, CHECK_OUTPUT_BYTES_MAX, null)
      : this.#undeclared(`check ${index}`);
    this.#deps.toWorker({ type: "command_ended", id, outcome });
  }

  /** Whether a declared path exists. This thread may not read by then, so a program looks. */
  async #runRequire(id: number, index: number): Promise<void> {
    const path = this.#deps.payload.task.require[index];
    const outcome = path !== undefined
      ? await this.#run(
        id,
        ["test", "-e", path],
        REQUIRE_TIMEOUT_MS,
        CHECK_OUTPUT_BYTES_MAX,
        null,
        false,
      )
      : this.#undeclared(`required path ${index}`);
    this.#deps.toWorker({ type: "command_ended", id, outcome });
  }

  async #runHook(message: Extract<FromWorker, { type: "run_hook" }>): Promise<void> {
    const { id, event, index } = message;
    const hooks = this.#deps.payload.hooks;
    const command = Object.hasOwn(hooks, event) ? hooks[event][index] : undefined;
    const end = command
      ? await this.#run(
        id,
        command,
        HOOK_TIMEOUT_MS,
        HOOK_OUTPUT_BYTES_MAX,
        JSON.stringify(message.input),
      )
      : this.#undeclared(`hook ${event} ${index}`);
    this.#deps.toWorker({ type: "hook_ended", id, outcome: hookOutcome(end) });
  }

  /** What the operator did not declare is not run; that it was asked for is told. */
  #undeclared(what: string): CommandOutcome {
    this.#deps.telemetry.emit("permission.denied", { kind: "run", target: what }, "error");
    return notRun(`no ${what}`);
  }

  async #run(
    id: number,
    command: readonly string[],
    timeoutMs: number,
    outputBytesMax: number,
    input: string | null,
    thorough = input === null,
  ): Promise<CommandOutcome> {
    if (this.#commands.size >= COMMANDS_AT_ONCE_MAX || this.#commands.has(id)) {
      return notRun(`more than ${COMMANDS_AT_ONCE_MAX} commands at once`);
    }
    const controller = new AbortController();
    this.#commands.set(id, controller);
    this.ranCommands = true;
    const end = await runCommand(this.#commandDeps, {
      command,
      timeoutMs,
      outputBytesMax,
      input,
      signal: controller.signal,
      thorough,
    });
    this.#commands.delete(id);
    return end;
  }
}

/** How a hook's end reads. */
export function hookOutcome(end: CommandOutcome): HookOutcome {
  const { durationMs } = end;
  const reason = clip(end.stderr.trim(), REASON_CHARS_MAX);
  const nothing = { replacement: null, ignored: null, durationMs };
  if (end.exitCode === 2) return { verdict: "block", reason, ...nothing };
  if (end.exitCode !== 0) {
    const why = end.failure ?? (end.timedOut ? "timed out" : `exit ${end.exitCode ?? "by signal"}`);
    return { verdict: "failed", reason: reason ? `${why}: ${reason}` : why, ...nothing };
  }
  const said = end.stdout.trim();
  if (said === "") return { verdict: "continue", reason, ...nothing };
  const parsed = end.totalBytes > HOOK_OUTPUT_BYTES_MAX ? null : parseJson(said);
  if (parsed?.ok) return { verdict: "continue", reason, ...nothing, replacement: parsed.value };
  const ignored = parsed === null
    ? `it printed ${end.totalBytes} bytes, at most ${HOOK_OUTPUT_BYTES_MAX} are read`
    : `it printed no JSON but ${JSON.stringify(clip(said, 200))}; it is not used`;
  return { verdict: "continue", reason, ...nothing, ignored };
}

function notRun(failure: string): CommandOutcome {
  return {
    exitCode: null,
    timedOut: false,
    output: "",
    stdout: "",
    stderr: "",
    totalBytes: 0,
    failure,
    durationMs: 0,
  };
}
