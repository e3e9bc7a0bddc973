/** What a command hands to its caller, and text that is safe on a terminal. */

import { clip, withoutControls } from "../core/text.ts";

/**
 * What a command of this folder came to. `exitCode`: 0 done, 1 it found what it looked for (a
 * divergence, damage), 2 a mistake of the user's. Texts end with a line feed unless empty.
 */
export interface CommandOutput {
  exitCode: 0 | 1 | 2;
  stdout: string;
  stderr: string;
}

/** A mistake of the user's in one line. */
export function usageError(message: string): CommandOutput {
  return { exitCode: 2, stdout: "", stderr: `agentd: ${message}\n` };
}

/** One line of at most `charsMax` characters, without anything that a terminal would obey. */
export function oneLine(text: string, charsMax: number): string {
  // Four times the room first: a megabyte is not scanned for a line of sixty characters.
  const head = text.length > charsMax * 4 ? text.slice(0, charsMax * 4) : text;
  return clip(withoutControls(head).replace(/\s+/g, " ").trim(), charsMax).toWellFormed();
}

/** A column: its head, and whether it is set to the right. */
export interface Column {
  head: string;
  right?: boolean;
}

/** Rows in columns, each as wide as its widest cell, two spaces apart; the last is not padded. */
export function renderTable(columns: readonly Column[], rows: readonly string[][]): string {
  const widths = columns.map((column, i) =>
    rows.reduce((width, row) => Math.max(width, row[i]?.length ?? 0), column.head.length)
  );
  const render = (cells: readonly string[]): string =>
    cells.map((cell, i) => {
      if (columns[i]!.right) return cell.padStart(widths[i]!);
      return i === columns.length - 1 ? cell : cell.padEnd(widths[i]!);
    }).join("  ").trimEnd() + "\n";
  return render(columns.map((column) => column.head)) + rows.map(render).join("");
}

/** A count with thousands set apart by narrow commas: `1,234,567`. */
export function formatCount(count: number): string {
  return String(Math.round(count)).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** A count with its noun: `1 step`, `2,000 steps`. */
export function countOf(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** USD with as many digits as tell something; `–` for an unknown cost. */
export function formatCost(cost: number | null): string {
  if (cost === null) return "–";
  return `$${cost === 0 || cost >= 1 ? cost.toFixed(2) : cost.toPrecision(2)}`;
}

/** A duration for people: `840ms`, `12.3s`, `4m05s`, `2h07m`. */
export function formatElapsed(durationMs: number): string {
  if (durationMs < 999.5) return `${Math.round(durationMs)}ms`;
  if (durationMs < 99_950) return `${(durationMs / 1000).toFixed(1)}s`;
  const seconds = Math.round(durationMs / 1000);
  const two = (value: number): string => String(value).padStart(2, "0");
  return seconds < 3600
    ? `${Math.floor(seconds / 60)}m${two(seconds % 60)}s`
    : `${Math.floor(seconds / 3600)}h${two(Math.floor(seconds / 60) % 60)}m`;
}
