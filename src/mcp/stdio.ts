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

/** A line that was no message. */
export interface StrayLine {
  kind: keyof StrayLines;
  bytes: number;
}

const encoder = new TextEncoder();

/** The transport. The SDK sees `pid` and `stderr`, by which it knows a stdio server. */
export class PortTransport implements SdkTransport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: SdkTransport["onmessage"];
  /** Called for the first stray line of each kind. */
  onstray?: (line: StrayLine) => void;
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

  /** Gives the port back; nothing is heard of the process after it. */
  release(): void {
    this.#port.onmessage = null;
    // Said after `exited`, it lets the broker close its own end.
    this.#post({ type: "close" });
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
      this.#countStray("oversized", event.bytes);
      const id = answeredId(event.head, event.tail);
      if (id !== undefined) this.onmessage?.(oversizedAnswer(id, event.bytes));
      return;
    }
    if (event.type === "line") {
      if (!this.#takeText(event.text)) this.#countStray("noise", event.text.length);
      return;
    }
    // A message with a few broken bytes inside is still an answer.
    this.#countStray("invalid", event.bytes);
    this.#takeText(event.lossy);
  }

  /** Takes the message of a line, or the messages of a batch; false if there is none. */
  #takeText(line: string): boolean {
    const text = line.trim();
    if (text === "") return true;
    if (!text.startsWith("{") && !text.startsWith("[")) return false;
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      return false;
    }
    let taken = false;
    for (const item of Array.isArray(value) ? value : [value]) {
      const message = toMessage(item);
      if (message === undefined) continue;
      taken = true;
      this.onmessage?.(message);
    }
    return taken;
  }

  #countStray(kind: keyof StrayLines, bytes: number): void {
    if (this.stray[kind]++ === 0) this.onstray?.({ kind, bytes });
  }

  #post(message: ServerPortMessage): void {
    this.#port.postMessage(message);
  }
}
