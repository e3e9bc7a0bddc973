/** One live connection to one server: opened, asked, retired. */

import type { JsonObject } from "../core/json.ts";
import { failed, type Outcome, success } from "../core/outcome.ts";
import type { Vault } from "../core/secret.ts";
import { formatDuration } from "../core/units.ts";
import { type ClockPort, within } from "../ports/clock.ts";
import type { ServerFailure } from "../ports/tools.ts";
import type { HttpServer, ServerSettings } from "../wire/payload.ts";
import { boundedMessage, classifyError, HttpFault, plainMessage } from "./failure.ts";
import { type Fetch, type HttpEvents, HttpTransport } from "./http.ts";
import type { ListedTool } from "./metadata.ts";
import { PASS, type Sdk, SDK_TIMEOUT_MS, type SdkClient } from "./sdk.ts";
import { PortTransport, type StrayLine } from "./stdio.ts";
import { unlessAborted } from "./timing.ts";

/** Lends the bytes of a stdio server: asks the broker to start it. */
export type OpenServer = (
  name: string,
  signal: AbortSignal,
) => Promise<Outcome<{ port: MessagePort; pid: number }, ServerFailure>>;

/** What opening a connection needs. */
export interface ConnectionDeps {
  /** Loads the SDK, once for all connections. */
  loadSdk(): Promise<Sdk>;
  clock: ClockPort;
  vault: Vault;
  openServer: OpenServer;
  fetch: Fetch;
  /** Our version, as told to servers. */
  version: string;
}

/** What a connection tells of itself. */
export interface ConnectionEvents extends HttpEvents {
  /** A server wrote something to stdout that is no message. */
  stray(line: StrayLine): void;
  /** It ended, by whoever's doing, unless by {@link Connection.close}. */
  ended(): void;
}

/** The first revision of the protocol's second era (`server/discover`, no sessions). */
const MODERN_REVISION = "2026-07-28";
/** How long a stdio server may be silent to a probe before it is taken for an older one. */
const PROBE_TIMEOUT_MS = 2_000;
/** After a failed start, how long the end of its stderr is waited for. */
const STDERR_WAIT_MS = 500;
/** What a server may take to hear that its session is over. */
const TERMINATE_TIMEOUT_MS = 500;
/** What a process may take to end before its port is given back. */
const RELEASE_TIMEOUT_MS = 500;

type Client = SdkClient;

/** A connection that has been initialized. */
export class Connection {
  readonly sdk: Sdk;
  readonly client: Client;
  readonly transport: PortTransport | HttpTransport;
  /** Answers for ids that nobody waited for, and what else the SDK complained of. */
  complaints = 0;
  /** Whether the handshake is over: an end before it is the handshake's own failure. */
  established = false;
  #inFlight = 0;
  #retired = false;
  #closed = false;

  readonly #clock: ClockPort;

  constructor(
    sdk: Sdk,
    client: Client,
    transport: PortTransport | HttpTransport,
    events: ConnectionEvents,
    clock: ClockPort,
  ) {
    this.#clock = clock;
    this.sdk = sdk;
    this.client = client;
    this.transport = transport;
    client.onerror = () => this.complaints++;
    client.onclose = () => {
      if (this.established && !this.#closed && !this.#retired) events.ended();
    };
  }

  /** The negotiated revision. */
  get protocol(): string {
    return this.client.getNegotiatedProtocolVersion() ?? "";
  }

  /** Whether it speaks the second era. */
  get modern(): boolean {
    return this.client.getProtocolEra() === "modern";
  }

  get hadSession(): boolean {
    return this.transport instanceof HttpTransport && this.transport.sessionId !== undefined;
  }

  /** Whether the server declared a capability. */
  can(capability: "tools" | "resources" | "resources.subscribe"): boolean {
    const declared = this.client.getServerCapabilities();
    if (capability === "tools") return declared?.tools !== undefined;
    if (capability === "resources") return declared?.resources !== undefined;
    return declared?.resources?.subscribe === true;
  }

  /** Sends a request; the raw result, or what the SDK or the transport throws. */
  request(
    method: string,
    params: JsonObject | undefined,
    signal: AbortSignal,
    onProgress?: () => void,
  ): Promise<unknown> {
    const options = { signal, timeout: SDK_TIMEOUT_MS, onprogress: onProgress };
    return this.#track(this.client.request({ method, params }, PASS, options));
  }

  /** Calls a tool. */
  callTool(
    tool: ListedTool,
    params: JsonObject & { name: string; arguments: JsonObject },
    signal: AbortSignal,
    onProgress: () => void,
  ): Promise<unknown> {
    if (!tool.mirrorsHeaders || !this.modern || this.transport instanceof PortTransport) {
      return this.request("tools/call", params, signal, onProgress);
    }
    // The SDK mirrors the arguments that the schema marks into headers, as its era demands.
    const toolDefinition = {
      name: tool.remoteName,
      inputSchema: tool.inputSchema as { type: "object" },
    };
    const options = { signal, timeout: SDK_TIMEOUT_MS, onprogress: onProgress, toolDefinition };
    return this.#track(this.client.callTool(params, options));
  }

  /** No new requests: it closes when those under way are over. */
  retire(): void {
    this.#retired = true;
    if (this.#inFlight === 0) void this.close();
  }

  /** Closes it at once; what is under way fails. Resolves when its process is gone, or soon. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    // Nothing is done after the transport's close but clearing state.
    this.client.close().catch(() => {});
    if (!(this.transport instanceof PortTransport)) return;
    // The port stays open until the broker has heard of it.
    await within(this.#clock, RELEASE_TIMEOUT_MS, this.transport.exited);
    this.transport.release();
  }

  /** Tells an HTTP server that its session is over, then closes. */
  async end(): Promise<void> {
    if (this.transport instanceof HttpTransport && this.transport.sessionId !== undefined) {
      await within(this.#clock, TERMINATE_TIMEOUT_MS, this.transport.terminate());
    }
    await this.close();
  }

  async #track(request: Promise<unknown>): Promise<unknown> {
    this.#inFlight++;
    try {
      return await request;
    } finally {
      this.#inFlight--;
      if (this.#retired && this.#inFlight === 0) void this.close();
    }
  }
}

/** Opens a connection; `signal` bounds it in time. */
export async function openConnection(
  deps: ConnectionDeps,
  server: ServerSettings,
  events: ConnectionEvents,
  signal: AbortSignal,
): Promise<Outcome<Connection, ServerFailure>> {
  if (server.kind === "http") return await openHttp(deps, server, events, signal);
  const first = await openStdio(deps, server, events, signal, "legacy");
  // A server of the second era only answers `initialize` with an error: it is asked its own way.
  return first.ok || !first.failure.rejected
    ? first
    : await openStdio(deps, server, events, signal, "auto");
}

async function openStdio(
  deps: ConnectionDeps,
  server: ServerSettings,
  events: ConnectionEvents,
  signal: AbortSignal,
  era: string,
): Promise<Outcome<Connection, ServerFailure & { rejected: boolean }>> {
  // The process starts while the SDK loads.
  const loading = deps.loadSdk();
  const opening = deps.openServer(server.name, signal);
  const opened = await unlessAborted(opening, signal);
  if (opened === undefined) {
    opening.then((late) => {
      if (!late.ok) return;
      const transport = new PortTransport(late.value.port, late.value.pid);
      void transport.start();
      void transport.close();
      return within(deps.clock, RELEASE_TIMEOUT_MS, transport.exited).then(() =>
        transport.release()
      );
    });
    return failed({ server: server.name, message: "", stderr: "", rejected: false });
  }
  if (!opened.ok) return failed({ ...opened.failure, rejected: false });
  const transport = new PortTransport(opened.value.port, opened.value.pid);
  transport.onstray = (line) => events.stray(line);
  const sdk = await loading;
  const client = makeClient(sdk, deps.version, era, PROBE_TIMEOUT_MS);
  const connection = new Connection(sdk, client, transport, events, deps.clock);
  const error = await initialize(connection, signal);
  if (error === undefined) return success(connection);
  if (transport.exit === null) await within(deps.clock, STDERR_WAIT_MS, transport.exited);
  const exit = transport.exit;
  void connection.close();
  return failed({
    server: server.name,
    message: exit !== null && !transport.closedByUs
      ? `it ended with ${exit.signal ?? `exit code ${exit.code}`} before it was ready`
      : describe(sdk, error),
    stderr: exit?.stderr ?? "",
    rejected: error instanceof sdk.ProtocolError,
  });
}

async function openHttp(
  deps: ConnectionDeps,
  server: HttpServer,
  events: ConnectionEvents,
  signal: AbortSignal,
): Promise<Outcome<Connection, ServerFailure>> {
  const sdk = await deps.loadSdk();
  const transport = new HttpTransport(sdk, server, deps.vault, deps.fetch, events);
  const client = makeClient(sdk, deps.version, server.era, SDK_TIMEOUT_MS);
  const connection = new Connection(sdk, client, transport, events, deps.clock);
  const error = await initialize(connection, signal);
  if (error === undefined) return success(connection);
  void connection.close();
  const message = boundedMessage(deps.vault.mask(describe(sdk, error)));
  return failed({ server: server.name, message, stderr: "" });
}

function makeClient(sdk: Sdk, version: string, era: string, probeTimeoutMs: number): Client {
  const modern = era === "auto" || era >= MODERN_REVISION && era !== "legacy";
  const pinned = /^\d{4}-/.test(era);
  return new sdk.Client({ name: "agentd", version }, {
    capabilities: {},
    // Never used: results are checked here, and output schemas are the model's business.
    jsonSchemaValidator: {
      getValidator: () => (input: unknown) => ({
        valid: true as const,
        data: input as never,
        errorMessage: undefined,
      }),
    },
    inputRequired: { autoFulfill: false },
    versionNegotiation: {
      mode: modern ? (pinned ? { pin: era } : "auto") : "legacy",
      probe: { timeoutMs: probeTimeoutMs },
    },
    ...(pinned && !modern ? { supportedProtocolVersions: [era] } : {}),
  });
}

/** The handshake; what went wrong with it, if anything. */
async function initialize(connection: Connection, signal: AbortSignal): Promise<unknown> {
  if (signal.aborted) return new Error("cancelled");
  const { client, transport } = connection;
  // While it probes, the SDK does not watch the signal: closing the transport ends either phase.
  const onAbort = (): void => void transport.close().catch(() => {});
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    await client.connect(transport, { timeout: SDK_TIMEOUT_MS });
    connection.established = true;
    return undefined;
  } catch (error) {
    return error;
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** What an error of the handshake says to people. */
function describe(sdk: Sdk, error: unknown): string {
  if (!(error instanceof Error)) return boundedMessage(String(error));
  if (error.cause instanceof HttpFault) return boundedMessage(error.cause.message);
  if (error instanceof sdk.SdkHttpError && !error.message.includes(`${error.status}`)) {
    return classifyError(sdk, error, false).failure.message;
  }
  return boundedMessage(error instanceof sdk.ProtocolError ? error.message : plainMessage(error));
}

/**
 * What handshake and listing may take of a server's start timeout: the rest is for ending the
 * process and hearing the end of its stderr.
 */
export function handshakeTimeoutMs(server: ServerSettings): number {
  return server.startTimeoutMs - Math.min(STDERR_WAIT_MS, server.startTimeoutMs / 5);
}

/** How a start that ran out of time is told. */
export function startTimeoutMessage(server: ServerSettings): string {
  return `it did not answer initialize within ${formatDuration(server.startTimeoutMs)}`;
}
