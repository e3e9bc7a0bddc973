/** The table of options (contract 3): the one source of flags, variables, file keys and defaults. */

import { DEFAULT_LIMITS, START_TIMEOUT_MS } from "../core/limits.ts";
import { formatDuration, formatSize } from "../core/units.ts";
import { makeOption, type Option, type Row } from "./option.ts";
import type { Shape } from "./shape.ts";

const TEXT: Shape = { kind: "text" };
const PATH: Shape = { kind: "text", pattern: /^[^\0]+$/, expects: "a path" };
const SWITCH: Shape = { kind: "boolean" };
const COUNT: Shape = { kind: "int", min: 1 };
const COUNT_OR_NONE: Shape = { kind: "int", min: 0 };
const TIME: Shape = { kind: "duration", minMs: 1 };
const TIME_OR_NONE: Shape = { kind: "duration", minMs: 0 };
const SANDBOX: Shape = { kind: "enum", values: ["none", "bwrap"] };
const PRICE: Shape = { kind: "number", min: 0 };
const COMMANDS: Shape = { kind: "list", of: { kind: "command" } };

/** Names of tool servers: what a wire name, a glob and a route can carry. */
export const SERVER_NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,31}$/;
export const SERVER_NAME_EXPECTS =
  "a server name: 1 to 32 of A-Z, a-z, 0-9, _, . and -, a letter or digit first";

const CHECK: Shape = {
  kind: "record",
  fields: {
    command: { kind: "command" },
    when: { kind: "enum", values: ["final", "turn"] },
    timeout: TIME,
  },
  required: ["command"],
};

/** One entry of `mcp_servers`; which keys go together is checked where it is read. */
export const SERVER: Extract<Shape, { kind: "record" }> = {
  kind: "record",
  fields: {
    command: TEXT,
    args: { kind: "list", of: TEXT },
    env: { kind: "map", of: TEXT },
    cwd: PATH,
    required: SWITCH,
    start_timeout: TIME,
    sandbox: SANDBOX,
    url: TEXT,
    headers: { kind: "map", of: TEXT },
    era: {
      kind: "text",
      pattern: /^(auto|legacy|\d{4}-\d{2}-\d{2})$/,
      expects: "auto, legacy or a protocol revision such as 2025-11-25",
    },
  },
};

const TOOL_RULE: Shape = {
  kind: "record",
  fields: {
    legs: {
      kind: "list",
      of: { kind: "enum", values: ["untrusted_input", "sensitive", "egress"] },
    },
    grant: SWITCH,
    idempotent: SWITCH,
    read_only: SWITCH,
    poll: SWITCH,
    timeout: TIME,
    rate: { kind: "rate" },
  },
};

const ROUTE: Shape = {
  kind: "record",
  fields: {
    match: TEXT,
    spawn: { kind: "record", fields: { max_inflight: { kind: "int", min: 1, max: 1000 } } },
    continue: {
      kind: "text",
      pattern: /^[A-Za-z0-9_-]{1,64}$/,
      expects: "a session name: 1 to 64 of A-Z, a-z, 0-9, _ and -",
    },
    debounce: TIME_OR_NONE,
    cap: { kind: "int", min: 1, max: 100_000 },
    overflow: { kind: "enum", values: ["coalesce", "drop_oldest", "drop_newest", "block"] },
    instruction: TEXT,
  },
  required: ["match"],
};

const TASK: Row[] = [
  {
    name: "instruction",
    file: "instruction",
    metavar: "TEXT",
    shape: TEXT,
    group: "task",
    help: "the task; - reads it from stdin, @FILE from a file",
  },
  {
    name: "system",
    file: "system",
    metavar: "FILE",
    shape: PATH,
    group: "task",
    help: "appended to the built-in system prompt",
  },
  {
    name: "output_schema",
    file: "verify.schema",
    metavar: "FILE",
    shape: PATH,
    group: "task",
    help: "JSON Schema that the final result must satisfy",
  },
  {
    name: "require",
    file: "verify.require",
    metavar: "PATH|URI",
    shape: { kind: "list", of: PATH },
    group: "task",
    help: "file, or SERVER:URI, that must exist when the run claims to be done",
  },
  {
    name: "check",
    file: "verify.checks",
    metavar: "COMMAND",
    shape: { kind: "list", of: CHECK },
    form: "check",
    group: "task",
    help: "command that must exit 0 when the run claims to be done",
  },
];

const MODEL: Row[] = [
  {
    name: "intelligence",
    file: "model.intelligence",
    metavar: "URL[,URL]",
    shape: { kind: "list", of: TEXT, comma: true },
    default: ["auto"],
    group: "model",
    help: "base URLs as far as /v1, tried in order; auto; recorded:FILE",
  },
  {
    name: "model",
    file: "model.name",
    metavar: "NAME",
    shape: { kind: "text", pattern: /\S/, expects: "the name of a model" },
    defaultText: "first of GET /models",
    group: "model",
    help: "model to ask for",
  },
  {
    name: "dialect",
    file: "model.dialect",
    shape: { kind: "enum", values: ["openai", "anthropic"] },
    defaultText: "by URL, else openai",
    group: "model",
    help: "chat/completions or messages wire",
  },
  {
    name: "tool_mode",
    file: "model.tool_mode",
    shape: { kind: "enum", values: ["auto", "native", "json"] },
    default: "auto",
    group: "model",
    help: "native tool calls or JSON actions",
  },
  {
    name: "token",
    file: "model.token",
    flag: null,
    metavar: "TOKEN",
    env: "AGENT_INTELLIGENCE_TOKEN",
    shape: TEXT,
    form: "token_env",
    defaultText: "OPENAI_API_KEY or ANTHROPIC_API_KEY, by dialect",
    group: "model",
    help: "secret of the endpoint; in the file ${env:NAME} or ${file:PATH}",
  },
  {
    name: "token_file",
    file: "model.token",
    metavar: "FILE",
    shape: TEXT,
    form: "token_file",
    inFile: false,
    group: "model",
    help: "file that holds the secret of the endpoint",
  },
  {
    name: "max_output_tokens",
    file: "model.max_output_tokens",
    shape: COUNT,
    default: 8192,
    group: "model",
    help: "tokens of one reply",
  },
  {
    name: "temperature",
    file: "model.temperature",
    shape: { kind: "number", min: 0, max: 2 },
    group: "model",
    help: "sampling temperature",
  },
  {
    name: "reasoning_effort",
    file: "model.reasoning_effort",
    metavar: "LEVEL",
    shape: { kind: "text", pattern: /^[A-Za-z_]{1,32}$/, expects: "a level such as low or high" },
    group: "model",
    help: "passed to models that take it",
  },
  {
    name: "context_window",
    file: "model.context_window",
    shape: COUNT,
    default: 128_000,
    group: "model",
    help: "tokens of prompt and reply together",
  },
  {
    name: "request_timeout",
    file: "model.request_timeout",
    shape: TIME,
    default: "120s",
    group: "model",
    help: "one model call",
  },
  {
    name: "idle_timeout",
    file: "model.idle_timeout",
    flag: null,
    shape: TIME,
    default: "30s",
    group: "model",
    help: "silence inside a stream",
  },
  {
    name: "model_options",
    file: "model.options",
    flag: null,
    env: null,
    shape: { kind: "object" },
    default: {},
    group: "model",
    help: "passed through to the endpoint",
  },
  {
    name: "prices",
    file: "model.prices",
    flag: null,
    env: null,
    shape: {
      kind: "record",
      fields: { input: PRICE, cached_input: PRICE, output: PRICE },
      required: ["input", "output"],
    },
    group: "model",
    help: "USD per million tokens",
  },
  {
    name: "allow_insecure",
    shape: SWITCH,
    group: "model",
    help: "permit http:// to hosts other than loopback",
  },
  {
    name: "record_model",
    metavar: "FILE",
    shape: PATH,
    group: "model",
    help: "write the model's replies as a recording",
  },
];

const TOOLS: Row[] = [
  {
    name: "mcp_config",
    file: "mcp_servers",
    metavar: "FILE",
    shape: { kind: "map", of: SERVER },
    form: "mcp_config",
    repeatable: true,
    inFile: false,
    group: "tools",
    help: 'JSON of the form {"mcpServers": {NAME: {command, args, env, cwd} | {url, headers}}}',
  },
  {
    name: "mcp",
    file: "mcp_servers",
    metavar: "NAME=COMMAND|URL",
    shape: { kind: "map", of: SERVER, key: SERVER_NAME, keyExpects: SERVER_NAME_EXPECTS },
    form: "mcp",
    repeatable: true,
    group: "tools",
    help: "stdio or streamable-HTTP tool server",
  },
  {
    name: "tools",
    metavar: "GLOB",
    shape: { kind: "list", of: TEXT, comma: true },
    defaultText: "*",
    group: "tools",
    help: "server/tool globs granted to the root agent; !GLOB removes",
  },
  {
    name: "tool_rules",
    file: "tools",
    flag: null,
    env: null,
    shape: { kind: "map", of: TOOL_RULE },
    default: {},
    group: "tools",
    help: "what is declared of tools, by server/tool glob",
  },
  {
    name: "tool_timeout",
    shape: TIME,
    default: "60s",
    group: "tools",
    help: "one tool call; progress starts it anew, up to 10 times",
  },
  {
    name: "pin_tools",
    file: "pin_tools",
    flag: null,
    shape: SWITCH,
    default: true,
    group: "tools",
    help: "a description that changes between connections refuses the tool",
  },
  ...(["read", "write", "net", "run", "env"] as const).map((kind): Row => ({
    name: `allow_${kind}`,
    file: `allow.${kind}`,
    metavar: "LIST",
    shape: { kind: "permission" },
    form: "permission",
    repeatable: true,
    defaultText: "none",
    default: [],
    group: "tools",
    help: {
      read: "paths that the built-in fs server may read",
      write: "paths that the built-in fs server may write",
      net: "hosts that the built-in http server may reach",
      run: "programs that the built-in exec server may run",
      env: "variables that programs of the exec server get",
    }[kind],
  })),
  {
    name: "exec_sandbox",
    file: "exec.sandbox",
    flag: null,
    shape: SANDBOX,
    default: "none",
    group: "tools",
    help: "wraps each command of the exec server",
  },
];

const LIMITS: Row[] = [
  count("max_steps", DEFAULT_LIMITS.maxSteps, "turns of one agent"),
  count("max_tokens", DEFAULT_LIMITS.maxTokens, "prompt and completion tokens of one agent"),
  {
    name: "max_cost",
    file: "limits.max_cost",
    metavar: "USD",
    shape: { kind: "number", min: 0, above: true },
    group: "limits",
    help: "cost of one agent; needs model.prices",
  },
  count("max_calls", DEFAULT_LIMITS.maxCalls, "tool calls of one agent"),
  count("max_calls_per_turn", DEFAULT_LIMITS.maxCallsPerTurn, "tool calls of one reply"),
  {
    name: "deadline",
    file: "limits.deadline",
    shape: TIME,
    default: formatDuration(DEFAULT_LIMITS.deadlineMs),
    group: "limits",
    help: "wall clock of one run",
  },
  {
    name: "lifetime",
    file: "trigger.lifetime",
    shape: TIME_OR_NONE,
    default: "0s",
    defaultText: "none",
    group: "limits",
    help: "wall clock of a daemon as a whole",
  },
  {
    name: "lifetime_tokens",
    file: "trigger.lifetime_tokens",
    shape: COUNT_OR_NONE,
    default: 0,
    defaultText: "none",
    group: "limits",
    help: "tokens of a daemon as a whole",
  },
  count("idle_limit", DEFAULT_LIMITS.idleLimit, "consecutive turns without new evidence"),
  count("fail_limit", DEFAULT_LIMITS.failLimit, "consecutive turns without any success"),
  count("repeat_cap", DEFAULT_LIMITS.repeatCap, "identical attempts that are executed"),
  count("keep_verbatim", DEFAULT_LIMITS.keepVerbatim, "last tool results kept whole"),
  {
    name: "compact_at",
    file: "limits.compact_at",
    shape: { kind: "number", min: 0, above: true, max: 1 },
    default: DEFAULT_LIMITS.compactAt,
    group: "limits",
    help: "share of the context window",
  },
  {
    name: "observation_bytes",
    file: "limits.observation_bytes",
    flag: null,
    shape: { kind: "size", min: 256 },
    default: formatSize(DEFAULT_LIMITS.observationBytesMax),
    group: "limits",
    help: "of one result, what the model is shown",
  },
  count("max_depth", DEFAULT_LIMITS.maxDepth, "levels of subagents", 0),
  count("max_children", DEFAULT_LIMITS.maxChildren, "subagents of one agent", 0),
  count("max_subagents", DEFAULT_LIMITS.maxSubagents, "subagents of the tree", 0),
  count("tree_tokens", DEFAULT_LIMITS.treeTokensMax, "tokens of the tree"),
  {
    name: "max_memory",
    file: "limits.max_memory",
    shape: { kind: "size", min: 64 * 1024 ** 2 },
    default: formatSize(DEFAULT_LIMITS.memoryBytesMax),
    group: "limits",
    help: "resident memory of one agent",
  },
  {
    name: "progress_timeout",
    file: "limits.progress_timeout",
    flag: null,
    shape: TIME,
    default: formatDuration(DEFAULT_LIMITS.progressTimeoutMs),
    group: "limits",
    help: "silence of one agent before it is looked at",
  },
];

const MODE: Row[] = [
  {
    name: "mode",
    file: "mode",
    shape: { kind: "enum", values: ["once", "loop", "reactive", "schedule"] },
    default: "once",
    group: "mode",
    help: "when to start again and when to exit",
  },
  {
    name: "interval",
    file: "trigger.interval",
    shape: TIME_OR_NONE,
    group: "mode",
    help: "time between starts, of loop and schedule",
  },
  {
    name: "cron",
    file: "trigger.cron",
    metavar: "EXPR",
    shape: TEXT,
    group: "mode",
    help: "start times of schedule: 5 or 6 fields, or @daily and the like",
  },
  {
    name: "timezone",
    file: "trigger.timezone",
    metavar: "ZONE",
    shape: TEXT,
    default: "UTC",
    group: "mode",
    help: "IANA zone of --cron",
  },
  {
    name: "overlap",
    file: "trigger.overlap",
    shape: { kind: "enum", values: ["skip", "queue", "replace"] },
    default: "skip",
    group: "mode",
    help: "what a start does that meets a run in progress",
  },
  {
    name: "jitter",
    file: "trigger.jitter",
    shape: TIME_OR_NONE,
    default: "0s",
    group: "mode",
    help: "random delay of each start, at most",
  },
  {
    name: "catch_up",
    file: "trigger.catch_up",
    shape: SWITCH,
    default: false,
    group: "mode",
    help: "start once for what was missed while down",
  },
  {
    name: "subscribe",
    file: "trigger.subscribe",
    metavar: "SERVER:URI",
    shape: { kind: "list", of: TEXT },
    default: [],
    group: "mode",
    help: "resources to watch, or file:GLOB",
  },
  {
    name: "route",
    file: "trigger.routes",
    metavar: '"MATCH=>spawn|continue:NAME[,…]"',
    shape: { kind: "list", of: ROUTE },
    form: "route",
    default: [],
    group: "mode",
    help: "what a change starts; debounce=TIME, cap=N, overflow=…, max_inflight=N",
  },
  {
    name: "sessions",
    file: "trigger.sessions",
    flag: null,
    metavar: "NAME",
    shape: { kind: "list", of: TEXT, comma: true },
    default: [],
    group: "mode",
    help: "warm sessions beside main that routes may continue",
  },
  {
    name: "max_iterations",
    file: "trigger.max_iterations",
    shape: COUNT_OR_NONE,
    default: 0,
    defaultText: "none",
    group: "mode",
    help: "runs of a daemon",
  },
  {
    name: "session",
    file: "trigger.session",
    shape: { kind: "enum", values: ["fresh", "warm"] },
    defaultText: "warm for a loop without interval, else fresh",
    group: "mode",
    help: "whether the next run of a loop knows the last one",
  },
  {
    name: "trigger_token_file",
    metavar: "FILE",
    shape: PATH,
    group: "mode",
    help: "file with the bearer token of POST /trigger/NAME on --listen",
  },
  {
    name: "lock",
    metavar: "NAME",
    shape: {
      kind: "text",
      pattern: /^[A-Za-z0-9_-]{1,64}$/,
      expects: "a lock name: 1 to 64 of A-Z, a-z, 0-9, _ and -",
    },
    group: "mode",
    help: "a second start under the same name exits 0 at once",
  },
  {
    name: "state_dir",
    file: "state_dir",
    metavar: "DIR",
    shape: PATH,
    defaultText: "$XDG_STATE_HOME/agentd",
    group: "mode",
    help: "state that outlives a daemon",
  },
];

const SAFETY: Row[] = [
  {
    name: "allow_trifecta",
    file: "allow_trifecta",
    shape: SWITCH,
    default: false,
    group: "safety",
    help: "permit untrusted input, sensitive data and egress in one agent",
  },
];

const OUTPUT: Row[] = [
  {
    name: "output",
    file: "output",
    shape: { kind: "enum", values: ["text", "json"] },
    default: "text",
    group: "output",
    common: true,
    help: "form of the result on stdout",
  },
  {
    name: "output_file",
    flag: "--output-file",
    short: "-o",
    metavar: "FILE",
    shape: PATH,
    group: "output",
    help: "write the result to a file instead",
  },
  {
    name: "run_id",
    metavar: "ID",
    shape: {
      kind: "text",
      pattern: /^[A-Za-z0-9_-]{1,64}$/,
      expects: "a run id: 1 to 64 of A-Z, a-z, 0-9, _ and -",
    },
    defaultText: "a new ULID",
    group: "output",
    help: "name of the run",
  },
  {
    name: "run_dir",
    file: "run_dir",
    metavar: "DIR",
    shape: PATH,
    defaultText: "$XDG_STATE_HOME/agentd/runs",
    group: "output",
    common: true,
    help: "where runs are recorded",
  },
  {
    name: "durability",
    file: "durability",
    shape: { kind: "enum", values: ["intents", "all", "none"] },
    default: "intents",
    group: "output",
    help: "lines of the record that wait for the disk",
  },
  {
    name: "notes",
    file: "notes",
    shape: SWITCH,
    default: false,
    group: "output",
    help: "give the agent a notebook in its run directory",
  },
  {
    name: "log_level",
    file: "log.level",
    shape: { kind: "enum", values: ["debug", "info", "warn", "error"] },
    default: "info",
    group: "output",
    common: true,
    help: "least level of telemetry",
  },
  {
    name: "log_format",
    file: "log.format",
    shape: { kind: "enum", values: ["auto", "json", "text"] },
    default: "auto",
    group: "output",
    common: true,
    help: "auto: text on a terminal, JSON lines elsewhere",
  },
  {
    name: "log_content",
    file: "log.content",
    shape: SWITCH,
    default: false,
    group: "output",
    common: true,
    help: "let telemetry carry content",
  },
  {
    name: "quiet",
    short: "-q",
    shape: SWITCH,
    group: "output",
    common: true,
    help: "no telemetry but errors",
  },
  {
    name: "health_file",
    file: "health_file",
    metavar: "FILE",
    shape: PATH,
    group: "output",
    help: "liveness file",
  },
  {
    name: "listen",
    file: "listen",
    metavar: "ADDR",
    shape: TEXT,
    group: "output",
    help: "HOST:PORT of /healthz, /readyz, /metrics",
  },
  {
    name: "drain_timeout",
    file: "drain_timeout",
    shape: TIME,
    default: "25s",
    group: "output",
    help: "from the first signal to the last SIGKILL",
  },
  {
    name: "hook",
    file: "hooks",
    metavar: "EVENT=COMMAND",
    shape: {
      kind: "record",
      fields: {
        before_action: COMMANDS,
        after_observation: COMMANDS,
        before_compaction: COMMANDS,
        on_stop: COMMANDS,
      },
    },
    form: "command_map",
    repeatable: true,
    merged: true,
    default: {},
    group: "output",
    help: "command run at an event of the loop",
  },
  {
    name: "config",
    metavar: "FILE",
    shape: PATH,
    defaultText: "agentd.yaml in the working directory",
    group: "output",
    common: true,
    help: "configuration file, YAML or JSON",
  },
];

function count(name: string, value: number, help: string, min = 1): Row {
  return {
    name,
    file: `limits.${name}`,
    shape: { kind: "int", min },
    default: value,
    group: "limits",
    help,
  };
}

/** Every option, by group. Of two that share a key, the later wins within one level. */
export const OPTIONS: readonly Option[] = [
  ...TASK,
  ...MODEL,
  ...TOOLS,
  ...LIMITS,
  ...MODE,
  ...SAFETY,
  ...OUTPUT,
].map(makeOption);

/** The option of this name; a name that is not in the table is a bug. */
export function optionNamed(name: string): Option {
  const option = OPTIONS.find((each) => each.name === name);
  if (!option) throw new Error(`no option ${name}`);
  return option;
}

/** Default time for a tool server to start, as a file says it. */
export const START_TIMEOUT = formatDuration(START_TIMEOUT_MS);

/** The grammar of the file as one shape: what may stand where (sample.yaml is all of it). */
export function fileShape(): Extract<Shape, { kind: "record" }> {
  return build(OPTIONS.filter((option) => option.inFile), 0);
}

function build(options: Option[], depth: number): Extract<Shape, { kind: "record" }> {
  const fields: Record<string, Shape> = {};
  for (const option of options) {
    const name = option.key[depth]!;
    if (Object.hasOwn(fields, name)) continue;
    fields[name] = option.key.length === depth + 1
      ? option.shape
      : build(options.filter((each) => each.key[depth] === name), depth + 1);
  }
  return { kind: "record", fields };
}
