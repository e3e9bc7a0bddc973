import type { Outcome } from "../core/outcome.ts";

/** What to start. No shell is ever involved. */
export interface SpawnSpec {
  command: string;
  args: readonly string[];
  /** The whole environment if `clearEnv`, else additions to ours. */
  env: Readonly<Record<string, string>>;
  clearEnv: boolean;
  cwd?: string;
  /** A session, and so a process group, of its own: pgid = pid. */
  detached: boolean;
  stdin: "piped" | "null";
  stdout: "piped" | "null";
  stderr: "piped" | "inherit" | "null";
}

/** Why a program did not start. */
export interface SpawnFailure {
  class: "not_found" | "denied" | "other";
  message: string;
}

/** How a process ended. `signal` is the name of the signal that ended it, else null. */
export interface ExitStatus {
  code: number;
  signal: string | null;
}

/** A process we started. Streams are null where not piped. `exited` never rejects. */
export interface ChildProcess {
  pid: number;
  stdin: WritableStream<Uint8Array> | null;
  stdout: ReadableStream<Uint8Array> | null;
  stderr: ReadableStream<Uint8Array> | null;
  exited: Promise<ExitStatus>;
}

/** Signals that are sent. */
export type SignalName = "SIGTERM" | "SIGKILL" | "SIGINT" | "SIGSTOP" | "SIGCONT";

/** One row of the process table. `residentBytes` is the resident set. */
export interface ProcessRow {
  pid: number;
  parentPid: number;
  groupId: number;
  sessionId: number;
  state: string;
  /** Whether the words asked for are in its environment. */
  marked: boolean;
  residentBytes: number;
  /** Its arguments; where environments were looked into, its environment follows. */
  command: string;
}

/**
 * Processes. Contract: nothing throws for what the world does; a signal to what is already gone
 * answers `gone`.
 */
export interface ProcessPort {
  spawn(spec: SpawnSpec): Outcome<ChildProcess, SpawnFailure>;
  signal(pid: number, signal: SignalName): "sent" | "gone" | "denied";
  signalGroup(groupId: number, signal: SignalName): "sent" | "gone" | "denied";
  /**
   * Every process that can be seen; empty where the system has no `ps`. With `mark`, words of the form
   * `NAME=value`, it also looks into the environments, as far as the system shows them.
   */
  table(mark?: string): Promise<ProcessRow[]>;
}
