/** A tool server that gives its token away wherever it can: as a result, in an error, on stderr. */

const token = Deno.env.get("SERVER_TOKEN") ?? "no token";
console.error(`starting with ${token}`);

let pending = "";
for await (const chunk of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
  pending += chunk;
  const lines = pending.split("\n");
  pending = lines.pop()!;
  for (const line of lines) {
    const { id, method, params } = JSON.parse(line);
    if (id !== undefined) {
      console.log(JSON.stringify({ jsonrpc: "2.0", id, ...answer(method, params) }));
    }
  }
}

function answer(method: string, params: { name?: string; protocolVersion?: string }): object {
  switch (method) {
    case "initialize": {
      const serverInfo = { name: "token", version: "1.0.0" };
      const protocolVersion = params.protocolVersion ?? "2025-06-18";
      return { result: { protocolVersion, capabilities: { tools: {} }, serverInfo } };
    }
    case "tools/list": {
      const inputSchema = { type: "object", properties: {} };
      return { result: { tools: ["tell", "fail"].map((name) => ({ name, inputSchema })) } };
    }
    case "tools/call":
      return params.name === "tell"
        ? { result: { content: [{ type: "text", text: `the token is ${token}` }] } }
        : { error: { code: -32000, message: `refused for ${token}` } };
    default:
      return { error: { code: -32601, message: `no ${method}` } };
  }
}
