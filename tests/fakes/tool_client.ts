/** A bare MCP client over stdio: lines out, lines in, nothing in between. */

import assert from "node:assert/strict";
import type { WorkerPort } from "../../src/ports/worker.ts";
import { systemClock } from "../../src/sys/clock.ts";
import { systemRandom } from "../../src/sys/random.ts";
import { systemSockets } from "../../src/sys/socket.ts";
import { systemTree } from "../../src/sys/tree.ts";
import { runToolServer } from "../../src/toolserver/entry.ts";
import type { ToToolWorker } from "../../src/toolserver/messages.ts";
import { createServing } from "../../src/toolserver/serve.ts";
import type { Program } from "../program.ts";
import { SettlingProcess } from "./settling_process.ts";

/** What a tools/call answers. */
export interface CallResult {
  content: { type: string; text?: string; data?: string; mimeType?: string }[];
  isError?: boolean;
}

/** One message of a server. */
export interface Reply {
  id?: number | null;
  result?: Record<string, unknown>;
  error?: { code: number; message: string };
}

const ANSWER_MS_MAX = 60_000;

/** How a server is reached: by its bytes, and how it ends. */
interface Channel {
  input: WritableStream<Uint8Array>;
  output: ReadableStream<Uint8Array>;
  ended: Promise<{ code: number; stderr: string }>;
  kill(): void;
}

/** What serves: a program to start, or this very process. */
export type Serving = Omit<Program, "name"> & { name: string };

/**
 * The server's own code run in this process, over the same ports but without a Worker: what Deno's
 * permissions refuse elsewhere is not refused here.
 */
export const inProcess: Serving = { name: "in process", command: "", args: [] };

interface StartOptions {
  cwd?: string;
  env?: Record<string, string>;
}

/** A tool server and a client to it. */
export class ToolClient {
  readonly replies: Reply[] = [];
  readonly #channel: Channel;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #waiting = new Map<number, (reply: Reply) => void>();
  readonly #read: Promise<void>;
  #lastId = 0;
  #onReply: (() => void)[] = [];

  private constructor(channel: Channel) {
    this.#channel = channel;
    this.#writer = channel.input.getWriter();
    this.#read = this.#pump(channel.output);
  }

  /** Starts `mcp ARGS` and shakes hands. */
  static async start(
    program: Serving,
    args: readonly string[],
    options: StartOptions = {},
  ): Promise<ToolClient> {
    const client = ToolClient.spawn(program, args, options);
    const reply = await client.request("initialize", {
      protocolVersion: "2025-06-18",
      capabilities: {},
      clientInfo: { name: "test", version: "1" },
    });
    assert.ok(reply.result, `initialize is answered: ${JSON.stringify(reply)}`);
    client.notify("notifications/initialized");
    return client;
  }

  /** Starts `mcp ARGS` without a word. */
  static spawn(
    program: Serving,
    args: readonly string[],
    options: StartOptions = {},
  ): ToolClient {
    return new ToolClient(
      program === inProcess ? serveHere(args, options) : startProgram(program, args, options),
    );
  }

  async send(text: string | Uint8Array): Promise<void> {
    await this.#writer.write(typeof text === "string" ? new TextEncoder().encode(text) : text);
  }

  notify(method: string, params: Record<string, unknown> = {}): void {
    this.send(JSON.stringify({ jsonrpc: "2.0", method, params }) + "\n").catch(() => {});
  }

  /** Sends a request; the id that it has. */
  begin(method: string, params: Record<string, unknown>): { id: number; reply: Promise<Reply> } {
    const id = ++this.#lastId;
    const reply = new Promise<Reply>((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new Error(`no answer to ${method} ${JSON.stringify(params)}`)),
        ANSWER_MS_MAX,
      );
      this.#waiting.set(id, (reply) => {
        clearTimeout(timer);
        resolve(reply);
      });
    });
    this.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }) + "\n").catch(() => {});
    return { id, reply };
  }

  request(method: string, params: Record<string, unknown> = {}): Promise<Reply> {
    return this.begin(method, params).reply;
  }

  async call(name: string, args: Record<string, unknown> = {}): Promise<CallResult> {
    const reply = await this.request("tools/call", { name, arguments: args });
    assert.ok(reply.result, `a result, not ${JSON.stringify(reply)}`);
    return reply.result as unknown as CallResult;
  }

  /** All text of a call that must succeed. */
  async ok(name: string, args: Record<string, unknown> = {}): Promise<string> {
    const result = await this.call(name, args);
    assert.notEqual(result.isError, true, textOf(result));
    return textOf(result);
  }

  /** All text of a call that must fail, in words for a caller: no stack, no source. */
  async refused(name: string, args: Record<string, unknown> = {}): Promise<string> {
    const result = await this.call(name, args);
    const text = textOf(result);
    assert.equal(result.isError, true, text);
    assert.doesNotMatch(text, /\n\s+at |\.[jt]s:\d/);
    return text;
  }

  /** The next message that answers no request of ours. */
  async unasked(): Promise<Reply> {
    while (this.replies.length === 0) {
      await new Promise<void>((resolve) => this.#onReply.push(resolve));
    }
    return this.replies.shift()!;
  }

  /** Closes stdin and waits for the end. */
  async close(): Promise<{ code: number; stderr: string }> {
    await this.#writer.close().catch(() => {});
    return await this.ended();
  }

  /** Waits for the end, however it comes. */
  async ended(): Promise<{ code: number; stderr: string }> {
    const [end] = await Promise.all([this.#channel.ended, this.#read]);
    return end;
  }

  async kill(): Promise<void> {
    this.#channel.kill();
    await this.#writer.abort().catch(() => {});
    await this.ended();
  }

  async #pump(output: ReadableStream<Uint8Array>): Promise<void> {
    let pending = "";
    const decoder = new TextDecoder();
    for await (const chunk of output) {
      pending += decoder.decode(chunk, { stream: true });
      const lines = pending.split("\n");
      pending = lines.pop()!;
      for (const line of lines) this.#take(JSON.parse(line) as Reply);
    }
    for (const settle of this.#waiting.values()) {
      settle({ error: { code: 0, message: "the server is gone" } });
    }
  }

  #take(reply: Reply): void {
    const settle = typeof reply.id === "number" ? this.#waiting.get(reply.id) : undefined;
    if (settle === undefined) {
      this.replies.push(reply);
      for (const resolve of this.#onReply) resolve();
      this.#onReply = [];
      return;
    }
    this.#waiting.delete(reply.id!);
    settle(reply);
  }
}

/** The texts of a result, one after the other. */
export function textOf(result: CallResult): string {
  return result.content.map((block) => block.text ?? `[${block.type}]`).join("\n");
}

function startProgram(program: Serving, args: readonly string[], options: StartOptions): Channel {
  const child = new Deno.Command(program.command, {
    args: [...program.args, "mcp", ...args],
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
    ...options,
  }).spawn();
  const said = new Response(child.stderr).text();
  return {
    input: child.stdin,
    output: child.stdout,
    ended: Promise.all([child.status, said]).then(([{ code }, stderr]) => ({ code, stderr })),
    kill: () => child.kill("SIGKILL"),
  };
}

function serveHere(args: readonly string[], options: StartOptions): Channel {
  const toServer = new TransformStream<Uint8Array, Uint8Array>();
  const fromServer = new TransformStream<Uint8Array, Uint8Array>();
  const sink = fromServer.writable.getWriter();
  const lines: string[] = [];
  const env = { ...Deno.env.toObject(), ...options.env };
  const process = new SettlingProcess();
  const worker: WorkerPort = {
    start(spec) {
      const handle = createServing({
        tree: systemTree,
        sockets: systemSockets,
        process,
        clock: systemClock,
        random: systemRandom,
        input: toServer.readable,
        output: new WritableStream({ write: (chunk) => sink.write(chunk) }),
        // As between threads: never within the call that sends it.
        post: (message) => queueMicrotask(() => spec.onMessage(structuredClone(message))),
      });
      return {
        post: (message) => handle(message as ToToolWorker),
        terminate: () => {},
      };
    },
  };
  const ended = runToolServer(args, {
    self: { env: (name) => env[name], revokeAllButRun: () => Promise.resolve() },
    revokeRun: () => Promise.resolve(),
    worker,
    process,
    clock: systemClock,
    environment: () => env,
    realPath: (path) => {
      const real = systemTree.realPath(path);
      return real.ok ? real.value : undefined;
    },
    workingDirectory: options.cwd ?? Deno.cwd(),
    say: (line) => lines.push(line),
  }).then(async (code) => {
    await sink.close();
    await process[Symbol.asyncDispose]();
    return { code, stderr: lines.join("\n") };
  });
  return { input: toServer.writable, output: fromServer.readable, ended, kill: () => {} };
}
