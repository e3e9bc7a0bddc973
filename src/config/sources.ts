/** The files of a configuration: agentd.yaml, named or found, and the ecosystem's lists of servers. */

import { CONFIG_FILE_BYTES_MAX } from "../core/config_limits.ts";
import { CONFIGURATION_NAME } from "../core/config_name.ts";
import { isObject, type Json, type JsonObject } from "../core/json.ts";
import type { FilesPort } from "../ports/files.ts";
import { isWithin, parentOf, resolvePath } from "../toolserver/paths.ts";
import { type Document, parseDocument } from "./document.ts";
import type { Layers } from "./layers.ts";
import { optionNamed } from "./options.ts";
import { SERVER_NAME, SERVER_NAME_EXPECTS } from "./shapes.ts";
import type { Locate } from "./origin.ts";
import { describeFailure } from "./problem.ts";
import type { LoadInput } from "./reading.ts";
import { readUserText } from "./user_text.ts";

/** A configuration file as it was read. */
export interface ConfigFile {
  /** Absolute. */
  path: string;
  /** As people name it. */
  label: string;
  content: JsonObject;
  locate: Locate;
  /** Not named by the user: it is used only if nothing but the user can have written it. */
  found: boolean;
}

/** The file that `--config` or AGENT_CONFIG names, else the one found; null if there is none. */
export async function readConfigFile(
  input: LoadInput,
  layers: Layers,
): Promise<ConfigFile | null> {
  const flag = input.flags.config?.at(-1);
  // A recorded run is complete; only a file that is named now may change it.
  const variable = input.recorded ? undefined : input.env.AGENT_CONFIG || undefined;
  const named = flag ?? variable;
  // That an empty name is no path is said of the option itself.
  if (named === "") return null;
  if (named !== undefined) {
    const where = flag !== undefined ? "--config" : "AGENT_CONFIG";
    return await readConfig(input, layers, resolvePath(input.cwd, named), named, where);
  }
  if (input.recorded) return null;
  const path = resolvePath(input.cwd, CONFIGURATION_NAME);
  if (!input.files.lstat(path).ok) return null;
  const why = whyOpenToOthers(input, path);
  if (why !== null) {
    input.notice(`${CONFIGURATION_NAME} is not used: ${why}`);
    return null;
  }
  return await readConfig(input, layers, path, CONFIGURATION_NAME, null);
}

/** Why a found file may have been written by someone else; null if only the user can have. */
function whyOpenToOthers(input: LoadInput, path: string): string | null {
  const name = path.slice(parentOf(path).length).replace(/^[\\/]/, "");
  const hint = `chmod go-w, or name it with --config ${name}`;
  for (const [what, each] of [[name, path], ["its directory", parentOf(path)]] as const) {
    const stat = input.files.stat(each);
    if (!stat.ok) return stat.failure.message;
    const { mode, uid } = stat.value;
    if (input.uid === null || uid === null) continue;
    const isFile = each === path;
    if (isFile && uid !== input.uid) return `it belongs to another user (uid ${uid}); ${hint}`;
    // In a sticky directory others cannot replace what is not theirs.
    if ((mode & 0o022) !== 0 && (isFile || (mode & 0o1000) === 0)) {
      const who = (mode & 0o002) !== 0 ? "everyone" : "its group";
      return `${what === name ? `${who} can write it` : `${who} can write its directory`} (mode ${
        mode.toString(8).padStart(4, "0")
      }); ${hint}`;
    }
  }
  const link = input.files.lstat(path);
  if (link.ok && input.uid !== null && link.value.uid !== null && link.value.uid !== input.uid) {
    return `it is another user's link (uid ${link.value.uid}); ${hint}`;
  }
  return null;
}

/** Why a write grant makes a found file useless as the operator's word; null if none covers it. */
export function whyGranted(
  file: ConfigFile,
  write: Json | undefined,
  cwd: string,
  files: FilesPort,
): string | null {
  if (write === true) return "this run may write everything, so a run before may have written it";
  if (!Array.isArray(write)) return null;
  const real = realPath(files, file.path);
  for (const item of write) {
    const granted = resolvePath(cwd, String(item));
    for (const path of [file.path, real]) {
      for (const root of [granted, realPath(files, granted)]) {
        if (isWithin(path, root)) {
          return `this run may write ${String(item)}, so a run before may have written the file`;
        }
      }
    }
  }
  return null;
}

function realPath(files: FilesPort, path: string): string {
  const real = files.realPath(path);
  return real.ok ? real.value : path;
}

async function readConfig(
  input: LoadInput,
  layers: Layers,
  path: string,
  label: string,
  where: string | null,
): Promise<ConfigFile | null> {
  const document = await readDocument(input, layers, path, label, where, isJson(path));
  if (!document) return null;
  const locate: Locate = (below) => {
    const place = document.placeOf(below);
    return `${label}${place ? `:${place.line}` : ""}: ${below.join(".")}`;
  };
  const found = where === null;
  if (document.value === null) return { path, label, content: {}, locate, found };
  if (!isObject(document.value)) {
    layers.report(`${label}:1`, undefined, "the file is not a mapping of keys to values");
    return null;
  }
  return { path, label, content: document.value, locate, found };
}

function isJson(path: string): boolean {
  return /\.json$/i.test(path);
}

async function readDocument(
  input: LoadInput,
  layers: Layers,
  path: string,
  label: string,
  where: string | null,
  json: boolean,
): Promise<Document | null> {
  const text = readUserText(input.files, path, CONFIG_FILE_BYTES_MAX);
  if (!text.ok) {
    layers.report(where ?? label, label, `Cannot read it: ${describeFailure(label, text.failure)}`);
    return null;
  }
  const document = await parseDocument(text.value, json);
  if (document.ok) return document.value;
  for (const fault of document.failure) {
    layers.report(
      `${label}:${fault.line}:${fault.column}`,
      undefined,
      `Cannot read it as ${json ? "JSON" : "YAML"}: ${fault.message}`,
    );
  }
  return null;
}

/** Lays the servers of `{"mcpServers": …}` files; keys that we do not have are other programs'. */
export async function layServerFiles(
  input: LoadInput,
  layers: Layers,
  paths: readonly string[],
  level: "env" | "flag",
): Promise<Map<string, string>> {
  const declared = new Map<string, string>();
  const where = level === "env" ? "AGENT_MCP_CONFIG" : "--mcp-config";
  for (const written of paths) {
    if (written === "") {
      layers.report(where, written, `"" is not a path`);
      continue;
    }
    const document = await readDocument(
      input,
      layers,
      resolvePath(input.cwd, written),
      written,
      where,
      true,
    );
    if (!document) continue;
    const servers = isObject(document.value) ? document.value.mcpServers : undefined;
    if (!isObject(servers)) {
      layers.report(where, written, `${written} has no object "mcpServers"`);
      continue;
    }
    for (const [name, entry] of Object.entries(servers)) {
      const locate: Locate = (below) => {
        const path = ["mcpServers", ...below];
        const place = document.placeOf(path);
        return `${written}${place ? `:${place.line}` : ""}: ${path.join(".")}`;
      };
      const at = locate([name]);
      if (!SERVER_NAME.test(name)) {
        layers.report(at, name, `${JSON.stringify(name)} is not ${SERVER_NAME_EXPECTS}`);
        continue;
      }
      if (declared.has(name)) {
        layers.report(at, name, `the server ${JSON.stringify(name)} is declared twice`);
        continue;
      }
      const server = readEntry(layers, at, entry);
      if (!server) continue;
      declared.set(name, at);
      layers.lay(optionNamed("mcp"), { [name]: server }, level, locate);
    }
  }
  return declared;
}

/** The keys of an entry that we have; undefined for one that is switched off or cannot be used. */
function readEntry(layers: Layers, at: string, entry: Json): JsonObject | undefined {
  if (!isObject(entry)) {
    layers.report(at, undefined, "a server must be an object");
    return undefined;
  }
  if (entry.disabled === true) return undefined;
  if (entry.type === "sse") {
    layers.report(at, entry.type, "the SSE transport is not supported", "use streamable HTTP");
    return undefined;
  }
  const server: JsonObject = {};
  for (const key of ["command", "args", "env", "cwd", "url", "headers"]) {
    const value = entry[key];
    if (value !== undefined && value !== null) server[key] = value;
  }
  for (const key of ["env", "headers"]) {
    const map = server[key];
    if (!isObject(map)) continue;
    server[key] = Object.fromEntries(
      Object.entries(map).map(([name, value]) => [
        name,
        // Other programs write ${NAME} for a variable, and numbers for texts.
        typeof value === "string"
          ? value.replace(/(?<!\$)\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g, "${env:$1}")
          : typeof value === "object"
          ? value
          : String(value),
      ]),
    );
  }
  return server;
}
