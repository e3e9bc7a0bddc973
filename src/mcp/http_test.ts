import assert from "node:assert/strict";
import { realServer } from "../../tests/fakes/mcp_packages.ts";
import { freePort, type ServerProcess, startServer } from "../../tests/fakes/server_process.ts";
import { callTool, type HostBench, hostBench, httpServer } from "../../tests/fakes/tool_host.ts";
import { Vault } from "../core/secret.ts";
import type { HttpServer } from "../wire/payload.ts";
import { boundBody } from "./http.ts";

const never = new AbortController().signal;
const script = new URL("../../tests/hostile/http_server.mjs", import.meta.url).pathname;

type Options = Parameters<typeof hostBench>[1];

function startHostile(behaviour = "", port = 0): Promise<ServerProcess> {
  return startServer(["node", script, behaviour, String(port)]);
}

async function withServer(
  act: (bench: HostBench, server: ServerProcess) => Promise<void>,
  options: Options & { behaviour?: string; settings?: Partial<HttpServer> } = {},
): Promise<void> {
  const server = await startHostile(options.behaviour);
  const url = `http://127.0.0.1:${server.port}/mcp`;
  const bench = hostBench([httpServer("web", url, options.settings)], options);
  try {
    const connected = await bench.host.connect(never);
    assert.ok(connected.ok, JSON.stringify(connected));
    await act(bench, server);
  } finally {
    await bench.close();
    await server.stop();
  }
}

async function answer(bench: HostBench, name: string, args = {}): Promise<string> {
  const outcome = await callTool(bench, `web/${name}`, args);
  assert.ok(outcome.ok, JSON.stringify(outcome));
  return outcome.value.parts.map((part) => part.type === "text" ? part.text : part.type).join("");
}

const FAULTS: [tool: string, failureClass: string, message: RegExp, sent: number][] = [
  ["bad-gateway", "lost", /HTTP 502/, 1],
  ["reset", "lost", /./, 1],
  ["sse-cut", "lost", /ended before the answer/, 1],
  ["sse-reset", "lost", /ended before the answer/, 1],
  ["sse-garbage", "lost", /ended before the answer/, 1],
  ["html", "lost", /content type/, 1],
  ["not-json", "lost", /JSON/, 1],
  ["reset-look", "lost", /./, 4],
];

Deno.test("HttpTransport: a call that HTTP loses is that call's failure alone", async () => {
  await withServer(async (bench) => {
    for (const [tool, failureClass, message] of FAULTS) {
      const outcome = await callTool(bench, `web/${tool}`);
      assert.ok(!outcome.ok, tool);
      assert.equal(outcome.failure.class, failureClass, `${tool}: ${JSON.stringify(outcome)}`);
      assert.match(outcome.failure.message, message, tool);
      assert.equal(await answer(bench, "act"), "did act", `after ${tool}`);
    }
    const { calls } = JSON.parse(await answer(bench, "seen"));
    for (const [tool, , , sent] of FAULTS) assert.equal(calls[tool], sent, tool);
    assert.deepEqual(bench.changes, []);
    assert.equal(bench.told("mcp.disconnect").length, 0);
  });
});

Deno.test("HttpTransport: what had no effect is sent again until it is answered", async () => {
  await withServer(async (bench) => {
    assert.equal(await answer(bench, "flaky-look"), "after 3 calls");
    assert.equal(await answer(bench, "busy-once"), "after 2 calls");
    assert.equal(await answer(bench, "sse"), "streamed");
  });
});

Deno.test("HttpTransport: an answer over the limit is an error of the tool, whole or streamed", async () => {
  await withServer(async (bench) => {
    for (const tool of ["huge-json", "huge-sse"]) {
      const outcome = await callTool(bench, `web/${tool}`);
      assert.ok(outcome.ok && outcome.value.isError, JSON.stringify(outcome).slice(0, 200));
      assert.match(JSON.stringify(outcome.value.parts), /over the limit of 16MiB/);
    }
    assert.equal(await answer(bench, "act"), "did act");
  });
});

Deno.test("HttpTransport: a call that is withdrawn or out of time leaves the session usable", async () => {
  await withServer(async (bench) => {
    const stop = new AbortController();
    const call = callTool(bench, "web/silent", {}, stop.signal);
    while (JSON.parse(await answer(bench, "seen")).calls.silent !== 1);
    stop.abort();
    const cancelled = await call;
    assert.ok(!cancelled.ok && cancelled.failure.class === "cancelled");
    const late = await callTool(bench, "web/silent-look");
    assert.ok(!late.ok && late.failure.class === "lost", JSON.stringify(late));
    assert.match(late.failure.message, /no answer within 200ms/);
    const { calls, methods } = JSON.parse(await answer(bench, "seen"));
    assert.deepEqual([calls.silent, calls["silent-look"]], [1, 1]);
    assert.equal(methods.filter((one: string) => one === "notifications/cancelled").length, 2);
  }, { rules: [{ glob: "web/silent-look", timeoutMs: 200 }] });
});

Deno.test("HttpTransport: a session that is forgotten is opened anew, once, and the call sent", async () => {
  await withServer(async (bench) => {
    await answer(bench, "forget");
    assert.equal(await answer(bench, "act"), "did act");
    const { calls, methods } = JSON.parse(await answer(bench, "seen"));
    assert.equal(calls.act, 1);
    assert.equal(methods.filter((one: string) => one === "initialize").length, 2);
    assert.equal(bench.told("mcp.disconnect")[0]?.reason, "session lost");
  });
});

Deno.test("HttpTransport: a description that changes with the session refuses the tool", async () => {
  await withServer(async (bench) => {
    await answer(bench, "forget");
    const outcome = await callTool(bench, "web/act");
    assert.ok(!outcome.ok && outcome.failure.class === "not_sent", JSON.stringify(outcome));
    assert.match(outcome.failure.message, /has changed since the run began/);
    assert.deepEqual((await bench.host.list(never)).tools, []);
  }, { behaviour: "changes" });
});

Deno.test("HttpTransport: a redirect to another origin is not followed, one inside is", async () => {
  const thief = await startHostile();
  try {
    const vault = Vault.from({ "env:TOKEN": "s3cret-token" });
    await withServer(async (bench) => {
      const outcome = await callTool(bench, "web/redirect", { port: thief.port });
      assert.ok(!outcome.ok && outcome.failure.class === "protocol", JSON.stringify(outcome));
      assert.match(outcome.failure.message, /not followed/);
      assert.equal(await answer(bench, "redirect-inside"), "at /elsewhere");
      const seen = JSON.parse(await answer(bench, "seen"));
      assert.ok(seen.authorization.every((one: string) => one === "Bearer s3cret-token"));
      assert.ok(!JSON.stringify(bench.lines).includes("s3cret"));
    }, { vault, settings: { headers: { Authorization: ["Bearer ", { secret: "env:TOKEN" }] } } });
    const url = `http://127.0.0.1:${thief.port}/mcp`;
    const bench = hostBench([httpServer("thief", url)]);
    assert.ok((await bench.host.connect(never)).ok);
    const outcome = await callTool(bench, "thief/seen");
    assert.ok(outcome.ok);
    const seen = JSON.stringify(outcome.value.parts);
    assert.ok(!seen.includes("s3cret"), seen);
    await bench.close();
  } finally {
    await thief.stop();
  }
});

const BAD_STARTS: [behaviour: string, era: string, message: RegExp][] = [
  ["unauthorized", "auto", /401/],
  ["unauthorized", "legacy", /401/],
  ["unavailable", "auto", /503/],
  ["unavailable", "legacy", /503/],
  ["mute", "auto", /did not answer initialize within 500ms/],
  ["mute", "legacy", /did not answer initialize within 500ms/],
  ["", "2026-07-28", /did not offer pinned protocol version 2026-07-28/],
  ["nobody", "auto", /refused/],
  ["nobody", "legacy", /refused/],
];

for (const [behaviour, era, message] of BAD_STARTS) {
  Deno.test(`HttpTransport: a server that is ${behaviour || "older"}, era ${era}, fails the start and says why`, async () => {
    const server = behaviour === "nobody" ? null : await startHostile(behaviour);
    const url = `http://127.0.0.1:${server?.port ?? freePort()}/mcp`;
    const startTimeoutMs = behaviour === "mute" ? 500 : 20_000;
    const vault = Vault.from({ "env:TOKEN": "s3cret-token" });
    const bench = hostBench([
      httpServer("web", url, {
        era,
        startTimeoutMs,
        headers: { authorization: [{ secret: "env:TOKEN" }] },
      }),
    ], { vault });
    const outcome = await bench.host.connect(never);
    assert.ok(!outcome.ok);
    assert.match(outcome.failure.message, message);
    assert.ok(!JSON.stringify([outcome, bench.lines]).includes("s3cret-token"));
    await bench.close();
    await server?.stop();
  });
}

Deno.test("HttpTransport: an outage in mid-run is the call's failure, and over when the server is back", async () => {
  const port = freePort();
  let server = await startHostile("", port);
  const bench = hostBench([httpServer("web", `http://127.0.0.1:${port}/mcp`)]);
  try {
    assert.ok((await bench.host.connect(never)).ok);
    assert.equal(await answer(bench, "act"), "did act");
    await server.stop();
    const outcome = await callTool(bench, "web/act");
    assert.ok(!outcome.ok, JSON.stringify(outcome));
    assert.ok(["not_sent", "lost"].includes(outcome.failure.class), outcome.failure.class);
    server = await startHostile("", port);
    assert.equal(await answer(bench, "act"), "did act");
  } finally {
    await bench.close();
    await server.stop();
  }
});

Deno.test("HttpTransport: the real server over streamable HTTP, in either era's way of asking", async () => {
  const port = freePort();
  const server = await startServer(["node", await realServer("everything"), "streamableHttp"], {
    PORT: String(port),
  });
  const url = `http://127.0.0.1:${port}/mcp`;
  try {
    for (const era of ["legacy", "auto", "2025-06-18"]) {
      const bench = hostBench([httpServer("web", url, { era })]);
      const connected = await bench.host.connect(never);
      assert.ok(connected.ok, JSON.stringify(connected));
      assert.equal(await answer(bench, "echo", { message: era }), `Echo: ${era}`);
      const protocol = bench.told("mcp.connect")[0]?.protocol;
      assert.equal(protocol, era === "2025-06-18" ? era : "2025-11-25");
      await bench.close();
    }
  } finally {
    await server.stop();
  }
});

Deno.test("HttpTransport: a server that insists on a length gets one", async () => {
  await withServer(async (bench) => {
    assert.equal(await answer(bench, "act"), "did act");
    assert.equal(await answer(bench, "look"), "did look");
    const { calls, refusals } = JSON.parse(await answer(bench, "seen"));
    assert.deepEqual([calls.act, calls.look, refusals], [1, 1, 1]);
  }, { behaviour: "wants-length" });
});

Deno.test("boundBody: a body at the bound passes, one past it fails or is cut; events count alone", async () => {
  const bytesMax = 10;
  const read = async (chunks: string[], events: boolean, fails: boolean) => {
    let over = 0;
    const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
      start(controller): void {
        for (const chunk of chunks) controller.enqueue(new TextEncoder().encode(chunk));
        controller.close();
      },
    });
    const bounded = boundBody(body, bytesMax, events, fails, (bytes) => over = bytes);
    const text = await new Response(bounded).text().catch((error) => `failed: ${error.message}`);
    return [text, over];
  };
  assert.deepEqual(await read(["0123456789"], false, true), ["0123456789", 0]);
  assert.deepEqual(await read(["0123456789a"], false, true), [
    "failed: the body is over 10 bytes",
    11,
  ]);
  assert.deepEqual(await read(["0123456789a"], false, false), ["0123456789", 11]);
  const small = "data: 1\n\n";
  assert.deepEqual(await read([small.repeat(50)], true, true), [small.repeat(50), 0]);
  const crlf = "data: 1\r\n\r\n";
  assert.deepEqual(await read([crlf.repeat(50)], true, true), [crlf.repeat(50), 0]);
  assert.equal((await read([small, "data: 1234", "\n\n"], true, true))[1], 0);
  assert.equal((await read([small, "data: 1234", "5\n\n"], true, true))[1], 0);
  assert.equal((await read([small, "data: 1234", "5", "\n\n"], true, true))[1], 11);
});
