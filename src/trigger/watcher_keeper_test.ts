import assert from "node:assert/strict";
import { type DaemonScene, MAIN_ROUTE, startDaemon } from "../../tests/fakes/daemon_scene.ts";
import type { FakeRun } from "../../tests/fakes/runs.ts";
import { completed } from "../../tests/fakes/runs.ts";

const SERVER = { kind: "stdio", name: "docs" };

async function withDaemon(
  subscribe: string[],
  act: (daemon: DaemonScene, again: (subscribe: string[]) => DaemonScene) => Promise<void>,
): Promise<void> {
  const directory = await Deno.makeTempDir();
  const begin = (subscribe: string[]) =>
    startDaemon(directory, {
      mode: "reactive",
      lock: "daemon",
      listen: "127.0.0.1:9464",
      servers: [SERVER] as never,
      trigger: { subscribe, routes: [MAIN_ROUTE] },
    });
  try {
    await act(begin(subscribe), begin);
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}

async function drain(daemon: DaemonScene): Promise<void> {
  daemon.signal("SIGTERM");
  const ended = await daemon.ended;
  assert.equal(ended.ok && ended.value.end, "drained");
}

/** The session's agent, after its first delivery. */
async function session(daemon: DaemonScene): Promise<FakeRun> {
  daemon.runs.watchers.at(-1)!.listener.updated("docs", "mem://in/1", false);
  await daemon.pass(250);
  const run = daemon.runs.alive.at(-1)!;
  run.answer(completed());
  await daemon.settle();
  return run;
}

const wish = (run: FakeRun, op: "subscribe" | "unsubscribe", uri: string) =>
  run.listener!.subscribe({ op, server: "docs", uri });

Deno.test("WatcherKeeper: what agents wish is never asked of the watcher's start, which may fail", () =>
  withDaemon(["docs:mem://in/*"], async (first, again) => {
    first.runs.onWatch = (watcher) => watcher.listener.connected(["docs"]);
    await first.settle();
    const run = await session(first);
    assert.equal((await wish(run, "subscribe", "mem://mine")).ok, true);
    assert.deepEqual(first.runs.watchers[0]!.changes, [{ add: ["docs:mem://mine"], remove: [] }]);
    await drain(first);

    const second = again(["docs:mem://in/*"]);
    await second.settle();
    const [watcher] = second.runs.watchers;
    assert.deepEqual(watcher!.subscribe, ["docs:mem://in/*"]);
    assert.deepEqual(watcher!.changes, []);
    watcher!.listener.connected(["docs"]);
    assert.deepEqual(watcher!.changes, [{ add: ["docs:mem://mine"], remove: [] }]);
    await drain(second);
  }));

Deno.test("WatcherKeeper: a watcher that only agents wished for ends no daemon, and comes back", () =>
  withDaemon(["docs:mem://in/*"], async (before, again) => {
    before.runs.onWatch = (watcher) => watcher.listener.connected(["docs"]);
    await before.settle();
    await wish(await session(before), "subscribe", "mem://in/a");
    await drain(before);

    const daemon = again(["file:/tmp/*"]);
    const { runs } = daemon;
    runs.onWatch = (watcher) => watcher.die({ message: "docs: exited", abort: "mcp" });
    await daemon.settle();
    assert.deepEqual(runs.watchers.map((watcher) => watcher.subscribe), [[]]);
    const run = await session(daemon);
    // Nobody wants it any more when its time comes; what is wished for later is watched.
    await wish(run, "unsubscribe", "mem://in/a");
    await daemon.pass(60_000, 1000);
    assert.equal(runs.watchers.length, 1);
    runs.onWatch = (watcher) => watcher.listener.connected(["docs"]);
    await wish(run, "subscribe", "mem://in/b");
    await daemon.settle();
    assert.deepEqual(runs.watchers.map((watcher) => watcher.changes), [
      [],
      [{ add: ["docs:mem://in/b"], remove: [] }],
    ]);
    await drain(daemon);
  }));

Deno.test("WatcherKeeper: a wish made while it connects is not lost", () =>
  withDaemon(["docs:mem://in/*"], async (daemon) => {
    daemon.runs.onWatch = (watcher) => watcher.listener.connected(["docs"]);
    await daemon.settle();
    const run = await session(daemon);
    daemon.runs.onWatch = () => {};
    daemon.runs.watchers[0]!.die({ message: "gone", abort: "mcp" });
    await daemon.pass(60_000, 1000);
    const watcher = daemon.runs.watchers[1]!;
    await wish(run, "subscribe", "mem://late");
    assert.deepEqual(watcher.changes, []);
    watcher.listener.connected(["docs"]);
    assert.deepEqual(watcher.changes, [{ add: ["docs:mem://late"], remove: [] }]);
    await drain(daemon);
  }));

Deno.test("WatcherKeeper: not ready while a server that is watched is not connected", () =>
  withDaemon(["docs:mem://in/*", "more:mem://x"], async (daemon) => {
    const ready = async () => {
      const reply = await daemon.ask(new Request("http://127.0.0.1/readyz"));
      return `${reply.status} ${(await reply.text()).trim()}`;
    };
    await daemon.settle();
    const { listener } = daemon.runs.watchers[0]!;
    assert.equal(await ready(), "503 not ready: connecting");
    for (
      const [servers, expected] of [
        [["docs", "more"], "200 ready"],
        [["more"], "503 not ready: not connected: docs"],
        [[], "503 not ready: not connected: docs, more"],
        [["docs", "more"], "200 ready"],
      ] as const
    ) {
      listener.connected(servers);
      assert.equal(await ready(), expected);
    }
    await drain(daemon);
  }));
