/**
 * The tree of one run as plain data: who is whose, what each has used, what is left. It admits or
 * refuses, and every account is O(1). Times are monotonic milliseconds.
 */

import { CHILD_RESERVE_MS_MAX, SPAWN_BURST_MAX, SPAWN_PER_SECOND_MAX } from "../core/limits.ts";
import type { Limits } from "../core/limits.ts";
import { assert } from "../core/assert.ts";
import { TokenBucket } from "../core/token_bucket.ts";

/** The caps of a tree; none can be raised from inside. */
export type Caps = Pick<
  Limits,
  "maxDepth" | "maxChildren" | "maxSubagents" | "treeTokensMax" | "maxCost"
>;

/** What an agent has used, or may: tokens, and USD where prices are known. */
export interface Spending {
  tokens: number;
  cost: number | null;
}

/** Whether a parent waits for a child, awaits it later, or lets it go. */
export type Disposition = "sync" | "async" | "detach";

/** One agent of the tree, alive or over. */
export interface Node {
  id: string;
  path: string;
  /** Path of the parent; null for the root. */
  parent: string | null;
  depth: number;
  disposition: Disposition;
  /** `server/tool` globs. */
  grant: readonly string[];
  deadlineMs: number;
  maxTokens: number;
  /** USD; null: no bound. */
  maxCost: number | null;
  /** What it has used so far, as far as it said. */
  tokens: number;
  cost: number;
  /** Children alive. */
  children: number;
  /** The last part of the youngest child's path. */
  lastChild: number;
  /** Its turn to be stopped has come or will come: nothing new begins here. */
  winding: boolean;
  over: boolean;
}

/** An agent that has just begun. */
const UNUSED = { tokens: 0, cost: 0, children: 0, lastChild: 0, winding: false, over: false };

/** The whole tree with its accounts. */
export interface Fleet {
  caps: Caps;
  nodes: Map<string, Node>;
  /** Subagents ever: the cap of the tree counts them all. */
  subagents: number;
  alive: number;
  /** Of the whole tree. */
  tokens: number;
  cost: number;
  /** Spawns that may come now. */
  spawns: TokenBucket;
  /** Why nothing is granted any more; null: it is. */
  closed: "draining" | Ceiling | null;
}

/** What a tree can have spent. */
export type Ceiling = "tree_tokens" | "tree_cost";

/** The caps that a refusal can name. */
export type Cap =
  | "draining"
  | Ceiling
  | "max_depth"
  | "max_children"
  | "max_subagents"
  | "rate"
  | "deadline"
  | "parent";

/** Why there is no child: the cap, and a sentence that names it. */
export interface Refusal {
  cap: Cap;
  why: string;
}

/** What a child is given. Nothing of it is the child's, or its parent's, own word. */
export interface Admission {
  path: string;
  depth: number;
  maxTokens: number;
  maxCost: number | null;
  deadlineMs: number;
}

/** A warm session takes its next delivery: its bounds hold per delivery, and so count anew. */
export function renewFleet(
  fleet: Fleet,
  limits: Pick<
    Limits,
    "maxTokens" | "maxCost" | "maxSubagents" | "treeTokensMax" | "deadlineMs"
  >,
  nowMs: number,
): void {
  fleet.caps = {
    ...fleet.caps,
    maxSubagents: fleet.subagents + limits.maxSubagents,
    treeTokensMax: fleet.tokens + limits.treeTokensMax,
    maxCost: limits.maxCost === null ? null : fleet.cost + limits.maxCost,
  };
  const root = fleet.nodes.get("0");
  if (root === undefined) return;
  root.deadlineMs = nowMs + limits.deadlineMs;
  root.maxTokens = root.tokens + Math.min(limits.maxTokens, limits.treeTokensMax);
  root.maxCost = limits.maxCost === null ? null : root.cost + limits.maxCost;
}

/** A tree with its root. */
export function plantFleet(
  caps: Caps,
  root: Pick<Node, "id" | "grant" | "deadlineMs" | "maxTokens">,
  nowMs: number,
): Fleet {
  const node: Node = {
    ...root,
    path: "0",
    parent: null,
    depth: 0,
    disposition: "sync",
    maxCost: caps.maxCost,
    ...UNUSED,
  };
  return {
    caps,
    nodes: new Map([["0", node]]),
    subagents: 0,
    alive: 1,
    tokens: 0,
    cost: 0,
    spawns: new TokenBucket(SPAWN_BURST_MAX, 1_000 / SPAWN_PER_SECOND_MAX, nowMs),
    closed: null,
  };
}

/**
 * Whether a parent may have one more child, cheapest question first; what it may be given. Paths in
 * `taken` are those of an earlier stretch of the run: their records are there.
 */
export function admit(
  fleet: Fleet,
  parentPath: string,
  wanted: { maxTokens: number; deadlineMs: number },
  nowMs: number,
  taken: ReadonlySet<string> = new Set(),
): { ok: true; value: Admission } | { ok: false; failure: Refusal } {
  const refuse = (cap: Cap, why: string) => ({ ok: false as const, failure: { cap, why } });
  const parent = fleet.nodes.get(parentPath);
  if (!parent || parent.over) return refuse("parent", "the parent is over");
  const left = fleet.caps.treeTokensMax - fleet.tokens;
  if (fleet.closed === "tree_tokens" || left <= 0) {
    return refuse("tree_tokens", `the tree has spent its ${fleet.caps.treeTokensMax} tokens`);
  }
  const { maxCost } = fleet.caps;
  if (fleet.closed === "tree_cost" || (maxCost !== null && fleet.cost >= maxCost)) {
    return refuse("tree_cost", `the tree has spent its ${maxCost} USD`);
  }
  if (fleet.closed === "draining" || parent.winding) {
    return refuse("draining", parent.winding ? "it is being stopped" : "the run is winding down");
  }
  const { maxDepth, maxChildren, maxSubagents } = fleet.caps;
  if (parent.depth + 1 > maxDepth) return refuse("max_depth", `depth ${maxDepth} is the deepest`);
  if (parent.children >= maxChildren) {
    return refuse("max_children", `${maxChildren} subagents of one agent at a time`);
  }
  if (fleet.subagents >= maxSubagents) {
    return refuse("max_subagents", `${maxSubagents} subagents in one run`);
  }
  if (parent.deadlineMs <= nowMs) return refuse("deadline", "no time is left");
  if (fleet.spawns.waitMs(1, nowMs) > 0) {
    return refuse(
      "rate",
      `at most ${SPAWN_BURST_MAX} subagents at once and ${SPAWN_PER_SECOND_MAX} a second`,
    );
  }
  return {
    ok: true,
    value: {
      path: freePath(parent, taken),
      depth: parent.depth + 1,
      maxTokens: Math.min(wanted.maxTokens, left),
      maxCost: maxCost === null ? null : maxCost - fleet.cost,
      deadlineMs: Math.min(wanted.deadlineMs, childDeadlineMs(parent.deadlineMs, nowMs)),
    },
  };
}

/** Takes an admitted child in. */
export function addChild(
  fleet: Fleet,
  parentPath: string,
  child: Admission & Pick<Node, "id" | "grant" | "disposition">,
  nowMs: number,
): Node {
  const parent = fleet.nodes.get(parentPath);
  assert(parent && !fleet.nodes.has(child.path), `no place for ${child.path}`);
  const node: Node = {
    ...child,
    parent: parentPath,
    ...UNUSED,
  };
  fleet.nodes.set(node.path, node);
  fleet.spawns.take(1, nowMs);
  fleet.subagents++;
  fleet.alive++;
  parent.children++;
  // The last part of the path, not a count: paths of an earlier stretch were left out.
  parent.lastChild = Number(child.path.slice(child.path.lastIndexOf(".") + 1));
  return node;
}

/**
 * Takes note of what an agent says it has used. A smaller figure than before is a lie or a mistake
 * and changes nothing; one beyond its own bound and what one more `call` can take is a lie, and
 * counts as that: it must not cost the others their share. The ceiling at the moment in which the tree
 * comes to it, else null.
 */
export function account(
  fleet: Fleet,
  path: string,
  said: Spending,
  call: Spending,
): Ceiling | null {
  const node = fleet.nodes.get(path);
  if (!node) return null;
  const tokens = Math.min(said.tokens, node.maxTokens + call.tokens);
  if (tokens > node.tokens) {
    fleet.tokens += tokens - node.tokens;
    node.tokens = tokens;
  }
  const costMax = node.maxCost === null ? Infinity : node.maxCost + (call.cost ?? 0);
  const cost = Math.min(said.cost ?? 0, costMax);
  if (cost > node.cost) {
    fleet.cost += cost - node.cost;
    node.cost = cost;
  }
  if (fleet.closed !== null) return null;
  const { treeTokensMax, maxCost } = fleet.caps;
  if (fleet.tokens >= treeTokensMax) fleet.closed = "tree_tokens";
  else if (maxCost !== null && fleet.cost >= maxCost) fleet.closed = "tree_cost";
  return fleet.closed as Ceiling | null;
}

/** An agent is over: its place among its parent's children is free. */
export function endNode(fleet: Fleet, path: string): void {
  const node = fleet.nodes.get(path);
  if (!node || node.over) return;
  node.over = true;
  fleet.alive--;
  const parent = node.parent === null ? undefined : fleet.nodes.get(node.parent);
  if (parent) parent.children--;
}

/** Nothing is granted from now on. */
export function closeFleet(fleet: Fleet): void {
  fleet.closed ??= "draining";
}

/** Whoever is alive below a path, deepest first; the path itself left out. */
export function aliveBelow(fleet: Fleet, path: string): Node[] {
  return [...fleet.nodes.values()].filter((node) => !node.over && node.path.startsWith(`${path}.`))
    .sort((a, b) => b.depth - a.depth);
}

/** Whether a node below a path, or one between the two, was detached. */
export function isDetached(fleet: Fleet, node: Node, path: string): boolean {
  for (let at: Node | undefined = node; at && at.path !== path;) {
    if (at.disposition === "detach") return true;
    at = at.parent === null ? undefined : fleet.nodes.get(at.parent);
  }
  return false;
}

/** Whether `path` is a child, a grandchild and so on of `ancestor`. */
export function isBelow(path: string, ancestor: string): boolean {
  return path.startsWith(`${ancestor}.`);
}

/** A little before the parent's deadline, so that the parent can use what the child found. */
function childDeadlineMs(parentMs: number, nowMs: number): number {
  return parentMs - Math.min(CHILD_RESERVE_MS_MAX, (parentMs - nowMs) / 10);
}

function freePath(parent: Node, taken: ReadonlySet<string>): string {
  let index = parent.lastChild + 1;
  while (taken.has(`${parent.path}.${index}`)) index++;
  return `${parent.path}.${index}`;
}
