import assert from "node:assert/strict";
import { TOOL_LINE_BYTES_MAX } from "../core/limits.ts";
import { callTool, type HostBench, hostBench, hostileServer } from "../../tests/fakes/tool_host.ts";
import { PORT_WINDOW_BYTES, type ServerPortMessage } from "../wire/worker.ts";
import { answeredId, OVERSIZED, toMessage } from "./message.ts";
import type { Message } from "./sdk.ts";
import { PortTransport } from "./stdio.ts";

const never = new AbortController().signal;
const encoder = new TextEncoder();

async function withServer(
  behaviour: string,
  act: (bench: HostBench) => Promise<void>,
): Promise<void> {
  const bench = hostBench([hostileServer(behaviour)]);
  try {
    const connected = await bench.host.connect(never);
    assert.ok(connected.ok, JSON.stringify(connected));
    await act(bench);
  } finally {
    await bench.close();
  }
}

/** What a tool answers, as text. */
async function answered(bench: HostBench, args = {}): Promise<string> {
  const outcome = await callTool(bench, "hostile/act", args);
  assert.ok(outcome.ok, JSON.stringify(outcome));
  return outcome.value.parts.map((part) => part.type === "text" ? part.text : part.type).join("");
}

const ANSWERS: [behaviour: string, answer: string, stray: string[]][] = [
  ["noise", "after the noise", ["noise"]],
  ["flood", "after the flood", ["noise"]],
  ["invalid-utf8-between", "after the bytes", ["invalid"]],
  ["invalid-utf8-inside", "broken: \uFFFD!", ["invalid"]],
  ["answers-twice", "first", []],
  ["wrong-ids", "right", []],
];

for (const [behaviour, answer, stray] of ANSWERS) {
  Deno.test(`PortTransport: a server that does ${behaviour} is understood, twice`, async () => {
    await withServer(behaviour, async (bench) => {
      assert.equal(await answered(bench), answer);
      assert.equal(await answered(bench), answer);
      const told = bench.told("mcp.connect").map((fields) => fields.stray).filter(Boolean);
      assert.deepEqual(told, stray);
    });
  });
}

for (const end of [false, true]) {
  Deno.test(`PortTransport: an answer over the line's bound, id at the ${end ? "end" : "start"}, is an error at once`, async () => {
    await withServer("huge", async (bench) => {
      const outcome = await callTool(bench, "hostile/act", { end });
      assert.ok(outcome.ok, JSON.stringify(outcome));
      assert.equal(outcome.value.isError, true);
      assert.match(JSON.stringify(outcome.value.parts), /17MiB is over the limit of 16MiB/);
      assert.equal(bench.told("limit.exceeded")[0]?.limit, "tool_line_bytes");
    });
  });
}

/** A transport over a port whose other end is the test's. */
function transportBench() {
  const { port1, port2 } = new MessageChannel();
  const transport = new PortTransport(port2, 1);
  const taken: Message[] = [];
  const sent: ServerPortMessage[] = [];
  transport.onmessage = (message: Message) => void taken.push(message);
  let heard: () => void = () => {};
  port1.onmessage = (event) => {
    sent.push(event.data);
    heard();
  };
  void transport.start();
  return {
    transport,
    taken,
    sent,
    write: (text: string | Uint8Array) =>
      port1.postMessage(typeof text === "string" ? encoder.encode(text) : text),
    exit: (code: number) =>
      port1.postMessage({ type: "exited", code, signal: null, stderr: "the end" }),
    /** Resolves when the transport has said something that fits. */
    said: async (fits: (message: ServerPortMessage) => boolean) => {
      while (!sent.some(fits)) await new Promise<void>((resolve) => heard = resolve);
    },
    close: () => {
      transport.release();
      port1.close();
    },
  };
}

Deno.test("PortTransport: lines split anywhere, batches and a last line without its end are taken", async () => {
  const bench = transportBench();
  const answer = (id: number) => JSON.stringify({ jsonrpc: "2.0", id, result: {} });
  const bytes = encoder.encode(`${answer(1)}\r\n\n[${answer(2)},${answer(3)}]\n${answer(4)}`);
  for (const byte of bytes) bench.write(new Uint8Array([byte]));
  bench.exit(0);
  assert.deepEqual(await bench.transport.exited, { code: 0, signal: null, stderr: "the end" });
  assert.deepEqual(bench.taken.map((message) => "id" in message && message.id), [1, 2, 3, 4]);
  assert.deepEqual(bench.transport.stray, { noise: 0, invalid: 0, oversized: 0 });
  await assert.rejects(bench.transport.send({ jsonrpc: "2.0", method: "x" }), { name: "NotSent" });
  bench.close();
});

Deno.test("PortTransport: a line at the bound is taken, one past it is answered as too large", async () => {
  const bench = transportBench();
  const frame = (id: number, bytes: number) => {
    const head = `{"jsonrpc":"2.0","id":${id},"result":{"t":"`;
    const tail = `"}}`;
    return head + "x".repeat(bytes - head.length - tail.length) + tail + "\n";
  };
  bench.write(frame(1, TOOL_LINE_BYTES_MAX));
  bench.write(frame(2, TOOL_LINE_BYTES_MAX + 1));
  bench.exit(0);
  await bench.transport.exited;
  const [first, second] = bench.taken;
  assert.ok(first && "result" in first);
  assert.ok(second && "error" in second && second.error.data === OVERSIZED);
  assert.equal(bench.transport.stray.oversized, 1);
  bench.close();
});

Deno.test("PortTransport: what was read is acknowledged, so that a flood waits in the pipe", async () => {
  const bench = transportBench();
  bench.write(new Uint8Array(PORT_WINDOW_BYTES / 4).fill(120));
  await bench.said((message) => "type" in message && message.type === "taken");
  assert.deepEqual(bench.sent, [{ type: "taken", bytes: PORT_WINDOW_BYTES / 4 }]);
  bench.close();
});

Deno.test("PortTransport: an end that we asked for is told apart from one that happened", async () => {
  for (const ours of [true, false]) {
    const bench = transportBench();
    let closed = 0;
    bench.transport.onclose = () => closed++;
    if (ours) {
      await bench.transport.close();
      await bench.said((message) => "type" in message && message.type === "close");
    }
    bench.exit(1);
    await bench.transport.exited;
    assert.equal(bench.transport.closedByUs, ours);
    assert.equal(closed, 1);
    bench.close();
  }
});

Deno.test("answeredId: the id is found at either end, and only of an answer", () => {
  const rows: [string, string, number | undefined][] = [
    ['{"jsonrpc":"2.0","id":7,"result":{"a', 'b"}}', 7],
    ['{ "jsonrpc": "2.0", "id": 12, "result": {', "}}", 12],
    ['{"id":3,"jsonrpc":"2.0","result":{', "}}", 3],
    ['{"result":{"content":[', ']},"jsonrpc":"2.0","id":5}', 5],
    ['{"result":{"content":[', ']},"id":6,"jsonrpc":"2.0"}\r', 6],
    ['{"result":{"content":[', ',"id":5}}', undefined],
    ['{"jsonrpc":"2.0","id":"s","result":{', "}}", undefined],
    ['{"jsonrpc":"2.0","id":4,"method":"sampling/createMessage","params":{', "}}", undefined],
    ['{"method":"x","params":{', '},"jsonrpc":"2.0","id":4}', undefined],
    ["yyyyyy", "yyyy", undefined],
  ];
  for (const [head, tail, id] of rows) assert.equal(answeredId(head, tail), id, head);
});

Deno.test("toMessage: answers with a malformed body are errors of their request, the rest is noise", () => {
  const bad = { code: -32603, message: "the server's answer has no result object" };
  const rows: [unknown, unknown][] = [
    [{ jsonrpc: "2.0", id: 1, result: "text" }, { jsonrpc: "2.0", id: 1, error: bad }],
    [{ jsonrpc: "2.0", id: 1 }, { jsonrpc: "2.0", id: 1, error: bad }],
    [{ jsonrpc: "2.0", id: 1, error: "bad" }, {
      jsonrpc: "2.0",
      id: 1,
      error: { code: -32603, message: "no message", data: undefined },
    }],
    [{ jsonrpc: "2.0", id: 1, error: { code: 1.5, message: "m" } }, {
      jsonrpc: "2.0",
      id: 1,
      error: { code: -32603, message: "m", data: undefined },
    }],
    [{ jsonrpc: "2.0", id: null, result: {} }, undefined],
    [{ jsonrpc: "1.0", id: 1, result: {} }, undefined],
    [[], undefined],
    [null, undefined],
    ["text", undefined],
  ];
  for (const [value, message] of rows) assert.deepEqual(toMessage(value), message);
});
