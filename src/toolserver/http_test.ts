import assert from "node:assert/strict";
import { failed, success } from "../core/outcome.ts";
import type { ClockPort } from "../ports/clock.ts";
import type { Socket, SocketPort } from "../ports/socket.ts";
import { NO_PERMISSIONS } from "../wire/permissions.ts";
import { buildHttpTools } from "./http.ts";
import { BoundedBytes } from "./http_wire.ts";
import { type Answer, Arguments, ToolError } from "./tool.ts";

const clock: ClockPort = { wallMs: () => 0, monotonicMs: () => 0, after: () => () => {} };

/** Sockets over a script: where a name leads, and what is answered there. What was sent is kept. */
class ScriptedSockets implements SocketPort {
  readonly sent: string[] = [];
  readonly #addresses: Record<string, string>;
  readonly #answer: Uint8Array;

  constructor(addresses: Record<string, string>, answer: string | Uint8Array) {
    this.#addresses = addresses;
    this.#answer = typeof answer === "string" ? new TextEncoder().encode(answer) : answer;
  }

  connect(hostname: string) {
    const address = this.#addresses[hostname];
    if (address === undefined) {
      return Promise.resolve(failed({ class: "dns" as const, message: "" }));
    }
    let left: Uint8Array | null = this.#answer;
    const socket: Socket = {
      address,
      startTls: () => Promise.resolve(success(socket)),
      read: () => {
        const part = left;
        left = null;
        return Promise.resolve(success(part));
      },
      write: (bytes) => {
        this.sent.push(`${hostname}: ${new TextDecoder().decode(bytes)}`);
        return Promise.resolve(success(undefined));
      },
      close: () => {},
    };
    return Promise.resolve(success(socket));
  }
}

async function fetchFrom(
  sockets: SocketPort,
  net: true | string[],
  args: { url: string },
): Promise<Answer | string> {
  const built = buildHttpTools({ sockets, clock, version: "1" }, { ...NO_PERMISSIONS, net });
  const tool = built.tools[0]!;
  try {
    return await tool.run(
      new Arguments("fetch", args, tool.inputSchema),
      new AbortController().signal,
    );
  } catch (error) {
    if (error instanceof ToolError) return error.message;
    throw error;
  }
}

Deno.test("fetch: a name that leads to a private address gets not one byte", async () => {
  const rows: [string, RegExp][] = [
    ["169.254.169.254", /resolves to 169\.254\.169\.254, which is a cloud metadata address/],
    ["127.0.0.1", /loopback/],
    ["::1", /loopback/],
    ["::ffff:10.0.0.1", /private/],
    ["10.0.0.1", /private/],
    ["not an address", /unknown address/],
  ];
  for (const [address, reason] of rows) {
    const nets: (true | string[])[] = [true, ["rebound.example"], ["rebound.example:443"]];
    for (const net of nets) {
      for (const scheme of ["http", "https"]) {
        const sockets = new ScriptedSockets({ "rebound.example": address }, "");
        const answer = await fetchFrom(sockets, net, { url: `${scheme}://rebound.example/` });
        assert.match(String(answer), reason);
        assert.deepEqual(sockets.sent, []);
      }
    }
  }
});

Deno.test("fetch: an address that is named with the name is reached", async () => {
  const sockets = new ScriptedSockets(
    { "intranet.example": "10.0.0.7" },
    "HTTP/1.1 204 No\r\n\r\n",
  );
  const net = ["intranet.example", "10.0.0.7"];
  const answer = await fetchFrom(sockets, net, { url: "http://intranet.example/x" });
  assert.notEqual(typeof answer, "string", String(answer));
  assert.match(
    sockets.sent[0]!,
    /^intranet\.example: GET \/x HTTP\/1\.1\r\nhost: intranet\.example\r\n/,
  );
});

Deno.test("fetch: a redirect to a name that leads inside is refused, with nothing sent there", async () => {
  const sockets = new ScriptedSockets(
    { "open.example": "1.1.1.1", "inside.example": "192.168.1.1" },
    "HTTP/1.1 302 Found\r\nlocation: https://inside.example/secret\r\n\r\n",
  );
  const answer = await fetchFrom(sockets, true, { url: "https://open.example/" });
  assert.match(String(answer), /follow the redirect to https:\/\/inside\.example.*private address/);
  assert.ok(sockets.sent.every((text) => text.startsWith("open.example: ")));
});

Deno.test("fetch: compressed bodies are read within the same bound", async () => {
  const packed = await new Response(
    new Blob(["x".repeat(5_000_000)]).stream().pipeThrough(new CompressionStream("gzip")),
  ).bytes();
  const head = new TextEncoder().encode(
    `HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: ${packed.length}\r\n\r\n`,
  );
  const sockets = new ScriptedSockets(
    { "a.example": "1.1.1.1" },
    Uint8Array.from([...head, ...packed]),
  );
  const answer = await fetchFrom(sockets, true, { url: "http://a.example/" }) as Answer;
  assert.match(String((answer.blocks[0] as { text: string }).text), /body cut at 1048576 bytes/);
  assert.equal((answer.blocks[1] as { text: string }).text.length, 1024 * 1024);
});

// In a process of its own: what other test files hold is not told apart in this one.
const INFLATE = `
import { describeAnswer } from ${JSON.stringify(new URL("./http_answer.ts", import.meta.url).href)};
const mebibyte = new Uint8Array(1024 * 1024);
let left = 400;
const zeros = new ReadableStream({
  pull: (controller) => left-- > 0 ? controller.enqueue(mebibyte) : controller.close(),
});
const body = await new Response(zeros.pipeThrough(new CompressionStream("gzip"))).bytes();
const headers = new Map([["content-encoding", "gzip"]]);
const before = Deno.memoryUsage().rss;
const answer = await describeAnswer(
  "http://a.example/",
  { status: 200, reason: "OK", headers, body, complete: true },
  0,
  1024 * 1024,
);
const grownBytes = Deno.memoryUsage().rss - before;
console.log(JSON.stringify({ grownBytes, text: answer.blocks[0].text }));
`;

Deno.test("fetch: what a compressed body would become is never held whole", async () => {
  const { stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["eval", INFLATE],
    stderr: "inherit",
  }).output();
  const { grownBytes, text } = JSON.parse(new TextDecoder().decode(stdout));
  assert.match(text, /body cut at 1048576 bytes/);
  assert.ok(grownBytes < 200 * 1024 * 1024, `${grownBytes} bytes for one answer`);
});

Deno.test("BoundedBytes: holds what it was given, not the buffers that it came in", () => {
  const buffer = new Uint8Array(64 * 1024).fill(1);
  const body = new BoundedBytes(10_000);
  for (let count = 0; count < 10_000; count++) {
    assert.ok(body.add(buffer.subarray(count, count + 1)), `${count}`);
  }
  buffer.fill(2);
  assert.equal(body.add(buffer.subarray(0, 1)), false, "one over the bound");
  assert.ok(body.add(buffer.subarray(0, 0)), "nothing has room always");
  const whole = body.whole();
  assert.deepEqual([whole.length, new Set(whole)], [10_000, new Set([1])]);
});
