/** A tool host with the real broker's servers below it, and everything it says kept for the test. */

import { Servers } from "../../src/broker/servers.ts";
import { failed } from "../../src/core/outcome.ts";
import { Vault } from "../../src/core/secret.ts";
import { createToolHost } from "../../src/mcp/tool_host.ts";
import type { Fields } from "../../src/ports/telemetry.ts";
import type { Tool, ToolsChange, ToolsPort } from "../../src/ports/tools.ts";
import { systemClock } from "../../src/sys/clock.ts";
import { systemProcess } from "../../src/sys/process.ts";
import { systemRandom } from "../../src/sys/random.ts";
import { systemProgram } from "../../src/sys/self.ts";
import type {
  AgentPayload,
  HttpServer,
  ServerSettings,
  StdioServer,
  ToolRule,
  ToolSettings,
} from "../../src/wire/payload.ts";

const root = new URL("../../", import.meta.url).pathname;

/** One line of telemetry. */
export interface Line {
  event: string;
  fields: Fields;
}

/** A host under test. */
export interface HostBench {
  host: ToolsPort;
  lines: Line[];
  changes: ToolsChange[];
  /** Processes that run now. */
  pids(): number[];
  /** Resolves with the first change, past or coming, that fits. */
  change(fits: (change: ToolsChange) => boolean): Promise<ToolsChange>;
  /** Events of one name. */
  told(event: string): Fields[];
  close(): Promise<void>;
}

/** Starts nothing yet: `host.connect` does. */
export function hostBench(
  servers: ServerSettings[],
  options: {
    rules?: Partial<ToolRule>[];
    tools?: Partial<ToolSettings>;
    vault?: Vault;
    fetch?: typeof fetch;
    restartsMax?: number;
  } = {},
): HostBench {
  const lines: Line[] = [];
  const changes: ToolsChange[] = [];
  const waiting: { fits: (change: ToolsChange) => boolean; resolve(change: ToolsChange): void }[] =
    [];
  const telemetry = {
    emit: (event: string, fields: Fields = {}) => void lines.push({ event, fields }),
  };
  const vault = options.vault ?? new Vault();
  const broker = new Servers({
    payload: { servers, workingDirectory: root } as unknown as AgentPayload,
    vault,
    environment: { PATH: Deno.env.get("PATH") ?? "", HOME: Deno.env.get("HOME") ?? "" },
    clock: systemClock,
    process: systemProcess,
    program: systemProgram(new URL("../../main.ts", import.meta.url).href, root),
    telemetry,
  });
  const host = createToolHost({
    servers,
    tools: {
      grant: ["*"],
      timeoutMs: 10_000,
      pin: true,
      ...options.tools,
      rules: (options.rules ?? []).map(toolRule),
    },
    identity: {
      runId: "RUN",
      agentId: "A",
      path: "0",
      depth: 0,
      directory: "/nowhere",
      traceId: "0".repeat(32),
      parentSpanId: null,
    },
    vault,
    openServer: async (name) => {
      const opened = await broker.open(name);
      return opened.ok ? opened : failed({ server: name, ...opened.failure });
    },
    fetch: options.fetch ?? fetch,
    clock: systemClock,
    random: systemRandom,
    telemetry,
    ...(options.restartsMax === undefined ? {} : { restartsMax: options.restartsMax }),
  });
  host.onChange((change) => {
    changes.push(change);
    for (const one of waiting) if (one.fits(change)) one.resolve(change);
  });
  return {
    host,
    lines,
    changes,
    pids: () => broker.pids(),
    change: (fits) => {
      const past = changes.find(fits);
      if (past) return Promise.resolve(past);
      return new Promise((resolve) => waiting.push({ fits, resolve }));
    },
    told: (event) => lines.filter((line) => line.event === event).map((line) => line.fields),
    close: async () => {
      await host.close();
      await broker.closeAll();
    },
  };
}

/** A rule of which only a few keys are said. */
export function toolRule(rule: Partial<ToolRule>): ToolRule {
  return {
    glob: "*",
    legs: null,
    grant: null,
    idempotent: null,
    readOnly: null,
    poll: null,
    timeoutMs: null,
    rate: null,
    ...rule,
  };
}

/** Settings of a stdio server. */
export function stdioServer(
  name: string,
  words: readonly string[],
  settings: Partial<StdioServer> = {},
): StdioServer {
  return {
    kind: "stdio",
    name,
    command: words[0]!,
    args: words.slice(1),
    env: {},
    cwd: root,
    required: true,
    startTimeoutMs: 20_000,
    sandbox: "none",
    ...settings,
  };
}

/** Settings of an HTTP server. */
export function httpServer(
  name: string,
  url: string,
  settings: Partial<HttpServer> = {},
): HttpServer {
  return {
    kind: "http",
    name,
    url,
    headers: {},
    era: "auto",
    required: true,
    startTimeoutMs: 20_000,
    ...settings,
  };
}

/** A hostile server of tests/hostile, run by this very Deno with nothing permitted but to be read. */
export function hostileServer(
  behaviour: string,
  settings: Partial<StdioServer> = {},
  script = "mcp_server.ts",
): StdioServer {
  const words = [Deno.execPath(), "run", "--quiet", "--no-prompt", "--no-config", "--no-lock"];
  return stdioServer("hostile", [
    ...words,
    `--allow-read=${root}.cache`,
    `--allow-write=${root}.cache`,
    `${root}tests/hostile/${script}`,
    behaviour,
  ], settings);
}

/** Calls a tool by its `server/tool` name. */
export async function callTool(
  bench: HostBench,
  name: string,
  args: Record<string, string | number | boolean> = {},
  signal: AbortSignal = new AbortController().signal,
): ReturnType<ToolsPort["call"]> {
  const { tools } = await bench.host.list(new AbortController().signal);
  const tool = tools.find((each) => each.name === name) ?? missingTool(name);
  return await bench.host.call({
    tool,
    arguments: args,
    key: "RUN-7",
    traceparent: "00-00000000000000000000000000000001-0000000000000002-01",
  }, signal);
}

/** A tool that is not in the catalogue, as a loop may still hold it. */
export function missingTool(name: string): Tool {
  const [server = "", remoteName = ""] = name.split("/");
  return {
    name,
    server,
    remoteName,
    wireName: `${server}__${remoteName}`,
    description: "",
    inputSchema: { type: "object" },
    readOnly: false,
    idempotent: false,
    poll: false,
  };
}
