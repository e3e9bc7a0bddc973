/** Settings for supervised test programs, from a JSON file with what differs from the defaults. */

import { DEFAULT_LIMITS } from "../../src/core/limits.ts";
import { Vault } from "../../src/core/secret.ts";
import { NO_PERMISSIONS } from "../../src/wire/permissions.ts";
import type { Settings } from "../../src/config/settings.ts";

/** What a test says of its run. `script` goes to the Worker as the task's instruction. */
export interface Scenario {
  script: Record<string, unknown>;
  directory: string;
  settings?: Partial<Omit<Settings, "limits" | "vault">>;
  limits?: Partial<Settings["limits"]>;
  secrets?: Record<string, string>;
}

export function readSettings(path: string): Settings {
  return makeSettings(JSON.parse(Deno.readTextFileSync(path)) as Scenario);
}

export function makeSettings(scenario: Scenario): Settings {
  const directory = scenario.directory;
  const settings: Settings = {
    mode: "once",
    task: {
      instruction: "",
      system: null,
      seeds: [],
      outputSchema: null,
      require: [],
      checks: [],
    },
    model: {
      endpoints: [],
      name: null,
      toolMode: "auto",
      maxOutputTokens: 8192,
      contextWindow: 128000,
      temperature: null,
      reasoningEffort: null,
      requestTimeoutMs: 120000,
      idleTimeoutMs: 30000,
      options: {},
      prices: null,
      recordTo: null,
    },
    servers: [],
    tools: { grant: ["*"], rules: [], timeoutMs: 60000, pin: true },
    allow: { ...NO_PERMISSIONS },
    trigger: {
      intervalMs: null,
      cron: null,
      timezone: "UTC",
      overlap: "skip",
      jitterMs: 0,
      catchUp: false,
      subscribe: [],
      routes: [],
      session: "fresh",
      maxIterations: 0,
      lifetimeMs: 0,
      lifetimeTokens: 0,
      tokenSecret: null,
    },
    hooks: { before_action: [], after_observation: [], before_compaction: [], on_stop: [] },
    allowTrifecta: false,
    notes: false,
    output: "json",
    runId: null,
    runDirectory: `${directory}/runs`,
    stateDirectory: `${directory}/state`,
    durability: "intents",
    log: { level: "info", format: "json", content: false, quiet: false },
    listen: null,
    healthFile: null,
    drainTimeoutMs: 3000,
    lock: null,
    workingDirectory: directory,
    configurationFile: null,
    configuration: {},
    ...scenario.settings,
    limits: { ...DEFAULT_LIMITS, ...scenario.limits },
    vault: Vault.from(scenario.secrets ?? {}),
  };
  settings.task.instruction = JSON.stringify(scenario.script);
  return settings;
}
