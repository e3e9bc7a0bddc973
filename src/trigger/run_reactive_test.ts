import assert from "node:assert/strict";
import { type DaemonScene, MAIN_ROUTE, startDaemon } from "../../tests/fakes/daemon_scene.ts";
import { completed } from "../../tests/fakes/runs.ts";

async function figures(daemon: DaemonScene): Promise<Map<string, number>> {
  const reply = await daemon.ask(new Request("http://127.0.0.1/metrics"));
  const lines = (await reply.text()).split("\n").filter((line) => /^[a-z]/.test(line));
  return new Map(lines.map((line) => {
    const space = line.lastIndexOf(" ");
    return [line.slice(0, space), Number(line.slice(space + 1))];
  }));
}

Deno.test("Reactive.refreshMetrics: routes that agents make and give up leave figures that only grow", async () => {
  const directory = await Deno.makeTempDir();
  const daemon = startDaemon(directory, {
    mode: "reactive",
    listen: "127.0.0.1:9464",
    servers: [{ kind: "stdio", name: "docs" }] as never,
    trigger: { subscribe: ["docs:mem://in/*"], routes: [MAIN_ROUTE] },
  });
  daemon.runs.onWatch = (watcher) => watcher.listener.connected(["docs"]);
  daemon.runs.onDeliver = (run) => run.answer(completed());
  await daemon.settle();
  const { listener } = daemon.runs.watchers[0]!;
  listener.updated("docs", "mem://in/1", false);
  await daemon.pass(250);
  const wish = (op: "subscribe" | "unsubscribe") =>
    daemon.runs.alive[0]!.listener!.subscribe({ op, server: "docs", uri: "mem://x" });
  const events = 'agentd_events_total{route="docs:mem://x"}';
  const depth = 'agentd_queue_depth{route="docs:mem://x"}';
  for (const round of [1, 2]) {
    assert.equal((await wish("subscribe")).ok, true);
    listener.updated("docs", "mem://x", false);
    await daemon.settle();
    const waiting = await figures(daemon);
    assert.deepEqual([waiting.get(events), waiting.get(depth)], [round * 2 - 1, 1]);
    await daemon.pass(250);
    listener.updated("docs", "mem://x", false);
    assert.equal((await wish("unsubscribe")).ok, true);
    const after = await figures(daemon);
    assert.deepEqual([after.get(events), after.get(depth)], [round * 2, 0]);
    const dropped = 'agentd_events_dropped_total{route="-",reason="unrouted"}';
    assert.equal(after.get(dropped), round);
  }
  daemon.signal("SIGTERM");
  await daemon.ended;
  await Deno.remove(directory, { recursive: true });
});
