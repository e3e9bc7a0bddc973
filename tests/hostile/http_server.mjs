// A streamable-HTTP MCP server, by hand, whose tools are the ways in which HTTP fails. It prints its
// port on the first line of stdout. Arguments: what it does wrong from the start, if anything.
import { createServer } from "node:http";
import { randomUUID } from "node:crypto";

const behaviour = process.argv[2] ?? "";
const sessions = new Map();
const calls = {};
let sessionsMade = 0;
const seen = { methods: [], authorization: [], refusals: 0 };

function tool(name, annotations) {
  const description = behaviour === "changes" ? `${name}, session ${sessionsMade}` : name;
  return { name, description, inputSchema: { type: "object" }, annotations };
}
const TOOLS = [
  "act",
  "bad-gateway",
  "reset",
  "sse",
  "sse-cut",
  "sse-reset",
  "sse-garbage",
  "forget",
  "redirect",
  "redirect-inside",
  "huge-json",
  "huge-sse",
  "html",
  "not-json",
  "busy-once",
  "silent",
  "seen",
  "update",
  "drop-streams",
];
const LOOKS = ["look", "flaky-look", "reset-look", "silent-look"];

function text(content) {
  return { content: [{ type: "text", text: content }] };
}
function json(response, status, body, headers = {}) {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(body));
}
function answer(response, id, result, headers) {
  json(response, 200, { jsonrpc: "2.0", id, result }, headers);
}
function openSse(response) {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.flushHeaders();
}
function event(response, message) {
  response.write(`event: message\ndata: ${JSON.stringify(message)}\n\n`);
}

function call(request, response, id, { name, arguments: args, _meta }) {
  calls[name] = (calls[name] ?? 0) + 1;
  switch (name) {
    case "bad-gateway":
      return json(response, 502, { message: "upstream is gone" });
    case "reset":
    case "reset-look":
      return request.socket.resetAndDestroy();
    case "flaky-look":
      if (calls[name] <= 2) return json(response, 502, {});
      return answer(response, id, text(`after ${calls[name]} calls`));
    case "busy-once":
      if (calls[name] === 1) return json(response, 429, {}, { "retry-after": "1" });
      return answer(response, id, text(`after ${calls[name]} calls`));
    case "silent":
    case "silent-look":
      return;
    case "sse":
      openSse(response);
      event(response, {
        jsonrpc: "2.0",
        method: "notifications/progress",
        params: { progressToken: _meta.progressToken, progress: 1 },
      });
      return setTimeout(() => {
        event(response, { jsonrpc: "2.0", id, result: text("streamed") });
        response.end();
      }, 20);
    case "sse-cut":
      openSse(response);
      response.write(": nothing yet\n\n");
      return response.end();
    case "sse-reset":
      openSse(response);
      response.write(": nothing yet\n\n");
      return setTimeout(() => request.socket.resetAndDestroy(), 20);
    case "sse-garbage":
      openSse(response);
      response.write("data: {broken\n\n");
      response.write('data: {"jsonrpc":"2.0","id":"x"}\n\n');
      return response.end();
    case "forget":
      sessions.clear();
      return answer(response, id, text("forgotten"));
    case "redirect":
      response.writeHead(307, { location: `http://127.0.0.1:${args.port}/stolen` });
      return response.end();
    case "redirect-inside":
      if (request.url === "/mcp") {
        response.writeHead(307, { location: "/elsewhere" });
        return response.end();
      }
      return answer(response, id, text(`at ${request.url}`));
    case "huge-json":
      response.writeHead(200, { "content-type": "application/json" });
      response.write(`{"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":"`);
      for (let i = 0; i < 17; i++) response.write("x".repeat(1024 * 1024));
      return response.end('"}]}}');
    case "huge-sse":
      openSse(response);
      response.write(
        `data: {"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":"`,
      );
      for (let i = 0; i < 17; i++) response.write("x".repeat(1024 * 1024));
      return response.end('"}]}}\n\n');
    case "html":
      response.writeHead(200, { "content-type": "text/html" });
      return response.end("<html>login</html>");
    case "not-json":
      response.writeHead(200, { "content-type": "application/json" });
      return response.end("{broken");
    case "seen":
      return answer(response, id, text(JSON.stringify({ calls, ...seen })));
    case "update":
      for (const session of sessions.values()) {
        if (!session.stream) continue;
        for (const uri of session.watched) {
          event(session.stream, {
            jsonrpc: "2.0",
            method: "notifications/resources/updated",
            params: { uri },
          });
        }
      }
      return answer(response, id, text("updated"));
    case "drop-streams":
      for (const session of sessions.values()) session.stream?.end();
      return answer(response, id, text("dropped"));
    default:
      return answer(response, id, text(`did ${name}`));
  }
}

function take(request, response, message) {
  const { id, method, params } = message;
  seen.methods.push(method);
  if (method === "initialize") {
    const session = randomUUID();
    sessionsMade++;
    sessions.set(session, { watched: new Set(), stream: null });
    return answer(response, id, {
      protocolVersion: params.protocolVersion,
      capabilities: {
        tools: { listChanged: true },
        resources: { subscribe: true, listChanged: true },
      },
      serverInfo: { name: "http", version: "1" },
    }, { "mcp-session-id": session });
  }
  const session = sessions.get(request.headers["mcp-session-id"]);
  if (!session) {
    return json(response, method === "server/discover" ? 400 : 404, {
      jsonrpc: "2.0",
      id: null,
      error: { code: -32001, message: "Session not found" },
    });
  }
  if (id === undefined) return response.writeHead(202).end();
  switch (method) {
    case "tools/list":
      return answer(response, id, {
        tools: [
          ...TOOLS.map((name) => tool(name, {})),
          ...LOOKS.map((name) => tool(name, { readOnlyHint: true })),
        ],
      });
    case "resources/list":
      return answer(response, id, { resources: [{ uri: "mem://a", name: "a" }] });
    case "resources/templates/list":
      return answer(response, id, { resourceTemplates: [] });
    case "resources/subscribe":
      session.watched.add(params.uri);
      return answer(response, id, {});
    case "resources/unsubscribe":
      session.watched.delete(params.uri);
      return answer(response, id, {});
    case "tools/call":
      return call(request, response, id, params);
    default:
      return json(response, 200, { jsonrpc: "2.0", id, error: { code: -32601, message: method } });
  }
}

const server = createServer((request, response) => {
  seen.authorization.push(request.headers.authorization ?? null);
  if (behaviour === "unauthorized") {
    return json(response, 401, { message: `no: ${request.headers.authorization}` });
  }
  if (behaviour === "unavailable") return json(response, 503, {});
  if (behaviour === "mute") return;
  if (request.method === "GET") {
    const session = sessions.get(request.headers["mcp-session-id"]);
    if (!session) return response.writeHead(404).end();
    openSse(response);
    session.stream = response;
    return;
  }
  if (request.method === "DELETE") {
    sessions.delete(request.headers["mcp-session-id"]);
    return response.writeHead(200).end();
  }
  if (behaviour === "wants-length" && request.headers["content-length"] === undefined) {
    seen.refusals++;
    return json(response, 411, {});
  }
  let body = "";
  request.on("data", (chunk) => body += chunk);
  request.on("end", () => take(request, response, JSON.parse(body)));
});
server.listen(Number(process.argv[3] ?? 0), "127.0.0.1", () => console.log(server.address().port));
process.stdin.resume().on("end", () => process.exit(0));
