import assert from "node:assert/strict";
import { realServer } from "../../tests/fakes/mcp_packages.ts";
import { callTool, hostBench, stdioServer } from "../../tests/fakes/tool_host.ts";

const never = new AbortController().signal;

Deno.test("createToolHost: without servers nothing is loaded and nothing offered", async () => {
  const bench = hostBench([]);
  assert.deepEqual(await bench.host.connect(never), {
    ok: true,
    value: { tools: [], resources: [] },
  });
  await bench.close();
});

Deno.test("createToolHost: a real server is listed, called, read and left", async () => {
  const bench = hostBench([
    stdioServer("every", ["node", await realServer("everything"), "stdio"]),
  ]);
  try {
    const connected = await bench.host.connect(never);
    assert.ok(connected.ok, JSON.stringify(connected));
    const names = connected.value.tools.map((tool) => tool.name);
    assert.ok(names.includes("every/echo"), names.join(" "));
    console.log(connected.value.tools.map((tool) => tool.wireName), connected.value.resources.length);
    console.log(await callTool(bench, "every/echo", { message: "hello" }));
    console.log(bench.lines);
  } finally {
    await bench.close();
  }
});
