/** The shapes that the table of options names. */

import type { Shape } from "./shape.ts";

/** Any text. */
export const TEXT: Shape = { kind: "text" };
/** A path. */
export const PATH: Shape = { kind: "text", pattern: /^[^\0]+$/, expects: "a path" };
/** On or off. */
export const SWITCH: Shape = { kind: "boolean" };
/** At least one. */
export const COUNT: Shape = { kind: "int", min: 1 };
/** Zero means no bound, or none. */
export const COUNT_OR_NONE: Shape = { kind: "int", min: 0 };
/** A duration above zero. */
export const TIME: Shape = { kind: "duration", minMs: 1 };
/** A duration; zero means none. */
export const TIME_OR_NONE: Shape = { kind: "duration", minMs: 0 };
/** What wraps a program. */
export const SANDBOX: Shape = { kind: "enum", values: ["none", "bwrap"] };
/** USD per million tokens. */
export const PRICE: Shape = { kind: "number", min: 0 };
/** Command lines. */
export const COMMANDS: Shape = { kind: "list", of: { kind: "command" } };

/** Names of tool servers: what a wire name, a glob and a route can carry. */
export const SERVER_NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,31}$/;
/** What messages say of {@link SERVER_NAME}. */
export const SERVER_NAME_EXPECTS =
  "a server name: 1 to 32 of A-Z, a-z, 0-9, _, . and -, a letter or digit first";

/** One entry of `verify.checks`. */
export const CHECK: Shape = {
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

/** What is declared of tools under one glob. */
export const TOOL_RULE: Shape = {
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

/** One entry of `trigger.routes`. */
export const ROUTE: Shape = {
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
