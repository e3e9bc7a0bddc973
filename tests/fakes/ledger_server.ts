/**
 * A stdio MCP server whose effects can be counted: `append` adds a line `item=K key=…` to the file
 * named by the first argument, `list` reads it. Without any SDK, so that it starts quickly.
 *
 *     deno run --no-prompt --allow-read=FILE --allow-write=FILE tests/fakes/ledger_server.ts FILE
 */

// deno-lint-ignore no-explicit-any
type Loose = any;

const path = Deno.args[0]!;
const encoder = new TextEncoder();

function say(message: Loose): void {
  const bytes = encoder.encode(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
  for (let rest = bytes; rest.length > 0;) rest = rest.subarray(Deno.stdout.writeSync(rest));
}

const TOOLS = [
  {
    name: "append",
    description: "Adds an item to the ledger.",
    inputSchema: {
      type: "object",
      properties: { item: { type: "integer" } },
      required: ["item"],
    },
  },
  {
    name: "list",
    description: "Lists the ledger.",
    inputSchema: { type: "object", properties: { all: { type: "boolean" } } },
    annotations: { readOnlyHint: true },
  },
];

function call({ name, arguments: args, _meta: meta }: Loose): string {
  if (name === "list") {
    try {
      return Deno.readTextFileSync(path);
    } catch {
      return "(empty)";
    }
  }
  const line = `item=${args.item} key=${meta?.["agentd/idempotency_key"]}\n`;
  Deno.writeTextFileSync(path, line, { append: true });
  return `appended ${args.item}`;
}

function take({ id, method, params }: Loose): void {
  switch (method) {
    case "initialize":
      return say({
        id,
        result: {
          protocolVersion: params.protocolVersion,
          capabilities: { tools: {} },
          serverInfo: { name: "ledger", version: "1" },
        },
      });
    case "tools/list":
      return say({ id, result: { tools: TOOLS } });
    case "tools/call":
      return say({ id, result: { content: [{ type: "text", text: call(params) }] } });
    default:
      if (id !== undefined) say({ id, error: { code: -32601, message: "unknown method" } });
  }
}

let held = "";
for await (const chunk of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
  held += chunk;
  const lines = held.split("\n");
  held = lines.pop()!;
  for (const each of lines) if (each.trim() !== "") take(JSON.parse(each));
}
