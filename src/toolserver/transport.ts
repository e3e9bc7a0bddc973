/** MCP over two byte streams: one JSON-RPC message per line, bounded. */

import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/server";
import { parseJson } from "../core/json.ts";
import { REQUEST_LINE_BYTES_MAX } from "../core/tool_limits.ts";
import { type LineEvent, LineSplitter } from "../wire/lines.ts";

const encoder = new TextEncoder();

/**
 * A transport over stdin and stdout. What is no JSON-RPC message is answered as the protocol says
 * (parse error, invalid request), and the connection goes on. `ended` resolves at the end of stdin.
 */
export class LineTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: Transport["onmessage"];
  readonly ended: Promise<void>;
  readonly #input: ReadableStream<Uint8Array>;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  #markEnded = () => {};
  #open = true;
  /** Requests that came in and have no answer yet. */
  readonly #pending = new Set<string | number>();
  #answered: (() => void)[] = [];

  constructor(input: ReadableStream<Uint8Array>, output: WritableStream<Uint8Array>) {
    this.#input = input;
    this.#writer = output.getWriter();
    this.ended = new Promise((resolve) => this.#markEnded = resolve);
  }

  start(): Promise<void> {
    this.#pump();
    return Promise.resolve();
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (this.#open) await this.#write(message);
    if (!("method" in message) && message.id !== undefined) this.#settle(message.id);
  }

  /** Resolves when every request that came in is answered or cancelled. */
  async settled(): Promise<void> {
    if (this.#pending.size > 0) {
      await new Promise<void>((resolve) => this.#answered.push(resolve));
    }
  }

  #settle(id: string | number): void {
    this.#pending.delete(id);
    if (this.#pending.size > 0) return;
    for (const resolve of this.#answered) resolve();
    this.#answered = [];
  }

  close(): Promise<void> {
    if (this.#open) {
      this.#open = false;
      this.onclose?.();
    }
    return Promise.resolve();
  }

  async #pump(): Promise<void> {
    const splitter = new LineSplitter(REQUEST_LINE_BYTES_MAX);
    const reader = this.#input.getReader();
    try {
      for (;;) {
        const { value, done } = await reader.read();
        const events = done ? splitter.end() : splitter.push(value);
        for (const event of events) this.#take(event);
        if (done) break;
      }
    } catch { /* a broken pipe is an end as well */ }
    this.#markEnded();
  }

  #take(event: LineEvent): void {
    if (event.type === "oversized") {
      this.#reject(-32600, `Message of ${event.bytes} bytes; at most ${REQUEST_LINE_BYTES_MAX}.`);
      return;
    }
    const text = event.type === "invalid" ? event.lossy : event.text;
    if (text.trim() === "") return;
    if (event.type === "invalid") {
      this.#reject(-32700, "Message is not valid UTF-8.");
      return;
    }
    const parsed = parseJson(text);
    if (!parsed.ok) {
      this.#reject(-32700, `Message is not JSON: ${parsed.failure.message}`);
      return;
    }
    const message = parsed.value as { jsonrpc?: unknown; method?: unknown; id?: unknown } | null;
    const sound = typeof message === "object" && message !== null && !Array.isArray(message) &&
      message.jsonrpc === "2.0" &&
      (typeof message.method === "string" || "result" in message || "error" in message);
    if (!sound) {
      this.#reject(-32600, "Message is no JSON-RPC 2.0 message.");
      return;
    }
    this.#track(message as unknown as JSONRPCMessage);
    try {
      this.onmessage?.(message as unknown as JSONRPCMessage);
    } catch (error) {
      this.onerror?.(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #track(message: JSONRPCMessage): void {
    if (!("method" in message)) return;
    if ("id" in message) this.#pending.add(message.id);
    else if (message.method === "notifications/cancelled") {
      const cancelled = message.params?.requestId;
      if (typeof cancelled === "string" || typeof cancelled === "number") this.#settle(cancelled);
    }
  }

  #reject(code: number, message: string): void {
    this.#write({ jsonrpc: "2.0", id: null, error: { code, message } });
  }

  async #write(message: unknown): Promise<void> {
    try {
      await this.#writer.write(encoder.encode(JSON.stringify(message) + "\n"));
    } catch {
      // The reader is gone: nobody is left to serve.
      this.#markEnded();
    }
  }
}
