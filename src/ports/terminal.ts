import type { Outcome } from "../core/outcome.ts";

/**
 * The streams of the process as its user has them. Contract: nothing throws for what stands behind
 * them; a pipe whose reader is gone takes what is written and loses it; only `writeOut` waits.
 */
export interface TerminalPort {
  stdoutIsTerminal: boolean;
  stderrIsTerminal: boolean;
  /** Characters of a line, where stdout is a terminal. */
  columns: number | null;
  /** Writes all of it; `unread`: its reader is gone; `failed`: its medium takes no more. */
  writeOut(text: string): "written" | "unread" | "failed";
  /** Takes it to be written to stdout, without waiting; false if it is lost. */
  queueOut(text: string): boolean;
  /** Takes it to be written, without waiting; false if it is lost. */
  writeError(text: string): boolean;
  /** Until what `writeError` took is written, at most a moment: false where nobody reads it. */
  settleError(): Promise<boolean>;
  /** Until everything that was taken is written, within a bound: false where it is not read. */
  settle(): Promise<boolean>;
  /** All of stdin as text, or why it cannot be had: over the bound, or no UTF-8. */
  readIn(bytesMax: number): Promise<Outcome<string, string>>;
}
