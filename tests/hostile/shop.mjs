// A shop over stdio, raw JSON-RPC: every charge is a line of the ledger file before anything else
// happens. What happens then is the order's `fault`. A key that was charged already is not charged
// again by `pay`; `order` charges whenever it is called.
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const ledger = process.argv[2];
const send = (message) =>
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
const charges = () =>
  existsSync(ledger) ? readFileSync(ledger, "utf8").trim().split("\n").filter(Boolean) : [];
const schema = {
  type: "object",
  properties: { id: { type: "string" }, fault: { type: "string" } },
  required: ["id"],
};

function call(id, params) {
  const { name, arguments: args, _meta } = params;
  const key = _meta?.["agentd/idempotency_key"];
  if (name === "charges") {
    return send({
      id,
      result: { content: [{ type: "text", text: charges().join("\n") || "none" }] },
    });
  }
  if (args.fault === "die_before") process.exit(1);
  const known = name === "pay" && charges().some((line) => line.endsWith(` ${key}`));
  if (!known) appendFileSync(ledger, `${args.id} ${key}\n`);
  // A fault happens once: what is sent again under the same key is answered.
  if (!known && args.fault === "die_after") process.exit(1);
  if (!known && args.fault === "silence") return;
  if (!known && args.fault === "noise") process.stdout.write("\u0000\xff not json {\n");
  if (args.fault === "error") {
    return send({
      id,
      result: { isError: true, content: [{ type: "text", text: "out of stock" }] },
    });
  }
  if (args.fault === "protocol") return send({ id, error: { code: -32000, message: "busy" } });
  send({ id, result: { content: [{ type: "text", text: `charged ${args.id}` }] } });
}

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === "initialize") {
    send({
      id,
      result: {
        protocolVersion: params.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: "shop", version: "1" },
      },
    });
  } else if (method === "tools/list") {
    const tools = ["order", "pay"].map((name) => ({
      name,
      description: name,
      inputSchema: schema,
    }));
    tools.push({
      name: "charges",
      description: "what was charged",
      inputSchema: { type: "object" },
      annotations: { readOnlyHint: true },
    });
    send({ id, result: { tools } });
  } else if (method === "tools/call") call(id, params);
  else if (id !== undefined) send({ id, error: { code: -32601, message: "unknown" } });
});
