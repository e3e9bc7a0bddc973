import assert from "node:assert/strict";
import { LISTEN_CLOSE_MS } from "../core/limits.ts";
import { systemListen } from "./listen.ts";

const HALF = "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nhalf";

Deno.test("systemListen: closes at once when nobody asks anything", async () => {
  const listening = systemListen.listen("127.0.0.1", 0, () => Promise.resolve(new Response("x")));
  assert(listening.ok);
  const reply = await fetch(`http://127.0.0.1:${listening.value.port}/`);
  assert.equal(await reply.text(), "x");
  const startMs = performance.now();
  await listening.value.close();
  assert(performance.now() - startMs < LISTEN_CLOSE_MS);
});

// The process ends behind such a close, and the unfinished request with it.
Deno.test("systemListen: half a request holds up its close for a bound time only", {
  sanitizeOps: false,
  sanitizeResources: false,
}, async () => {
  const asked = Promise.withResolvers<void>();
  const listening = systemListen.listen("127.0.0.1", 0, async (request) => {
    asked.resolve();
    return new Response(await request.text().catch(() => ""));
  });
  assert(listening.ok);
  const { port } = listening.value;
  const connection = await Deno.connect({ hostname: "127.0.0.1", port });
  await connection.write(new TextEncoder().encode(HALF));
  await asked.promise;
  const closed = listening.value.close().then(() => "closed");
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise((resolve) => {
    timer = setTimeout(() => resolve("late"), 10 * LISTEN_CLOSE_MS);
  });
  assert.equal(await Promise.race([closed, late]), "closed");
  clearTimeout(timer);
  connection.close();
});
