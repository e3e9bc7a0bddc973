/** The tools of an agent: every server's, granted, named and called (ports/tools.ts). */

import { RESOURCES_MAX, SERVER_RESTARTS_MAX } from "../core/limits.ts";
import { failed, type Outcome, success } from "../core/outcome.ts";
import type { Vault } from "../core/secret.ts";
import { TokenBucket } from "../core/token_bucket.ts";
import { VERSION } from "../core/version.ts";
import { type ClockPort, pause } from "../ports/clock.ts";
import type { RandomPort } from "../ports/random.ts";
import type { TelemetryPort } from "../ports/telemetry.ts";
import type {
  Resource,
  ServerFailure,
  Tool,
  ToolCallSpec,
  ToolFailure,
  ToolResult,
  ToolsChange,
  ToolsPort,
} from "../ports/tools.ts";
import { withheldResources } from "../supervisor/rule_of_two.ts";
import type { AgentIdentity, ServerSettings, ToolSettings } from "../wire/payload.ts";
import { callMeta, callWithRetries } from "./call.ts";
import { Catalogue, type Entry } from "./catalogue.ts";
import type { OpenServer } from "./connection.ts";
import { finalFault, Refused } from "./failure.ts";
import type { Fetch } from "./http.ts";
import { isUri } from "./metadata.ts";
import { readResourceResult, readToolResult } from "./result.ts";
import { loadSdk, type Sdk } from "./sdk.ts";
import { type LinkDeps, ServerLink } from "./server_link.ts";

/** What a tool host needs. */
export interface ToolHostDeps {
  servers: ServerSettings[];
  tools: ToolSettings;
  identity: AgentIdentity;
  vault: Vault;
  openServer: OpenServer;
  fetch: Fetch;
  clock: ClockPort;
  random: RandomPort;
  telemetry: TelemetryPort;
  /** Our version, as told to servers. */
  version?: string;
  /** Restarts of one server before it is given up; SERVER_RESTARTS_MAX by default. */
  restartsMax?: number;
}

/**
 * The tools port over real servers. Servers start in `connect`; with none there is nothing to load
 * and nothing to wait for.
 */
export function createToolHost(deps: ToolHostDeps): ToolsPort {
  return new ToolHost(deps);
}

/** How often one `list` follows a server whose lists change while they are read. */
const LIST_PASSES_MAX = 3;

class ToolHost implements ToolsPort {
  readonly #deps: ToolHostDeps;
  readonly #catalogue: Catalogue;
  /** Servers whose resources are not shown, and read only by name, for a declared check. */
  readonly #withheld: ReadonlySet<string>;
  readonly #links: ServerLink[];
  /** By the glob of the rule: tools that share it share its rate. */
  readonly #rates = new Map<string, TokenBucket>();
  readonly #closing = new AbortController();
  #tell: (change: ToolsChange) => void = () => {};
  /** Versions of the links' tools that the catalogue was made from. */
  #versions: number[] = [];

  constructor(deps: ToolHostDeps) {
    this.#deps = deps;
    this.#catalogue = new Catalogue(deps.tools, deps.telemetry);
    this.#withheld = withheldResources(deps.servers, deps.tools);
    let sdk: Promise<Sdk> | undefined;
    const linkDeps: LinkDeps = {
      ...deps,
      loadSdk: () => sdk ??= loadSdk(),
      version: deps.version ?? VERSION,
      restartsMax: deps.restartsMax ?? SERVER_RESTARTS_MAX,
    };
    this.#links = deps.servers.map((settings) => this.#link(linkDeps, settings));
  }

  async connect(
    signal: AbortSignal,
  ): Promise<Outcome<{ tools: Tool[]; resources: Resource[] }, ServerFailure>> {
    const stop = new AbortController();
    const starting = AbortSignal.any([signal, stop.signal, this.#closing.signal]);
    let fatal: ServerFailure | null = null;
    await Promise.all(this.#links.map(async (link) => {
      const started = await link.start(starting);
      if (started.ok || !link.settings.required) return;
      // The first one tells why; the others are only cancelled for its sake.
      fatal ??= started.failure;
      stop.abort();
    }));
    if (fatal !== null) {
      await this.close();
      return failed(fatal);
    }
    return success(this.#snapshot());
  }

  async list(signal: AbortSignal): Promise<{ tools: Tool[]; resources: Resource[] }> {
    // What changes while it is listed is listed again, but not for ever.
    for (let pass = 0; pass < LIST_PASSES_MAX; pass++) {
      const stale = this.#links.filter((link) => link.toolsStale || link.resourcesStale);
      if (stale.length === 0) break;
      await Promise.all(stale.map((link) => link.refresh(signal)));
    }
    return this.#snapshot();
  }

  async call(spec: ToolCallSpec, signal: AbortSignal): Promise<Outcome<ToolResult, ToolFailure>> {
    const found = await this.#find(spec.tool.name, spec.tool.server, signal);
    if (!found.ok) return found;
    const { entry, link } = found.value;
    const waited = await this.#waitForRate(entry, signal);
    if (waited !== null) return failed(waited);
    const params = {
      name: entry.tool.remoteName,
      arguments: spec.arguments,
      _meta: callMeta(this.#deps.identity.runId, spec.key, spec.traceparent),
    };
    return await callWithRetries(this.#deps, {
      link,
      timeoutMs: entry.rule.timeoutMs,
      repeatable: entry.tool.readOnly || entry.tool.idempotent,
      idempotent: entry.tool.idempotent,
      send: (connection, limit, onProgress) => {
        // It may be another connection than the one that the tool was found on.
        const current = this.#entryOf(entry.tool.name);
        if (typeof current === "string") throw new Refused(current);
        return connection.callTool(current.listed, params, limit, onProgress);
      },
      read: readToolResult,
    }, signal);
  }

  async readResource(
    server: string | null,
    uri: string,
    signal: AbortSignal,
  ): Promise<Outcome<ToolResult, ToolFailure>> {
    if (!isUri(uri)) return refuse("the URI is empty, too long or has control characters");
    const link = server === null ? this.#ownerOf(uri) : this.#linkOf(server);
    if (link === undefined) {
      return refuse(server === null ? `no server lists ${uri}` : `no server named ${server}`);
    }
    return await callWithRetries(this.#deps, {
      link,
      timeoutMs: this.#deps.tools.timeoutMs,
      repeatable: true,
      idempotent: false,
      send: (connection, limit, onProgress) =>
        connection.request("resources/read", { uri }, limit, onProgress),
      read: readResourceResult,
    }, signal);
  }

  async subscribe(server: string, uri: string): Promise<Outcome<void, ToolFailure>> {
    return await this.#linkOf(server)?.watch(uri, true) ?? refuse(`no server named ${server}`);
  }

  async unsubscribe(server: string, uri: string): Promise<Outcome<void, ToolFailure>> {
    return await this.#linkOf(server)?.watch(uri, false) ?? refuse(`no server named ${server}`);
  }

  onChange(handle: (change: ToolsChange) => void): void {
    this.#tell = handle;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#links.map((link) => link.close()));
  }

  #link(deps: LinkDeps, settings: ServerSettings): ServerLink {
    const server = settings.name;
    const tell = (change: ToolsChange): void => {
      if (!this.#closing.signal.aborted) this.#tell(change);
    };
    return new ServerLink(deps, settings, {
      toolsChanged: () => tell({ kind: "tools", server }),
      resourcesChanged: () => tell({ kind: "resources", server }),
      resourceUpdated: (uri, possibly) => tell({ kind: "resource_updated", server, uri, possibly }),
      heard: (now) => tell({ kind: "heard", server, heard: now }),
      down: (failure) => {
        // Losing an optional server costs its tools, not the run.
        if (settings.required) return tell({ kind: "server_down", failure });
        tell({ kind: "tools", server });
        tell({ kind: "resources", server });
      },
    });
  }

  #linkOf(server: string): ServerLink | undefined {
    return this.#links.find((link) => link.name === server);
  }

  /** The server that lists a resource, or the only one that has any. */
  #ownerOf(uri: string): ServerLink | undefined {
    const links = this.#links.filter((link) => !this.#withheld.has(link.name));
    const listing = links.find((link) =>
      link.resources.some((resource) => !resource.template && resource.uri === uri)
    );
    if (listing !== undefined) return listing;
    const having = links.filter((link) =>
      link.resources.some((resource) => !resource.template || sharesScheme(resource.uri, uri))
    );
    return having.length === 1 ? having[0] : undefined;
  }

  #snapshot(): { tools: Tool[]; resources: Resource[] } {
    this.#refreshCatalogue();
    const resources = this.#links.filter((link) => !this.#withheld.has(link.name))
      .flatMap((link) => link.resources).slice(0, RESOURCES_MAX);
    return { tools: this.#catalogue.tools, resources };
  }

  #refreshCatalogue(): void {
    const versions = this.#links.map((link) => link.toolsVersion);
    if (versions.every((version, index) => version === this.#versions[index])) return;
    this.#versions = versions;
    this.#catalogue.update(this.#links.map(({ name, tools }) => ({ name, tools })));
  }

  /** The tool as it is listed now: never as it was when the model chose it. */
  async #find(
    name: string,
    server: string,
    signal: AbortSignal,
  ): Promise<Outcome<{ entry: Entry; link: ServerLink }, ToolFailure>> {
    const link = this.#linkOf(server);
    if (link === undefined) return refuse(`no server named ${server}`);
    if (link.toolsStale) {
      await link.refresh(signal);
    }
    if (!link.alive) {
      const acquired = await link.acquire(signal);
      if (!acquired.ok) return acquired;
    }
    const entry = this.#entryOf(name);
    return typeof entry === "string" ? refuse(entry) : success({ entry, link });
  }

  /** The tool as it is listed now, or why it is not offered. */
  #entryOf(name: string): Entry | string {
    this.#refreshCatalogue();
    return this.#catalogue.get(name) ??
      (this.#catalogue.isRefused(name)
        ? `${name} is refused: what its server says of it has changed since the run began`
        : `${name} is not offered any more`);
  }

  /** Waits until the tool's rate allows a call; why not, if it does not within the call's time. */
  async #waitForRate(entry: Entry, signal: AbortSignal): Promise<ToolFailure | null> {
    const { rate, timeoutMs } = entry.rule;
    if (rate === null) return null;
    const nowMs = this.#deps.clock.monotonicMs();
    let bucket = this.#rates.get(rate.glob);
    if (bucket === undefined) {
      bucket = new TokenBucket(rate.calls, rate.perMs / rate.calls, nowMs);
      this.#rates.set(rate.glob, bucket);
    }
    if (bucket.waitMs(1, nowMs) > timeoutMs) {
      const message = `the rate of ${rate.glob} is used up: ${rate.calls} in ${rate.perMs} ms`;
      return finalFault("not_sent", message, true).failure;
    }
    const waitMs = bucket.take(1, nowMs);
    if (waitMs === 0 || await pause(this.#deps.clock, waitMs, signal)) return null;
    bucket.giveBack(1);
    return finalFault("not_sent", "the run was cancelled").failure;
  }
}

function refuse<Value>(message: string): Outcome<Value, ToolFailure> {
  return failed(finalFault("not_sent", message).failure);
}

function sharesScheme(template: string, uri: string): boolean {
  const scheme = /^[a-z][a-z0-9+.-]*:/i.exec(uri)?.[0];
  return scheme !== undefined && template.startsWith(scheme);
}
