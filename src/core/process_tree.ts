/** Who descends from whom in a process table. Pure: the table is the process port's. */

/** What of a process's row says whose it is. */
export interface TreeRow {
  pid: number;
  parentPid: number;
  groupId: number;
  /** The leader's pid; on systems that say something else, sessions are not followed. */
  sessionId: number;
  /** As `ps` writes it: `Z` first for a zombie. */
  state: string;
  /** Its environment says whose it is. */
  marked: boolean;
}

/** Everything below the given processes, deepest last, without them. */
export function descendantsOf<Row extends TreeRow>(
  rows: readonly Row[],
  roots: readonly number[],
): Row[] {
  const children = new Map<number, Row[]>();
  for (const row of rows) {
    const siblings = children.get(row.parentPid);
    if (siblings) siblings.push(row);
    else children.set(row.parentPid, [row]);
  }
  const found: Row[] = [];
  const seen = new Set<number>(roots);
  let level = [...roots];
  while (level.length > 0) {
    const next: number[] = [];
    for (const pid of level) {
      for (const row of children.get(pid) ?? []) {
        if (seen.has(row.pid)) continue;
        seen.add(row.pid);
        found.push(row);
        next.push(row.pid);
      }
    }
    level = next;
  }
  return found;
}

/**
 * What belongs to a group, its leader included, what is marked or known of it otherwise, everything below these,
 * and whoever is in a session that one of them leads: nobody enters a session but by birth, so that
 * also those belong to it whose parents are gone.
 */
export function treeOfGroup<Row extends TreeRow>(
  rows: readonly Row[],
  groupId: number,
  known: ReadonlySet<number> = new Set(),
): Row[] {
  const found = new Map<number, Row>();
  const sessions = new Set([groupId]);
  let fresh = rows.filter((row) =>
    row.groupId === groupId || row.pid === groupId || row.marked || known.has(row.pid)
  );
  for (;;) {
    for (const row of [...fresh, ...descendantsOf(rows, fresh.map((row) => row.pid))]) {
      found.set(row.pid, row);
      if (row.pid === row.sessionId) sessions.add(row.pid);
    }
    fresh = rows.filter((row) => sessions.has(row.sessionId) && !found.has(row.pid));
    if (fresh.length === 0) return [...found.values()];
  }
}

/** Members of a group whose parent is neither in the group nor its leader: left by the dead. */
export function orphansOf<Row extends TreeRow>(rows: readonly Row[], groupId: number): Row[] {
  const members = new Set(rows.filter((row) => row.groupId === groupId).map((row) => row.pid));
  return rows.filter((row) =>
    row.groupId === groupId && row.pid !== groupId && !members.has(row.parentPid)
  );
}

/** Zombies are dead: only their parent has yet to ask. */
export function isAlive(row: TreeRow): boolean {
  return !row.state.startsWith("Z");
}
