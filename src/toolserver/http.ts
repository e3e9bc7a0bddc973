/** The http server: one tool, `fetch`, that reaches granted hosts and no private address by chance. */

import {
  FETCH_BYTES_DEFAULT,
  FETCH_BYTES_MAX,
  FETCH_REDIRECTS_MAX,
  FETCH_TIMEOUT_MS_DEFAULT,
  FETCH_TIMEOUT_MS_MAX,
} from "../core/tool_limits.ts";
import type { ClockPort } from "../ports/clock.ts";
import type { Socket, SocketFailure, SocketPort } from "../ports/socket.ts";
import type { Permission, PermissionSet } from "../wire/payload.ts";
import { parseAddress, sameAddress, specialKind } from "./address.ts";
import { parseHost } from "./flags.ts";
import type { BuiltTools } from "./fs.ts";
import { describeAnswer } from "./http_answer.ts";
import { type FetchRequest, METHODS, readRequest, redirect } from "./http_request.ts";
import { exchange, type WireAnswer, WireError } from "./http_wire.ts";
import { type Answer, type Arguments, type BuiltinTool, quote, ToolError } from "./tool.ts";

/** What the tool works with. */
export interface HttpDeps {
  sockets: SocketPort;
  clock: ClockPort;
  version: string;
}

/** The tools of http for a grant. */
export function buildHttpTools(deps: HttpDeps, permissions: PermissionSet): BuiltTools {
  const allowed = permissions.net === true
    ? "any public host"
    : permissions.net === false
    ? "nothing"
    : permissions.net.join(", ");
  return {
    tools: [fetchTool(deps, permissions.net)],
    withheld: {},
    instructions:
      `fetch reaches: ${allowed}. Private, loopback, link-local and metadata addresses ` +
      "only where they are named.",
  };
}

function fetchTool(deps: HttpDeps, net: Permission): BuiltinTool {
  return {
    name: "fetch",
    description: "Make one HTTP request to a granted host, following up to " +
      `${FETCH_REDIRECTS_MAX} redirects. The first block has status and headers, the second the ` +
      "body: text as text, images as images, anything else described.",
    inputSchema: {
      type: "object",
      properties: {
        url: { type: "string", description: "http or https" },
        method: { type: "string", enum: METHODS, description: "Default GET." },
        headers: { type: "object", additionalProperties: { type: "string" } },
        body: { type: "string", description: "Sent as UTF-8." },
        max_bytes: {
          type: "integer",
          minimum: 1,
          maximum: FETCH_BYTES_MAX,
          description: `Of the body; default ${FETCH_BYTES_DEFAULT}.`,
        },
        timeout: {
          type: "number",
          exclusiveMinimum: 0,
          maximum: FETCH_TIMEOUT_MS_MAX / 1000,
          description: `Seconds for everything; default ${FETCH_TIMEOUT_MS_DEFAULT / 1000}.`,
        },
      },
      required: ["url"],
    },
    annotations: {
      readOnlyHint: false,
      destructiveHint: true,
      idempotentHint: false,
      openWorldHint: true,
    },
    run: (args, signal) => fetchOnce(deps, net, args, signal),
  };
}

async function fetchOnce(
  deps: HttpDeps,
  net: Permission,
  args: Arguments,
  cancelled: AbortSignal,
): Promise<Answer> {
  const request = readRequest(args);
  const bytesMax = args.integer("max_bytes", 1, FETCH_BYTES_MAX, FETCH_BYTES_DEFAULT);
  const timeoutMs = 1000 *
    args.positive("timeout", FETCH_TIMEOUT_MS_MAX / 1000, FETCH_TIMEOUT_MS_DEFAULT / 1000);
  const over = new AbortController();
  const stopTimer = deps.clock.after(timeoutMs, () => over.abort());
  const signal = AbortSignal.any([over.signal, cancelled]);
  try {
    return await new Fetch(deps, net, bytesMax, signal).follow(request);
  } catch (error) {
    if (!signal.aborted || !(error instanceof ToolError)) throw error;
    const why = cancelled.aborted ? "the call was cancelled" : `${timeoutMs / 1000} s are over`;
    throw new ToolError(`Cannot finish the request to ${request.url.host}: ${why}.`);
  } finally {
    stopTimer();
  }
}

/** One call: request, redirects, answer. */
class Fetch {
  readonly #deps: HttpDeps;
  readonly #net: Permission;
  readonly #bytesMax: number;
  readonly #signal: AbortSignal;

  constructor(deps: HttpDeps, net: Permission, bytesMax: number, signal: AbortSignal) {
    this.#deps = deps;
    this.#net = net;
    this.#bytesMax = bytesMax;
    this.#signal = signal;
  }

  async follow(first: FetchRequest): Promise<Answer> {
    let request = first;
    for (let hop = 0;; hop++) {
      const answer = await this.#send(request, hop);
      const location = answer.headers.get("location");
      const redirects = [301, 302, 303, 307, 308].includes(answer.status);
      if (!redirects || location === undefined) {
        return await describeAnswer(request.url.href, answer, hop, this.#bytesMax);
      }
      if (hop === FETCH_REDIRECTS_MAX) {
        throw new ToolError(
          `Cannot fetch ${first.url.href}: it redirects over ${FETCH_REDIRECTS_MAX} times, ` +
            `last to ${quote(location)}.`,
        );
      }
      request = redirect(request, answer.status, location);
    }
  }

  async #send(request: FetchRequest, hop: number): Promise<WireAnswer> {
    const { url } = request;
    const socket = await this.#connect(url, hop);
    // A read has no signal of its own; closing the socket ends it.
    const stop = () => socket.close();
    this.#signal.addEventListener("abort", stop, { once: true });
    try {
      return await exchange(socket, {
        method: request.method,
        target: url.pathname + url.search,
        host: url.host,
        headers: this.#headers(request),
        body: request.body,
      }, this.#bytesMax);
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      throw new ToolError(
        `Cannot fetch ${url.href}: ${error.message}. The request may have had its effect.`,
      );
    } finally {
      this.#signal.removeEventListener("abort", stop);
      socket.close();
    }
  }

  #headers(request: FetchRequest): [string, string][] {
    const headers: [string, string][] = [["accept-encoding", "identity"], ...request.headers];
    const has = (name: string) => headers.some(([known]) => known === name);
    if (!has("user-agent")) headers.push(["user-agent", `agentd/${this.#deps.version}`]);
    if (!has("accept")) headers.push(["accept", "*/*"]);
    if (request.body !== null && !has("content-type")) {
      headers.push(["content-type", "text/plain; charset=utf-8"]);
    }
    return headers;
  }

  async #connect(url: URL, hop: number): Promise<Socket> {
    const what = hop === 0 ? `fetch ${url.href}` : `follow the redirect to ${url.href}`;
    const host = url.hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
    const port = url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port);
    const literal = parseAddress(host);
    if (literal !== undefined) this.#requirePublic(what, host, host, port);
    else if (/(?:^|\.)localhost$/.test(host) && !this.#names(host, port)) {
      throw new ToolError(
        `Cannot ${what}: ${host} is this machine, and not named in --allow-net.`,
      );
    }
    const connected = await this.#deps.sockets.connect(host, port, this.#signal);
    if (!connected.ok) throw this.#problem(what, host, port, connected.failure);
    const socket = connected.value;
    try {
      // The name was resolved by the connection itself, so this is where the request will go.
      this.#requirePublic(what, host, socket.address, port);
    } catch (error) {
      socket.close();
      throw error;
    }
    if (url.protocol === "http:") return socket;
    const secure = await socket.startTls(host, this.#signal);
    if (!secure.ok) {
      throw new ToolError(
        `Cannot ${what}: no trusted TLS connection to ${host} (${secure.failure.message}).`,
      );
    }
    return secure.value;
  }

  /** Refuses an address that is not public, unless the grant names it. */
  #requirePublic(what: string, host: string, address: string, port: number): void {
    const bytes = parseAddress(address);
    const kind = bytes === undefined ? "an unknown address" : specialKind(bytes);
    if (kind === undefined || this.#names(address, port)) return;
    if (
      kind === "a loopback address" && /(?:^|\.)localhost$/.test(host) && this.#names(host, port)
    ) {
      return;
    }
    const which = host === address ? host : `${host} resolves to ${address}, which`;
    throw new ToolError(
      `Cannot ${what}: ${which} is ${kind}. Such addresses are reached only where ` +
        "--allow-net names the address itself.",
    );
  }

  /** Whether the grant names this host or address itself, with this port or any. */
  #names(host: string, port: number): boolean {
    if (typeof this.#net === "boolean") return false;
    const address = parseAddress(host);
    return this.#net.some((item) => {
      const named = parseHost(item);
      if (named === undefined || (named.port !== null && named.port !== port)) return false;
      const other = parseAddress(named.host);
      return address !== undefined && other !== undefined
        ? sameAddress(address, other)
        : named.host === host;
    });
  }

  #problem(what: string, host: string, port: number, failure: SocketFailure): ToolError {
    switch (failure.class) {
      case "denied":
        return new ToolError(
          `Cannot ${what}: ${host}:${port} is not granted. This server may reach ` +
            `${
              this.#net === false
                ? "nothing"
                : this.#net === true
                ? "any host"
                : this.#net.join(", ")
            }` +
            ` (${failure.message}).`,
        );
      case "refused":
        return new ToolError(`Cannot ${what}: ${host} refuses connections on port ${port}.`);
      case "dns":
        return new ToolError(`Cannot ${what}: the name ${host} is not known.`);
      default:
        return new ToolError(`Cannot ${what}: ${failure.message}.`);
    }
  }
}
