/**
 * A stdio MCP server over resources that change on command. Its directory, the first argument, holds
 * `resources.json` (URI to version; whoever changes it, the server reads it anew each time) and one
 * file per living process, named by its pid, with the port on which it takes commands: POST /notify
 * with a JSON list of URIs, POST /listed, POST /exit, GET /subscribed.
 *
 * The second argument `no-subscribe`: without that capability.
 */

import { LineSplitter } from "../../src/wire/lines.ts";

// deno-lint-ignore no-explicit-any
type Loose = any;

if (import.meta.main) await serve(Deno.args[0]!, Deno.args[1] !== "no-subscribe");

async function serve(directory: string, subscribe: boolean): Promise<void> {
  const subscribed = new Set<string>();
  const send = (message: Loose) => writeLine(JSON.stringify({ jsonrpc: "2.0", ...message }));
  const commands = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    async (request) => {
      const { pathname } = new URL(request.url);
      if (pathname === "/exit") Deno.exit(3);
      if (pathname === "/listed") send({ method: "notifications/resources/list_changed" });
      if (pathname === "/notify") {
        for (const uri of await request.json()) {
          if (!subscribed.has(uri)) continue;
          send({ method: "notifications/resources/updated", params: { uri } });
        }
      }
      return Response.json([...subscribed]);
    },
  );
  announce(directory, commands.addr.port);
  const splitter = new LineSplitter(1024 * 1024);
  for await (const chunk of Deno.stdin.readable) {
    for (const event of splitter.push(chunk)) {
      if (event.type !== "line" || event.text.trim() === "") continue;
      const message = JSON.parse(event.text);
      if (message.id === undefined || message.method === undefined) continue;
      const result = answer(message, { versions: read(directory), subscribed, subscribe });
      send(
        result === undefined
          ? { id: message.id, error: { code: -32601, message: "method not found" } }
          : { id: message.id, result },
      );
    }
  }
  Deno.exit(0);
}

function read(directory: string): Map<string, number> {
  return new Map(Object.entries(JSON.parse(Deno.readTextFileSync(`${directory}/resources.json`))));
}

function announce(directory: string, port: number): void {
  const draft = `${directory}/.${Deno.pid}`;
  Deno.writeTextFileSync(draft, String(port));
  Deno.renameSync(draft, `${directory}/${Deno.pid}`);
}

function answer(
  { method, params }: Loose,
  state: { versions: Map<string, number>; subscribed: Set<string>; subscribe: boolean },
): Loose {
  switch (method) {
    case "initialize":
      return {
        protocolVersion: params.protocolVersion,
        capabilities: {
          tools: {},
          resources: { subscribe: state.subscribe, listChanged: true },
        },
        serverInfo: { name: "updating", version: "1" },
      };
    case "ping":
      return {};
    case "tools/list":
      return {
        tools: [{
          name: "version",
          description: "The version of a resource.",
          inputSchema: {
            type: "object",
            properties: { uri: { type: "string" } },
            required: ["uri"],
          },
          annotations: { readOnlyHint: true },
        }],
      };
    case "tools/call": {
      const version = state.versions.get(params.arguments.uri) ?? -1;
      return { content: [{ type: "text", text: `version ${version} of ${params.arguments.uri}` }] };
    }
    case "resources/list":
      return {
        resources: [...state.versions.keys()].map((uri) => ({
          uri,
          name: uri,
          mimeType: "text/plain",
        })),
      };
    case "resources/templates/list":
      return { resourceTemplates: [] };
    case "resources/read":
      return {
        contents: [{
          uri: params.uri,
          mimeType: "text/plain",
          text: `version ${state.versions.get(params.uri) ?? -1}`,
        }],
      };
    case "resources/subscribe":
      if (!state.subscribe) return undefined;
      state.subscribed.add(params.uri);
      return {};
    case "resources/unsubscribe":
      state.subscribed.delete(params.uri);
      return {};
  }
  return undefined;
}

function writeLine(text: string): void {
  const bytes = new TextEncoder().encode(text + "\n");
  for (let at = 0; at < bytes.length;) at += Deno.stdout.writeSync(bytes.subarray(at));
}
