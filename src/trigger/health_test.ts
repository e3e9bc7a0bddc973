import assert from "node:assert/strict";
import { HEALTH_INTERVAL_MS } from "../core/limits.ts";
import { failed } from "../core/outcome.ts";
import type { FilesPort } from "../ports/files.ts";
import { systemFiles } from "../sys/files.ts";
import { ManualClock } from "../../tests/fakes/manual_clock.ts";
import { Health } from "./health.ts";

function open(watchdogMs: number | null = null) {
  const clock = new ManualClock();
  const told: string[] = [];
  const written: string[] = [];
  const unkept: string[] = [];
  const disk = { isFull: false };
  const files: FilesPort = {
    ...systemFiles,
    writeAtomic: (_path, content) => {
      if (disk.isFull) return failed({ class: "full", message: "/h: no space" });
      written.push(String(content));
      return { ok: true, value: undefined };
    },
    remove: () => {
      written.push("removed");
      return { ok: true, value: undefined };
    },
  };
  const notify = { present: true, watchdogMs, tell: (state: string) => void told.push(state) };
  const health = new Health({
    clock,
    files,
    notify,
    pid: 7,
    healthFile: "/h",
    unkept: (message) => void unkept.push(message),
  });
  return { clock, told, written, health, unkept, disk };
}

Deno.test("Health: idle is healthy, starting is not ready, ready is told once, draining is not ready", () => {
  const { clock, told, health } = open();
  health.start();
  assert.deepEqual([health.report().healthy, health.report().ready], [true, false]);
  health.setReady(null);
  health.setReady(null);
  clock.advance(3_600_000);
  assert.deepEqual(health.report(), { healthy: true, ready: true, why: "", lagMs: 0 });
  health.setReady("the watcher is down");
  assert.equal(health.report().why, "the watcher is down");
  health.setReady(null);
  health.setReady("draining");
  assert.equal(health.report().ready, false);
  assert.deepEqual(told, [
    "READY=1",
    "STATUS=ready",
    "STATUS=the watcher is down",
    "STATUS=ready",
    "STOPPING=1",
  ]);
  health.stop();
  assert.equal(clock.pending, 0);
});

Deno.test("Health: a loop that is late is not healthy, until it is on time again", () => {
  const { clock, health } = open();
  health.start();
  health.setReady(null);
  // The beat is due, and does not come: the clock goes on while no timer fires.
  const due = clock.monotonicMs() + HEALTH_INTERVAL_MS;
  const stuck = clock.monotonicMs;
  clock.monotonicMs = () => due + 5_001;
  assert.deepEqual([health.report().healthy, health.report().ready], [false, false]);
  assert.match(health.report().why, /late/);
  clock.monotonicMs = () => due + 5_000;
  assert.equal(health.report().healthy, true);
  clock.monotonicMs = stuck;
  clock.advance(HEALTH_INTERVAL_MS * 2);
  assert.equal(health.report().healthy, true);
  health.stop();
});

Deno.test("Health: signs of life at half the watchdog's period; the file is fresh and then gone", () => {
  const { clock, told, written, health } = open(1000);
  health.start();
  clock.advance(3000);
  assert.equal(told.filter((state) => state === "WATCHDOG=1").length, 4);
  assert.equal(written.length, 4);
  const last = JSON.parse(written.at(-1)!);
  assert.deepEqual([last.healthy, last.ready, last.pid], [true, false, 7]);
  health.stop();
  assert.equal(written.at(-1), "removed");
  health.setReady(null);
  assert.equal(written.at(-1), "removed");
});

Deno.test("Health: a file that cannot be written fails the start, and later is told once", () => {
  const { clock, health, unkept, disk } = open();
  disk.isFull = true;
  assert.deepEqual(health.start(), {
    ok: false,
    failure: "Cannot keep the health file: /h: no space",
  });
  assert.equal(clock.pending, 0);
  disk.isFull = false;
  assert.equal(health.start().ok, true);
  for (const isFull of [true, false, true]) {
    disk.isFull = isFull;
    clock.advance(HEALTH_INTERVAL_MS * 3);
  }
  assert.deepEqual(unkept, ["/h: no space", "/h: no space"]);
  health.stop();
});

Deno.test("Health: what is not its file is never removed", async () => {
  const root = await Deno.makeTempDir();
  const path = `${root}/precious`;
  const notify = { present: false, watchdogMs: null, tell() {} };
  const deps = { clock: new ManualClock(), files: systemFiles, notify, pid: 7, unkept() {} };
  await Deno.mkdir(path);
  await Deno.writeTextFile(`${path}/data`, "x");
  const refused = new Health({ ...deps, healthFile: path });
  assert.equal(refused.start().ok, false);
  refused.stop();
  assert.equal(await Deno.readTextFile(`${path}/data`), "x");
  const replaced = new Health({ ...deps, healthFile: `${root}/health` });
  assert.equal(replaced.start().ok, true);
  await Deno.remove(`${root}/health`);
  await Deno.rename(path, `${root}/health`);
  replaced.stop();
  assert.equal(await Deno.readTextFile(`${root}/health/data`), "x");
  await Deno.remove(root, { recursive: true });
});
