/** Sets of characters, by code point. */

/** Sorted code-point ranges, both ends included. */
export type CharacterSet = [number, number][];

/** The last code point. */
export const CODE_POINT_MAX = 0x10ffff;
/** `\w`, `\d`, `\s` and `.` of regular expressions. */
export const WORD: CharacterSet = [[48, 57], [65, 90], [95, 95], [97, 122]];
export const DIGIT: CharacterSet = [[48, 57]];
export const SPACE: CharacterSet = [
  [9, 13],
  [32, 32],
  [0xa0, 0xa0],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
  [0xfeff, 0xfeff],
];
/** Everything but a line feed. */
export const ANY: CharacterSet = [[0, 9], [11, CODE_POINT_MAX]];
/** `.` of JavaScript: everything but what ends a line to it. */
export const NO_LINE_END: CharacterSet = [
  [0, 9],
  [11, 12],
  [14, 0x2027],
  [0x202a, CODE_POINT_MAX],
];

/** Every code point that is not in a set. */
export function complement(set: CharacterSet): CharacterSet {
  const out: CharacterSet = [];
  let from = 0;
  for (const [start, end] of set) {
    if (start > from) out.push([from, start - 1]);
    from = end + 1;
  }
  if (from <= CODE_POINT_MAX) out.push([from, CODE_POINT_MAX]);
  return out;
}

/** Sorts ranges and joins those that touch. */
export function normalizeSet(ranges: CharacterSet): CharacterSet {
  const sorted = [...ranges].sort((a, b) => a[0] - b[0]);
  const out: CharacterSet = [];
  for (const [start, end] of sorted) {
    const last = out.at(-1);
    if (last !== undefined && start <= last[1] + 1) last[1] = Math.max(last[1], end);
    else out.push([start, end]);
  }
  return out;
}

/** A set with the other case of each letter added. */
export function foldCase(set: CharacterSet): CharacterSet {
  const out: CharacterSet = [...set];
  for (const [start, end] of set) {
    // Beyond this a range is a class of its own such as "anything but x", which has both cases.
    if (end - start > 2_000) continue;
    for (let code = start; code <= end; code++) {
      const character = String.fromCodePoint(code);
      for (const other of [character.toLowerCase(), character.toUpperCase()]) {
        const point = other.codePointAt(0)!;
        if (point !== code && String.fromCodePoint(point) === other) out.push([point, point]);
      }
    }
  }
  return normalizeSet(out);
}
