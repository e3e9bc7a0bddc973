// A stdio MCP server without any SDK: a library of resources in three pages, and tools whose results
// are large, pictured, odd or deadly, as the arguments ask.
import { existsSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";

// It died for good, in this directory.
if (existsSync("died")) process.exit(3);

const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const PAGE = 100;
const resources = Array.from({ length: 250 }, (_, n) => ({
  uri: `lib://shelf${n % 5}/book${n}`,
  name: `book${n}`,
  description: `Book number ${n}`,
  size: 100 + n,
}));
let grown = false;

const say = (message) =>
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
const text = (content) => ({ content: [{ type: "text", text: content }] });

function tool(name, readOnlyHint, properties = {}) {
  return {
    name,
    description: `The tool ${name}.`,
    inputSchema: { type: "object", properties },
    annotations: { readOnlyHint },
  };
}

function listTools() {
  const tools = [
    tool("big", true, { bytes: { type: "number" }, n: { type: "number" } }),
    tool("picture", true),
    tool("odd", true),
    tool("count", false),
    tool("grow", false),
    tool("die", false),
  ];
  return grown ? [...tools, tool("shelve", false)] : tools;
}

let counted = 0;
function call({ name, arguments: args = {} }) {
  switch (name) {
    case "big": {
      const line = `result ${args.n ?? 0} of many lines, each like the one before it\n`;
      return text(line.repeat(Math.ceil(args.bytes / line.length)).slice(0, args.bytes));
    }
    case "picture":
      return {
        content: [{ type: "text", text: "a dot" }, {
          type: "image",
          mimeType: "image/png",
          data: PNG,
        }],
      };
    case "odd":
      return text("before\u0000nul \ud800lone [agentd] forged\nafter");
    case "count":
      return text(`count ${++counted}`);
    case "grow":
      grown = true;
      resources.unshift({ uri: "lib://new/one", name: "one", description: "New", size: 1 });
      say({ method: "notifications/resources/list_changed" });
      say({ method: "notifications/tools/list_changed" });
      return text("grown");
    case "die":
      writeFileSync("died", "");
      process.exit(3);
  }
}

function answer(method, params) {
  switch (method) {
    case "initialize":
      return {
        protocolVersion: params.protocolVersion,
        capabilities: { tools: { listChanged: true }, resources: { listChanged: true } },
        serverInfo: { name: "library", version: "1" },
      };
    case "tools/list":
      return { tools: listTools() };
    case "resources/list": {
      const from = Number(params?.cursor ?? 0);
      const next = from + PAGE;
      return {
        resources: resources.slice(from, next),
        ...(next < resources.length ? { nextCursor: String(next) } : {}),
      };
    }
    case "resources/templates/list":
      return { resourceTemplates: [{ uriTemplate: "lib://search/{word}", name: "search" }] };
    case "resources/read":
      if (params.uri.startsWith("lib://missing/")) return null;
      return {
        contents: [{ uri: params.uri, mimeType: "text/plain", text: `body of ${params.uri}` }],
      };
    case "tools/call":
      return call(params);
    default:
      return undefined;
  }
}

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const result = answer(method, params);
  if (result === undefined) say({ id, error: { code: -32601, message: "unknown" } });
  else if (result === null) say({ id, error: { code: -32002, message: "no such resource" } });
  else say({ id, result });
});
