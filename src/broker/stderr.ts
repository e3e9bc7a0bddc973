/** The stderr of a tool server: always drained, a bounded part of it logged, its end kept. */

import { joinBytes } from "../core/bytes.ts";
import {
  STDERR_LINE_BYTES_MAX,
  STDERR_LINES_PER_SECOND_MAX,
  STDERR_TAIL_BYTES_MAX,
} from "../core/limits.ts";
import type { Vault } from "../core/secret.ts";
import { withoutControls } from "../core/text.ts";
import type { ClockPort } from "../ports/clock.ts";
import type { TelemetryPort } from "../ports/telemetry.ts";
import { type LineEvent, LineSplitter } from "../wire/lines.ts";

/** Whose stderr it is, and where its lines go. */
export interface StderrDeps {
  server: string;
  pid: number;
  clock: ClockPort;
  telemetry: TelemetryPort;
  vault: Vault;
}

/** Drains one stream. Lines go out as `mcp.connect` events with the field `stderr`. */
export class StderrDrain {
  readonly #deps: StderrDeps;
  #tail = new Uint8Array(0);
  #secondStartMs = Number.NEGATIVE_INFINITY;
  #linesThisSecond = 0;
  #suppressed = 0;
  #reader: ReadableStreamDefaultReader<Uint8Array> | null = null;

  constructor(deps: StderrDeps) {
    this.#deps = deps;
  }

  /** Drains until the stream ends or breaks, or `stop`. Never rejects. */
  async run(stream: ReadableStream<Uint8Array>): Promise<void> {
    const splitter = new LineSplitter(STDERR_LINE_BYTES_MAX);
    this.#reader = stream.getReader();
    try {
      for (;;) {
        const { done, value } = await this.#reader.read();
        if (done) break;
        this.#keep(value);
        for (const event of splitter.push(value)) this.#log(event);
      }
    } catch { /* a pipe that breaks has ended */ }
    for (const event of splitter.end()) this.#log(event);
    this.#flush();
  }

  /** Stops reading: a process that the server left behind may hold the pipe open. */
  stop(): void {
    this.#reader?.cancel().catch(() => {});
  }

  /** The end of what it wrote, masked, without control characters. */
  tail(): string {
    const text = new TextDecoder().decode(this.#tail);
    return withoutControls(this.#deps.vault.mask(text)).trim();
  }

  #keep(chunk: Uint8Array): void {
    const last = chunk.subarray(Math.max(0, chunk.length - STDERR_TAIL_BYTES_MAX));
    const before = this.#tail.subarray(
      Math.max(0, this.#tail.length + last.length - STDERR_TAIL_BYTES_MAX),
    );
    this.#tail = joinBytes([before, last]);
  }

  #log(event: LineEvent): void {
    const nowMs = this.#deps.clock.monotonicMs();
    if (nowMs - this.#secondStartMs >= 1000) {
      this.#flush();
      this.#secondStartMs = nowMs;
      this.#linesThisSecond = 0;
    }
    if (this.#linesThisSecond >= STDERR_LINES_PER_SECOND_MAX) {
      this.#suppressed++;
      return;
    }
    this.#linesThisSecond++;
    this.#emit({ stderr: this.#deps.vault.mask(withoutControls(describe(event))) });
  }

  #flush(): void {
    if (this.#suppressed === 0) return;
    this.#emit({ stderr_suppressed: this.#suppressed });
    this.#suppressed = 0;
  }

  #emit(fields: Record<string, unknown>): void {
    const { telemetry, server, pid } = this.#deps;
    telemetry.emit("mcp.connect", { server, server_pid: pid, ...fields });
  }
}

function describe(event: LineEvent): string {
  if (event.type === "line") return event.text;
  if (event.type === "invalid") return event.lossy;
  return `${event.head} … ${event.tail} (${event.bytes} bytes)`;
}
