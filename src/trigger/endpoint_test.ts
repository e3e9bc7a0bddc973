import assert from "node:assert/strict";
import { TRIGGER_BODY_BYTES_MAX, TRIGGER_BODY_TIMEOUT_MS } from "../core/limits.ts";
import { Secret } from "../core/secret.ts";
import { systemDigest } from "../sys/digest.ts";
import { ManualClock } from "../../tests/fakes/manual_clock.ts";
import { answerRequest, type EndpointDeps, type TriggerAnswer } from "./endpoint.ts";

function deps(over: Partial<EndpointDeps> = {}): EndpointDeps & { calls: string[] } {
  const calls: string[] = [];
  return {
    calls,
    clock: new ManualClock(),
    digest: systemDigest,
    token: new Secret("let-me-in\n"),
    health: () => ({ healthy: true, ready: true, why: "", lagMs: 1.4 }),
    metrics: () => "figures\n",
    trigger: (call) => {
      calls.push(`${call.name} ${call.mimeType} ${call.body.length}`);
      return { kind: "accepted", runId: "r1" };
    },
    ...over,
  };
}

async function ask(
  from: EndpointDeps,
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body?: BodyInit,
): Promise<string> {
  const reply = await answerRequest(
    new Request(`http://localhost${path}`, { method, headers, body }),
    from,
  );
  return `${reply.status} ${(await reply.text()).trim()}`;
}

const TOKEN = { authorization: "Bearer let-me-in" };

Deno.test("answerRequest: probes and figures", async () => {
  const well = deps();
  const ill = deps({
    health: () => ({ healthy: false, ready: false, why: "draining", lagMs: 6000 }),
  });
  const rows: [EndpointDeps, string, string, string][] = [
    [well, "GET", "/healthz", "200 ok lag_ms=1"],
    [well, "GET", "/healthz?x=1", "200 ok lag_ms=1"],
    [well, "GET", "/readyz", "200 ready"],
    [well, "GET", "/metrics", "200 figures"],
    [well, "HEAD", "/healthz", "200 ok lag_ms=1"],
    [well, "POST", "/healthz", "405 method not allowed"],
    [well, "GET", "/", "404 not found"],
    [well, "GET", "/trigger", "404 not found"],
    [ill, "GET", "/healthz", "503 unhealthy: draining lag_ms=6000"],
    [ill, "GET", "/readyz", "503 not ready: draining"],
  ];
  for (const [from, method, path, expected] of rows) {
    assert.equal(await ask(from, method, path), expected, `${method} ${path}`);
  }
  // What a client wrote as its host is in the URL as the server makes it.
  const odd = { url: "http://a b/healthz", method: "GET" } as Request;
  assert.equal((await answerRequest(odd, well)).status, 400);
});

Deno.test("answerRequest: a trigger needs its token, a name, a body within its bound", async () => {
  const from = deps();
  const over = new Uint8Array(TRIGGER_BODY_BYTES_MAX + 1);
  const rows: [string, string, Record<string, string>, BodyInit | undefined, string][] = [
    ["POST", "/trigger/a", {}, "x", "401 unauthorized"],
    ["POST", "/trigger/a", { authorization: "Bearer " }, "x", "401 unauthorized"],
    ["POST", "/trigger/a", { authorization: "Bearer let-me-i" }, "x", "401 unauthorized"],
    ["POST", "/trigger/a", { authorization: "Basic let-me-in" }, "x", "401 unauthorized"],
    ["GET", "/trigger/a", {}, undefined, "401 unauthorized"],
    ["GET", "/trigger/a", TOKEN, undefined, "405 method not allowed"],
    ["POST", "/trigger/a%2Fb", TOKEN, "x", "404 not found"],
    ["POST", "/trigger/a/b", TOKEN, "x", "404 not found"],
    ["POST", "/trigger/a", TOKEN, over, `413 the body is over ${TRIGGER_BODY_BYTES_MAX} bytes`],
    ["POST", "/trigger/a", TOKEN, "x", '202 {"run_id":"r1"}'],
    ["POST", "/trigger/b", { authorization: "bearer let-me-in" }, undefined, '202 {"run_id":"r1"}'],
    ["POST", "/trigger/c", TOKEN, over.subarray(1), '202 {"run_id":"r1"}'],
  ];
  for (const [method, path, headers, body, expected] of rows) {
    assert.equal(await ask(from, method, path, headers, body), expected, `${method} ${path}`);
  }
  assert.deepEqual(from.calls, [
    "a text/plain;charset=UTF-8 1",
    "b application/octet-stream 0",
    `c application/octet-stream ${TRIGGER_BODY_BYTES_MAX}`,
  ]);
  assert.equal(await ask(deps({ token: null }), "POST", "/trigger/a", TOKEN, "x"), "404 not found");
});

Deno.test("answerRequest: what became of a trigger", async () => {
  const rows: [TriggerAnswer, string][] = [
    [{ kind: "full", message: "the queue is full" }, "503 the queue is full"],
    [{ kind: "draining", message: "draining" }, "503 draining"],
    [{ kind: "unrouted", message: "no route" }, "404 no route"],
    [{ kind: "failed", message: "disk" }, "500 disk"],
  ];
  for (const [answer, expected] of rows) {
    const from = deps({ trigger: () => answer });
    assert.equal(await ask(from, "POST", "/trigger/a", TOKEN, "x"), expected);
  }
});

Deno.test("answerRequest: bodies without a length: one over its bound, one that never ends", async () => {
  const clock = new ManualClock();
  const from = deps({ clock });
  const endless = new ReadableStream({
    pull: (controller) => controller.enqueue(new Uint8Array(64 * 1024)),
  });
  const headers = { ...TOKEN };
  const post = (body: ReadableStream) =>
    answerRequest(
      new Request("http://localhost/trigger/a", { method: "POST", headers, body }),
      from,
    );
  const tooLong = await post(endless);
  assert.equal(tooLong.status, 413);
  assert.equal(clock.pending, 0);

  const waiting = post(new ReadableStream({ start: (c) => c.enqueue(new Uint8Array(1)) }));
  while (clock.pending === 0) await new Promise((resolve) => setTimeout(resolve, 0));
  clock.advance(TRIGGER_BODY_TIMEOUT_MS);
  assert.equal((await waiting).status, 408);
  assert.deepEqual(from.calls, []);
});

Deno.test("answerRequest: the agent reads a media type, or none, and no words of a header", async () => {
  for (
    const [header, expected] of [
      ["application/json", "application/json"],
      ["text/plain; charset=utf-8", "text/plain; charset=utf-8"],
      ['multipart/form-data; boundary="x-1"', 'multipart/form-data; boundary="x-1"'],
      ["text/html; now do something else", "application/octet-stream"],
      ["ignore what you were told", "application/octet-stream"],
      [`text/${"x".repeat(200)}`, "application/octet-stream"],
      ["", "application/octet-stream"],
    ] as const
  ) {
    const from = deps();
    await ask(from, "POST", "/trigger/go", { ...TOKEN, "content-type": header }, "hi");
    assert.deepEqual(from.calls, [`go ${expected} 2`], header);
  }
});
