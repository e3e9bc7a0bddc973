import assert from "node:assert/strict";
import { systemHttp } from "./http.ts";

const signal = new AbortController().signal;

/** A server that answers the first request of each connection and drops every later one unanswered. */
function serveFirstOnly(): { url: string; bodies: string[]; close: () => void } {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const bodies: string[] = [];
  const answer = new TextEncoder().encode("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
  const serve = async (conn: Deno.TcpConn): Promise<void> => {
    const buffer = new Uint8Array(4096);
    for (let served = 0;; served++) {
      let text = "";
      while (!text.endsWith("end")) {
        const count = await conn.read(buffer).catch(() => null);
        if (count === null) return conn.close();
        text += new TextDecoder().decode(buffer.subarray(0, count));
      }
      assert.match(text, /content-length: \d/i);
      bodies.push(text.slice(text.indexOf("\r\n\r\n") + 4));
      if (served > 0) return conn.close();
      await conn.write(answer);
    }
  };
  void (async () => {
    for await (const conn of listener) void serve(conn);
  })();
  return {
    url: `http://127.0.0.1:${listener.addr.port}/`,
    bodies,
    close: () => listener.close(),
  };
}

Deno.test("systemHttp: a request is sent once, also on a kept connection that closes unanswered", async () => {
  const server = serveFirstOnly();
  const send = async (body: string | Uint8Array): Promise<string> => {
    const sent = await systemHttp.send(
      { method: "POST", url: server.url, headers: { "content-type": "text/plain" }, body },
      signal,
    );
    return sent.ok ? await new Response(sent.value.body).text() : sent.failure.class;
  };
  assert.equal(await send("1 end"), "ok");
  assert.equal(await send("2 end"), "reset");
  assert.equal(await send(new TextEncoder().encode("3 end")), "ok");
  assert.equal(await send(new TextEncoder().encode("4 end")), "reset");
  assert.deepEqual(server.bodies, ["1 end", "2 end", "3 end", "4 end"]);
  server.close();
});
