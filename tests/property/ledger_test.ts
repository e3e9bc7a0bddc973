/**
 * Ambiguous outcomes: whatever a server does after it was asked, no order is charged
 * twice by the runtime. Seeded runs over real processes; the ledger is a file that they append to.
 */

import assert from "node:assert/strict";
import { readRecord } from "../../src/record/read.ts";
import { systemFiles } from "../../src/sys/files.ts";
import { runLoop } from "../fakes/loop_bench.ts";

const RUNS = Number(Deno.env.get("AGENTD_LEDGER_RUNS") ?? 200);
const FAULTS = ["none", "silence", "die_after", "die_before", "noise", "error", "protocol"];
const shop = new URL("../hostile/shop.mjs", import.meta.url).pathname;

/** A small seeded generator (mulberry32): the seed names the run. */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

async function runSeed(seed: number, directory: string): Promise<void> {
  const random = generator(seed);
  const ledger = `${directory}/ledger`;
  const orders = Array.from({ length: 3 }, (_, n) => ({
    name: random() < 0.5 ? "shop__order" : "shop__pay",
    arguments: { id: `o${n}`, fault: FAULTS[Math.floor(random() * FAULTS.length)]! },
  }));
  // A server that was killed too often is given up: then nothing more is answered.
  const deadly = orders.some((order) => order.arguments.fault.startsWith("die"));
  const result = await runLoop({
    directory: `${directory}/run`,
    servers: [{
      kind: "stdio",
      name: "shop",
      command: "node",
      args: [shop, ledger],
      env: {},
      cwd: directory,
      required: false,
      startTimeoutMs: 20_000,
      sandbox: "none",
    }],
    rules: [{ glob: "shop/pay", idempotent: true }],
    // Long enough for a busy machine to answer, short enough for two hundred silences.
    toolTimeoutMs: 750,
    // Some in one reply, some in turns of their own; each order is asked for exactly once.
    model: (turn) =>
      random() < 0.3 && turn === 1
        ? { calls: orders.splice(0) }
        : orders.length > 0
        ? { calls: [orders.shift()!] }
        : { text: "done" },
  });
  const where = `seed ${seed}`;
  assert.ok(["completed", "stalled"].includes(String(result.status)), `${where}: ${result.reason}`);
  const charged = await Deno.readTextFile(ledger).catch(() => "");
  const ids = charged.split("\n").filter(Boolean).map((line) => line.split(" ")[0]);
  assert.equal(new Set(ids).size, ids.length, `${where}: charged twice: ${charged}`);
  const outcomes = observations(`${directory}/run/record.jsonl`);
  for (const [call, { tool, id, fault, outcome }] of outcomes) {
    const lost = fault === "silence" || fault === "die_after";
    // A charge whose answer is lost is unknown, never a plain failure.
    if (tool === "shop/order" && lost && ids.includes(id)) {
      assert.equal(outcome, "unknown", `${where}: ${call} ${fault}`);
    }
    // What is declared idempotent is sent again under its key, and answered.
    if (tool === "shop/pay" && fault === "silence" && !deadly) {
      assert.equal(outcome, "ok", `${where}: ${call}`);
    }
  }
}

function observations(path: string) {
  const calls = new Map<string, { tool: string; id: string; fault: string; outcome: string }>();
  for (const item of readRecord(systemFiles, path)) {
    assert.equal(item.kind, "line");
    if (item.kind !== "line") continue;
    // deno-lint-ignore no-explicit-any
    const line = item.line as any;
    if (line.type === "call.intended") {
      const { id, fault } = line.arguments;
      calls.set(line.call, { tool: line.tool, id, fault, outcome: "" });
    } else if (line.type === "call.observed") {
      calls.get(line.call)!.outcome = line.observation.class;
    }
  }
  return calls;
}

Deno.test(`ledger: after ${RUNS} seeded runs with faults no order is charged twice by the runtime`, async () => {
  const root = await Deno.makeTempDir({ prefix: "agentd-ledger-" });
  try {
    let seed = 0;
    const lane = async () => {
      while (seed < RUNS) {
        const mine = ++seed;
        const directory = `${root}/${mine}`;
        await Deno.mkdir(directory);
        await runSeed(mine, directory);
      }
    };
    const lanes = await Promise.allSettled(Array.from({ length: 8 }, lane));
    for (const end of lanes) if (end.status === "rejected") throw end.reason;
  } finally {
    await Deno.remove(root, { recursive: true });
  }
});
