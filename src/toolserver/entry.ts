/** `agentd mcp fs|http|exec [--allow-…]`: the main thread of a built-in tool server. */

import type { ClockPort } from "../ports/clock.ts";
import type { ProcessPort } from "../ports/process.ts";
import type { SelfPort } from "../ports/self.ts";
import type { WorkerHandle, WorkerPort, WorkerSpec } from "../ports/worker.ts";
import { BWRAP, READ_ONLY_SYSTEM } from "../core/bwrap.ts";
import { VERSION } from "../core/version.ts";
import type { PermissionSet } from "../wire/payload.ts";
import { parsePermissionFlags } from "./flags.ts";
import { GroupKeeper } from "./groups.ts";
import {
  type FromToolWorker,
  type Sandbox,
  SERVER_KINDS,
  type ServerKind,
  type ServerOrder,
  type ToToolWorker,
} from "./messages.ts";
import {
  COMMAND_VARIABLES,
  unusedFlags,
  usedPermissions,
  workerPermissions,
} from "./permissions.ts";
import { withRealPaths } from "./real_paths.ts";

/** Effects of the main thread. */
export interface ToolServerPorts {
  self: Pick<SelfPort, "env" | "revokeAllButRun">;
  /** Gives up `run`, too. */
  revokeRun(): Promise<void>;
  worker: WorkerPort;
  process: ProcessPort;
  clock: ClockPort;
  /** The whole environment, which has to be permitted. */
  environment(): Record<string, string>;
  /** Undefined where a path does not exist or may not be read. */
  realPath(path: string): string | undefined;
  /** Absolute. */
  workingDirectory: string;
  /** One line for a person, on stderr. */
  say(line: string): void;
}

/** What the arguments after `mcp` ask for. */
export interface ToolServerRequest {
  kind: ServerKind;
  permissions: PermissionSet;
  sandbox: Sandbox;
  /** Not wrong, but of no use. */
  warnings: string[];
}

/** How `agentd mcp` is called. */
const TOOL_SERVER_USAGE = `Usage: agentd mcp fs|http|exec [--allow-…]

Serves one built-in tool server on stdio, to any MCP client, with exactly these permissions:

  fs    --allow-read[=PATH,…] --allow-write[=PATH,…]
  http  --allow-net[=HOST[:PORT],…]
  exec  --allow-run[=PROGRAM,…] --allow-env[=NAME,…] [--sandbox=none|bwrap]
        with bwrap also: --allow-write[=PATH,…] --allow-net

A flag without a list allows everything of its kind.`;

/** Reads the arguments after `mcp`; every problem at once. */
function parseToolServerArguments(
  args: readonly string[],
  workingDirectory: string,
): { request: ToolServerRequest | null; problems: string[] } {
  const parsed = parsePermissionFlags(args, workingDirectory);
  const problems = [...parsed.problems];
  let sandbox: Sandbox = "none";
  const names: string[] = [];
  for (let at = 0; at < parsed.rest.length; at++) {
    const argument = parsed.rest[at]!;
    if (argument === "--sandbox" || argument.startsWith("--sandbox=")) {
      const value = argument === "--sandbox" ? parsed.rest[++at] : argument.slice(10);
      if (value === "none" || value === "bwrap") sandbox = value;
      else problems.push(`Cannot use --sandbox=${value ?? ""}: it is none or bwrap.`);
    } else if (argument.startsWith("-")) {
      problems.push(`Cannot use ${argument}: there is no such option. See agentd mcp --help.`);
    } else names.push(argument);
  }
  const kind = SERVER_KINDS.find((known) => known === names[0]);
  if (names.length === 0) problems.push("Cannot serve: name a server, one of fs, http, exec.");
  else if (kind === undefined) {
    problems.push(
      `Cannot serve ${JSON.stringify(names[0])}: the built-in servers are fs, http, exec.`,
    );
  }
  for (const extra of names.slice(1)) {
    problems.push(
      `Cannot use ${JSON.stringify(extra)}: one server is named; a list needs =, as in ` +
        "--allow-read=./docs.",
    );
  }
  if (kind === undefined || problems.length > 0) return { request: null, problems };
  if (sandbox !== "none" && kind !== "exec") {
    return { request: null, problems: [`Cannot use --sandbox=${sandbox}: it is for exec only.`] };
  }
  const permissions = usedPermissions(kind, parsed.permissions);
  const warnings = unusedFlags(kind, parsed.permissions).map((flag) =>
    `${flag} is of no use to ${kind}, and not granted`
  );
  if (Object.values(permissions).every((permission) => permission === false)) {
    warnings.push("nothing is granted: every call will be refused; see agentd mcp --help");
  }
  return { request: { kind, permissions, sandbox, warnings }, problems };
}

/** Runs the role; the exit code: 0 when the client is gone, 1 when the server failed, 2 for misuse. */
export async function runToolServer(
  args: readonly string[],
  ports: ToolServerPorts,
): Promise<number> {
  if (args.some((argument) => argument === "--help" || argument === "-h")) {
    for (const line of TOOL_SERVER_USAGE.split("\n")) ports.say(line);
    return 0;
  }
  const { request, problems } = parseToolServerArguments(args, ports.workingDirectory);
  if (request === null) {
    for (const problem of problems) ports.say(`agentd: ${problem}`);
    return 2;
  }
  for (const warning of request.warnings) ports.say(`agentd mcp ${request.kind}: ${warning}`);
  if (request.sandbox === "bwrap") {
    const fault = await probeSandbox(ports.process);
    if (fault !== null) {
      ports.say(`agentd mcp exec: Cannot use --sandbox=bwrap: ${fault}`);
      return 1;
    }
  }
  return await serve(request, ports);
}

async function serve(request: ToolServerRequest, ports: ToolServerPorts): Promise<number> {
  const keeper = request.kind === "exec" ? new GroupKeeper(ports.process, ports.clock) : null;
  const code = await new Promise<number>((resolve) => {
    const fail = (message: string) => {
      ports.say(`agentd mcp ${request.kind}: ${message}`);
      resolve(1);
    };
    let worker: WorkerHandle | undefined;
    const handle = (message: FromToolWorker) => {
      switch (message.type) {
        case "up":
          narrow(request.kind, ports).catch((error) => fail(String(error)));
          break;
        case "group_started":
          keeper?.started(message.groupId);
          break;
        case "group_ended":
          keeper?.ended(message.groupId);
          worker?.post(
            { type: "signalled", groupId: message.groupId } satisfies ToToolWorker,
          );
          break;
        case "signal_group":
          void keeper?.signal(message.groupId, message.signal);
          break;
        case "done":
          resolve(0);
      }
    };
    try {
      worker = startWorker(request, ports, {
        groups: keeper?.available ?? false,
        onMessage: (message) => handle(message as FromToolWorker),
        onError: fail,
      });
    } catch (error) {
      fail(error instanceof Error ? error.message : String(error));
    }
  });
  await keeper?.close();
  return code;
}

/**
 * Starts the Worker with the grant, real paths added where they may be: a process that was started
 * from source with just its grant cannot give more than that.
 */
function startWorker(
  request: ToolServerRequest,
  ports: ToolServerPorts,
  rest: { groups: boolean } & Pick<WorkerSpec, "onMessage" | "onError">,
): WorkerHandle {
  const { kind, sandbox } = request;
  const start = (permissions: PermissionSet): WorkerHandle => {
    const worker = ports.worker.start({
      name: `agentd mcp ${kind}`,
      permissions: { ...workerPermissions(kind, permissions, sandbox) },
      onMessage: rest.onMessage,
      onError: rest.onError,
    });
    const order: ServerOrder = {
      kind,
      version: VERSION,
      permissions,
      workingDirectory: ports.workingDirectory,
      sandbox,
      environment: kind === "exec" ? commandEnvironment(permissions, ports) : {},
      groups: rest.groups,
    };
    worker.post({ type: "start", order } satisfies ToToolWorker);
    return worker;
  };
  if (kind !== "fs") return start(request.permissions);
  const real: PermissionSet = {
    ...request.permissions,
    read: withRealPaths(request.permissions.read, ports.realPath),
    write: withRealPaths(request.permissions.write, ports.realPath),
  };
  try {
    return start(real);
  } catch {
    return start(request.permissions);
  }
}

/** Gives up what the Worker has and this thread does not need: for exec, it keeps `run` for signals. */
async function narrow(kind: ServerKind, ports: ToolServerPorts): Promise<void> {
  await ports.self.revokeAllButRun();
  if (kind !== "exec") await ports.revokeRun();
}

function commandEnvironment(
  permissions: PermissionSet,
  ports: ToolServerPorts,
): Record<string, string> {
  if (permissions.env === true) return ports.environment();
  const names = [...COMMAND_VARIABLES];
  if (Array.isArray(permissions.env)) names.push(...permissions.env);
  const environment: Record<string, string> = {};
  for (const name of names) {
    const value = ports.self.env(name);
    if (value !== undefined) environment[name] = value;
  }
  return environment;
}

/** Why bubblewrap cannot be used here, null if it can. */
async function probeSandbox(process: ProcessPort): Promise<string | null> {
  const spawned = process.spawn({
    command: BWRAP,
    args: [...READ_ONLY_SYSTEM, "--unshare-pid", "--", "true"],
    env: {},
    clearEnv: false,
    detached: false,
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  });
  if (!spawned.ok) return "bubblewrap (bwrap) is not installed.";
  const said = await new Response(spawned.value.stderr).text();
  const { code } = await spawned.value.exited;
  return code === 0 ? null : `bubblewrap does not work here (${said.trim().slice(0, 300)}).`;
}
