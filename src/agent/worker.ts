/**
 * Entry of the loop Worker: composes one agent over what its permissions leave it. It has the
 * network of its grant and its own directory, and speaks to the rest through the broker.
 */

import { toHex } from "../core/ids.ts";
import { Vault } from "../core/secret.ts";
import { createToolHost } from "../mcp/tool_host.ts";
import { createModel } from "../model/client.ts";
import type { TelemetryPort } from "../ports/telemetry.ts";
import { systemClock } from "../sys/clock.ts";
import { systemDigest } from "../sys/digest.ts";
import { systemFiles } from "../sys/files.ts";
import { systemHttp } from "../sys/http.ts";
import { systemRandom } from "../sys/random.ts";
import { settleStderr, writeStderr } from "../sys/output.ts";
import { systemFetch, workerScope } from "../sys/worker_scope.ts";
import type { Delivery } from "../wire/control.ts";
import type { AgentPayload } from "../wire/payload.ts";
import { failedResult } from "../wire/result.ts";
import { guardWorker } from "../sys/worker_guard.ts";
import { createTelemetry } from "../wire/telemetry_writer.ts";
import type { FromWorker, ToWorker } from "../wire/worker.ts";
import { Denials } from "./denials.ts";
import { BrokerLink } from "./link.ts";
import { Session } from "./session.ts";

const scope = workerScope<ToWorker, FromWorker>();
/** Nothing is left to be told when the result is out: the broker ends this Worker then. */
const post = (message: FromWorker, transfer?: Transferable[]): void => {
  if (message.type !== "result") scope.post(message, transfer);
  else void settleStderr().then(() => scope.post(message, transfer));
};
guardWorker((message) => scope.post({ type: "failed", message }));
const link = new BrokerLink(scope.post);
let session: Session | undefined;
const early: Delivery[] = [];

scope.onMessage((message) => {
  if (link.receive(message)) return;
  switch (message.type) {
    case "start":
      session = openSession(message.payload, message.secrets);
      for (const delivery of early.splice(0)) session.deliver(delivery);
      break;
    case "cancel":
      session?.cancel(message.reason);
      break;
    case "child_ended":
      session?.childEnded(message.end);
      break;
    case "deliver":
      if (session === undefined) early.push(message.delivery);
      else session.deliver(message.delivery);
      break;
    case "watch":
      session?.watch(message.add, message.remove);
      break;
    default:
      break;
  }
});
scope.post({ type: "up" });

function openSession(payload: AgentPayload, secrets: Record<string, string>): Session {
  const vault = Vault.from(secrets);
  const telemetry = loopTelemetry(payload, vault);
  const denials = new Denials(telemetry);
  const tools = createToolHost({
    servers: payload.servers,
    tools: payload.tools,
    identity: payload.identity,
    vault,
    openServer: (name, signal) => link.openServer(name, signal),
    fetch: denials.fetch(systemFetch),
    clock: systemClock,
    random: systemRandom,
    telemetry,
    // A watcher lives as long as its daemon: no server is given up for good.
    ...(payload.start.kind === "watch" ? { restartsMax: Infinity } : {}),
  });
  const model = createModel({
    settings: payload.model,
    vault,
    http: systemHttp,
    clock: systemClock,
    random: systemRandom,
    telemetry,
    ...recordReplies(payload),
  });
  return new Session({
    payload,
    vault,
    model,
    tools,
    broker: link,
    files: denials.files(systemFiles),
    clock: systemClock,
    random: systemRandom,
    digest: systemDigest,
    telemetry,
    post,
  });
}

function loopTelemetry(payload: AgentPayload, vault: Vault): TelemetryPort {
  const { identity } = payload;
  return createTelemetry(
    {
      run_id: identity.runId,
      agent_id: identity.agentId,
      agent_path: identity.path,
      comp: payload.start.kind === "watch" ? "watcher" : "loop",
      pid: scope.pid,
      trace_id: identity.traceId,
      span_id: toHex(systemRandom.bytes(8)),
      parent_span_id: identity.parentSpanId,
    },
    payload.log,
    vault,
    writeStderr,
    systemClock,
  );
}

/** `--record-model`: each reply is also a line of this file. */
function recordReplies(payload: AgentPayload): { record?: (line: string) => void } {
  const path = payload.model.recordTo;
  if (path === null) return {};
  const opened = systemFiles.openAppend(path);
  if (!opened.ok) {
    post({
      type: "result",
      result: failedResult("crashed", `Cannot record the model: ${opened.failure.message}`),
    });
    return {};
  }
  const encoder = new TextEncoder();
  return { record: (line) => void opened.value.append(encoder.encode(line + "\n")) };
}
