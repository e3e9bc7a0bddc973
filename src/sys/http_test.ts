import assert from "node:assert/strict";
import { fetchOnce, systemHttp } from "./http.ts";

/** Takes one connection; answers its first request, and closes without an answer at the second. */
async function serveOne(listener: Deno.Listener): Promise<string[]> {
  const requests: string[] = [];
  const connection = await listener.accept();
  const decoder = new TextDecoder();
  const buffer = new Uint8Array(64 * 1024);
  let text = "";
  for (;;) {
    const read = await connection.read(buffer).catch(() => null);
    if (read === null) break;
    text += decoder.decode(buffer.subarray(0, read), { stream: true });
    if (!text.includes("END")) continue;
    requests.push(text);
    text = "";
    if (requests.length === 2) break;
    await connection.write(
      new TextEncoder().encode("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"),
    );
  }
  connection.close();
  listener.close();
  return requests;
}

Deno.test("fetchOnce: a body goes out whole, with its length, and never a second time", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const served = serveOne(listener);
  const url = `http://127.0.0.1:${listener.addr.port}/`;
  const body = `{"a":"héllo"} ${"x".repeat(200_000)} END`;
  const send = () => fetchOnce(url, { method: "POST", body, headers: { "x-kind": "test" } });
  assert.equal(await (await send()).text(), "ok");
  await assert.rejects(send());
  const requests = await served;
  assert.equal(requests.length, 2);
  for (const request of requests) {
    assert.match(request, /^POST \/ HTTP\/1\.1\r\n/);
    assert.match(request, new RegExp(`content-length: ${new TextEncoder().encode(body).length}`));
    assert.doesNotMatch(request, /transfer-encoding/);
    assert.ok(request.endsWith(body));
  }
});

Deno.test("fetchOnce: bytes as they are, an empty body too", async () => {
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const bytes = await request.bytes();
    return new Response(`${request.headers.get("content-length")} ${bytes.join()}`);
  });
  const url = `http://127.0.0.1:${server.addr.port}/`;
  const post = async (body: Uint8Array<ArrayBuffer> | string) =>
    await (await fetchOnce(url, { method: "POST", body })).text();
  assert.equal(await post(new Uint8Array([0, 255, 10])), "3 0,255,10");
  assert.match(await post(""), /^(?:0|null) $/);
  await server.shutdown();
});

Deno.test("systemHttp: a body in pieces is one body, whatever of it was sent before", async () => {
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    return new Response(`${request.headers.get("content-length")} ${await request.text()}`);
  });
  const url = `http://127.0.0.1:${server.addr.port}/`;
  const { signal } = new AbortController();
  const long = (n: number) => `${n}é`.repeat(4_000);
  // More long pieces than are remembered, each more than once.
  for (const n of [1, 1, 2, 3, 4, 5, 6, 1, 6]) {
    const body = ["head ", long(n), "", long(n + 1), ` tail ${n}`];
    const sent = await systemHttp.send({ method: "POST", url, headers: {}, body }, signal);
    assert.ok(sent.ok);
    const whole = body.join("");
    const text = await new Response(sent.value.body).text();
    assert.equal(text, `${new TextEncoder().encode(whole).length} ${whole}`);
  }
  await server.shutdown();
});
