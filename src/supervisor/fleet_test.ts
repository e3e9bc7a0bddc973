import assert from "node:assert/strict";
import fc from "fast-check";
import { SPAWN_BURST_MAX, SPAWN_PER_SECOND_MAX } from "../core/limits.ts";
import {
  account as accountFor,
  addChild,
  admit,
  aliveBelow,
  type Caps,
  closeFleet,
  endNode,
  type Fleet,
  plantFleet,
  renewFleet,
} from "./fleet.ts";

const caps: Caps = {
  maxDepth: 3,
  maxChildren: 3,
  maxSubagents: 12,
  treeTokensMax: 1000,
  maxCost: null,
};
const wanted = { maxTokens: 500, deadlineMs: Infinity };

/** Tokens alone, where prices are unknown. */
const account = (fleet: Fleet, path: string, tokens: number, call: number) =>
  accountFor(fleet, path, { tokens, cost: null }, { tokens: call, cost: null });

function plant(more: Partial<Caps> = {}): Fleet {
  return plantFleet({ ...caps, ...more }, {
    id: "r",
    grant: ["*"],
    deadlineMs: 100_000,
    maxTokens: 800,
  }, 0);
}

function grow(fleet: Fleet, parent: string, nowMs = 0): string | null {
  const admitted = admit(fleet, parent, wanted, nowMs);
  if (!admitted.ok) return null;
  addChild(fleet, parent, {
    ...admitted.value,
    id: admitted.value.path,
    grant: [],
    disposition: "async",
  }, nowMs);
  return admitted.value.path;
}

Deno.test("admit: each cap refuses by its name at the bound, not one before", () => {
  const refusal = (fleet: Fleet, parent: string, nowMs = 0) => {
    const admitted = admit(fleet, parent, wanted, nowMs);
    return admitted.ok ? null : admitted.failure.cap;
  };
  const children = plant();
  for (let i = 0; i < 3; i++) assert.equal(grow(children, "0"), `0.${i + 1}`);
  assert.equal(refusal(children, "0"), "max_children");
  endNode(children, "0.2");
  assert.equal(grow(children, "0"), "0.4");

  const depth = plant();
  assert.equal(grow(depth, grow(depth, grow(depth, "0")!)!), "0.1.1.1");
  assert.equal(refusal(depth, "0.1.1.1"), "max_depth");

  const all = plant({ maxSubagents: 2 });
  grow(all, "0");
  grow(all, "0");
  endNode(all, "0.1");
  assert.equal(refusal(all, "0"), "max_subagents");

  const rate = plant({ maxChildren: 99, maxSubagents: 99 });
  for (let i = 0; i < SPAWN_BURST_MAX; i++) assert.ok(grow(rate, "0"));
  assert.equal(refusal(rate, "0"), "rate");
  assert.equal(refusal(rate, "0", 1000 / SPAWN_PER_SECOND_MAX - 1), "rate");
  assert.equal(refusal(rate, "0", 1000 / SPAWN_PER_SECOND_MAX), null);

  const closed = plant();
  closeFleet(closed);
  assert.equal(refusal(closed, "0"), "draining");
  const stopped = plant();
  stopped.nodes.get(grow(stopped, "0")!)!.winding = true;
  assert.deepEqual([refusal(stopped, "0.1"), refusal(stopped, "0")], ["draining", null]);
  assert.equal(refusal(plant(), "0", 100_000), "deadline");
  assert.equal(refusal(plant(), "0.9"), "parent");
});

Deno.test("admit: tokens and time are carved from what is left; a child ends before its parent", () => {
  const fleet = plant();
  account(fleet, "0", 700, 0);
  const admitted = admit(fleet, "0", { maxTokens: 500, deadlineMs: 200_000 }, 0);
  assert.ok(admitted.ok);
  assert.equal(admitted.value.maxTokens, 300);
  assert.equal(admitted.value.deadlineMs, 95_000);
  const soon = admit(fleet, "0", { maxTokens: 5, deadlineMs: 1_000 }, 0);
  assert.deepEqual(soon.ok && [soon.value.maxTokens, soon.value.deadlineMs], [5, 1_000]);
});

Deno.test("admit: paths of an earlier stretch are left out", () => {
  const admitted = admit(plant(), "0", wanted, 0, new Set(["0.1", "0.2"]));
  assert.equal(admitted.ok && admitted.value.path, "0.3");
});

Deno.test("account: sums what agents say, never down; the ceiling is crossed once", () => {
  const fleet = plant();
  grow(fleet, "0");
  assert.equal(account(fleet, "0.1", 400, 50), null);
  assert.equal(account(fleet, "0.1", 100, 50), null);
  assert.equal(fleet.tokens, 400);
  assert.equal(account(fleet, "0", 599, 50), null);
  assert.equal(account(fleet, "0", 600, 50), "tree_tokens");
  assert.equal(account(fleet, "0", 900, 50), null);
  const admitted = admit(fleet, "0", wanted, 0);
  assert.equal(admitted.ok ? null : admitted.failure.cap, "tree_tokens");
});

Deno.test("account: what no agent can have used is not believed, and costs the others nothing", () => {
  const fleet = plant();
  grow(fleet, "0");
  assert.equal(account(fleet, "0.1", Number.MAX_SAFE_INTEGER, 50), null);
  assert.equal(fleet.tokens, 550);
  assert.equal(admit(fleet, "0", wanted, 0).ok, true);
});

Deno.test("renewFleet: a session's next delivery has its bounds anew", () => {
  const fleet = plant();
  account(fleet, "0", 900, 100);
  renewFleet(
    fleet,
    { maxTokens: 300, maxCost: null, maxSubagents: 1, treeTokensMax: 200, deadlineMs: 10 },
    5,
  );
  const root = fleet.nodes.get("0")!;
  assert.deepEqual([root.maxTokens, root.deadlineMs, fleet.caps.treeTokensMax], [1100, 15, 1100]);
});

Deno.test("account: USD are the tree's, carved like tokens; what no agent can have spent is not believed", () => {
  const fleet = plant({ maxCost: 2, treeTokensMax: 1e9 });
  const spend = (path: string, cost: number) =>
    accountFor(fleet, path, { tokens: 0, cost }, { tokens: 0, cost: 0.25 });
  assert.equal(spend("0", 0.5), null);
  grow(fleet, "0");
  assert.equal(fleet.nodes.get("0.1")!.maxCost, 1.5);
  assert.equal(spend("0.1", 0.4), null);
  assert.equal(spend("0.1", 0.1), null);
  assert.equal(fleet.cost, 0.9);
  grow(fleet, "0");
  assert.equal(fleet.nodes.get("0.2")!.maxCost, 1.1);
  assert.equal(spend("0.2", 1e9), "tree_cost");
  assert.equal(fleet.cost, 0.9 + 1.1 + 0.25);
  assert.equal(spend("0", 1), null);
  const admitted = admit(fleet, "0", wanted, 0);
  assert.equal(admitted.ok ? null : admitted.failure.cap, "tree_cost");
  renewFleet(
    fleet,
    { maxTokens: 1, maxCost: 3, maxSubagents: 9, treeTokensMax: 1, deadlineMs: 10 },
    0,
  );
  assert.equal(fleet.caps.maxCost, fleet.cost + 3);
});

Deno.test("Fleet: over any history the caps hold and the accounts are the sums of the nodes", () => {
  const step = fc.record({
    what: fc.constantFrom("grow", "grow", "grow", "end", "account"),
    pick: fc.nat(50),
    tokens: fc.nat(300),
    waitMs: fc.nat(900),
  });
  fc.assert(fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
    const fleet = plant();
    let nowMs = 0;
    for (const { what, pick, tokens, waitMs } of steps) {
      nowMs += waitMs;
      const paths = [...fleet.nodes.keys()];
      const path = paths[pick % paths.length]!;
      if (what === "grow") grow(fleet, path, nowMs);
      else if (what === "end") endNode(fleet, path);
      else account(fleet, path, tokens, 100);
      const nodes = [...fleet.nodes.values()];
      assert.ok(fleet.subagents <= caps.maxSubagents && nodes.length === fleet.subagents + 1);
      assert.ok(
        nodes.every((node) => node.depth <= caps.maxDepth && node.children <= caps.maxChildren),
      );
      assert.equal(fleet.tokens, nodes.reduce((sum, node) => sum + node.tokens, 0));
      assert.equal(fleet.alive, nodes.filter((node) => !node.over).length);
      for (const node of nodes) {
        const own = nodes.filter((child) => child.parent === node.path && !child.over).length;
        assert.equal(node.children, own);
        const parent = node.parent === null ? null : fleet.nodes.get(node.parent)!;
        assert.ok(
          !parent || node.deadlineMs < parent.deadlineMs || node.deadlineMs === parent.deadlineMs,
        );
      }
      const below = aliveBelow(fleet, "0").map((node) => node.depth);
      assert.deepEqual(below, [...below].sort((a, b) => b - a));
    }
  }));
});
