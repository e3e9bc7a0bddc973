/** A whole configuration, from every source, into settings: or every problem of it at once. */

import { isObject, type Json, type JsonObject } from "../core/json.ts";
import type { Limits } from "../core/limits.ts";
import { failed, type Outcome, success } from "../core/outcome.ts";
import { withheldProxies } from "../wire/environment.ts";
import type { Command, Durability, HookEvent, HookSettings, LogSettings } from "../wire/payload.ts";
import { parentOf, resolvePath } from "../toolserver/paths.ts";
import { Layers } from "./layers.ts";
import { readModel } from "./model.ts";
import { INVOCATION, type Option } from "./option.ts";
import { optionNamed, OPTIONS } from "./options.ts";
import { formatProblem, maskProblem, type Problem } from "./problem.ts";
import { type LoadInput, Reading } from "./reading.ts";
import { hasReference, isCredentialName } from "./secrets.ts";
import { readAllow, readServers } from "./servers.ts";
import type { Settings } from "./settings.ts";
import { type ConfigFile, layServerFiles, readConfigFile, whyGranted } from "./sources.ts";
import { didYouMean, nearest } from "./suggest.ts";
import { readTask } from "./task.ts";
import { readTools } from "./tools.ts";
import { readTrigger } from "./trigger.ts";
import { checkUrl } from "./url.ts";
import { splitWords } from "./words.ts";

/**
 * The settings that flags, environment, file and defaults make together, or every problem of them.
 * Files are read, nothing is written, started or contacted.
 */
export async function loadSettings(input: LoadInput): Promise<Outcome<Settings, Problem[]>> {
  const { layers, file } = await layEverything(input);
  const reading = new Reading(layers, input);
  const allow = readAllow(reading);
  const servers = readServers(reading, allow);
  const names = servers.map((server) => server.name);
  const task = await readTask(
    reading,
    servers.filter((server) => server.kind !== "builtin").map((server) => server.name),
  );
  const model = readModel(reading);
  const { mode, trigger } = await readTrigger(
    reading,
    names,
    // One that cannot be read is told as such; `permissions` needs none.
    reading.text("instruction") !== null || layers.mayBeGiven("instruction") ||
      input.purpose !== "run" && input.purpose !== "validate",
  );
  const directories = readDirectories(reading);
  const tools = readTools(reading, names);
  const refused = reading.on("allow_trifecta") ? null : input.judge?.(servers, tools) ?? null;
  if (refused !== null) reading.report(reading.where("allow_trifecta"), undefined, refused);
  const settings: Settings = {
    mode,
    task,
    model,
    servers,
    tools,
    allow,
    limits: readLimits(reading),
    trigger,
    hooks: readHooks(reading),
    allowTrifecta: reading.on("allow_trifecta"),
    notes: reading.on("notes"),
    output: reading.text("output") as Settings["output"],
    ...directories,
    durability: reading.text("durability") as Durability,
    log: readLog(reading),
    listen: reading.text("listen"),
    healthFile: pathOf(reading, "health_file"),
    drainTimeoutMs: reading.ms("drain_timeout")!,
    lock: reading.text("lock"),
    workingDirectory: input.cwd,
    configurationFile: file?.path ?? null,
    configuration: maskConfiguration(layers.tree),
    vault: reading.vault,
  };
  checkTargets(reading);
  checkRunDirectory(reading, directories.runDirectory);
  checkOtlp(reading);
  const problems = distinct(layers.problems).map((each) => maskProblem(each, reading.vault));
  return problems.length > 0 ? failed(problems) : success(settings);
}

/** The same line once: two routes may share a mistake and a place. */
function distinct(problems: readonly Problem[]): Problem[] {
  return [...new Map(problems.map((each) => [formatProblem(each), each])).values()];
}

/** What commands that only look at runs need of a configuration. */
export type Basics = Pick<Settings, "output" | "runDirectory" | "stateDirectory" | "log">;

/** The options that work with every command, from every source; nothing else is looked at. */
export async function loadBasics(input: LoadInput): Promise<Outcome<Basics, Problem[]>> {
  const reader = new Layers();
  const file = await readConfigFile(input, reader);
  const layers = await layLevels(
    input,
    file,
    (option) => option.common || option.name === "state_dir",
  );
  layers.problems.unshift(...reader.problems);
  const reading = new Reading(layers, input);
  const { runDirectory, stateDirectory } = readDirectories(reading);
  const basics: Basics = {
    output: reading.text("output") as Settings["output"],
    runDirectory,
    stateDirectory,
    log: readLog(reading),
  };
  return layers.problems.length > 0 ? failed(layers.problems) : success(basics);
}

/** Lays every level. A found file that the run itself may write is left out, and that is said. */
async function layEverything(
  input: LoadInput,
): Promise<{ layers: Layers; file: ConfigFile | null }> {
  const reader = new Layers();
  const file = await readConfigFile(input, reader);
  const layers = await layLevels(input, file);
  layers.fileUnread = reader.problems.length > 0;
  if (file?.found) {
    const write = layers.get("allow_write");
    const why = whyGranted(file, write, input.cwd, input.files);
    if (why !== null) {
      input.notice(`${file.label} is not used: ${why}; name it with --config to use it anyway`);
      return { layers: await layLevels(input, null), file: null };
    }
  }
  layers.problems.unshift(...reader.problems);
  return { layers, file };
}

async function layLevels(
  input: LoadInput,
  file: ConfigFile | null,
  select: ((option: Option) => boolean) | null = null,
): Promise<Layers> {
  const layers = new Layers(select);
  if (input.recorded) {
    layers.layFile(
      input.recorded.configuration,
      "record",
      (below) => `the record's ${below.join(".")}`,
    );
  }
  if (file) layers.layFile(file.content, "file", file.locate);
  if (!input.recorded) await layVariables(input, layers);
  await layTextsOf(input, layers, "flag", (name) => input.flags[name]);
  if (select === null) reportUnknownFlags(input, layers);
  return layers;
}

/** Flags come by name, also from programs that embed this one. */
function reportUnknownFlags(input: LoadInput, layers: Layers): void {
  const known = OPTIONS.filter((option) => option.flag !== null).map((option) => option.name);
  for (const name of Object.keys(input.flags)) {
    if (OPTIONS.some((option) => option.name === name)) continue;
    layers.report(
      `--${name.replaceAll("_", "-")}`,
      undefined,
      "unknown option",
      didYouMean(name, known),
    );
  }
}

async function layVariables(input: LoadInput, layers: Layers): Promise<void> {
  const known = new Map(
    OPTIONS.flatMap((option) => option.env === null ? [] : [[option.env, option]]),
  );
  await layTextsOf(input, layers, "env", (name) => {
    const option = optionNamed(name);
    const text = option.env === null ? undefined : input.env[option.env];
    if (text === undefined || text.trim() === "") return undefined;
    return option.repeatable ? text.split("\n").filter((line) => line.trim() !== "") : [text];
  });
  for (const name of Object.keys(input.env)) {
    // Other programs use this prefix too: only what is nearly ours is worth a word.
    if (!name.startsWith("AGENT_") || known.has(name) || name.length < 12) continue;
    const near = nearest(name, known.keys());
    if (near !== undefined) input.notice(`${name} is not used; did you mean ${near}?`);
  }
  for (const name of withheldProxies((name) => input.env[name])) {
    input.notice(`${name} is not used: it holds credentials, and agents get none by environment`);
  }
}

async function layTextsOf(
  input: LoadInput,
  layers: Layers,
  level: "env" | "flag",
  textsOf: (name: string) => readonly string[] | undefined,
): Promise<void> {
  let declared = new Map<string, string>();
  for (const option of OPTIONS) {
    if (layers.select !== null && !layers.select(option)) continue;
    const texts = textsOf(option.name);
    if (texts === undefined || texts.length === 0) continue;
    if (option.form === "mcp_config") {
      declared = await layServerFiles(input, layers, texts, level);
      continue;
    }
    if (option.form === "mcp") {
      for (const text of texts) {
        const name = text.slice(0, Math.max(0, text.indexOf("=")));
        const at = declared.get(name);
        if (at !== undefined) {
          layers.report(
            level === "env" ? "AGENT_MCP" : "--mcp",
            name,
            `the server ${JSON.stringify(name)} is declared twice, also in ${at}`,
          );
        }
      }
    }
    layers.layTexts(option, texts, level, level === "flag" && input.purpose === "resume");
  }
}

function readLimits(reading: Reading): Limits {
  return {
    maxSteps: reading.number("max_steps")!,
    maxTokens: reading.number("max_tokens")!,
    maxCost: reading.number("max_cost"),
    maxCalls: reading.number("max_calls")!,
    maxCallsPerTurn: reading.number("max_calls_per_turn")!,
    deadlineMs: reading.ms("deadline")!,
    idleLimit: reading.number("idle_limit")!,
    failLimit: reading.number("fail_limit")!,
    repeatCap: reading.number("repeat_cap")!,
    keepVerbatim: reading.number("keep_verbatim")!,
    compactAt: reading.number("compact_at")!,
    observationBytesMax: reading.bytes("observation_bytes")!,
    maxDepth: reading.number("max_depth")!,
    maxChildren: reading.number("max_children")!,
    maxSubagents: reading.number("max_subagents")!,
    treeTokensMax: reading.number("tree_tokens")!,
    memoryBytesMax: reading.bytes("max_memory")!,
    progressTimeoutMs: reading.ms("progress_timeout")!,
  };
}

function readHooks(reading: Reading): HookSettings {
  const written = reading.get("hook");
  const commandsOf = (event: HookEvent): Command[] => {
    const list = isObject(written) ? written[event] : undefined;
    return (Array.isArray(list) ? list : []).map((line) => {
      const words = splitWords(String(line));
      return words.ok ? words.value : [];
    });
  };
  return {
    before_action: commandsOf("before_action"),
    after_observation: commandsOf("after_observation"),
    before_compaction: commandsOf("before_compaction"),
    on_stop: commandsOf("on_stop"),
  };
}

function readLog(reading: Reading): LogSettings {
  const format = reading.text("log_format");
  return {
    level: reading.text("log_level") as LogSettings["level"],
    format: format === "text" || (format === "auto" && reading.input.stderrIsTerminal)
      ? "text"
      : "json",
    content: reading.on("log_content"),
    quiet: reading.on("quiet"),
  };
}

function readDirectories(
  reading: Reading,
): Pick<Settings, "runDirectory" | "stateDirectory" | "runId"> {
  const stateDirectory = pathOf(reading, "state_dir") ?? stateHome(reading.input);
  const runDirectory = pathOf(reading, "run_dir") ?? resolvePath(stateHome(reading.input), "runs");
  // The recorded name is that of the run gone on with: whoever goes on has it, a fork gets its own.
  const runId = reading.layers.level("run_id") === "record" ? null : reading.text("run_id");
  if (runId === "last") {
    const where = reading.where("run_id");
    reading.report(where, runId, '"last" stands for the newest run', "choose another id");
  } else if (runId !== null && reading.input.files.lstat(resolvePath(runDirectory, runId)).ok) {
    reading.report(
      reading.where("run_id"),
      runId,
      `the run ${runId} exists already in ${runDirectory}`,
      `choose another id, or go on with it: agentd resume ${runId}`,
    );
  }
  return { runDirectory, stateDirectory, runId };
}

/** Where state is kept unless said otherwise (XDG base directories). */
function stateHome(input: Pick<LoadInput, "env" | "home" | "cwd">): string {
  const base = input.env.XDG_STATE_HOME;
  // The specification says that a relative path is to be ignored.
  if (base !== undefined && base.startsWith("/")) return resolvePath(base, "agentd");
  return resolvePath(input.home ?? input.cwd, ".local/state/agentd");
}

function pathOf(reading: Reading, name: string): string | null {
  const path = reading.text(name);
  return path === null ? null : reading.absolute(path);
}

function checkOtlp(reading: Reading): void {
  const written = reading.text("otlp_endpoint");
  if (written === null) return;
  const url = checkUrl(written, reading.on("allow_insecure"));
  if (url.ok) return;
  reading.report(
    reading.where("otlp_endpoint"),
    url.failure.value,
    url.failure.message,
    url.failure.hint,
  );
}

/** Files that will be written at the end: found out now, so that no result is lost then. */
function checkTargets(reading: Reading): void {
  for (const name of ["output_file", "record_model"]) {
    const path = pathOf(reading, name);
    if (path === null || (name === "output_file" && isStream(reading.text(name)!))) continue;
    const where = reading.where(name);
    const target = reading.input.files.stat(path);
    if (target.ok && target.value.kind !== "file") {
      const what = target.value.kind === "directory" ? "a directory" : "no regular file";
      reading.report(where, path, `Cannot write ${path}: it is ${what}`);
      continue;
    }
    const directory = reading.input.files.stat(parentOf(path));
    if (!directory.ok && directory.failure.class === "denied") {
      reading.report(where, path, `Cannot write ${path}: no access to ${parentOf(path)}`);
    } else if (!directory.ok || directory.value.kind !== "directory") {
      reading.report(
        where,
        path,
        `Cannot write ${path}: there is no directory ${parentOf(path)}`,
        "make it first",
      );
    }
  }
}

/** The place of the records can be made, as far as nothing else stands in its way. */
function checkRunDirectory(reading: Reading, runDirectory: string): void {
  for (let path = runDirectory;; path = parentOf(path)) {
    const found = reading.input.files.stat(path);
    if (found.ok && found.value.kind !== "directory") {
      reading.report(
        reading.where("run_dir"),
        runDirectory,
        `Cannot record runs in ${runDirectory}: ${path} is no directory`,
      );
    }
    if (found.ok || path === parentOf(path)) return;
  }
}

/** Where spans are sent while running; null: nowhere. */
export function otlpEndpointOf(settings: Settings): string | null {
  const invocation = settings.configuration[INVOCATION];
  const url = isObject(invocation) ? invocation.otlp_endpoint : undefined;
  return typeof url === "string" ? url : null;
}

/** Where the result goes when it is wanted nowhere. */
export const NO_OUTPUT = "/dev/null";

/** The file that `-o` names, absolute; null: stdout, which `-` means too. */
export function outputFileOf(settings: Settings): string | null {
  const invocation = settings.configuration[INVOCATION];
  const path = isObject(invocation) ? invocation.output_file : undefined;
  if (typeof path !== "string" || (isStream(path) && path !== NO_OUTPUT)) return null;
  return resolvePath(settings.workingDirectory, path);
}

/** Whether an output file is none, but a name for stdout or for nowhere. */
function isStream(path: string): boolean {
  return path === "-" || path === "/dev/stdout" || path === NO_OUTPUT;
}

/**
 * The effective values by file key. References to secrets stay as they are written; a credential that
 * is written out is `***`. What no file has stands below `invocation`.
 */
function maskConfiguration(tree: JsonObject): JsonObject {
  const masked = structuredClone(tree);
  const servers = masked.mcp_servers;
  for (const server of Object.values(isObject(servers) ? servers : {})) {
    for (const kind of ["env", "headers"]) {
      const map: Json | undefined = isObject(server) ? server[kind] : undefined;
      if (!isObject(map)) continue;
      for (const [name, value] of Object.entries(map)) {
        if (isCredentialName(name) && !hasReference(String(value))) map[name] = "***";
      }
    }
  }
  return masked;
}
