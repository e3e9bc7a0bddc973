import assert from "node:assert/strict";
import { Servers } from "../broker/servers.ts";
import { Vault } from "../core/secret.ts";
import { systemClock } from "../sys/clock.ts";
import { systemProcess } from "../sys/process.ts";
import { systemProgram } from "../sys/self.ts";
import { startServer } from "../../tests/fakes/server_process.ts";
import { hostileServer, httpServer } from "../../tests/fakes/tool_host.ts";
import type { WorkerReport, WorkerTask } from "../../tests/fakes/tool_host_worker.ts";
import type { AgentPayload, ServerSettings } from "../wire/payload.ts";

const root = new URL("../../", import.meta.url).pathname;
const script = new URL("../../tests/hostile/http_server.mjs", import.meta.url).pathname;

async function runInWorker(
  servers: ServerSettings[],
  net: string[],
  calls: string[],
): Promise<WorkerReport> {
  const broker = new Servers({
    payload: { servers, workingDirectory: root } as unknown as AgentPayload,
    vault: new Vault(),
    environment: { PATH: Deno.env.get("PATH") ?? "" },
    clock: systemClock,
    process: systemProcess,
    program: systemProgram(new URL("../../main.ts", import.meta.url).href, root),
    telemetry: { emit: () => {} },
  });
  const worker = new Worker(new URL("../../tests/fakes/tool_host_worker.ts", import.meta.url), {
    type: "module",
    deno: {
      permissions: {
        net,
        read: false,
        write: false,
        run: false,
        env: false,
        ffi: false,
        sys: false,
        import: false,
      },
    },
  });
  try {
    const ports: WorkerTask["ports"] = {};
    for (const server of servers) {
      if (server.kind === "http") continue;
      const opened = await broker.open(server.name);
      assert.ok(opened.ok);
      ports[server.name] = opened.value.port;
    }
    return await new Promise((resolve, reject) => {
      worker.onmessage = (event) => resolve(event.data);
      worker.onerror = (event) => {
        event.preventDefault();
        reject(new Error(event.message));
      };
      worker.postMessage({ servers, ports, calls } satisfies WorkerTask, Object.values(ports));
    });
  } finally {
    await broker.closeAll();
    worker.terminate();
  }
}

Deno.test("createToolHost: runs in a Worker that may do nothing but reach its HTTP servers", async () => {
  const server = await startServer(["node", script]);
  const host = `127.0.0.1:${server.port}`;
  const stdio = hostileServer("plain");
  const web = httpServer("web", `http://${host}/mcp`);
  const report = await runInWorker([stdio, web], [host], ["hostile/act", "web/act"]);
  assert.equal(report.failure, null);
  const denied = ["read", "write", "run", "env", "ffi", "sys"];
  for (const kind of denied) assert.notEqual(report.permissions[kind], "granted", kind);
  assert.match(JSON.stringify(report.outcomes["hostile/act"]), /start 1/);
  assert.match(JSON.stringify(report.outcomes["web/act"]), /did act/);
  await server.stop();
});

Deno.test("createToolHost: a server outside the Worker's grant is refused by Deno", async () => {
  const server = await startServer(["node", script]);
  const web = httpServer("web", `http://127.0.0.1:${server.port}/mcp`);
  const report = await runInWorker([web], ["127.0.0.1:1"], []);
  assert.match(JSON.stringify(report.failure), /Requires net access to/);
  await server.stop();
});
