// The bare script that agentd is compared with: fetch and the MCP client, no runtime. Arguments: the
// model's base URL and the tool server.
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const [url, server] = process.argv.slice(2);
const client = new Client({ name: "bare", version: "1.0.0" });
await client.connect(new StdioClientTransport({ command: process.execPath, args: [server] }));
const tools = (await client.listTools()).tools.map((tool) => ({
  type: "function",
  function: { name: tool.name, description: tool.description, parameters: tool.inputSchema },
}));
const messages = [{ role: "user", content: "Count." }];
for (;;) {
  const reply = await fetch(`${url}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "bench", messages, tools }),
  });
  const { message } = (await reply.json()).choices[0];
  messages.push(message);
  if (!message.tool_calls) {
    console.log(message.content);
    break;
  }
  for (const call of message.tool_calls) {
    const result = await client.callTool({
      name: call.function.name,
      arguments: JSON.parse(call.function.arguments),
    });
    messages.push({ role: "tool", tool_call_id: call.id, content: result.content[0].text });
  }
}
await client.close();
