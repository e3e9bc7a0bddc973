// A stdio tool server as anybody would write one: Node, the SDK, one tool that answers at once.
import { McpServer } from "@modelcontextprotocol/server";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

const server = new McpServer({ name: "bench", version: "1.0.0" });
server.registerTool("echo", {
  description: "Answers with its number",
  inputSchema: z.object({ n: z.number(), bytes: z.number().optional() }),
}, ({ n, bytes }) => ({
  content: [{
    type: "text",
    text: `number ${n}` + (bytes ? "\n" + `${n} `.repeat(bytes / 4) : ""),
  }],
}));
await server.connect(new StdioServerTransport());
