/** `agentd mcp http`, driven as any MCP client would: what it reaches, and what it cannot be led to. */

import assert from "node:assert/strict";
import { inProcess, type Serving, textOf, ToolClient } from "../fakes/tool_client.ts";
import { hasOpenssl, makeCertificate } from "../fakes/certificate.ts";
import { programs } from "../program.ts";

/** A server that the tests own: answers by path, and keeps what it was asked. */
interface Site {
  port: number;
  seen: { method: string; path: string; headers: Headers; body: string }[];
}

async function withSite(act: (site: Site) => Promise<void>): Promise<void> {
  const seen: Site["seen"] = [];
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const url = new URL(request.url);
    const path = url.pathname + url.search;
    seen.push({
      method: request.method,
      path,
      headers: request.headers,
      body: await request.text(),
    });
    const to = url.searchParams.get("to");
    const status = Number(url.searchParams.get("status") ?? 302);
    if (to !== null) return new Response(null, { status, headers: { location: to } });
    switch (url.pathname) {
      case "/hops": {
        const left = Number(url.searchParams.get("left"));
        return left === 0
          ? new Response("arrived")
          : new Response(null, { status: 302, headers: { location: `/hops?left=${left - 1}` } });
      }
      case "/big":
        return new Response("é".repeat(3_000_000));
      case "/image":
        return new Response(new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0, 0, 1]), {
          headers: { "content-type": "image/png" },
        });
      case "/binary":
        return new Response(new Uint8Array([0x50, 0x4b, 3, 4, 0, 0]), {
          headers: { "content-type": "application/zip" },
        });
      case "/latin":
        return new Response(new Uint8Array([0x63, 0xe9]), {
          headers: { "content-type": "text/plain; charset=iso-8859-1" },
        });
      case "/missing":
        return Response.json({ error: "no" }, { status: 404 });
      default:
        return new Response("hello", { headers: { "content-type": "text/plain" } });
    }
  });
  try {
    await act({ port: server.addr.port, seen });
  } finally {
    await server.shutdown();
  }
}

/** In this process the test's own permissions are the sandbox. */
const LOCAL_ONLY: Deno.TestDefinition["permissions"] = {
  net: ["127.0.0.1", "localhost", "[::1]"],
  read: "inherit",
  write: "inherit",
  env: "inherit",
  run: "inherit",
  sys: "inherit",
};

/** A server that answers every connection with the same bytes and then, or never, closes. */
async function withBytes(
  bytes: string,
  close: boolean,
  act: (port: number) => Promise<void>,
): Promise<void> {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const open: Deno.Conn[] = [];
  const served = (async () => {
    for await (const conn of listener) {
      open.push(conn);
      await conn.read(new Uint8Array(65_536));
      // The client may be gone already: that is its right.
      await conn.write(new TextEncoder().encode(bytes)).catch(() => {});
      if (close) open.pop()!.close();
    }
  })();
  try {
    await act((listener.addr as Deno.NetAddr).port);
  } finally {
    for (const conn of open) conn.close();
    listener.close();
    await served;
  }
}

async function withServer(
  program: Serving,
  flags: string[],
  act: (client: ToolClient) => Promise<void>,
): Promise<void> {
  const client = await ToolClient.start(program, ["http", ...flags]);
  try {
    await act(client);
  } finally {
    const { code, stderr } = await client.close();
    assert.equal(code, 0, stderr);
  }
}

for (const program of [inProcess, ...programs()]) {
  const name = (text: string) => `mcp http (${program.name}): ${text}`;

  Deno.test(
    name("fetches from a granted host: status, headers, body"),
    () =>
      withSite((site) =>
        withServer(program, [`--allow-net=127.0.0.1:${site.port}`], async (client) => {
          const base = `http://127.0.0.1:${site.port}`;
          const plain = await client.call("fetch", { url: `${base}/x?y=1#z` });
          assert.match(plain.content[0]?.text ?? "", /^HTTP 200 OK\ncontent-type: text\/plain/);
          assert.equal(plain.content[1]?.text, "hello");
          assert.equal(site.seen[0]?.path, "/x?y=1");
          assert.match(site.seen[0]?.headers.get("user-agent") ?? "", /^agentd\//);
          await client.ok("fetch", {
            url: `${base}/post`,
            method: "post",
            headers: { "Content-Type": "application/json", "X-One": "1" },
            body: '{"é":1}',
          });
          assert.equal(site.seen[1]?.method, "POST");
          assert.equal(site.seen[1]?.body, '{"é":1}');
          assert.equal(site.seen[1]?.headers.get("x-one"), "1");
          assert.match(await client.ok("fetch", { url: `${base}/missing` }), /^HTTP 404 [^]*"no"/);
          const head = await client.call("fetch", { url: `${base}/x`, method: "HEAD" });
          assert.equal(head.content.length, 1);
          assert.match(await client.ok("fetch", { url: `${base}/latin` }), /cé$/);
          const image = await client.call("fetch", { url: `${base}/image` });
          assert.deepEqual(image.content[1], {
            type: "image",
            data: btoa("\x89PNG\0\0\x01"),
            mimeType: "image/png",
          });
          assert.match(
            await client.ok("fetch", { url: `${base}/binary` }),
            /not shown: ZIP archive, 6/,
          );
        })
      ),
  );

  Deno.test(
    name("bounds the body, by default and by wish"),
    () =>
      withSite((site) =>
        withServer(program, [`--allow-net=127.0.0.1:${site.port}`], async (client) => {
          const url = `http://127.0.0.1:${site.port}/big`;
          const whole = await client.call("fetch", { url });
          assert.match(whole.content[0]?.text ?? "", /body cut at 1048576 bytes/);
          assert.ok((whole.content[1]?.text ?? "").length <= 1024 * 1024);
          const few = await client.call("fetch", { url, max_bytes: 5 });
          assert.match(few.content[0]?.text ?? "", /body cut at 5 bytes/);
          assert.match(few.content[1]?.text ?? "", /^éé/);
        })
      ),
  );

  Deno.test(
    name("private and local addresses are refused however they are written"),
    () =>
      withSite((site) =>
        withServer(program, ["--allow-net"], async (client) => {
          const hosts: [string, RegExp][] = [
            ["169.254.169.254", /metadata/],
            ["2852039166", /metadata/],
            ["0xa9fea9fe", /metadata/],
            ["0251.0376.0251.0376", /metadata/],
            ["[::ffff:169.254.169.254]", /metadata/],
            ["127.0.0.1", /loopback/],
            ["127.1", /loopback/],
            ["0x7f000001", /loopback/],
            ["017700000001", /loopback/],
            ["[::1]", /loopback/],
            ["[::ffff:127.0.0.1]", /loopback/],
            ["[0:0:0:0:0:ffff:7f00:1]", /loopback/],
            ["0.0.0.0", /this host/],
            ["[::]", /this host/],
            ["localhost", /this machine/],
            ["LOCALHOST.", /this machine/],
            ["a.localhost", /this machine/],
            ["10.0.0.1", /private/],
            ["192.168.0.1", /private/],
            ["172.16.0.1", /private/],
            ["100.64.0.1", /carrier-grade/],
            ["[fd00::1]", /private/],
            ["[fe80::1]", /link-local/],
            ["224.0.0.1", /multicast/],
          ];
          for (const [host, kind] of hosts) {
            const text = await client.refused("fetch", { url: `http://${host}:${site.port}/` });
            assert.match(text, kind, host);
            assert.match(text, /--allow-net/, host);
          }
          assert.deepEqual(site.seen, []);
        })
      ),
  );

  Deno.test(
    name("an address that is named is reached, on its port only"),
    () =>
      withSite(async (site) => {
        await withServer(program, [`--allow-net=localhost:${site.port}`], async (client) => {
          assert.match(
            await client.ok("fetch", { url: `http://localhost:${site.port}/` }),
            /hello/,
          );
          assert.match(
            await client.refused("fetch", { url: `http://127.0.0.1:${site.port}/` }),
            /loopback/,
          );
        });
        await withServer(program, ["--allow-net=127.0.0.1:1"], async (client) => {
          const text = await client.refused("fetch", { url: `http://127.0.0.1:${site.port}/` });
          assert.match(text, /loopback/);
        });
      }),
  );

  Deno.test(
    name("a host that is not granted is refused by Deno itself"),
    { permissions: LOCAL_ONLY },
    () =>
      withServer(program, ["--allow-net=granted.example"], async (client) => {
        for (
          const url of ["http://other.example/", "https://1.1.1.1/", "http://granted.example.org/"]
        ) {
          assert.match(
            await client.refused("fetch", { url }),
            /is not granted\. This server may reach granted\.example \(Requires net access/,
          );
        }
      }),
  );

  Deno.test(
    name("every hop of a redirect is checked, and they are counted"),
    { permissions: LOCAL_ONLY },
    () =>
      withSite((site) =>
        withServer(program, [`--allow-net=127.0.0.1:${site.port}`], async (client) => {
          const base = `http://127.0.0.1:${site.port}`;
          const redirect = (to: string, more = "") =>
            `${base}/r?to=${encodeURIComponent(to)}${more}`;
          assert.match(
            await client.ok("fetch", { url: `${base}/hops?left=5` }),
            /url: .*left=0[^]*arrived/,
          );
          assert.match(
            await client.refused("fetch", { url: `${base}/hops?left=6` }),
            /over 5 times/,
          );
          const attempts: [string, RegExp][] = [
            ["http://169.254.169.254/latest/meta-data", /redirect to .*metadata/],
            ["http://[::ffff:a9fe:a9fe]/", /metadata/],
            ["http://other.example/", /redirect to .*not granted/],
            ["//other.example/", /not granted/],
            ["http://127.0.0.1:1/", /loopback/],
            ["file:///etc/passwd", /only http and https/],
            ["http://me:secret@127.0.0.1/", /credentials/],
            ["http://", /no URL/],
          ];
          for (const [to, reason] of attempts) {
            const text = await client.refused("fetch", { url: redirect(to) });
            assert.match(text, reason, to);
            assert.doesNotMatch(text, /secret/);
          }
          site.seen.length = 0;
          await client.ok("fetch", { url: redirect("/end"), method: "POST", body: "b" });
          assert.deepEqual(site.seen.map(({ method, body }) => method + body), ["POSTb", "GET"]);
          site.seen.length = 0;
          await client.ok("fetch", {
            url: redirect("/end", "&status=307"),
            method: "POST",
            body: "b",
            headers: { authorization: "Bearer t" },
          });
          assert.deepEqual(site.seen.map(({ method, body }) => method + body), ["POSTb", "POSTb"]);
          assert.equal(site.seen[1]?.headers.get("authorization"), "Bearer t");
        })
      ),
  );

  Deno.test(
    name("a redirect to another origin carries no secrets"),
    () =>
      withSite((site) =>
        withSite((other) =>
          withServer(
            program,
            [`--allow-net=127.0.0.1:${site.port},127.0.0.1:${other.port}`],
            async (client) => {
              const secrets = [
                ...["authorization", "cookie", "x-api-key", "x-auth-key", "x-auth-token"],
                ...["x-functions-key", "ocp-apim-subscription-key", "x-password", "x-session-id"],
              ];
              const to = encodeURIComponent(`http://127.0.0.1:${other.port}/end`);
              await client.ok("fetch", {
                url: `http://127.0.0.1:${site.port}/r?to=${to}`,
                headers: {
                  ...Object.fromEntries(secrets.map((name) => [name, "s"])),
                  "x-plain": "p",
                },
              });
              const { headers } = other.seen[0]!;
              for (const secret of secrets) assert.equal(headers.get(secret), null, secret);
              assert.equal(headers.get("x-plain"), "p");
            },
          )
        )
      ),
  );

  Deno.test(
    name("bad requests are told before anything is sent"),
    () =>
      withServer(program, ["--allow-net"], async (client) => {
        const rows: [Record<string, unknown>, RegExp][] = [
          [{ url: "nowhere" }, /no URL/],
          [{ url: "ftp://a.example/" }, /only http and https/],
          [{ url: "file:///etc/passwd" }, /only http and https/],
          [{ url: "http://me:pass@a.example/" }, /credentials/],
          [{ url: "http://a.example/", method: "TRACE" }, /use one of/],
          [{ url: "http://a.example/", body: "x" }, /Cannot send a body with GET/],
          [{ url: "http://a.example/", headers: { Host: "b" } }, /set by the server/],
          [{ url: "http://a.example/", headers: { "a b": "c" } }, /no header name/],
          [{ url: "http://a.example/", headers: { a: "b\r\nc: d" } }, /printable/],
          [{ url: "http://a.example/", timeout: 0 }, /above 0/],
          [{ url: `http://a.example/${"x".repeat(9_000)}` }, /characters long/],
        ];
        for (const [args, reason] of rows) {
          const text = await client.refused("fetch", args);
          assert.match(text, reason);
          assert.doesNotMatch(text, /pass@/);
        }
      }),
  );

  Deno.test(name("servers that misbehave cost an error, not the connection"), async () => {
    const rows: [string, boolean, RegExp][] = [
      ["SSH-2.0-OpenSSH_9.2\r\n", true, /not answer in HTTP/],
      ["", true, /closed before/],
      ["HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc", true, /broke off/],
      ["HTTP/1.1 200 OK\r\ncontent-length: 1, 2\r\n\r\nabc", true, /content-length/],
      ["HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", true, /chunk/],
      ["HTTP/1.1 200 OK\r\nbad header\r\n\r\n", true, /header/],
      [`HTTP/1.1 200 OK\r\n${"a: b\r\n".repeat(20_000)}`, true, /header is too large/],
      ["HTTP/1.1 101 Switching Protocols\r\n\r\n", true, /another protocol/],
      ["HTTP/1.1 100 Continue\r\n\r\n".repeat(20), true, /interim/],
      ["HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc", false, /0\.5 s are over/],
      ["", false, /0\.5 s are over/],
    ];
    for (const [bytes, close, reason] of rows) {
      await withBytes(
        bytes,
        close,
        (port) =>
          withServer(program, [`--allow-net=127.0.0.1:${port}`], async (client) => {
            const url = `http://127.0.0.1:${port}/`;
            assert.match(await client.refused("fetch", { url, timeout: 0.5 }), reason);
            assert.ok((await client.request("ping")).result);
          }),
      );
    }
    const chunked =
      "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nt: v\r\n\r\n";
    for (
      const bytes of [
        chunked,
        "HTTP/1.0 200\r\n\r\nabcde",
        "HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\n\nabcde",
      ]
    ) {
      await withBytes(
        bytes,
        true,
        (port) =>
          withServer(program, [`--allow-net=127.0.0.1:${port}`], async (client) => {
            assert.match(
              await client.ok("fetch", { url: `http://127.0.0.1:${port}/` }),
              /\nabcde$/,
            );
          }),
      );
    }
  });

  Deno.test(
    name("a refused connection and an unknown name are told apart"),
    () =>
      withServer(program, ["--allow-net=127.0.0.1,no-such-host.invalid"], async (client) => {
        const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
        const { port } = listener.addr as Deno.NetAddr;
        listener.close();
        assert.match(
          await client.refused("fetch", { url: `http://127.0.0.1:${port}/` }),
          /refuses connections/,
        );
        // This process may not reach that name.
        if (program === inProcess) return;
        assert.match(
          await client.refused("fetch", { url: "http://no-such-host.invalid/" }),
          /is not known/,
        );
      }),
  );

  Deno.test(name("TLS to a certificate that nobody trusts is refused"), async () => {
    await withBytes(
      "HTTP/1.1 200 OK\r\n\r\n",
      true,
      (port) =>
        withServer(program, [`--allow-net=127.0.0.1:${port}`], async (client) => {
          const text = textOf(await client.call("fetch", { url: `https://127.0.0.1:${port}/` }));
          assert.match(text, /no trusted TLS connection/);
        }),
    );
  });

  Deno.test(name("TLS to a trusted certificate is spoken, for its name only"), {
    ignore: !hasOpenssl || program === inProcess,
  }, async () => {
    const directory = await Deno.makeTempDir({ prefix: "agentd-tls-" });
    const { key, cert } = await makeCertificate(directory);
    const server = Deno.serve({
      hostname: "127.0.0.1",
      port: 0,
      cert: await Deno.readTextFile(cert),
      key: await Deno.readTextFile(key),
      onListen() {},
    }, () => new Response("over TLS"));
    const { port } = server.addr;
    const client = await ToolClient.start(
      program,
      ["http", `--allow-net=localhost:${port},127.0.0.1:${port}`],
      { env: { DENO_CERT: cert } },
    );
    assert.match(await client.ok("fetch", { url: `https://localhost:${port}/` }), /over TLS$/);
    assert.match(
      await client.refused("fetch", { url: `https://127.0.0.1:${port}/` }),
      /no trusted TLS connection/,
    );
    await client.close();
    await server.shutdown();
    await Deno.remove(directory, { recursive: true });
  });
}
