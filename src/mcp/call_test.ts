import assert from "node:assert/strict";
import type { ToolFailure } from "../ports/tools.ts";
import { callTool, type HostBench, hostBench, hostileServer } from "../../tests/fakes/tool_host.ts";

const never = new AbortController().signal;

type Options = Parameters<typeof hostBench>[1];

async function withServer(
  behaviour: string,
  options: Options,
  act: (bench: HostBench) => Promise<void>,
  settings: Parameters<typeof hostileServer>[1] = {},
): Promise<void> {
  const bench = hostBench([hostileServer(behaviour, settings)], options);
  try {
    const connected = await bench.host.connect(never);
    assert.ok(connected.ok, JSON.stringify(connected));
    await act(bench);
  } finally {
    await bench.close();
  }
}

async function failure(bench: HostBench, name: string, args = {}): Promise<ToolFailure> {
  const outcome = await callTool(bench, name, args);
  assert.ok(!outcome.ok, JSON.stringify(outcome));
  return outcome.failure;
}

async function answer(bench: HostBench, name: string, args = {}): Promise<string> {
  const outcome = await callTool(bench, name, args);
  assert.ok(outcome.ok, JSON.stringify(outcome));
  return outcome.value.parts.map((part) => part.type === "text" ? part.text : part.type).join("");
}

Deno.test("callWithRetries: run id, key and traceparent travel in _meta", async () => {
  await withServer("meta", {}, async (bench) => {
    const meta = JSON.parse(await answer(bench, "hostile/act"));
    delete meta.progressToken;
    assert.deepEqual(meta, {
      "agentd/run_id": "RUN",
      "agentd/idempotency_key": "RUN-7",
      traceparent: "00-00000000000000000000000000000001-0000000000000002-01",
    });
  });
});

Deno.test("callWithRetries: a JSON-RPC error is protocol, with its code and a cleaned message", async () => {
  await withServer("error", {}, async (bench) => {
    assert.deepEqual(await failure(bench, "hostile/look"), {
      class: "protocol",
      message: "Bad arguments",
      code: -32602,
      retryable: false,
    });
  });
});

for (const how of ["string", "object"]) {
  Deno.test(`callWithRetries: a result that is malformed (${how}) is protocol, at once`, async () => {
    await withServer("malformed-result", {}, async (bench) => {
      assert.equal((await failure(bench, "hostile/act", { how })).class, "protocol");
    });
  });
}

Deno.test("callWithRetries: an error that is malformed is protocol, at once", async () => {
  await withServer("malformed-error", {}, async (bench) => {
    assert.equal((await failure(bench, "hostile/act")).class, "protocol");
  });
});

Deno.test("callWithRetries: nobody is asked: elicitation and sampling are refused", async () => {
  await withServer("asks-person", {}, async (bench) => {
    assert.equal(await answer(bench, "hostile/act"), "refused: -32601 -32601");
  });
});

Deno.test("callWithRetries: a call over its time is lost, withdrawn, and not tried again", async () => {
  const rules = [{ glob: "hostile/look", timeoutMs: 150 }];
  await withServer("silent", { rules }, async (bench) => {
    assert.deepEqual(await failure(bench, "hostile/look"), {
      class: "lost",
      message: "no answer within 150ms",
      retryable: true,
    });
    assert.equal(await answer(bench, "hostile/act", { answer: true }), "answered");
    // The server was told of one call, so one was sent.
    assert.equal(JSON.parse(await answer(bench, "hostile/cancelled")).length, 1);
  });
});

Deno.test("callWithRetries: a call cancelled in a warm session leaves the server usable", async () => {
  await withServer("silent", {}, async (bench) => {
    for (let turn = 0; turn < 3; turn++) {
      const stop = new AbortController();
      const call = callTool(bench, "hostile/look", {}, stop.signal);
      setTimeout(() => stop.abort(), 30);
      const outcome = await call;
      assert.ok(!outcome.ok && outcome.failure.class === "cancelled", JSON.stringify(outcome));
      assert.equal(await answer(bench, "hostile/act", { answer: true }), "answered");
    }
    const early = new AbortController();
    early.abort();
    const unsent = await callTool(bench, "hostile/act", { answer: true }, early.signal);
    assert.ok(!unsent.ok && unsent.failure.class === "not_sent");
    assert.equal(bench.pids().length, 1);
  });
});

Deno.test("callWithRetries: progress starts the time of a call anew", async () => {
  const rules = [{ glob: "hostile/*", timeoutMs: 1_500 }];
  await withServer("progress", { rules }, async (bench) => {
    assert.equal(await answer(bench, "hostile/act", { ticks: 10, everyMs: 200 }), "at last");
    const silent = await failure(bench, "hostile/act", { ticks: 0, everyMs: 60_000 });
    assert.equal(silent.class, "lost");
  });
});

Deno.test("callWithRetries: a call whose server dies is lost; the server is back for the next", async () => {
  const folder = new URL("../../.cache/", import.meta.url).pathname;
  await Deno.mkdir(folder, { recursive: true });
  const counter = await Deno.makeTempFile({ dir: folder });
  const server = hostileServer("plain");
  server.args.push(counter);
  const bench = hostBench([server]);
  try {
    assert.ok((await bench.host.connect(never)).ok);
    assert.equal(await answer(bench, "hostile/act"), "start 1");
    const [crash, beside] = await Promise.all([
      callTool(bench, "hostile/crash"),
      bench.host.list(never),
    ]);
    assert.ok(beside.tools.length > 0);
    assert.ok(!crash.ok);
    assert.deepEqual(crash.failure, {
      class: "lost",
      message: "Connection closed",
      retryable: true,
    });
    assert.equal(await answer(bench, "hostile/act"), "start 2");
    const gone = bench.told("mcp.disconnect")[0];
    assert.deepEqual([gone?.reason, gone?.code], ["ended", 7]);
    assert.deepEqual(bench.changes, [
      { kind: "heard", server: "hostile", heard: false },
      { kind: "heard", server: "hostile", heard: true },
    ]);
  } finally {
    await bench.close();
    await Deno.remove(counter);
  }
});

Deno.test("callWithRetries: a server that dies of every call is given up: server_down", async () => {
  await withServer("plain", {}, async (bench) => {
    for (let crash = 1; crash <= 3; crash++) {
      assert.equal((await failure(bench, "hostile/crash")).class, "lost");
      assert.equal(await answer(bench, "hostile/act"), "start 1");
    }
    assert.equal((await failure(bench, "hostile/crash")).class, "lost");
    const change = await bench.change((each) => each.kind === "server_down");
    assert.ok(change.kind === "server_down");
    assert.equal(change.failure.server, "hostile");
    assert.equal(
      change.failure.message,
      "Cannot keep hostile running: it ended with exit code 7, restarts: 3",
    );
    const last = await failure(bench, "hostile/act");
    assert.equal(last.class, "server_down");
    assert.equal(last.retryable, false);
    assert.deepEqual(bench.pids(), []);
  });
});

Deno.test("callWithRetries: an optional server that is given up costs its tools", async () => {
  await withServer("plain", { restartsMax: 0 }, async (bench) => {
    assert.equal((await failure(bench, "hostile/crash")).class, "lost");
    await bench.change((change) => change.kind === "tools");
    assert.equal((await failure(bench, "hostile/act")).class, "not_sent");
    assert.deepEqual((await bench.host.list(never)).tools, []);
    assert.ok(bench.changes.every((change) => change.kind !== "server_down"));
  }, { required: false });
});

Deno.test("callWithRetries: a lost read-only call is sent again, never at the cost of the run", async () => {
  await withServer("plain", {}, async (bench) => {
    assert.equal((await failure(bench, "hostile/crash-look")).class, "lost");
    // Sent twice: the second death left one restart, which is kept for other calls.
    assert.equal(await answer(bench, "hostile/act"), "start 1");
    assert.equal(bench.told("mcp.disconnect").length, 2);
  });
});

Deno.test("callWithRetries: a rate makes calls wait, or refuses them when the wait is too long", async () => {
  const rules = [
    { glob: "hostile/act", rate: { calls: 2, perMs: 400 } },
    { glob: "hostile/look", rate: { calls: 1, perMs: 60_000 } },
  ];
  await withServer("plain", { rules }, async (bench) => {
    for (let call = 0; call < 4; call++) await answer(bench, "hostile/act");
    const stop = new AbortController();
    await Promise.all([answer(bench, "hostile/act"), answer(bench, "hostile/act")]);
    const waiting = callTool(bench, "hostile/act", {}, stop.signal);
    setTimeout(() => stop.abort(), 10);
    const outcome = await waiting;
    assert.ok(!outcome.ok && outcome.failure.class === "not_sent", JSON.stringify(outcome));
    await answer(bench, "hostile/look");
    const refused = await failure(bench, "hostile/look");
    assert.deepEqual([refused.class, refused.retryable], ["not_sent", true]);
    assert.match(refused.message, /rate of hostile\/look is used up/);
  });
});

Deno.test("callWithRetries: calls side by side are answered each by its own answer", async () => {
  await withServer("plain", {}, async (bench) => {
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => answer(bench, "hostile/act")),
    );
    assert.equal(answers.length, 50);
  });
});
