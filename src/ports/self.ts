/**
 * This very process. Contract: `stdin` and `stdout` are the process's own, each taken once;
 * `revokeAllButRun` gives up every kind of permission but `run` for good; `exit` ends the process as
 * soon as what was written to stderr is taken, or a moment has passed: nothing comes after it.
 */
export interface SelfPort {
  pid: number;
  /** Compiled into one file, so that permissions are baked in and not given by flags. */
  standalone: boolean;
  stdin: ReadableStream<Uint8Array>;
  stdout: WritableStream<Uint8Array>;
  /** A variable of the environment, undefined where unset or not permitted. */
  env(name: string): string | undefined;
  revokeAllButRun(): Promise<void>;
  exit(code: number): void;
}

/** How this program starts itself anew in another role. */
export interface ProgramPort {
  standalone: boolean;
  command: string;
  /** Directories and files that it must read to load its own code; empty when compiled. */
  code: readonly string[];
  /** Variables that it needs beside the clean environment to load its own code. */
  environment: Readonly<Record<string, string>>;
  /**
   * Arguments for a role such as `["__agent"]`; `flags` are Deno's `--allow-…`, which count from
   * source and are left out when compiled.
   */
  args(role: readonly string[], flags: readonly string[]): string[];
}
