// A stdio MCP server without any SDK whose answers are nested as deep as its argument says.
import { createInterface } from "node:readline";

const LEVELS = Number(process.argv[2]);
const DEEP = "[".repeat(LEVELS) + "]".repeat(LEVELS);

const answer = (id, result) =>
  process.stdout.write(`{"jsonrpc":"2.0","id":${id},"result":${result}}\n`);

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === "initialize") {
    const { protocolVersion } = params;
    const info = { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "b" } };
    info.serverInfo.version = "1";
    answer(id, JSON.stringify(info));
  } else if (method === "tools/list") {
    const tools = ["structured", "text", "meta"].map((name) => ({
      name,
      inputSchema: { type: "object", properties: { value: {}, name: { type: "string" } } },
    }));
    const schema = `{"type":"object","properties":{"deep":{"enum":${DEEP}}}}`;
    const last = `{"name":"schema","inputSchema":${schema}}`;
    answer(id, `{"tools":${JSON.stringify(tools).replace(/\]$/, `,${last}]`)}}`);
  } else if (method === "tools/call") {
    const text = JSON.stringify(params.name === "text" ? `{"a":${DEEP}}` : "shallow");
    const more = params.name === "meta"
      ? `"_meta":{"a":${DEEP}}`
      : `"structuredContent":{"a":${DEEP}}`;
    answer(id, `{"content":[{"type":"text","text":${text}}],${more}}`);
  } else if (id !== undefined) {
    const error = { code: -32601, message: "no such method" };
    process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, error }) + "\n");
  }
});
