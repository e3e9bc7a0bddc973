/** A whole valid configuration, resolved: what `validate` approves and `run` runs. */

import type { JsonObject } from "../core/json.ts";
import type { Limits } from "../core/limits.ts";
import type { Vault } from "../core/secret.ts";
import type {
  Durability,
  HookSettings,
  LogSettings,
  ModelSettings,
  PermissionSet,
  ServerSettings,
  TaskContract,
  ToolSettings,
} from "../wire/payload.ts";

/** When a run starts again, and when the program exits. */
export type Mode = "once" | "loop" | "reactive" | "schedule";

/** A route of reactive mode: what a matching URI starts or goes to. */
export interface Route {
  match: string;
  target: { kind: "spawn"; maxInflight: number } | { kind: "continue"; session: string };
  debounceMs: number;
  cap: number;
  overflow: "coalesce" | "drop_oldest" | "drop_newest" | "block";
  /** What the agent is asked to do; `{uri}` and `{uris}` stand for what changed. Null: the task's. */
  instruction: string | null;
}

/** What starts the runs of a daemon, and what bounds it as a whole. */
export interface TriggerSettings {
  intervalMs: number | null;
  cron: string | null;
  timezone: string;
  overlap: "skip" | "queue" | "replace";
  jitterMs: number;
  catchUp: boolean;
  /** `server:uri-glob` or `file:glob`. */
  subscribe: string[];
  routes: Route[];
  session: "fresh" | "warm";
  /** Warm sessions that routes may continue, beside `main`, which always exists. */
  sessions?: string[];
  /** 0: no bound. */
  maxIterations: number;
  /** 0: no bound. */
  lifetimeMs: number;
  /** 0: no bound. */
  lifetimeTokens: number;
  /** Bearer token for POST /trigger/NAME: a name in the vault, else null. */
  tokenSecret: string | null;
}

/** Everything that was configured. Paths are absolute, secrets are in the vault. */
export interface Settings {
  mode: Mode;
  task: TaskContract;
  model: ModelSettings;
  /** Servers of others and the built-in ones that `allow` switches on. */
  servers: ServerSettings[];
  tools: ToolSettings;
  /** What `--allow-…` grants to the built-in servers. */
  allow: PermissionSet;
  limits: Limits;
  trigger: TriggerSettings;
  hooks: HookSettings;
  allowTrifecta: boolean;
  notes: boolean;
  output: "text" | "json";
  runId: string | null;
  /** Absolute. */
  runDirectory: string;
  /** Absolute. */
  stateDirectory: string;
  durability: Durability;
  log: LogSettings;
  listen: string | null;
  healthFile: string | null;
  drainTimeoutMs: number;
  lock: string | null;
  workingDirectory: string;
  /** The configuration file used, if any. */
  configurationFile: string | null;
  /** Effective values by file key, secrets masked. */
  configuration: JsonObject;
  vault: Vault;
}
