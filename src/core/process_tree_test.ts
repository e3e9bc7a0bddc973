import assert from "node:assert/strict";
import { treeOfGroup, type TreeRow } from "./process_tree.ts";

/** `pid parent group session` of each, and `marked` where it is. */
function table(...lines: string[]): TreeRow[] {
  return lines.map((line) => {
    const [ids, mark] = line.split(" marked");
    const [pid, parentPid, groupId, sessionId] = ids!.split(" ").map(Number);
    return {
      pid: pid!,
      parentPid: parentPid!,
      groupId: groupId!,
      sessionId: sessionId!,
      state: "S",
      marked: mark !== undefined,
    };
  });
}

/** The user's shell and its supervisor, in the user's session; one agent, 20, and its server. */
const COMMON = ["1 0 1 1", "5 1 5 5", "10 5 10 5", "20 10 20 20", "21 20 20 20"];

const ROWS: { name: string; rows: string[]; known?: number[]; found: number[] }[] = [
  { name: "members and descendants", rows: ["30 21 30 30", "31 30 30 30"], found: [30, 31] },
  { name: "orphans in its group", rows: ["30 1 20 20", "31 30 31 31"], found: [30, 31] },
  { name: "orphans in another group of its session", rows: ["30 1 29 20"], found: [30] },
  {
    name: "orphans in a session that a descendant leads, and what is below them",
    rows: ["30 21 30 30", "41 1 30 30", "42 1 40 30", "50 42 50 50", "51 1 50 50"],
    found: [30, 41, 42, 50, 51],
  },
  { name: "an orphan in a session of its own is nobody's", rows: ["30 1 30 30"], found: [] },
  {
    name: "a known orphan, what is below it and in its session",
    rows: ["30 1 30 30", "31 30 30 30", "32 1 30 30", "33 31 33 33"],
    known: [30],
    found: [30, 31, 32, 33],
  },
  {
    name: "a marked one that nobody saw, what is below it and in its session",
    rows: ["30 1 30 30 marked", "31 30 31 31", "32 1 33 30", "40 1 40 40"],
    found: [30, 31, 32],
  },
  {
    name: "a descendant in a session that nobody of them leads brings only itself",
    rows: ["30 21 30 5", "6 5 6 5", "40 1 7 7", "41 1 7 7"],
    known: [40],
    found: [30, 40],
  },
];

Deno.test("treeOfGroup: finds what belongs to a group, and nobody else", () => {
  for (const { name, rows, known, found } of ROWS) {
    const pids = treeOfGroup(table(...COMMON, ...rows), 20, new Set(known)).map((row) => row.pid);
    assert.deepEqual(pids.sort((a, b) => a - b), [20, 21, ...found], name);
  }
});

Deno.test("treeOfGroup: where sessions are not told, none is followed", () => {
  const rows = ["1 0 1 0", "20 10 20 0", "21 20 21 0", "10 1 10 0", "30 1 30 0"];
  const pids = treeOfGroup(table(...rows), 20, new Set([30])).map((row) => row.pid);
  assert.deepEqual(pids.sort((a, b) => a - b), [20, 21, 30]);
});
