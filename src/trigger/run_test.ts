import assert from "node:assert/strict";
import { parseIso } from "../core/time.ts";
import { failedResult } from "../wire/result.ts";
import { type DaemonScene, SettableClock, startDaemon } from "../../tests/fakes/daemon_scene.ts";
import { completed } from "../../tests/fakes/runs.ts";
import type { Route } from "../config/settings.ts";

const HOUR = 3_600_000;

async function withDirectory(act: (directory: string) => Promise<void>): Promise<void> {
  const directory = await Deno.makeTempDir();
  try {
    await act(directory);
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}

async function endOf(daemon: DaemonScene): Promise<string> {
  const ended = await daemon.ended;
  assert(ended.ok, JSON.stringify(ended));
  assert.equal(daemon.clock.pending, 0, "a timer is left");
  assert.equal(daemon.listening(), 0, "a signal is still handled");
  return ended.value.end;
}

/** Slots as whole hours since the clock's start. */
function hours(daemon: DaemonScene, event: "trigger.fired" | "trigger.skipped"): number[] {
  const startMs = new SettableClock().wallMs();
  return daemon.seen(event, "slot").filter((slot) => slot !== undefined)
    .map((slot) => (parseIso(slot as string)! - startMs) / HOUR);
}

const SPAWN: Route = {
  match: "mem://**",
  target: { kind: "spawn", maxInflight: 2 },
  debounceMs: 250,
  cap: 16,
  overflow: "coalesce",
  instruction: null,
};
const REACTIVE = { mode: "reactive" } as const;

Deno.test("runDaemon: loop: waits the interval, backs off while idle, work resets it", () =>
  withDirectory(async (directory) => {
    const daemon = startDaemon(directory, { mode: "loop", trigger: { session: "fresh" } });
    const evidence = [0, 0, 0, 1, 0];
    daemon.runs.onStart = (run) =>
      run.end(completed({ evidence: evidence[daemon.runs.runs.length - 1] ?? 0 }));
    const counts: number[] = [];
    for (const wait of [0, 999, 1, 2000, 4000, 0, 999, 1]) {
      await daemon.pass(wait);
      counts.push(daemon.runs.runs.length);
    }
    // Runs at 0, 1 s, 3 s, 7 s; the fourth did work, so the fifth comes at once; then 1 s again.
    assert.deepEqual(counts, [1, 1, 2, 3, 5, 5, 5, 6]);
    daemon.signal("SIGTERM");
    assert.equal(await endOf(daemon), "drained");
  }));

Deno.test("runDaemon: loop: a lifetime ends a run in progress, spent tokens do while it runs", () =>
  withDirectory(async (directory) => {
    const late = startDaemon(directory, {
      mode: "loop",
      trigger: { session: "fresh", intervalMs: 1, lifetimeMs: 5000 },
    });
    await late.pass(4999);
    assert.deepEqual(late.runs.alive[0]!.cancels, []);
    await late.pass(1);
    assert.deepEqual(late.runs.runs.at(-1)!.cancels, ["deadline"]);
    assert.equal(await endOf(late), "lifetime");

    const spent = startDaemon(directory, {
      mode: "loop",
      trigger: { session: "fresh", intervalMs: 1, lifetimeTokens: 100 },
    });
    await spent.settle();
    spent.runs.alive[0]!.tokens = 99;
    await spent.pass(3000, 1000);
    assert.deepEqual(spent.runs.runs[0]!.cancels, []);
    spent.runs.alive[0]!.tokens = 100;
    await spent.pass(1000);
    assert.deepEqual(spent.runs.runs[0]!.cancels, ["tree_tokens"]);
    assert.equal(await endOf(spent), "lifetime_tokens");
  }));

Deno.test("runDaemon: what a run's end means: credentials, a server at the beginning and later", () =>
  withDirectory(async (directory) => {
    const mcp = failedResult("crashed", "docs: exited");
    const abort = { ...mcp, status: null, abort: "mcp" as const };
    const loop = { mode: "loop", trigger: { session: "fresh", intervalMs: 10 } } as const;
    const first = startDaemon(directory, loop);
    first.runs.onStart = (run) => run.end(abort);
    assert.equal(await endOf(first), "required_server");

    const later = startDaemon(directory, loop);
    later.runs.onStart = (run) => run.end(later.runs.runs.length === 1 ? completed() : abort);
    await later.pass(100, 10);
    assert(later.runs.runs.length > 2);
    later.signal("SIGINT");
    assert.equal(await endOf(later), "drained");

    // In the middle of the first run a server died for good: a failed run, no more.
    const middle = startDaemon(directory, loop);
    const usage = { ...abort.usage, model_calls: 1 };
    middle.runs.onStart = (run) => run.end({ ...abort, usage });
    await middle.pass(100, 10);
    assert(middle.runs.runs.length > 1);
    middle.signal("SIGTERM");
    assert.equal(await endOf(middle), "drained");

    const refused = startDaemon(directory, loop);
    refused.runs.onStart = (run) =>
      run.end({ ...abort, abort: "intelligence", reason: "auth: 401" });
    assert.equal(await endOf(refused), "credentials");
  }));

Deno.test("runDaemon: a second signal kills everything that runs", () =>
  withDirectory(async (directory) => {
    const daemon = startDaemon(directory, { mode: "loop", trigger: { session: "fresh" } });
    await daemon.settle();
    const [run] = daemon.runs.alive;
    daemon.signal("SIGINT");
    daemon.signal("SIGTERM");
    assert.deepEqual(run!.cancels, ["drain"]);
    assert.equal(run!.killed, true);
    assert.equal(await endOf(daemon), "killed");
    const ended = await daemon.ended;
    assert.equal(ended.ok && ended.value.signal, "SIGINT");
  }));

Deno.test("runDaemon: schedule: days of slots, a machine that sleeps, wall clocks that are set", () =>
  withDirectory(async (directory) => {
    const daemon = startDaemon(directory, { mode: "schedule", trigger: { intervalMs: HOUR } });
    daemon.runs.onStart = (run) => run.end(completed());
    await daemon.settle();
    await daemon.pass(3 * HOUR, 30_000);
    assert.deepEqual(hours(daemon, "trigger.fired"), [1, 2, 3]);

    // The machine sleeps for three and a half hours: only the wall clock goes on.
    daemon.clock.wallOffsetMs += 3.5 * HOUR;
    await daemon.pass(60_000, 30_000);
    assert.deepEqual(hours(daemon, "trigger.fired"), [1, 2, 3]);
    assert.deepEqual(hours(daemon, "trigger.skipped"), [4, 5, 6]);
    await daemon.pass(HOUR, 30_000);
    assert.deepEqual(hours(daemon, "trigger.fired"), [1, 2, 3, 7]);

    // It is set back by two hours: no slot comes twice. Then forward again.
    daemon.clock.wallOffsetMs -= 2 * HOUR;
    await daemon.pass(1.9 * HOUR, 30_000);
    assert.deepEqual(hours(daemon, "trigger.fired"), [1, 2, 3, 7]);
    await daemon.pass(1.1 * HOUR, 30_000);
    assert.deepEqual(hours(daemon, "trigger.fired"), [1, 2, 3, 7, 8]);

    // It had been days ahead: the slots count anew, and none is waited for through those days.
    daemon.clock.wallOffsetMs += 48 * HOUR;
    await daemon.pass(60_000, 30_000);
    daemon.clock.wallOffsetMs -= 48 * HOUR;
    const before = daemon.runs.runs.length;
    await daemon.pass(2 * HOUR, 30_000);
    assert.equal(daemon.runs.runs.length, before + 2);
    daemon.signal("SIGTERM");
    assert.equal(await endOf(daemon), "drained");
  }));

Deno.test("runDaemon: schedule: down over slots, caught up once or not at all", () =>
  withDirectory(async (directory) => {
    const clock = new SettableClock();
    const settings = (catchUp: boolean) => ({
      mode: "schedule" as const,
      trigger: { cron: "0 * * * *", catchUp },
    });
    const first = startDaemon(directory, settings(false), clock);
    first.runs.onStart = (run) => run.end(completed());
    await first.pass(1.9 * HOUR, 30_000);
    assert.equal(first.runs.runs.length, 2);
    first.signal("SIGTERM");
    assert.equal(await endOf(first), "drained");

    clock.advance(3 * HOUR);
    const second = startDaemon(directory, settings(false), clock);
    await second.settle();
    assert.equal(second.seen("trigger.skipped", "slot").length, 3);
    assert.equal(second.runs.runs.length, 0);
    second.signal("SIGTERM");
    assert.equal(await endOf(second), "drained");

    clock.advance(3 * HOUR);
    const third = startDaemon(directory, settings(true), clock);
    third.runs.onStart = (run) => run.end(completed());
    await third.settle();
    assert.equal(third.seen("trigger.skipped", "slot").length, 2);
    assert.deepEqual(third.seen("trigger.fired", "reason"), ["catch_up"]);
    third.signal("SIGTERM");
    assert.equal(await endOf(third), "drained");
  }));

Deno.test("runDaemon: two daemons of one configuration: the second is locked out", () =>
  withDirectory(async (directory) => {
    const settings = { mode: "schedule" as const, trigger: { intervalMs: HOUR } };
    const first = startDaemon(directory, settings);
    await first.settle();
    const second = startDaemon(directory, settings);
    assert.equal(await endOf(second), "locked");
    assert.deepEqual(second.seen("trigger.skipped", "kind"), ["lock"]);
    const other = startDaemon(directory, { ...settings, trigger: { intervalMs: 2 * HOUR } });
    await other.settle();
    for (const daemon of [first, other]) {
      daemon.signal("SIGTERM");
      assert.equal(await endOf(daemon), "drained");
    }
  }));

Deno.test("runDaemon: a health file that cannot be written is a mistake, before anything starts", () =>
  withDirectory(async (directory) => {
    const healthFile = `${directory}/nowhere/health`;
    const daemon = startDaemon(directory, { mode: "loop", healthFile });
    const ended = await daemon.ended;
    assert(!ended.ok);
    assert.match(ended.failure.message, /^Cannot keep the health file: .*nowhere/);
    assert.deepEqual([daemon.runs.runs.length, daemon.clock.pending], [0, 0]);
  }));

Deno.test("runDaemon: reactive: a watcher that cannot start ends it, one that dies is replaced", () =>
  withDirectory(async (directory) => {
    const settings = { ...REACTIVE, trigger: { subscribe: ["docs:mem://*"], routes: [SPAWN] } };
    const broken = startDaemon(directory, settings);
    broken.runs.onWatch = (watcher) => watcher.die({ message: "docs: exited", abort: "mcp" });
    assert.equal(await endOf(broken), "required_server");

    const daemon = startDaemon(directory, settings);
    daemon.runs.onWatch = (watcher) => watcher.listener.connected(["docs"]);
    await daemon.settle();
    assert.equal(daemon.runs.watchers[0]!.possibly, false);
    // The servers were there: the first run, which meets none, ends nothing.
    daemon.runs.onStart = (run) =>
      run.end({ ...failedResult("crashed", "docs: exited"), status: null, abort: "mcp" });
    daemon.runs.watchers[0]!.listener.updated("docs", "mem://a", false);
    await daemon.pass(1000, 100);
    assert(daemon.runs.runs.length > 0);
    for (let i = 0; i < 3; i++) {
      daemon.runs.watchers.at(-1)!.die({ message: "gone", abort: "mcp" });
      await daemon.pass(60_000, 1000);
    }
    assert.equal(daemon.runs.watchers.length, 4);
    assert.equal(daemon.runs.watchers.at(-1)!.possibly, true);
    daemon.signal("SIGTERM");
    assert.equal(await endOf(daemon), "drained");
    assert.equal(daemon.runs.watchers.at(-1)!.over, true);
  }));

Deno.test("runDaemon: reactive: a session that dies in a delivery is resumed, and told again", () =>
  withDirectory(async (directory) => {
    const route = { ...SPAWN, target: { kind: "continue" as const, session: "main" } };
    const daemon = startDaemon(directory, {
      ...REACTIVE,
      trigger: { subscribe: ["docs:mem://*"], routes: [route] },
    });
    daemon.runs.onWatch = (watcher) => {
      watcher.listener.connected(["docs"]);
      watcher.listener.updated("docs", "mem://a", false);
    };
    await daemon.pass(250);
    const [first] = daemon.runs.alive;
    assert.deepEqual(first!.request.session, { name: "main", resume: false });
    assert.deepEqual(first!.deliveries[0]!.delivery.uris, ["mem://a"]);
    first!.answer(completed());
    await daemon.settle();

    // Killed in the middle of the next: the same run goes on from its record.
    const tell = (uri: string) => daemon.runs.watchers[0]!.listener.updated("docs", uri, false);
    tell("mem://b");
    await daemon.pass(250);
    first!.end(failedResult("crashed", "killed"));
    await daemon.pass(2000, 100);
    const [second] = daemon.runs.alive;
    assert.deepEqual(second!.request.session, { name: "main", resume: true });
    assert.equal(second!.request.runId, first!.request.runId);
    assert.deepEqual(second!.deliveries[0]!.delivery.uris, ["mem://b"]);

    // Its record does not bear it: after a second end without a delivery it begins anew.
    second!.end(failedResult("crashed", "record"));
    await daemon.pass(5000, 100);
    const [third] = daemon.runs.alive;
    assert.deepEqual(third!.request.session, { name: "main", resume: false });
    assert.notEqual(third!.request.runId, first!.request.runId);
    assert.deepEqual(third!.deliveries[0]!.delivery.uris, ["mem://b"]);
    third!.answer(completed());
    await daemon.settle();
    daemon.signal("SIGTERM");
    assert.equal(await endOf(daemon), "drained");
    assert.deepEqual(third!.cancels.slice(0, 1), ["drain"]);
  }));

Deno.test("runDaemon: reactive: a session that ignores its deadline is wound down; an old one is left", () =>
  withDirectory(async (directory) => {
    const route = { ...SPAWN, target: { kind: "continue" as const, session: "main" } };
    const daemon = startDaemon(directory, {
      ...REACTIVE,
      trigger: { subscribe: ["docs:mem://*"], routes: [route] },
    });
    daemon.runs.onWatch = (watcher) => watcher.listener.connected(["docs"]);
    await daemon.settle();
    const tell = (uri: string) => daemon.runs.watchers[0]!.listener.updated("docs", uri, false);
    tell("mem://a");
    await daemon.pass(250);
    const [first] = daemon.runs.alive;
    await daemon.pass(600_000 + 3999, 60_000);
    assert.deepEqual(first!.cancels, []);
    await daemon.pass(1);
    assert.deepEqual(first!.cancels, ["deadline"]);
    await daemon.pass(10_000, 100);
    daemon.runs.alive[0]!.answer(completed());
    await daemon.settle();

    await daemon.pass(24 * HOUR, HOUR);
    tell("mem://b");
    await daemon.pass(250);
    const last = daemon.runs.alive.at(-1)!;
    assert.equal(last.request.session!.resume, false, "an empty transcript");
    assert.equal(daemon.runs.alive.length, 1);
    last.answer(completed());
    daemon.signal("SIGTERM");
    assert.equal(await endOf(daemon), "drained");
  }));

Deno.test("runDaemon: reactive: routes that lead to one session: one delivery at a time, in order", () =>
  withDirectory(async (directory) => {
    const to = (match: string) => ({
      ...SPAWN,
      match,
      target: { kind: "continue" as const, session: "main" },
    });
    const daemon = startDaemon(directory, {
      ...REACTIVE,
      trigger: { subscribe: ["docs:mem://*"], routes: [to("mem://a"), to("mem://b")] },
    });
    daemon.runs.onWatch = (watcher) => watcher.listener.connected(["docs"]);
    await daemon.settle();
    for (const uri of ["mem://a", "mem://b"]) {
      daemon.runs.watchers[0]!.listener.updated("docs", uri, false);
    }
    await daemon.pass(300, 50);
    const [session] = daemon.runs.alive;
    const waiting = () => session!.deliveries.map(({ delivery }) => delivery.uris[0]);
    assert.deepEqual(waiting(), ["mem://a"]);
    session!.answer(completed());
    await daemon.settle();
    assert.deepEqual(waiting(), ["mem://b"]);
    assert.equal(daemon.runs.runs.length, 1);

    // What has not begun when a signal comes is kept, and never begins.
    daemon.runs.watchers[0]!.listener.updated("docs", "mem://a", false);
    await daemon.pass(300, 50);
    daemon.signal("SIGTERM");
    assert.equal(await endOf(daemon), "drained");
    assert.deepEqual(waiting(), ["mem://b"]);
    const kept = [...Deno.readDirSync(`${directory}/state`)].find(({ name }) =>
      name.endsWith(".json")
    );
    const { pending } = JSON.parse(Deno.readTextFileSync(`${directory}/state/${kept!.name}`));
    assert.deepEqual(pending.map(({ uri }: { uri: string }) => uri).sort(), ["mem://a", "mem://b"]);
  }));

Deno.test("runDaemon: reactive: an event whose runs crash is given up after a bound, and that is told", () =>
  withDirectory(async (directory) => {
    const daemon = startDaemon(directory, {
      ...REACTIVE,
      trigger: { subscribe: ["docs:mem://*"], routes: [SPAWN] },
    });
    daemon.runs.onWatch = (watcher) => watcher.listener.connected(["docs"]);
    daemon.runs.onStart = (run) => run.end(failedResult("crashed", "poison"));
    await daemon.settle();
    daemon.runs.watchers[0]!.listener.updated("docs", "mem://a", false);
    await daemon.pass(600_000, 5000);
    assert.equal(daemon.runs.runs.length, 8);
    assert.deepEqual(daemon.seen("trigger.skipped", "reason"), ["given_up"]);

    // An outage gives up nothing, however long it takes and whatever kind it is.
    const out = { ...failedResult("crashed", "quota: spent"), status: null };
    daemon.runs.onStart = (run) => run.end({ ...out, abort: "intelligence" });
    daemon.runs.watchers[0]!.listener.updated("docs", "mem://b", false);
    await daemon.pass(1_500_000, 5000);
    assert(daemon.runs.runs.length > 20);
    daemon.runs.onStart = (run) => run.end(completed());
    await daemon.pass(65_000, 1000);
    assert.equal(daemon.reports.at(-1)!.result.status, "completed");
    daemon.signal("SIGTERM");
    assert.equal(await endOf(daemon), "drained");
  }));
