/** Of a failed check's output, the part that says why: a model should not have to read the rest. */

import { clip } from "../core/text.ts";

const TELLING =
  /\b(?:error|errors|fail(?:ed|ure|ures|s)?|assert\w*|expected|panic\w*|traceback|exception|not ok|cannot|undefined|mismatch|missing|denied|fatal)\b|[✗✖×]/i;
const CONTEXT_LINES = 2;

/**
 * At most `charsMax` characters: the lines that tell of a failure with two lines around each, then
 * the end of the output as far as there is room. The whole output if it fits.
 */
export function failingPart(output: string, charsMax: number): string {
  const text = output.trimEnd();
  if (text.length <= charsMax) return text;
  const lines = text.split("\n").map((line) => clip(line, 400));
  const keep = new Set<number>();
  let chars = 0;
  const add = (index: number, budget: number): boolean => {
    const line = lines[index];
    if (line === undefined || keep.has(index)) return true;
    if (chars + line.length + 1 > budget) return false;
    keep.add(index);
    chars += line.length + 1;
    return true;
  };
  // A third of the room is for the end: runners sum up there.
  for (let index = lines.length - 1; index >= 0; index--) if (!add(index, charsMax / 3)) break;
  for (let index = 0; index < lines.length; index++) {
    if (!TELLING.test(lines[index]!)) continue;
    let room = true;
    for (let near = index - CONTEXT_LINES; near <= index + CONTEXT_LINES; near++) {
      room = add(near, charsMax - 100) && room;
    }
    if (!room) break;
  }
  const shown: string[] = [];
  let before = -1;
  for (const index of [...keep].sort((a, b) => a - b)) {
    if (index !== before + 1) shown.push(`[${index - before - 1} lines left out]`);
    shown.push(lines[index]!);
    before = index;
  }
  return shown.join("\n");
}

/** The graded signal of a check: a last line `PROGRESS x/y`. */
export function readProgress(output: string): { done: number; total: number } | null {
  const last = output.trimEnd().split("\n").at(-1) ?? "";
  const match = /^PROGRESS\s+(\d+(?:\.\d+)?)\s*\/\s*(\d+(?:\.\d+)?)\s*$/.exec(last.trim());
  return match === null ? null : { done: Number(match[1]), total: Number(match[2]) };
}
