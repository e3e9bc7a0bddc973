/** A tool host in a Worker, as in an agent: its port to the broker is lent by the test. */

import { Vault } from "../../src/core/secret.ts";
import { createToolHost } from "../../src/mcp/tool_host.ts";
import { systemClock } from "../../src/sys/clock.ts";
import { systemRandom } from "../../src/sys/random.ts";
import type { ServerSettings } from "../../src/wire/payload.ts";

/** What the test asks: these servers, then a call of every tool named. */
export interface WorkerTask {
  servers: ServerSettings[];
  ports: Record<string, MessagePort>;
  calls: string[];
}

/** What comes back, by tool, and what Deno says of the Worker's own permissions. */
export interface WorkerReport {
  outcomes: Record<string, unknown>;
  failure: unknown;
  permissions: Record<string, string>;
}

const scope = globalThis as unknown as {
  onmessage: (event: MessageEvent<WorkerTask>) => void;
  postMessage(report: WorkerReport): void;
};

scope.onmessage = async ({ data }) => {
  const never = new AbortController().signal;
  const host = createToolHost({
    servers: data.servers,
    tools: { grant: ["*"], rules: [], timeoutMs: 10_000, pin: true },
    identity: {
      runId: "RUN",
      agentId: "A",
      path: "0",
      depth: 0,
      directory: "/nowhere",
      traceId: "0".repeat(32),
      parentSpanId: null,
    },
    vault: new Vault(),
    openServer: (name) => Promise.resolve({ ok: true, value: { port: data.ports[name]!, pid: 1 } }),
    fetch,
    clock: systemClock,
    random: systemRandom,
    telemetry: { emit: () => {} },
  });
  const connected = await host.connect(never);
  const outcomes: Record<string, unknown> = {};
  for (const name of connected.ok ? data.calls : []) {
    const tool = connected.ok && connected.value.tools.find((each) => each.name === name);
    if (!tool) continue;
    const call = { tool, arguments: {}, key: "k", traceparent: "t" };
    outcomes[name] = await host.call(call, never);
  }
  await host.close();
  const permissions: Record<string, string> = {};
  for (const name of ["read", "write", "run", "env", "ffi", "sys", "net"] as const) {
    permissions[name] = (await Deno.permissions.query({ name })).state;
  }
  scope.postMessage({
    outcomes,
    failure: connected.ok ? null : connected.failure,
    permissions,
  });
};
