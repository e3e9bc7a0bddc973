/**
 * A stdio server's bytes, lent by the broker through a message port, as a transport of the SDK.
 * What a server writes that is no message is skipped and counted, never waited for.
 */

import { TOOL_LINE_BYTES_MAX } from "../core/limits.ts";
import { type LineEvent, LineSplitter } from "../wire/lines.ts";
import type { ServerPortMessage } from "../wire/worker.ts";
import { PORT_WINDOW_BYTES } from "../wire/worker.ts";
import { NotSent } from "./failure.ts";
import { answeredId, oversizedAnswer, toMessage } from "./message.ts";
import type { Message, SdkTransport } from "./sdk.ts";

/** How a server's process ended, with the end of its stderr. */
export interface ServerExit {
  code: number;
  signal: string | null;
  stderr: string;
}

/** Lines of a server's stdout that were no message. */
export interface StrayLines {
  /** Valid text that is no JSON-RPC message. */
  noise: number;
  /** Bytes that are no UTF-8. */
  invalid: number;
  /** Over TOOL_LINE_BYTES_MAX. */
  oversized: number;
}

const encoder = new TextEncoder();

/** The transport. The SDK sees `pid` and `stderr`, by which it knows a stdio server. */
export class PortTransport implements SdkTransport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: SdkTransport["onmessage"];
  readonly pid: number;
  readonly stderr = null;
  readonly stray: StrayLines = { noise: 0, invalid: 0, oversized: 0 };
  /** Resolves when the process has ended, or null when the port was closed before. */
  readonly exited: Promise<ServerExit | null>;
  /** How it ended; null while it lives. */
  exit: ServerExit | null = null;
  readonly #port: MessagePort;
  readonly #splitter = new LineSplitter(TOOL_LINE_BYTES_MAX);
  #resolveExited: (exit: ServerExit | null) => void = () => {};
  #closed = false;
  #closedByUs = false;
  #untaken = 0;

  constructor(port: MessagePort, pid: number) {
    this.#port = port;
    this.pid = pid;
    this.exited = new Promise((resolve) => this.#resolveExited = resolve);
  }

  start(): Promise<void> {
    this.#port.onmessage = (event: MessageEvent<ServerPortMessage>) => this.#take(event.data);
    return Promise.resolve();
  }

  send(message: Message): Promise<void> {
    if (this.#closed || this.exit !== null) {
      return Promise.reject(new NotSent("the server's process has ended"));
    }
    const line = encoder.encode(JSON.stringify(message) + "\n");
    this.#port.postMessage(line, [line.buffer]);
    return Promise.resolve();
  }

  /** Asks the broker to end the process. The port stays open for its `exited`: see `release`. */
  close(): Promise<void> {
    if (!this.#closed) {
      this.#closed = true;
      this.#closedByUs = this.exit === null;
      if (this.exit === null) this.#post({ type: "close" });
      this.onclose?.();
    }
    return Promise.resolve();
  }

  /** Whether it was us who ended the process. */
  get closedByUs(): boolean {
    return this.#closedByUs;
  }

  /** Ends a process that nobody will speak with. */
  abandon(): void {
    this.close();
    this.release();
  }

  /** Gives the port back; nothing is heard of the process after it. */
  release(): void {
    this.#port.onmessage = null;
    this.#port.close();
    this.#resolveExited(this.exit);
  }

  #take(message: ServerPortMessage): void {
    if (message instanceof Uint8Array) {
      for (const event of this.#splitter.push(message)) this.#takeLine(event);
      this.#untaken += message.length;
      if (this.#untaken >= PORT_WINDOW_BYTES / 4) {
        this.#post({ type: "taken", bytes: this.#untaken });
        this.#untaken = 0;
      }
    } else if (message.type === "exited") {
      for (const event of this.#splitter.end()) this.#takeLine(event);
      this.exit = { code: message.code, signal: message.signal, stderr: message.stderr };
      this.#resolveExited(this.exit);
      if (!this.#closed) {
        this.#closed = true;
        this.onclose?.();
      }
    }
  }

  #takeLine(event: LineEvent): void {
    if (this.#closed) return;
    if (event.type === "oversized") {
      this.stray.oversized++;
      const id = answeredId(event.head, event.tail);
      if (id !== undefined) this.onmessage?.(oversizedAnswer(id, event.bytes));
      return;
    }
    if (event.type === "invalid") this.stray.invalid++;
    this.#takeText(event.type === "invalid" ? event.lossy : event.text, event.type === "line");
  }

  #takeText(text: string, countNoise: boolean): void {
    const start = text.trimStart();
    if (start === "" && countNoise) return;
    let value: unknown;
    if (start.startsWith("{") || start.startsWith("[")) {
      try {
        value = JSON.parse(start);
      } catch { /* noise */ }
    }
    // A revision of the protocol had batches: an array of messages on one line.
    let noise = true;
    for (const item of Array.isArray(value) ? value : [value]) {
      const message = toMessage(item);
      if (message === undefined) continue;
      noise = false;
      this.onmessage?.(message);
    }
    if (noise && countNoise) this.stray.noise++;
  }

  #post(message: ServerPortMessage): void {
    this.#port.postMessage(message);
  }
}
