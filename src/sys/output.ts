/**
 * Streams of this process, or of this Worker, for which nothing waits: a reader that does not read
 * must not hold up a run, its deadline or its signals. What it has not taken is held up to a bound;
 * what comes on top is lost.
 */

import {
  OUTPUT_QUEUE_BYTES_MAX,
  OUTPUT_SETTLE_MS,
  STDERR_QUEUE_BYTES_MAX,
  STDERR_SETTLE_MS,
} from "../core/limits.ts";

type Stream = typeof Deno.stdout | typeof Deno.stderr;

const encoder = new TextEncoder();
const FULL_WAIT_MS = 5;
/** C0 but tab and the ends of lines, DEL, and C1. */
// deno-lint-ignore no-control-regex
const CONTROLS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]|\r(?!\n)/g;

class OutputQueue {
  readonly #stream: Stream;
  readonly #bytesMax: number;
  readonly #texts: Uint8Array[] = [];
  #bytes = 0;
  #writing: Promise<void> | null = null;
  #isTerminal: boolean | undefined;

  constructor(stream: Stream, bytesMax: number) {
    this.#stream = stream;
    this.#bytesMax = bytesMax;
  }

  /** Takes a text whole, or not at all: then false. */
  take(text: string): boolean {
    // A person reads a terminal, in step with what the shell prints next.
    this.#isTerminal ??= this.#stream.isTerminal();
    if (this.#isTerminal) return writeNow(this.#stream, text) === "written";
    const bytes = encoder.encode(text);
    if (this.#bytes + bytes.length > this.#bytesMax) return false;
    this.#bytes += bytes.length;
    this.#texts.push(bytes);
    this.#writing ??= this.#drain();
    return true;
  }

  /** Whether everything taken so far went out within the time. */
  async settled(waitMs: number): Promise<boolean> {
    if (this.#writing === null) return true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<boolean>((resolve) => {
      timer = setTimeout(() => resolve(false), waitMs);
    });
    const settled = await Promise.race([this.#writing.then(() => true), late]);
    clearTimeout(timer);
    return settled;
  }

  async #drain(): Promise<void> {
    // One text, one write: lines of several processes stay whole in the pipe that they share.
    for (let bytes = this.#texts.shift(); bytes !== undefined; bytes = this.#texts.shift()) {
      await this.#write(bytes);
      this.#bytes -= bytes.length;
    }
    this.#writing = null;
  }

  async #write(bytes: Uint8Array): Promise<void> {
    for (let written = 0; written < bytes.length;) {
      try {
        written += await this.#stream.write(bytes.subarray(written));
      } catch (error) {
        if (!(error instanceof Deno.errors.WouldBlock)) return;
        // Somebody made the pipe non-blocking, and it is full: its reader is slow, not gone.
        await new Promise((resolve) => setTimeout(resolve, FULL_WAIT_MS));
      }
    }
  }
}

const stdout = new OutputQueue(Deno.stdout, OUTPUT_QUEUE_BYTES_MAX);
const stderr = new OutputQueue(Deno.stderr, STDERR_QUEUE_BYTES_MAX);

/** A text to stderr, now or soon; false if it is lost: its reader does not read, or is gone. */
export function writeStderr(text: string): boolean {
  return stderr.take(text);
}

/** A text to stdout, now or soon; false if it is lost. Not together with {@link writeNow}. */
export function queueStdout(text: string): boolean {
  return stdout.take(text);
}

/** Until stderr is written, at most a moment; false where its reader does not read. */
export function settleStderr(): Promise<boolean> {
  return stderr.settled(STDERR_SETTLE_MS);
}

/** Until both streams are written, within a bound; false where a reader does not read. */
export async function settleOutput(): Promise<boolean> {
  const settled = await Promise.all([settleStderr(), stdout.settled(OUTPUT_SETTLE_MS)]);
  return settled.every((each) => each);
}

/**
 * Writes all of it and waits for that: whether its reader is gone, or its medium takes no more. What
 * models and tools say does not steer a terminal: there, control characters are shown as such.
 */
export function writeNow(stream: Stream, text: string): "written" | "unread" | "failed" {
  const bytes = encoder.encode(stream.isTerminal() ? text.replace(CONTROLS, "\ufffd") : text);
  try {
    for (let written = 0; written < bytes.length;) {
      try {
        written += stream.writeSync(bytes.subarray(written));
      } catch (error) {
        if (!(error instanceof Deno.errors.WouldBlock)) throw error;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, FULL_WAIT_MS);
      }
    }
    return "written";
  } catch (error) {
    return error instanceof Deno.errors.BrokenPipe ? "unread" : "failed";
  }
}
