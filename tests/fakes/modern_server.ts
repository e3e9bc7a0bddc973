/**
 * A tool server of the protocol's second era only, over the SDK: on stdio, or over HTTP with its
 * port on the first line of stdout. A call of `change` makes its lists and resources change.
 */

import { createMcpHandler, InMemoryServerEventBus, McpServer } from "@modelcontextprotocol/server";
import { inputRequired } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

const mode = Deno.args[0];
const port = Number(Deno.args[1] ?? 0);
const bus = new InMemoryServerEventBus();
let version = 1;

function makeServer(): McpServer {
  const server = new McpServer({ name: "modern", version: "1.0.0" }, {
    capabilities: {
      tools: { listChanged: true },
      resources: { listChanged: true, subscribe: true },
    },
  });
  const text = (content: string) => ({ content: [{ type: "text" as const, text: content }] });
  server.registerTool("echo", {
    description: `Echoes, version ${version}`,
    inputSchema: z.object({ message: z.string() }),
  }, ({ message }) => text(message));
  server.registerTool("mirrored", {
    description: "Wants an argument in a header",
    inputSchema: z.object({ region: z.string().meta({ "x-mcp-header": "Region" }) }),
  }, ({ region }) => text(region));
  server.registerTool("ask", { description: "Asks a person" }, () =>
    inputRequired({
      inputRequests: {
        sure: inputRequired.elicit({
          message: "Sure?",
          requestedSchema: { type: "object", properties: { yes: { type: "boolean" } } },
        }),
      },
    }));
  server.registerTool("change", { description: "Changes" }, () => {
    version++;
    bus.publish({ kind: "tools_list_changed" });
    bus.publish({ kind: "resources_list_changed" });
    bus.publish({ kind: "resource_updated", uri: "mem://a" });
    bus.publish({ kind: "resource_updated", uri: "mem://unwatched" });
    if (mode === "stdio") {
      server.sendToolListChanged();
      server.sendResourceListChanged();
      void server.server.sendResourceUpdated({ uri: "mem://a" });
      void server.server.sendResourceUpdated({ uri: "mem://unwatched" });
    }
    return text("changed");
  });
  server.registerTool("exit", { description: "Ends the process" }, () => Deno.exit(5));
  server.registerResource("a", "mem://a", { description: "A" }, (uri) => ({
    contents: [{ uri: uri.href, text: `version ${version}` }],
  }));
  return server;
}

if (mode === "stdio") serveStdio(makeServer, { legacy: "reject" });
else {
  const handler = createMcpHandler(makeServer, { legacy: "reject", bus });
  Deno.serve({
    hostname: "127.0.0.1",
    port,
    onListen: ({ port }) => console.log(port),
  }, (request) => handler.fetch(request));
}
