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
  const watch = watchMemory({ clock, process }, () => {
    queueMicrotask(looked.resolve);
    return { share: shares[looks++] ?? 0, busy: false };
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
  await watch.stop();
  assert.equal(clock.pending, 0);
});

Deno.test("watchMemory: its stop waits for the look that is under way", async () => {
  const clock = new ManualClock();
  const table = Promise.withResolvers<[]>();
  const process = { ...systemProcess, table: () => table.promise };
  const watch = watchMemory({ clock, process }, () => assert.fail("nobody asks any more"));
  clock.advance(MEMORY_INTERVAL_MS / 2);
  let stopped = false;
  const stop = watch.stop().then(() => stopped = true);
  await new Promise((resolve) => setTimeout(resolve, 0));
  assert.equal(stopped, false);
  table.resolve([]);
  await stop;
  assert.equal(clock.pending, 0);
});

Deno.test("watchMemory: what stays small is looked at more rarely, until somebody is at work", async () => {
  const clock = new ManualClock();
  let looks = 0;
  let busy = false;
  let looked = Promise.withResolvers<void>();
  const process = { ...systemProcess, table: () => Promise.resolve([]) };
  const watch = watchMemory({ clock, process }, () => {
    looks++;
    queueMicrotask(looked.resolve);
    return { share: 0.1, busy };
  });
  const advance = async (ms: number): Promise<number> => {
    const before = looks;
    clock.advance(ms);
    if (looks === before) await Promise.resolve();
    if (clock.pending === 0) await looked.promise;
    looked = Promise.withResolvers();
    return looks - before;
  };
  assert.equal(await advance(MEMORY_INTERVAL_MS / 2), 1);
  for (const doublings of [0, 1, 2, 3, 3]) {
    assert.equal(await advance(MEMORY_INTERVAL_MS * 2 * 2 ** doublings - 1), 0);
    assert.equal(await advance(1), 1);
  }
  watch.stir();
  assert.equal(clock.pending, 1);
  assert.equal(await advance(MEMORY_INTERVAL_MS), 1);
  // A look that is near already stays where it is.
  assert.equal(await advance(MEMORY_INTERVAL_MS * 4 - 10), 0);
  watch.stir();
  assert.equal(await advance(10), 1);
  // Programs at work may want memory at any moment, however long they have not.
  busy = true;
  assert.equal(await advance(MEMORY_INTERVAL_MS * 16), 1);
  for (let count = 0; count < 5; count++) {
    assert.equal(await advance(MEMORY_INTERVAL_MS * 2 - 1), 0);
    assert.equal(await advance(1), 1);
  }
  await watch.stop();
  watch.stir();
  assert.equal(clock.pending, 0);
});
