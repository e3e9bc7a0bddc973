/** The in-process driver of embedded runs: the same loop without processes of its own, for tests. */

import { BrokerLink } from "../agent/link.ts";
import { beginLoop } from "../agent/loop.ts";
import { Desk } from "../broker/desk.ts";
import { Servers } from "../broker/servers.ts";
import type { Settings } from "../config/settings.ts";
import { makeUlid, toHex } from "../core/ids.ts";
import { formatIso } from "../core/time.ts";
import { createToolHost } from "../mcp/tool_host.ts";
import type { DigestPort } from "../ports/digest.ts";
import type { ModelPort } from "../ports/model.ts";
import type { TelemetryPort } from "../ports/telemetry.ts";
import type { ToolsPort } from "../ports/tools.ts";
import { RECORD_FILE } from "../record/append.ts";
import { holdRun } from "../record/runs.ts";
import { rootPayload, withEnvironment } from "../supervisor/payload.ts";
import type { SupervisorPorts } from "../supervisor/ports.ts";
import type { CancelReason } from "../wire/control.ts";
import { cleanEnvironment } from "../wire/environment.ts";
import type { AgentPayload } from "../wire/payload.ts";
import { type AgentResult, failedResult, type RunResult } from "../wire/result.ts";

/** Effects that a run inside this process needs. */
export interface InsidePorts extends SupervisorPorts {
  digest: DigestPort;
  fetch: typeof fetch;
}

/** The same loop, record, tool host and broker desk, all in this process. */
export async function runInside(
  ports: InsidePorts,
  settings: Settings,
  model: ModelPort,
  signal: AbortSignal | undefined,
): Promise<Omit<RunResult, "exit_code">> {
  const startedWallMs = ports.clock.wallMs();
  const payload = insidePayload(ports, settings, startedWallMs);
  const { identity } = payload;
  ports.files.makeDirectory(identity.directory);
  const held = await holdRun(ports, identity.directory);
  const result = held.ok
    ? await runLoop(ports, settings, payload, model, signal)
    : failedResult("crashed", held.failure.message);
  if (held.ok) held.value.release();
  const { artifact: _artifact, evidence: _evidence, ...rest } = result;
  return {
    run_id: identity.runId,
    ...rest,
    started_at: formatIso(startedWallMs),
    ended_at: formatIso(ports.clock.wallMs()),
    record: `${identity.directory}/${RECORD_FILE}`,
  };
}

async function runLoop(
  ports: InsidePorts,
  settings: Settings,
  payload: AgentPayload,
  model: ModelPort,
  signal: AbortSignal | undefined,
): Promise<AgentResult> {
  const ended = Promise.withResolvers<AgentResult>();
  const { link, tools, close } = connectInside(ports, settings, payload, ended.resolve);
  const driver = beginLoop({
    ...ports,
    payload,
    vault: settings.vault,
    model,
    tools,
    broker: link,
    telemetry: SILENT,
    ended: ended.resolve,
  });
  const cancel = () => driver?.cancel("sigterm" satisfies CancelReason);
  if (signal?.aborted) cancel();
  signal?.addEventListener("abort", cancel, { once: true });
  const result = await ended.promise;
  signal?.removeEventListener("abort", cancel);
  await close();
  return result;
}

const SILENT: TelemetryPort = { emit: () => {} };

function insidePayload(
  ports: InsidePorts,
  settings: Settings,
  startedWallMs: number,
): AgentPayload {
  const identity = {
    runId: settings.runId!,
    agentId: makeUlid(startedWallMs, ports.random.bytes(10)),
    path: "0",
    depth: 0,
    directory: `${settings.runDirectory}/${settings.runId}`,
    traceId: toHex(ports.random.bytes(16)),
    parentSpanId: null,
  };
  const alone = { ...settings, limits: { ...settings.limits, maxSubagents: 0 } };
  const deadlineWallMs = startedWallMs + settings.limits.deadlineMs;
  const payload = rootPayload(alone, identity, { kind: "fresh" }, deadlineWallMs);
  const servers = withEnvironment(payload.servers, ports.variables ?? {}, settings.vault);
  return { ...payload, servers };
}

/** Tool host and broker desk, joined without a channel between processes. */
function connectInside(
  ports: InsidePorts,
  settings: Settings,
  payload: AgentPayload,
  ended: (result: AgentResult) => void,
): { link: BrokerLink; tools: ToolsPort; close: () => Promise<void> } {
  const { vault } = settings;
  const environment = cleanEnvironment(ports.env);
  const servers = new Servers({ ...ports, payload, vault, environment, telemetry: SILENT });
  const link: BrokerLink = new BrokerLink((message) => desk.receive(message));
  const desk: Desk = new Desk({
    ...ports,
    payload,
    vault,
    environment,
    // No group of its own: nothing is swept that this process may need.
    groupId: -1,
    telemetry: SILENT,
    servers,
    toSupervisor: () => {},
    toWorker: (message) => void link.receive(message),
    up: () => {},
    failed: (message) => ended(failedResult("crashed", message)),
    ended,
  });
  const tools = createToolHost({
    ...ports,
    servers: payload.servers,
    tools: payload.tools,
    identity: payload.identity,
    vault,
    openServer: (name, aborted) => link.openServer(name, aborted),
    telemetry: SILENT,
  });
  const close = async () => {
    await tools.close();
    desk.stop();
    await servers.closeAll();
  };
  return { link, tools, close };
}
