/** A bare MCP client over stdio: lines out, lines in, nothing in between. */

import assert from "node:assert/strict";
import type { Program } from "../program.ts";

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

/** A tool server's process and a client to it. */
export class ToolClient {
  readonly child: Deno.ChildProcess;
  readonly replies: Reply[] = [];
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #waiting = new Map<number, (reply: Reply) => void>();
  readonly #read: Promise<void>;
  readonly #stderr: Promise<string>;
  #lastId = 0;
  #onReply: (() => void)[] = [];

  private constructor(child: Deno.ChildProcess) {
    this.child = child;
    this.#writer = child.stdin.getWriter();
    this.#read = this.#pump();
    this.#stderr = new Response(child.stderr).text();
  }

  /** Starts `mcp ARGS` and shakes hands. */
  static async start(
    program: Pick<Program, "command" | "args">,
    args: readonly string[],
    options: { cwd?: string; env?: Record<string, string> } = {},
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
    program: Pick<Program, "command" | "args">,
    args: readonly string[],
    options: { cwd?: string; env?: Record<string, string> } = {},
  ): ToolClient {
    return new ToolClient(
      new Deno.Command(program.command, {
        args: [...program.args, "mcp", ...args],
        stdin: "piped",
        stdout: "piped",
        stderr: "piped",
        ...options,
      }).spawn(),
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
    const [{ code }, stderr] = await Promise.all([this.child.status, this.#stderr, this.#read]);
    return { code, stderr };
  }

  async kill(): Promise<void> {
    this.child.kill("SIGKILL");
    await this.#writer.abort().catch(() => {});
    await this.ended();
  }

  async #pump(): Promise<void> {
    let pending = "";
    const decoder = new TextDecoder();
    for await (const chunk of this.child.stdout) {
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
