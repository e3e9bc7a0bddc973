import assert from "node:assert/strict";
import { realServer } from "../../tests/fakes/mcp_packages.ts";
import { freePort, startServer } from "../../tests/fakes/server_process.ts";
import {
  callTool,
  type HostBench,
  hostBench,
  hostileServer,
  httpServer,
  stdioServer,
} from "../../tests/fakes/tool_host.ts";
import type { ServerSettings } from "../wire/payload.ts";

const never = new AbortController().signal;
const root = new URL("../../", import.meta.url).pathname;
const legacyHttp = ["node", `${root}tests/hostile/http_server.mjs`, ""];
const modern = [
  Deno.execPath(),
  "run",
  "--quiet",
  "--no-prompt",
  "--allow-read",
  "--allow-env",
  "--allow-net=127.0.0.1",
  "--config",
  `${root}deno.json`,
  `${root}tests/fakes/modern_server.ts`,
];

async function withHost(
  servers: ServerSettings[],
  act: (bench: HostBench) => Promise<void>,
): Promise<void> {
  const bench = hostBench(servers);
  try {
    const connected = await bench.host.connect(never);
    assert.ok(connected.ok, JSON.stringify(connected));
    await act(bench);
  } finally {
    await bench.close();
  }
}

/** URIs reported as updated so far. */
function updated(bench: HostBench): string[] {
  return bench.changes.flatMap((change) => change.kind === "resource_updated" ? [change.uri] : []);
}

async function did(bench: HostBench, name: string): Promise<void> {
  const outcome = await callTool(bench, name);
  assert.ok(outcome.ok, JSON.stringify(outcome));
}

/** Waits until the server is not heard, or is heard again. */
async function untilHeard(bench: HostBench, heard: boolean): Promise<void> {
  await bench.change((each) => each.kind === "heard" && each.heard === heard);
}

/** Whether the last update of a resource was seen, or is only possible. */
function isPossible(bench: HostBench): boolean | undefined {
  const last = bench.changes.findLast((each) => each.kind === "resource_updated");
  return last?.kind === "resource_updated" ? last.possibly : undefined;
}

/** Forgets what changed so far and waits for the next update of a watched resource. */
async function nextUpdate(bench: HostBench, cause: () => Promise<unknown>): Promise<string> {
  bench.changes.length = 0;
  await cause();
  const change = await bench.change((each) => each.kind === "resource_updated");
  return change.kind === "resource_updated" ? change.uri : "";
}

Deno.test("Subscriptions: stdio, first era: what is watched is told, across a death too", async () => {
  await withHost([hostileServer("watched")], async (bench) => {
    const uri = "mem://one";
    assert.equal(await nextUpdate(bench, () => bench.host.subscribe("hostile", uri)), uri);
    assert.deepEqual(await bench.host.subscribe("hostile", uri), { ok: true, value: undefined });
    const crash = () => callTool(bench, "hostile/crash");
    assert.equal(isPossible(bench), false);
    assert.equal(await nextUpdate(bench, crash), uri);
    await did(bench, "hostile/act");
    assert.equal(isPossible(bench), true);
    const heard = bench.changes.flatMap((each) => each.kind === "heard" ? [each.heard] : []);
    assert.deepEqual(heard, [false, true]);
    // Once by the server's own word at subscribing, once as possibly changed; nothing unwatched.
    assert.deepEqual(updated(bench), [uri, uri]);
    assert.ok((await bench.host.unsubscribe("hostile", uri)).ok);
    assert.ok((await bench.host.unsubscribe("hostile", "mem://never")).ok);
  });
});

Deno.test("Subscriptions: the real server tells of a resource that changes", async () => {
  const every = stdioServer("every", ["node", await realServer("everything"), "stdio"]);
  await withHost([every], async (bench) => {
    const { resources } = await bench.host.list(never);
    const uri = resources.find((resource) => !resource.template)!.uri;
    assert.deepEqual(await bench.host.subscribe("every", uri), { ok: true, value: undefined });
    const toggle = () => did(bench, "every/toggle-subscriber-updates");
    assert.equal(await nextUpdate(bench, toggle), uri);
  });
});

const REFUSED: [server: string, uri: string, failureClass: string, message: RegExp][] = [
  ["nobody", "mem://one", "not_sent", /no server named nobody/],
  ["hostile", "mem://one", "protocol", /cannot watch resources/],
  ["hostile", "mem://\u0000", "protocol", /control characters/],
];

Deno.test("Subscriptions: what cannot be watched is refused with the reason", async () => {
  await withHost([hostileServer("plain")], async (bench) => {
    for (const [server, uri, failureClass, message] of REFUSED) {
      const outcome = await bench.host.subscribe(server, uri);
      assert.ok(!outcome.ok);
      assert.equal(outcome.failure.class, failureClass);
      assert.match(outcome.failure.message, message);
    }
  });
});

Deno.test("Subscriptions: HTTP, first era: streams that end and sessions that are lost are mended", async () => {
  const port = freePort();
  let server = await startServer([...legacyHttp, String(port)]);
  try {
    await withHost([httpServer("web", `http://127.0.0.1:${port}/mcp`)], async (bench) => {
      const uri = "mem://a";
      assert.ok((await bench.host.subscribe("web", uri)).ok);
      // The stream may open only after this: the server is asked until it has told.
      const update = async () => {
        while (updated(bench).length === 0) {
          await did(bench, "web/update");
          await new Promise((go) => setTimeout(go, 20));
        }
      };
      assert.equal(await nextUpdate(bench, update), uri);
      assert.equal(await nextUpdate(bench, () => did(bench, "web/drop-streams")), uri);
      assert.equal(await nextUpdate(bench, update), uri);
      await did(bench, "web/forget");
      assert.equal(await nextUpdate(bench, () => did(bench, "web/act")), uri);
      assert.equal(await nextUpdate(bench, update), uri);
      // A server that restarts is found again without any call.
      const restart = async () => {
        await server.stop();
        await untilHeard(bench, false);
        server = await startServer([...legacyHttp, String(port)]);
      };
      assert.equal(await nextUpdate(bench, restart), uri);
      await untilHeard(bench, true);
      assert.equal(isPossible(bench), true);
      assert.equal(await nextUpdate(bench, update), uri);
    });
  } finally {
    await server.stop();
  }
});

Deno.test("Subscriptions: stdio, second era: one stream tells of lists and resources, across a death", async () => {
  await withHost([stdioServer("modern", [...modern, "stdio"])], async (bench) => {
    assert.equal(
      bench.told("mcp.connect").find((fields) => fields.protocol)?.protocol,
      "2026-07-28",
    );
    const uri = "mem://a";
    assert.deepEqual(await bench.host.subscribe("modern", uri), { ok: true, value: undefined });
    assert.equal(await nextUpdate(bench, () => did(bench, "modern/change")), uri);
    await bench.change((change) => change.kind === "tools");
    await bench.change((change) => change.kind === "resources");
    assert.equal(await nextUpdate(bench, () => callTool(bench, "modern/exit")), uri);
    assert.equal(await nextUpdate(bench, () => did(bench, "modern/change")), uri);
    assert.ok((await bench.host.unsubscribe("modern", uri)).ok);
    bench.changes.length = 0;
    await bench.host.list(never);
    await did(bench, "modern/change");
    await bench.change((change) => change.kind === "resources");
    assert.deepEqual(updated(bench), []);
  });
});

Deno.test("Subscriptions: HTTP, second era: one stream, opened again when the server is back", async () => {
  const port = freePort();
  let server = await startServer([...modern, "http", String(port)]);
  try {
    await withHost([httpServer("web", `http://127.0.0.1:${port}/mcp`)], async (bench) => {
      const uri = "mem://a";
      assert.equal(bench.told("mcp.connect")[0]?.protocol, "2026-07-28");
      assert.deepEqual(await bench.host.subscribe("web", uri), { ok: true, value: undefined });
      assert.equal(await nextUpdate(bench, () => did(bench, "web/change")), uri);
      const restart = async () => {
        await server.stop();
        await untilHeard(bench, false);
        server = await startServer([...modern, "http", String(port)]);
      };
      assert.equal(await nextUpdate(bench, restart), uri);
      await untilHeard(bench, true);
      assert.equal(isPossible(bench), true);
      assert.equal(await nextUpdate(bench, () => did(bench, "web/change")), uri);
      assert.ok(!updated(bench).includes("mem://unwatched"));
      const asked = await callTool(bench, "web/ask");
      assert.ok(!asked.ok && asked.failure.class === "protocol", "nobody is asked");
      const mirrored = await bench.host.list(never);
      const tool = mirrored.tools.find((each) => each.remoteName === "mirrored")!;
      const call = { tool, arguments: { region: "eu" }, key: "k", traceparent: "t" };
      const outcome = await bench.host.call(call, never);
      assert.deepEqual(outcome.ok && outcome.value.parts, [{ type: "text", text: "eu" }]);
    });
  } finally {
    await server.stop();
  }
});
