/**
 * A stdio MCP server that misbehaves in one way, named by its first argument; a second one may name
 * a file in which it counts its starts. Without any SDK: what it gets wrong, it gets wrong by hand.
 */

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
interface Request {
  id?: number | string;
  method: string;
  // deno-lint-ignore no-explicit-any
  params?: any;
}

const behaviour = Deno.args[0] ?? "";
const counter = Deno.args[1];
const encoder = new TextEncoder();

function raw(bytes: Uint8Array): void {
  let written = 0;
  while (written < bytes.length) written += Deno.stdout.writeSync(bytes.subarray(written));
}
function line(text: string): void {
  raw(encoder.encode(text + "\n"));
}
function say(message: Json): void {
  line(JSON.stringify(message));
}
function answer(id: Request["id"], result: Json): void {
  say({ jsonrpc: "2.0", id: id!, result });
}
function fault(id: Request["id"], code: number, message: string): void {
  say({ jsonrpc: "2.0", id: id!, error: { code, message } });
}
function text(content: string): Json {
  return { content: [{ type: "text", text: content }] };
}
function starts(): number {
  if (counter === undefined) return 1;
  let before = 0;
  try {
    before = Number(Deno.readTextFileSync(counter));
  } catch { /* the first start */ }
  return before;
}
function countStart(): void {
  if (counter !== undefined) Deno.writeTextFileSync(counter, String(starts() + 1));
}

const SCHEMA: Json = { type: "object", properties: {} };
function tool(name: string, extra: { [key: string]: Json } = {}): Json {
  return { name, description: `The tool ${name}.`, inputSchema: SCHEMA, ...extra };
}

/** Tools of a page, by cursor. */
function listTools(cursor: string | undefined): Json {
  const page = cursor === undefined ? 0 : Number(cursor);
  switch (behaviour) {
    case "four-pages-loud":
      // Ten megabytes in all, more than any pipe holds.
      for (let i = 0; i < 40; i++) Deno.stderr.writeSync(new Uint8Array(64 * 1024).fill(120));
      return {
        tools: [tool(`page${page}`)],
        ...(page < 3 ? { nextCursor: String(page + 1) } : {}),
      };
    case "cursor-circle":
      return { tools: [tool(`page${page}`)], nextCursor: page === 0 ? "1" : "1" };
    case "cursor-endless":
      return { tools: [tool(`page${page}`)], nextCursor: String(page + 1) };
    case "too-many":
      return { tools: Array.from({ length: 600 }, (_, i) => tool(`t${i}`)) };
    case "bad-metadata":
      return {
        tools: [
          tool("good", { description: "clean\u0007ed\u202e up" }),
          tool("no-schema", { inputSchema: null }),
          tool("string-schema", { inputSchema: { type: "string" } }),
          tool("good"),
          tool("huge-schema", {
            inputSchema: {
              type: "object",
              properties: { a: { type: "string", enum: ["x".repeat(70_000)] } },
            },
          }),
          tool("wordy-schema", {
            inputSchema: {
              type: "object",
              properties: {
                description: { type: "string", title: "t\u0007" },
                ...Object.fromEntries(
                  Array.from(
                    { length: 30 },
                    (_, i) => [`p${i}`, { description: "w".repeat(9_000) }],
                  ),
                ),
              },
            },
          }),
          tool("long", { description: "d".repeat(10_000) }),
          tool("bad\u0000name"),
          { description: "no name", inputSchema: SCHEMA },
          "not even an object",
        ],
      };
    case "changes-description":
      return { tools: [tool("act", { description: `Version ${starts()}.` }), tool("crash")] };
    case "shadows":
      return { tools: [tool("task_refuse"), tool("a.b"), tool("a_b"), tool("n".repeat(80))] };
    default:
      return {
        tools: [
          tool("act"),
          tool("look", { annotations: { readOnlyHint: true } }),
          tool("cancelled"),
          tool("crash"),
          tool("crash-look", { annotations: { readOnlyHint: true } }),
        ],
      };
  }
}

function call(request: Request): void {
  const { id, params } = request;
  const name: string = params.name;
  if (name.startsWith("crash")) Deno.exit(7);
  switch (behaviour) {
    case "answers-twice":
      answer(id, text("first"));
      return answer(id, text("second"));
    case "wrong-ids":
      answer(999_999, text("for nobody"));
      answer("also nobody", text("for nobody"));
      return answer(id, text("right"));
    case "noise":
      line("Listening on nothing...");
      line('{"not": "json-rpc"}');
      line("{ broken json");
      line("[1, 2, 3]");
      return answer(id, text("after the noise"));
    case "flood":
      for (let i = 0; i < 200; i++) line("y".repeat(100_000));
      return answer(id, text("after the flood"));
    case "invalid-utf8-between":
      raw(new Uint8Array([0xff, 0xfe, 0x80, 10]));
      return answer(id, text("after the bytes"));
    case "invalid-utf8-inside": {
      const bytes = encoder.encode(
        JSON.stringify({ jsonrpc: "2.0", id: id!, result: text("broken: ?!") }) + "\n",
      );
      bytes[bytes.indexOf(63)] = 0xff;
      return raw(bytes);
    }
    case "huge": {
      // Over the line's bound; the id stands at the start, as in most servers, or at the end.
      const head = params.arguments.end === true
        ? '{"result":{"content":[{"type":"text","text":"'
        : `{"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":"`;
      raw(encoder.encode(head));
      const mebibyte = new Uint8Array(1024 * 1024).fill(120);
      for (let i = 0; i < 17; i++) raw(mebibyte);
      return line(
        params.arguments.end === true ? `"}]},"jsonrpc":"2.0","id":${id}}` : `"}]}}`,
      );
    }
    case "malformed-result":
      return answer(id, params.arguments.how === "string" ? "text" : { content: "text" });
    case "malformed-error":
      return say({ jsonrpc: "2.0", id: id!, error: "no object" });
    case "error":
      return fault(id, -32602, "Bad\u0007 arguments");
    case "silent":
      if (params.arguments.answer === true) return answer(id, text("answered"));
      return;
    case "asks-person":
      say({ jsonrpc: "2.0", id: "q1", method: "elicitation/create", params: { message: "Sure?" } });
      say({ jsonrpc: "2.0", id: "q2", method: "sampling/createMessage", params: {} });
      pendingCall = request;
      return;
    case "progress": {
      let sent = 0;
      const total = Number(params.arguments.ticks);
      const timer = setInterval(() => {
        if (sent++ < total) {
          say({
            jsonrpc: "2.0",
            method: "notifications/progress",
            params: { progressToken: params._meta.progressToken, progress: sent },
          });
          return;
        }
        clearInterval(timer);
        answer(id, text("at last"));
      }, Number(params.arguments.everyMs));
      return;
    }
    case "meta":
      return answer(id, text(JSON.stringify(params._meta)));
    case "changes-list":
      say({ jsonrpc: "2.0", method: "notifications/tools/list_changed" });
      say({ jsonrpc: "2.0", method: "notifications/tools/list_changed" });
      say({ jsonrpc: "2.0", method: "notifications/resources/list_changed" });
      return answer(id, text("changed"));
    case "floods-changes":
      for (let i = 0; i < 10_000; i++) {
        say({ jsonrpc: "2.0", method: "notifications/tools/list_changed" });
      }
      announced = true;
      return answer(id, text("flooded"));
    case "changes-description":
      return answer(id, text(`version ${starts()}`));
    default:
      return answer(id, text(`start ${starts()}`));
  }
}

let pendingCall: Request | undefined;
let announced = false;
const refusals: number[] = [];
const cancelled: Json[] = [];

function take(message: Request & { error?: { code: number } }): void {
  if (message.method === undefined) {
    refusals.push(message.error?.code ?? 0);
    if (refusals.length === 2) answer(pendingCall?.id, text(`refused: ${refusals.join(" ")}`));
    return;
  }
  switch (message.method) {
    case "initialize":
      if (behaviour === "never-initializes") return;
      if (behaviour === "rejects-initialize") return fault(message.id, -32600, "not today");
      return answer(message.id, {
        protocolVersion: message.params.protocolVersion,
        capabilities: {
          ...(behaviour === "no-tools" ? {} : { tools: { listChanged: true } }),
          ...(behaviour === "watched" || behaviour === "changes-list" || behaviour === "no-tools"
            ? { resources: { subscribe: true, listChanged: true } }
            : {}),
        },
        serverInfo: { name: "hostile", version: "1" },
      });
    case "tools/list":
      if (behaviour === "no-tools") return fault(message.id, -32601, "asked for tools");
      if (behaviour === "dies-while-listed") Deno.exit(9);
      if (announced) return fault(message.id, -32603, "cannot list");
      if (behaviour === "lists-nonsense") return answer(message.id, { tools: "none" });
      return answer(message.id, listTools(message.params?.cursor));
    case "resources/list":
      return answer(message.id, {
        resources: [
          { uri: "mem://one", name: "One", description: "The\u0007 first", size: 3 },
          { uri: "file:///etc/passwd", name: "Passwords" },
          { uri: "bad\u0000uri", name: "Bad" },
        ],
      });
    case "resources/templates/list":
      return fault(message.id, -32601, "no templates");
    case "resources/read":
      return answer(message.id, {
        contents: [{ uri: message.params.uri, text: `content of ${message.params.uri}` }],
      });
    case "resources/subscribe":
      answer(message.id, {});
      say({
        jsonrpc: "2.0",
        method: "notifications/resources/updated",
        params: { uri: message.params.uri },
      });
      return say({
        jsonrpc: "2.0",
        method: "notifications/resources/updated",
        params: { uri: "mem://never-watched" },
      });
    case "resources/unsubscribe":
      return answer(message.id, {});
    case "notifications/cancelled":
      cancelled.push(message.params.requestId);
      return;
    case "tools/call":
      if (message.params.name === "cancelled") {
        return answer(message.id, text(JSON.stringify(cancelled)));
      }
      return call(message);
    default:
      if (message.id !== undefined) fault(message.id, -32601, "unknown method");
  }
}

if (behaviour === "dies-at-once") {
  Deno.stderr.writeSync(encoder.encode("no licence found\n"));
  Deno.exit(3);
}
countStart();
if (behaviour === "never-initializes") {
  Deno.stderr.writeSync(encoder.encode("waiting for a database\n"));
}
let held = "";
for await (const chunk of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
  held += chunk;
  const lines = held.split("\n");
  held = lines.pop()!;
  for (const each of lines) if (each.trim() !== "") take(JSON.parse(each));
}
