/**
 * Stdio tool servers of one agent: started by name from the operator's configuration, in the
 * agent's process group, their bytes carried between pipe and message port without a look at them.
 */

import { SERVER_CLOSE_MS, SERVER_STDIN_BYTES_MAX, SERVER_TERM_MS } from "../core/limits.ts";
import { failed, type Outcome, success } from "../core/outcome.ts";
import type { Vault } from "../core/secret.ts";
import { type ClockPort, within } from "../ports/clock.ts";
import type { ChildProcess, ExitStatus, ProcessPort, SpawnSpec } from "../ports/process.ts";
import type { ProgramPort } from "../ports/self.ts";
import type { TelemetryPort } from "../ports/telemetry.ts";
import { toolServerFlags, toolServerRole } from "../toolserver/permissions.ts";
import type { AgentPayload, BuiltinServer, StdioServer } from "../wire/payload.ts";
import { PORT_WINDOW_BYTES, type ServerPortMessage } from "../wire/worker.ts";
import { wrapInBwrap } from "./sandbox.ts";
import { StderrDrain } from "./stderr.ts";

/** What running tool servers needs. */
export interface ServersDeps {
  payload: AgentPayload;
  vault: Vault;
  /** The clean environment; what a server declares comes on top. */
  environment: Readonly<Record<string, string>>;
  clock: ClockPort;
  process: ProcessPort;
  program: ProgramPort;
  telemetry: TelemetryPort;
}

/** Why a server did not start, with the end of its stderr. */
export interface OpenFailure {
  message: string;
  stderr: string;
}

interface Running {
  name: string;
  child: ChildProcess;
  port: MessagePort;
  stdin: WritableStreamDefaultWriter<Uint8Array>;
  stdout: ReadableStreamDefaultReader<Uint8Array>;
  stdinPendingBytes: number;
  /** Bytes posted to the Worker and not yet taken. */
  underWayBytes: number;
  resume: (() => void) | null;
  stderr: StderrDrain;
  gone: boolean;
  /** When process and pipes are done with. Never rejects. */
  over: Promise<void>;
}

/** The servers that run now, at most one of a name. */
export class Servers {
  readonly #deps: ServersDeps;
  readonly #running = new Map<string, Running>();

  constructor(deps: ServersDeps) {
    this.#deps = deps;
  }

  /** Ids of the server processes alive. */
  pids(): number[] {
    return [...this.#running.values()].map((server) => server.child.pid);
  }

  /** Starts a server by name; the port returned is the Worker's end. */
  async open(name: string): Promise<Outcome<{ pid: number; port: MessagePort }, OpenFailure>> {
    const { payload, process, telemetry } = this.#deps;
    const settings = payload.servers.find((server) => server.name === name);
    if (!settings || settings.kind === "http") {
      // The loop asks for what it was told of only: this is no mistake.
      telemetry.emit("permission.denied", { kind: "run", target: `server ${name}` }, "error");
      return failed({ message: `Cannot start ${name}: no such stdio server`, stderr: "" });
    }
    const before = this.#running.get(name);
    if (before) await this.#close(before);
    const spec = settings.kind === "builtin"
      ? this.#builtinSpec(settings)
      : this.#stdioSpec(settings);
    const spawned = process.spawn(spec);
    if (!spawned.ok) {
      const why = spawned.failure.class === "not_found"
        ? `the command ${spec.command} does not exist`
        : spawned.failure.message;
      return failed({ message: `Cannot start ${name}: ${why}`, stderr: "" });
    }
    const channel = new MessageChannel();
    this.#run(name, spawned.value, channel.port1);
    return success({ pid: spawned.value.pid, port: channel.port2 });
  }

  /** Ends every server: stdin closed, then SIGTERM, then SIGKILL; bounded. */
  async closeAll(): Promise<void> {
    await Promise.all([...this.#running.values()].map((server) => this.#close(server)));
  }

  #stdioSpec(server: StdioServer): SpawnSpec {
    const env = { ...this.#deps.environment };
    for (const [name, text] of Object.entries(server.env)) {
      env[name] = this.#deps.vault.fill(text).reveal();
    }
    const words = server.sandbox === "bwrap"
      ? wrapInBwrap([server.command, ...server.args], { write: [], network: true })
      : [server.command, ...server.args];
    return spec(words, env, server.cwd);
  }

  #builtinSpec(server: BuiltinServer): SpawnSpec {
    const { program, environment, payload } = this.#deps;
    // From source, the process itself gets no more than its Worker needs, and its own code to read.
    const args = program.args(toolServerRole(server), toolServerFlags(server, program.code));
    const env = { ...environment, ...program.environment };
    for (const [name, text] of Object.entries(server.environment ?? {})) {
      env[name] = this.#deps.vault.fill(text).reveal();
    }
    return spec([program.command, ...args], env, payload.workingDirectory);
  }

  #run(name: string, child: ChildProcess, port: MessagePort): void {
    const { clock, telemetry, vault } = this.#deps;
    const server: Running = {
      name,
      child,
      port,
      stdin: child.stdin!.getWriter(),
      stdout: child.stdout!.getReader(),
      stdinPendingBytes: 0,
      underWayBytes: 0,
      resume: null,
      stderr: new StderrDrain({ server: name, pid: child.pid, clock, telemetry, vault }),
      gone: false,
      over: Promise.resolve(),
    };
    server.stdin.closed.catch(() => {});
    this.#running.set(name, server);
    port.onmessage = (event) => this.#fromWorker(server, event.data as ServerPortMessage);
    const drained = server.stderr.run(child.stderr!);
    const pumped = this.#pump(server);
    server.over = this.#settle(server, pumped, drained);
  }

  async #settle(server: Running, pumped: Promise<void>, drained: Promise<void>): Promise<void> {
    const exit: ExitStatus = await server.child.exited;
    server.gone = true;
    // What the process wrote last is still in the pipes; a process that it left may hold them open.
    await within(this.#deps.clock, SERVER_TERM_MS, Promise.all([pumped, drained]));
    if (this.#running.get(server.name) === server) this.#running.delete(server.name);
    server.resume?.();
    server.port.postMessage(
      {
        type: "exited",
        code: exit.code,
        signal: exit.signal,
        stderr: server.stderr.tail(),
      } satisfies ServerPortMessage,
    );
    server.stderr.stop();
    server.stdout.cancel().catch(() => {});
    server.stdin.abort().catch(() => {});
    // What was posted is delivered all the same: it is in the Worker's queue by now.
    server.port.close();
  }

  async #pump(server: Running): Promise<void> {
    try {
      for (;;) {
        const { done, value } = await server.stdout.read();
        if (done) return;
        server.underWayBytes += value.length;
        // The buffer goes along whole: of a few bytes in a large one, the bytes alone do.
        const bytes = value.length < value.buffer.byteLength / 2 ? value.slice() : value;
        server.port.postMessage(bytes, [bytes.buffer as ArrayBuffer]);
        while (server.underWayBytes > PORT_WINDOW_BYTES && !server.gone) {
          await new Promise<void>((resolve) => server.resume = resolve);
        }
      }
    } catch {
      /* a pipe that breaks has ended */
    } finally {
      await server.stdout.cancel().catch(() => {});
    }
  }

  #fromWorker(server: Running, message: ServerPortMessage): void {
    if (message instanceof Uint8Array) {
      this.#write(server, message);
    } else if (message.type === "taken") {
      server.underWayBytes = Math.max(0, server.underWayBytes - message.bytes);
      const resume = server.resume;
      if (server.underWayBytes <= PORT_WINDOW_BYTES && resume) {
        server.resume = null;
        resume();
      }
    } else if (message.type === "close") {
      void this.#close(server);
    }
  }

  #write(server: Running, bytes: Uint8Array): void {
    if (server.gone) return;
    if (server.stdinPendingBytes + bytes.length > SERVER_STDIN_BYTES_MAX) {
      this.#deps.telemetry.emit("limit.exceeded", {
        limit: "server_stdin_bytes",
        server: server.name,
        bound: SERVER_STDIN_BYTES_MAX,
      }, "warn");
      this.#deps.process.signal(server.child.pid, "SIGKILL");
      return;
    }
    server.stdinPendingBytes += bytes.length;
    server.stdin.write(bytes).then(
      () => server.stdinPendingBytes -= bytes.length,
      () => {/* its end is known from `exited` */},
    );
  }

  async #close(server: Running): Promise<void> {
    const { clock, process } = this.#deps;
    if (!server.gone) {
      server.stdin.close().catch(() => {});
      for (
        const [signal, waitMs] of [["SIGTERM", SERVER_CLOSE_MS], [
          "SIGKILL",
          SERVER_TERM_MS,
        ]] as const
      ) {
        if (await within(clock, waitMs, server.child.exited)) break;
        process.signal(server.child.pid, signal);
      }
    }
    await within(clock, SERVER_TERM_MS * 2, server.over);
  }
}

function spec(words: readonly string[], env: Record<string, string>, cwd: string): SpawnSpec {
  return {
    command: words[0]!,
    args: words.slice(1),
    env,
    clearEnv: true,
    cwd,
    detached: false,
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  };
}
