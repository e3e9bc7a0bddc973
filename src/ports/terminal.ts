import type { Outcome } from "../core/outcome.ts";

/**
 * The streams of the process as its user has them. Contract: nothing throws for what stands behind
 * them; a pipe whose reader is gone takes what is written and loses it.
 */
export interface TerminalPort {
  stdoutIsTerminal: boolean;
  stderrIsTerminal: boolean;
  /** Characters of a line, where stdout is a terminal. */
  columns: number | null;
  /** Writes all of it; false if its reader is gone or its medium full. */
  writeOut(text: string): boolean;
  writeError(text: string): boolean;
  /** All of stdin as text, or why it cannot be had: over the bound, or no UTF-8. */
  readIn(bytesMax: number): Promise<Outcome<string, string>>;
}
