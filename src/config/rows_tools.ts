/** Rows of the table of options: tools and safety. */

import type { Row } from "./option.ts";
import {
  SANDBOX,
  SERVER,
  SERVER_NAME,
  SERVER_NAME_EXPECTS,
  SWITCH,
  TEXT,
  TIME,
  TOOL_RULE,
} from "./shapes.ts";

/** Options of the group `tools`. */
export const TOOLS_OPTIONS: readonly Row[] = [
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

/** Options of the group `safety`. */
export const SAFETY_OPTIONS: readonly Row[] = [
  {
    name: "allow_trifecta",
    file: "allow_trifecta",
    shape: SWITCH,
    default: false,
    group: "safety",
    help: "permit untrusted input, sensitive data and egress in one agent",
  },
];
