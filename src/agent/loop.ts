/**
 * One agent, composed: model, tools, record, self tools and driver over ports. The Worker entry and
 * the in-process driver both begin here.
 */

import type { Vault } from "../core/secret.ts";
import type { Limits } from "../core/limits.ts";
import { VERSION } from "../core/version.ts";
import type { ClockPort } from "../ports/clock.ts";
import type { DigestPort } from "../ports/digest.ts";
import type { FilesPort } from "../ports/files.ts";
import type { ModelPort } from "../ports/model.ts";
import type { RandomPort } from "../ports/random.ts";
import type { TelemetryPort } from "../ports/telemetry.ts";
import type { ToolsPort } from "../ports/tools.ts";
import type { BrokerPort } from "../ports/broker.ts";
import { toHex, traceparent } from "../core/ids.ts";
import { Artifacts } from "../record/artifacts.ts";
import { openRecord, type RecordWriter } from "../record/append.ts";
import { withheldResources } from "../supervisor/rule_of_two.ts";
import { SelfToolHost } from "../selftools/host.ts";
import type { Delivery } from "../wire/control.ts";
import type { AgentPayload } from "../wire/payload.ts";
import { type AgentResult, failedResult } from "../wire/result.ts";
import { Driver } from "./driver.ts";
import type { EventBody, ModelFacts } from "./event.ts";
import { Hooks } from "./hooks.ts";
import { foldLine, ledgerText } from "./fold.ts";
import { type AgentState, initialState } from "./state.ts";

/** Everything that one agent reaches the world by. */
export interface LoopPorts {
  payload: AgentPayload;
  vault: Vault;
  model: ModelPort;
  tools: ToolsPort;
  broker: BrokerPort;
  files: FilesPort;
  clock: ClockPort;
  random: RandomPort;
  digest: DigestPort;
  telemetry: TelemetryPort;
  ended: (result: AgentResult) => void;
}

/** Opens the record and begins the loop; undefined if that failed, and `ended` was told. */
export function beginLoop(ports: LoopPorts): Driver | undefined {
  const { payload } = ports;
  const going = payload.start.kind === "resume";
  const opened = openDriver(ports, going);
  if (opened === undefined) return undefined;
  opened.driver.post(going ? resumed(payload, opened.state) : started(payload));
  return opened.driver;
}

/** A warm session goes on from its record with a delivery; undefined as in {@link beginLoop}. */
export function foldSession(ports: LoopPorts, delivery: Delivery): Driver | undefined {
  const opened = openDriver(ports, true);
  opened?.driver.deliver(delivery, true);
  return opened?.driver;
}

function openDriver(
  ports: LoopPorts,
  going: boolean,
): { driver: Driver; state: AgentState } | undefined {
  const { payload, vault } = ports;
  const mask = (text: string) => vault.mask(text);
  const state = initialState();
  const opened = openRecord({
    files: ports.files,
    clock: ports.clock,
    directory: payload.identity.directory,
    durability: payload.durability,
    mask,
    onLine: (line) => foldLine(state, line),
  }, going ? "append" : "new");
  if (!opened.ok) {
    ports.ended(failedResult("crashed", `Cannot open the record: ${mask(opened.failure.message)}`));
    return undefined;
  }
  return { driver: composeDriver(ports, state, opened.value, mask), state };
}

function composeDriver(
  ports: LoopPorts,
  state: AgentState,
  record: RecordWriter,
  mask: (text: string) => string,
): Driver {
  const { payload, tools, broker, files, clock, random, telemetry, digest } = ports;
  const { directory, traceId } = payload.identity;
  const artifacts = new Artifacts({
    files,
    directory,
    readObserved: (call) => record.readObserved(call),
  });
  const selfTools = new SelfToolHost({
    tools,
    broker,
    artifacts,
    files,
    clock,
    directory,
    resources: () => state.resources,
    withheld: withheldResources(payload.servers, payload.tools),
    ledger: () => {
      record.flush();
      return ledgerText(files, record.path);
    },
  });
  return new Driver({
    payload,
    state,
    model: ports.model,
    tools,
    broker,
    record,
    artifacts,
    clock,
    random,
    telemetry,
    mask,
    ended: ports.ended,
    effects: {
      payload,
      broker,
      tools,
      selfTools,
      clock,
      digest,
      telemetry,
      mask,
      keep: (id, content) => {
        const kept = artifacts.write(id, content);
        return kept.ok || kept.failure.class === "exists";
      },
      hooks: new Hooks({
        payload,
        broker,
        telemetry,
        mask,
        annotate: (type, line) => {
          // One that a stop left behind ends after the terminal line, and there is nothing to tell.
          if (state.phase.tag === "stopped") return;
          record.append(type, line, state.at);
          // A disk that takes no more is found again by the driver's next line, which ends the run.
          record.flush();
        },
      }),
      traceparent: () => traceparent(traceId, toHex(random.bytes(8))),
    },
  });
}

function started(payload: AgentPayload): EventBody {
  return {
    type: "run.started",
    identity: payload.identity,
    ...terms(payload),
    warm: payload.start.kind === "warm",
  };
}

/** What holds from a start or a resume on. */
function terms(payload: AgentPayload) {
  return {
    task: payload.task,
    limits: payload.limits,
    model: modelFacts(payload),
    notes: payload.notes,
    stop_hooks: payload.hooks.on_stop.length,
    self_tools: payload.selfTools,
    configuration: payload.configuration,
    working_directory: payload.workingDirectory,
    program: VERSION,
  };
}

function modelFacts({ model }: AgentPayload): ModelFacts {
  return {
    name: model.name,
    tool_mode: model.toolMode,
    max_output_tokens: model.maxOutputTokens,
    context_window: model.contextWindow,
    prices: model.prices,
  };
}

function resumed(payload: AgentPayload, state: AgentState): EventBody {
  const changes: string[] = [];
  for (const key of Object.keys(payload.limits) as (keyof Limits)[]) {
    const [before, now] = [state.limits[key], payload.limits[key]];
    if (before !== now) changes.push(`${key}: ${before} -> ${now}`);
  }
  const { start } = payload;
  return {
    type: "run.resumed",
    ...terms(payload),
    changes,
    ...(start.kind === "resume" && start.forked ? { forked: true } : {}),
  };
}
