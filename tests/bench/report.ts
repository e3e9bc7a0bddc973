/** How measurements are printed: a value, what it is compared with, and the ratio to keep. */

/** One line of the report. */
export interface Line {
  what: string;
  value: number;
  unit: string;
  /** What it is measured against in the same run, if anything. */
  base?: { what: string; value: number };
  /** The ratio to the base, or the value where there is no base, should be at most this. */
  goal?: number;
}

/** Lines that miss their goal, as printed so far. */
export const missed: string[] = [];

/** Prints a heading. */
export function heading(text: string): void {
  console.log(`\n${text}`);
}

/** Prints one line. */
export function report(line: Line): void {
  const ratio = line.base === undefined ? line.value : line.value / line.base.value;
  const met = line.goal === undefined || ratio <= line.goal;
  if (!met) missed.push(line.what);
  const parts = [`${line.value.toFixed(2)} ${line.unit}`.padStart(14)];
  if (line.base) {
    parts.push(
      `${line.base.value.toFixed(2)} ${line.unit} ${line.base.what}`,
      `ratio ${ratio.toFixed(2)}`,
    );
  }
  if (line.goal !== undefined) parts.push(`goal ≤ ${line.goal}${met ? "" : "  MISSED"}`);
  console.log(`  ${line.what.padEnd(52)} ${parts.join(" · ")}`);
}
