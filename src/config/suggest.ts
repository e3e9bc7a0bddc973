/** "Did you mean": the nearest known name by edit distance. */

/** Optimal string alignment distance: insertions, deletions, replacements, neighbours swapped. */
export function editDistance(left: string, right: string): number {
  const rows: number[][] = [];
  for (let i = 0; i <= left.length; i++) {
    const row: number[] = [i];
    for (let j = 1; j <= right.length; j++) {
      if (i === 0) {
        row.push(j);
        continue;
      }
      const cost = left[i - 1] === right[j - 1] ? 0 : 1;
      let best = Math.min(rows[i - 1]![j]! + 1, row[j - 1]! + 1, rows[i - 1]![j - 1]! + cost);
      if (i > 1 && j > 1 && left[i - 1] === right[j - 2] && left[i - 2] === right[j - 1]) {
        best = Math.min(best, rows[i - 2]![j - 2]! + 1);
      }
      row.push(best);
    }
    rows.push(row);
  }
  return rows[left.length]![right.length]!;
}

/**
 * The known name nearest to what was written, if it is near: at most a third of its length away,
 * and three edits at the most. Names longer than 64 characters are not compared.
 */
export function nearest(written: string, known: Iterable<string>): string | undefined {
  if (written.length > 64) return undefined;
  let best: string | undefined;
  let bestDistance = Infinity;
  for (const name of known) {
    const allowed = Math.min(3, Math.floor(name.length / 3));
    if (Math.abs(name.length - written.length) > allowed) continue;
    const distance = editDistance(written.toLowerCase(), name.toLowerCase());
    if (distance <= allowed && distance < bestDistance) {
      best = name;
      bestDistance = distance;
    }
  }
  return best;
}

/** `did you mean X?`, or an empty text if nothing is near. */
export function didYouMean(written: string, known: Iterable<string>): string {
  const name = nearest(written, known);
  return name === undefined ? "" : `did you mean ${name}?`;
}
