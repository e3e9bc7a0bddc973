/**
 * What a supervisor hands to an agent, in the first frame on its stdin: everything it needs, as
 * plain data. Secrets travel apart, by name, so that the rest can be recorded as it is.
 */

import type { JsonObject } from "../core/json.ts";
import type { Limits } from "../core/limits.ts";
import type { SecretText } from "../core/secret.ts";

/** One of the three legs of the Rule of Two. */
export type Leg = "untrusted_input" | "sensitive" | "egress";

/** A command: program and arguments, already split into words, never given to a shell. */
export type Command = readonly string[];

/** A declared check command. */
export interface Check {
  command: Command;
  /** `final`: when the run claims to be done; `turn`: also after every acting turn. */
  when: "final" | "turn";
  timeoutMs: number;
}

/** A labelled slice of context from the parent: text, or a resource to read. */
export interface Seed {
  label: string;
  text?: string;
  resource?: string;
}

/** The task contract: goal, constraints, verification. */
export interface TaskContract {
  instruction: string;
  /** Appended to the built-in system prompt. */
  system: string | null;
  seeds: Seed[];
  outputSchema: JsonObject | null;
  /** Paths, or `server:uri`, that must exist at the end. Paths are absolute. */
  require: string[];
  checks: Check[];
}

/** One model endpoint. */
export interface Endpoint {
  /** Base URL as far as `/v1`; for `recorded`, the recording's text travels in `recording`. */
  url: string;
  kind: "http" | "recorded";
  dialect: "openai" | "anthropic";
  token: SecretText | null;
  headers: Record<string, SecretText>;
  /** Found by `auto`, used only if it answers. */
  probe: boolean;
  /** The lines of a recording, read by the supervisor. */
  recording: string | null;
}

/** USD per million tokens. */
export interface Prices {
  input: number;
  cachedInput: number;
  output: number;
}

/** Which model, and how it is asked. */
export interface ModelSettings {
  endpoints: Endpoint[];
  /** Null: the first that the endpoint lists. */
  name: string | null;
  toolMode: "auto" | "native" | "json";
  maxOutputTokens: number;
  contextWindow: number;
  temperature: number | null;
  reasoningEffort: string | null;
  requestTimeoutMs: number;
  idleTimeoutMs: number;
  options: JsonObject;
  prices: Prices | null;
  /** Replies are also written here, as a recording. Inside the run directory. */
  recordTo: string | null;
}

/** A tool server that the broker starts. */
export interface StdioServer {
  kind: "stdio";
  name: string;
  command: string;
  args: string[];
  /** On top of a clean environment (PATH, HOME, TMPDIR, LANG). */
  env: Record<string, SecretText>;
  cwd: string;
  required: boolean;
  startTimeoutMs: number;
  sandbox: "none" | "bwrap";
}

/** A tool server at a URL. */
export interface HttpServer {
  kind: "http";
  name: string;
  url: string;
  headers: Record<string, SecretText>;
  era: string;
  required: boolean;
  startTimeoutMs: number;
}

/** A built-in tool server, run as a process of its own with exactly these permissions. */
export interface BuiltinServer {
  kind: "builtin";
  name: "fs" | "http" | "exec";
  permissions: PermissionSet;
  /** What `env` grants, by value: an agent has none of its supervisor's variables itself. */
  environment?: Record<string, SecretText>;
  sandbox: "none" | "bwrap";
  required: boolean;
  startTimeoutMs: number;
}

/** Any tool server. */
export type ServerSettings = StdioServer | HttpServer | BuiltinServer;

/** What an operator says of tools; the longest matching glob wins, key by key. */
export interface ToolRule {
  glob: string;
  legs: Leg[] | null;
  grant: boolean | null;
  idempotent: boolean | null;
  readOnly: boolean | null;
  poll: boolean | null;
  timeoutMs: number | null;
  /** Calls per period, as in `30/m`. */
  rate: { calls: number; perMs: number } | null;
}

/** Which tools an agent has, and what the operator says of them. */
export interface ToolSettings {
  /** `server/tool` globs granted to this agent; `!GLOB` removes. */
  grant: string[];
  rules: ToolRule[];
  timeoutMs: number;
  /** A description that changes between connections refuses the tool. */
  pin: boolean;
}

/** One kind of Deno permission: nothing, everything, or a list. */
export type Permission = false | true | string[];

/** What a process or Worker may do, in Deno's own kinds. */
export interface PermissionSet {
  read: Permission;
  write: Permission;
  net: Permission;
  run: Permission;
  env: Permission;
  sys: Permission;
  ffi: Permission;
  import: Permission;
}

/** Where a hook is asked. */
export type HookEvent = "before_action" | "after_observation" | "before_compaction" | "on_stop";

/** Commands by event, in order. */
export type HookSettings = Record<HookEvent, Command[]>;

/** Least level of lines that are written. */
export type LogLevel = "debug" | "info" | "warn" | "error";

/** How telemetry is written. */
export interface LogSettings {
  level: LogLevel;
  /** Resolved: never `auto` here. */
  format: "json" | "text";
  content: boolean;
  quiet: boolean;
}

/** What is synced to the medium: intents and terminal lines, every line, nothing. */
export type Durability = "intents" | "all" | "none";

/** Who and where an agent is; minted by the supervisor, never by an agent. */
export interface AgentIdentity {
  runId: string;
  agentId: string;
  /** Dotted: `0` is the root. */
  path: string;
  depth: number;
  /** This agent's own directory: its record, artifacts and notes. Absolute. */
  directory: string;
  traceId: string;
  parentSpanId: string | null;
}

/** How an agent is to begin. */
export type Start =
  | { kind: "fresh" }
  /** Goes on from the record in the directory. */
  /** `forked`: the record is another run's, up to an iteration that is now made anew. */
  | { kind: "resume"; forked?: boolean }
  /** A warm session: stays after a final and takes further deliveries. */
  | { kind: "warm"; resume: boolean }
  /**
   * The watcher of reactive mode: no model, holds these `server:uri-glob` subscriptions. With
   * `possibly`, each watched URI is reported once at the start: it may have changed unseen.
   */
  | { kind: "watch"; subscribe: string[]; possibly: boolean };

/** All that an agent is told; secrets travel beside it. */
export interface AgentPayload {
  identity: AgentIdentity;
  start: Start;
  task: TaskContract;
  model: ModelSettings;
  servers: ServerSettings[];
  tools: ToolSettings;
  limits: Limits;
  /** Wall clock in milliseconds since the epoch at which this agent must be over. */
  deadlineWallMs: number;
  /** Permissions of the loop Worker. */
  worker: PermissionSet;
  hooks: HookSettings;
  notes: boolean;
  /** Self tools to offer, beside those that always work. */
  selfTools: { subagents: boolean; subscribe: boolean };
  log: LogSettings;
  durability: Durability;
  /** Directory that relative paths and commands start in. Absolute. */
  workingDirectory: string;
  /** The effective configuration with secrets masked, for the record. */
  configuration: JsonObject;
}
