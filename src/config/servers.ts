/** Tool servers from the configuration: those of others, and the built-in ones that `allow` turns on. */

import { SERVERS_MAX } from "../core/config_limits.ts";
import { isObject, type Json, type JsonObject } from "../core/json.ts";
import { START_TIMEOUT_MS } from "../core/limits.ts";
import type { SecretText } from "../core/secret.ts";
import { parsePermission } from "../toolserver/flags.ts";
import { withRealPaths } from "../toolserver/real_paths.ts";
import type {
  BuiltinServer,
  HttpServer,
  Permission,
  PermissionSet,
  ServerSettings,
  StdioServer,
} from "../wire/payload.ts";
import { NO_PERMISSIONS } from "../wire/permissions.ts";
import { findProgram } from "./program.ts";
import { durationOf, type Reading } from "./reading.ts";
import { hasReference, isCredentialName } from "./secrets.ts";
import { checkUrl } from "./url.ts";

/** Names that mean something else where servers are named. */
const TAKEN: Readonly<Record<string, string>> = {
  file: "--subscribe file:GLOB watches files",
  self: "it is that of the agent's own tools",
  trigger: "it is that of POST /trigger/NAME",
};
/** What a credential is in the effective configuration. */
const MASKED = "***";

/** Reads what `--allow-…` grants, with absolute paths and programs. */
export function readAllow(reading: Reading): PermissionSet {
  const kinds = ["read", "write", "net", "run", "env"] as const;
  const allow: PermissionSet = { ...NO_PERMISSIONS };
  for (const kind of kinds) {
    const written = reading.get(`allow_${kind}`);
    if (written === true) allow[kind] = true;
    if (!Array.isArray(written)) continue;
    const items = written.map(String).map((item) =>
      (kind === "read" || kind === "write") && item.trim() !== "" ? reading.absolute(item) : item
    );
    const where = reading.where(`allow_${kind}`);
    const parsed = parsePermission(kind, items, reading.input.cwd);
    for (const message of parsed.problems) {
      reading.report(where, written, `Cannot allow ${kind}: ${message}`);
    }
    allow[kind] = kind === "run" ? readPrograms(reading, parsed.permission) : parsed.permission;
  }
  if (allow.env !== false && allow.run === false) {
    reading.input.notice(
      `${reading.where("allow_env")} has no effect: only programs of the exec server, which ` +
        "--allow-run turns on, get variables",
    );
  }
  return allow;
}

/** Programs as absolute paths: what a name means must not depend on who looks later. */
function readPrograms(reading: Reading, permission: Permission): Permission {
  if (!Array.isArray(permission)) return permission;
  return permission.map((item) => {
    const path = findProgram(item, reading.input.cwd, reading.input.env, reading.input.files);
    if (path !== undefined) return path;
    reading.report(
      reading.where("allow_run"),
      item,
      `Cannot allow ${JSON.stringify(item)} to run: no such program`,
      /[\\/]/.test(item) ? "" : "it is on no directory of PATH",
    );
    return item;
  });
}

/** Every server: declared ones in their order, then fs, http and exec where they are turned on. */
export function readServers(reading: Reading, allow: PermissionSet): ServerSettings[] {
  const declared = reading.get("mcp");
  const servers: ServerSettings[] = [];
  for (const [name, entry] of Object.entries(isObject(declared) ? declared : {})) {
    const server = isObject(entry) ? readServer(reading, name, entry) : undefined;
    if (server) servers.push(server);
  }
  const builtins = builtinServers(
    withRealGrants(reading, allow),
    reading.text("exec_sandbox") === "bwrap",
  );
  for (const server of builtins) {
    if (isObject(declared) && Object.hasOwn(declared, server.name)) {
      reading.report(
        reading.where("mcp", server.name),
        server.name,
        `the server name ${
          JSON.stringify(server.name)
        } is that of the built-in server, which is on`,
        "give yours another name",
      );
    }
  }
  for (const [name, why] of Object.entries(TAKEN)) {
    if (!isObject(declared) || !Object.hasOwn(declared, name)) continue;
    reading.report(
      reading.where("mcp", name),
      name,
      `the server name ${JSON.stringify(name)} is taken: ${why}`,
      "give it another name",
    );
  }
  if (servers.length > SERVERS_MAX) {
    reading.report(
      reading.where("mcp"),
      servers.length,
      `${servers.length} tool servers`,
      `at most ${SERVERS_MAX}`,
    );
  }
  checkSandbox(reading, servers);
  return [...servers, ...builtins];
}

/** What a link in a granted path leads to is granted with it: a server cannot look that far up. */
function withRealGrants(reading: Reading, allow: PermissionSet): PermissionSet {
  const realPath = (path: string): string | undefined => {
    const real = reading.input.files.realPath(path);
    return real.ok ? real.value : undefined;
  };
  return {
    ...allow,
    read: withRealPaths(allow.read, realPath),
    write: withRealPaths(allow.write, realPath),
  };
}

function builtinServers(allow: PermissionSet, sandboxed: boolean): BuiltinServer[] {
  const make = (
    name: BuiltinServer["name"],
    permissions: Partial<PermissionSet>,
  ): BuiltinServer => ({
    kind: "builtin",
    name,
    permissions: { ...NO_PERMISSIONS, ...permissions },
    sandbox: name === "exec" && sandboxed ? "bwrap" : "none",
    required: true,
    startTimeoutMs: START_TIMEOUT_MS,
  });
  const servers: BuiltinServer[] = [];
  if (allow.read !== false || allow.write !== false) {
    servers.push(make("fs", { read: allow.read, write: allow.write }));
  }
  if (allow.net !== false) servers.push(make("http", { net: allow.net }));
  if (allow.run !== false) {
    // What else is granted tells what a sandboxed command may write, and whether it has a network.
    const more = sandboxed ? { write: allow.write, net: allow.net } : {};
    servers.push(make("exec", { run: allow.run, env: allow.env, ...more }));
  }
  return servers;
}

function checkSandbox(reading: Reading, servers: readonly ServerSettings[]): void {
  const asked = servers.filter((server) => server.kind === "stdio" && server.sandbox === "bwrap")
    .map((server) => reading.where("mcp", server.name, "sandbox"));
  if (reading.text("exec_sandbox") === "bwrap") asked.push(reading.where("exec_sandbox"));
  if (asked.length === 0) return;
  const { cwd, env, files } = reading.input;
  if (findProgram("bwrap", cwd, env, files) !== undefined) return;
  for (const where of asked) {
    reading.report(
      where,
      "bwrap",
      "Cannot wrap it in bwrap: the program is on no directory of PATH",
      "install bubblewrap, or write none",
    );
  }
}

function readServer(reading: Reading, name: string, entry: JsonObject): ServerSettings | undefined {
  const where = reading.where("mcp", name);
  const hasCommand = typeof entry.command === "string";
  if (hasCommand === (typeof entry.url === "string")) {
    reading.report(
      where,
      name,
      hasCommand ? "it has both a command and a url" : "it has neither a command nor a url",
      "a server is either {command, args, env, cwd} or {url, headers}",
    );
    return undefined;
  }
  const foreign = (hasCommand ? ["headers", "era"] : ["args", "env", "cwd", "sandbox"])
    .filter((key) => (entry[key] ?? null) !== null);
  for (const key of foreign) {
    reading.report(
      reading.where("mcp", name, key),
      undefined,
      `${key} is not a key of a server with a ${hasCommand ? "command" : "url"}`,
      "leave it out",
    );
  }
  return hasCommand ? readStdio(reading, name, entry) : readHttp(reading, name, entry);
}

function readStdio(reading: Reading, name: string, entry: JsonObject): StdioServer {
  const args = Array.isArray(entry.args) ? entry.args.map(String) : [];
  [String(entry.command), ...args].forEach((word, index) => {
    const where = index === 0
      ? reading.where("mcp", name, "command")
      : reading.where("mcp", name, "args", String(index - 1));
    if (hasReference(word)) {
      reading.report(
        where,
        word,
        `${JSON.stringify(word)} would show a secret in the list of processes`,
        "hand it over in env",
      );
    }
    if (word.includes("\0")) reading.report(where, word, "it has a NUL character");
  });
  if (String(entry.command).trim() === "") {
    reading.report(reading.where("mcp", name, "command"), "", "the command is empty");
  }
  return {
    kind: "stdio",
    name,
    command: String(entry.command),
    args,
    env: readSecretMap(reading, name, "env", entry.env),
    cwd: reading.absolute(typeof entry.cwd === "string" ? entry.cwd : "."),
    required: entry.required !== false,
    startTimeoutMs: durationOf(entry.start_timeout) ?? START_TIMEOUT_MS,
    sandbox: entry.sandbox === "bwrap" ? "bwrap" : "none",
  };
}

function readHttp(reading: Reading, name: string, entry: JsonObject): HttpServer {
  const where = reading.where("mcp", name, "url");
  const written = String(entry.url);
  let url = written;
  if (hasReference(written)) {
    reading.report(
      where,
      written,
      "a reference to a secret cannot stand in a URL, which logs and errors show",
      "use headers",
    );
  } else {
    const checked = checkUrl(written, reading.on("allow_insecure"));
    if (checked.ok) url = checked.value;
    else {
      reading.report(where, checked.failure.value, checked.failure.message, checked.failure.hint);
    }
  }
  return {
    kind: "http",
    name,
    url,
    headers: readSecretMap(reading, name, "headers", entry.headers),
    era: typeof entry.era === "string" ? entry.era : "auto",
    required: entry.required !== false,
    startTimeoutMs: durationOf(entry.start_timeout) ?? START_TIMEOUT_MS,
  };
}

/** Names of variables and of headers (RFC 9110 tokens). */
const NAMES = {
  env: /^[A-Za-z_][A-Za-z0-9_]*$/,
  headers: /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/,
} as const;

/**
 * Variables or headers. A value under a name of a credential is a secret also where it is written
 * out, as the ecosystem's files do.
 */
function readSecretMap(
  reading: Reading,
  server: string,
  kind: "env" | "headers",
  map: Json | undefined,
): Record<string, SecretText> {
  const texts: Record<string, SecretText> = {};
  for (const [name, value] of Object.entries(isObject(map) ? map : {})) {
    const where = reading.where("mcp", server, kind, name);
    const written = String(value);
    if (!NAMES[kind].test(name)) {
      const what = kind === "env" ? "a variable" : "a header";
      reading.report(where, name, `${JSON.stringify(name)} is no name of ${what}`);
      continue;
    }
    if (written === MASKED && reading.layers.level("mcp", server) === "record") {
      reading.report(
        where,
        MASKED,
        "the record does not hold this credential",
        "declare the server again with --mcp-config, or put a reference into its configuration",
      );
      continue;
    }
    if (!hasReference(written) && isCredentialName(name) && written !== "") {
      const secret = `literal:mcp_servers.${server}.${kind}.${name}`;
      reading.vault.add(secret, written);
      texts[name] = [{ secret }];
    } else {
      const text = reading.secretText(written, where);
      if (text) texts[name] = text;
    }
    const read = texts[name];
    if (kind === "headers" && read && !reading.fitsHeader(read, where)) delete texts[name];
  }
  return texts;
}
