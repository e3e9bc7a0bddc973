/** The whole loop in one process: the real driver, record and tool host; only the model is a script. */

import { beginLoop } from "../../src/agent/loop.ts";
import { DEFAULT_LIMITS, type Limits } from "../../src/core/limits.ts";
import { Vault } from "../../src/core/secret.ts";
import { fnv64 } from "../../src/core/hash.ts";
import type { BrokerPort } from "../../src/ports/broker.ts";
import type { ModelPort, ModelRequest } from "../../src/ports/model.ts";
import type { ServerSettings, TaskContract, ToolRule } from "../../src/wire/payload.ts";
import type { AgentResult } from "../../src/wire/result.ts";
import { systemClock } from "../../src/sys/clock.ts";
import { systemDigest } from "../../src/sys/digest.ts";
import { systemFiles } from "../../src/sys/files.ts";
import { systemRandom } from "../../src/sys/random.ts";
import { hostBench } from "./tool_host.ts";
import { replyOf, type Say } from "./simulation.ts";

export interface LoopBench {
  directory: string;
  servers?: ServerSettings[];
  rules?: Partial<ToolRule>[];
  toolTimeoutMs?: number;
  limits?: Partial<Limits>;
  task?: Partial<TaskContract>;
  model: (turn: number, request: ModelRequest) => Say | Promise<Say>;
}

/** Runs one agent to its end. */
export async function runLoop(bench: LoopBench): Promise<AgentResult> {
  const host = hostBench(bench.servers ?? [], {
    rules: bench.rules ?? [],
    tools: { timeoutMs: bench.toolTimeoutMs ?? 10_000 },
  });
  const { promise, resolve } = Promise.withResolvers<AgentResult>();
  const vault = new Vault();
  beginLoop({
    payload: payloadFor(bench),
    vault,
    model: scriptedModel(bench.model),
    tools: host.host,
    broker: noBroker(),
    files: systemFiles,
    clock: systemClock,
    random: systemRandom,
    digest: systemDigest,
    telemetry: { emit: () => {} },
    ended: resolve,
  });
  const result = await promise;
  await host.close();
  return result;
}

/** A model port whose replies come from a function. */
export function scriptedModel(say: LoopBench["model"]): ModelPort {
  let turn = 0;
  return {
    async complete(request) {
      const number = ++turn;
      return replyOf(await say(number, request), number);
    },
  };
}

function noBroker(): BrokerPort {
  const none = () => Promise.reject(new Error("no broker in this bench"));
  return {
    runCheck: none,
    runRequire: none,
    runHook: none,
    request: none,
    progress: () => {},
  };
}

function payloadFor(bench: LoopBench) {
  return {
    identity: {
      runId: `RUN-${fnv64(bench.directory)}`,
      agentId: "A",
      path: "0",
      depth: 0,
      directory: bench.directory,
      traceId: "0".repeat(32),
      parentSpanId: null,
    },
    start: { kind: "fresh" as const },
    task: {
      instruction: "do it",
      system: null,
      seeds: [],
      outputSchema: null,
      require: [],
      checks: [],
      ...bench.task,
    },
    model: {
      endpoints: [],
      name: "script",
      toolMode: "auto" as const,
      maxOutputTokens: 1_000,
      contextWindow: 128_000,
      temperature: null,
      reasoningEffort: null,
      requestTimeoutMs: 1_000,
      idleTimeoutMs: 1_000,
      options: {},
      prices: null,
      recordTo: null,
    },
    servers: bench.servers ?? [],
    tools: { grant: ["*"], rules: [], timeoutMs: 10_000, pin: true },
    limits: { ...DEFAULT_LIMITS, ...bench.limits },
    deadlineWallMs: 0,
    worker: {
      read: false,
      write: false,
      net: false,
      run: false,
      env: false,
      sys: false,
      ffi: false,
      import: false,
    } as const,
    hooks: { before_action: [], after_observation: [], before_compaction: [], on_stop: [] },
    notes: false,
    selfTools: { subagents: false, subscribe: false },
    log: { level: "error" as const, format: "json" as const, content: false, quiet: true },
    durability: "none" as const,
    workingDirectory: bench.directory,
    configuration: {},
  };
}
