/** A daemon under black-box test: starts it, waits for its telemetry, ends it. */

import type { Program } from "../program.ts";

// deno-lint-ignore no-explicit-any
export type Line = Record<string, any> & { event: string };

/** How long anything may take before the test gives up on it. */
const PATIENCE_MS = 60_000;

export interface DaemonEnd {
  code: number;
  stdout: string;
  stderr: string;
}

/** A running daemon. */
export class DaemonProcess {
  readonly pid: number;
  readonly lines: Line[] = [];
  readonly ended: Promise<DaemonEnd>;
  readonly #child: Deno.ChildProcess;
  readonly #waiters = new Set<() => void>();
  #over = false;
  #stderr = "";
  #stdout = "";

  constructor(
    program: Program,
    args: readonly string[],
    options: { cwd: string; env?: Record<string, string> },
  ) {
    const env: Record<string, string> = {
      NO_COLOR: "1",
      AGENT_INTELLIGENCE_TOKEN: "s3cr3t-of-the-test",
    };
    for (const name of ["PATH", "HOME", "TMPDIR", "DENO_DIR", "LANG"]) {
      const value = Deno.env.get(name);
      if (value !== undefined) env[name] = value;
    }
    this.#child = new Deno.Command(program.command, {
      args: [...program.args, ...args],
      cwd: options.cwd,
      clearEnv: true,
      env: { ...env, ...options.env },
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    this.pid = this.#child.pid;
    this.ended = this.#follow();
  }

  get stdout(): string {
    return this.#stdout;
  }

  /** The `count`th telemetry line that fits, waited for. */
  async seen(fits: (line: Line) => boolean, count = 1): Promise<Line> {
    let found: Line | undefined;
    await this.until(() => {
      const fitting = this.lines.filter(fits);
      found = fitting[count - 1];
      return found !== undefined;
    });
    return found!;
  }

  /** Waits until something holds; looked at whenever the daemon says anything. */
  async until(holds: () => boolean): Promise<void> {
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      this.#wake();
    }, PATIENCE_MS);
    try {
      while (!holds()) {
        if (late || this.#over) {
          throw new Error(`${late ? "too late" : "it ended"}\n${this.#stderr.slice(-6000)}`);
        }
        await new Promise<void>((resolve) => this.#waiters.add(resolve));
      }
    } finally {
      clearTimeout(timer);
    }
  }

  signal(name: Deno.Signal): void {
    try {
      this.#child.kill(name);
    } catch { /* it is gone */ }
  }

  /** SIGTERM, and its end. */
  async stop(): Promise<DaemonEnd> {
    this.signal("SIGTERM");
    return await this.ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.signal("SIGKILL");
    await this.ended;
  }

  #wake(): void {
    const waiters = [...this.#waiters];
    this.#waiters.clear();
    for (const waiter of waiters) waiter();
  }

  async #follow(): Promise<DaemonEnd> {
    const [, , status] = await Promise.all([
      this.#read(this.#child.stdout, (text) => this.#stdout += text, () => {}),
      this.#read(this.#child.stderr, (text) => this.#stderr += text, (line) => {
        if (line.startsWith("{")) this.lines.push(JSON.parse(line));
      }),
      this.#child.status,
    ]);
    this.#over = true;
    this.#wake();
    return { code: status.code, stdout: this.#stdout, stderr: this.#stderr };
  }

  async #read(
    stream: ReadableStream<Uint8Array>,
    keep: (text: string) => void,
    onLine: (line: string) => void,
  ): Promise<void> {
    let pending = "";
    for await (const text of stream.pipeThrough(new TextDecoderStream() as never)) {
      keep(text as string);
      pending += text;
      const parts = pending.split("\n");
      pending = parts.pop()!;
      for (const part of parts) onLine(part);
      this.#wake();
    }
  }
}
