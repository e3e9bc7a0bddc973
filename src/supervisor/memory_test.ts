import assert from "node:assert/strict";
import { MEMORY_INTERVAL_MS } from "../core/limits.ts";
import { ManualClock } from "../../tests/fakes/manual_clock.ts";
import { systemProcess } from "../sys/process.ts";
import { watchMemory } from "./memory.ts";

Deno.test("watchMemory: looks sooner at what is near its bound, and stops when told", async () => {
  const clock = new ManualClock();
  const shares = [0.1, 0.6, 0.2];
  let looks = 0;
  let looked = Promise.withResolvers<void>();
  const process = { ...systemProcess, table: () => Promise.resolve([]) };
  const stop = watchMemory({ clock, process }, () => {
    queueMicrotask(looked.resolve);
    return shares[looks++] ?? 0;
  });
  const afterMs = async (ms: number): Promise<number> => {
    clock.advance(ms - 1);
    const early = looks;
    clock.advance(1);
    await looked.promise;
    looked = Promise.withResolvers();
    return early;
  };
  assert.equal(await afterMs(MEMORY_INTERVAL_MS / 2), 0);
  assert.equal(await afterMs(MEMORY_INTERVAL_MS * 2), 1);
  assert.equal(await afterMs(MEMORY_INTERVAL_MS / 8), 2);
  assert.equal(clock.pending, 1);
  stop();
  assert.equal(clock.pending, 0);
});
