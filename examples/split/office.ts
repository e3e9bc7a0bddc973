/**
 * Three small tool servers in one file, on stdio: a page of a stranger, a vault, an outgoing mail box.
 *
 *     deno run --no-prompt [--allow-read=FILE] [--allow-write=FILE] office.ts web|vault|mail FILE
 *
 * `web` shows FILE, `vault` hands out the customer number in FILE, `mail` appends to FILE.
 */

interface Request {
  id?: number | string;
  method: string;
  params?: { name?: string; arguments?: Record<string, string>; protocolVersion?: string };
}

const [kind, file] = Deno.args as [keyof typeof TOOLS, string];

const text = { type: "string" };
const TOOLS = {
  web: {
    name: "read_page",
    description: "The page that a customer sent.",
    inputSchema: { type: "object", properties: {} },
    call: () => Deno.readTextFileSync(file),
  },
  vault: {
    name: "customer_number",
    description: "The customer's number. Confidential.",
    inputSchema: { type: "object", properties: {} },
    call: () => Deno.readTextFileSync(file),
  },
  mail: {
    name: "send",
    description: "Sends a mail.",
    inputSchema: {
      type: "object",
      properties: { to: text, body: text },
      required: ["to", "body"],
    },
    call: ({ to, body }: Record<string, string>) => {
      Deno.writeTextFileSync(file, JSON.stringify({ to, body }) + "\n", { append: true });
      return "sent";
    },
  },
};

function answer({ method, params }: Request): unknown {
  const { call, ...tool } = TOOLS[kind];
  switch (method) {
    case "initialize":
      return {
        protocolVersion: params?.protocolVersion ?? "2025-06-18",
        capabilities: { tools: {} },
        serverInfo: { name: kind, version: "1.0.0" },
      };
    case "tools/list":
      return { tools: [tool] };
    case "tools/call":
      return { content: [{ type: "text", text: call(params?.arguments ?? {}) }] };
    case "ping":
      return {};
    default:
      return undefined;
  }
}

for await (const line of lines(Deno.stdin.readable)) {
  const request = JSON.parse(line) as Request;
  if (request.id === undefined) continue;
  const result = answer(request);
  const reply = result === undefined
    ? { error: { code: -32601, message: `no method ${request.method}` } }
    : { result };
  console.log(JSON.stringify({ jsonrpc: "2.0", id: request.id, ...reply }));
}

async function* lines(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  let pending = "";
  for await (const chunk of stream.pipeThrough(new TextDecoderStream())) {
    pending += chunk;
    const parts = pending.split("\n");
    pending = parts.pop()!;
    yield* parts.filter((part) => part.trim() !== "");
  }
}
