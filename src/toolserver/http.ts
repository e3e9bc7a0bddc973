/** The http server: one tool, `fetch`, that reaches granted hosts and no private address by chance. */

import {
  FETCH_BYTES_DEFAULT,
  FETCH_BYTES_MAX,
  FETCH_HEADERS_MAX,
  FETCH_REDIRECTS_MAX,
  FETCH_REQUEST_BYTES_MAX,
  FETCH_TIMEOUT_MS_DEFAULT,
  FETCH_TIMEOUT_MS_MAX,
  FETCH_URL_CHARS_MAX,
  IMAGE_BYTES_MAX,
} from "../core/tool_limits.ts";
import type { ClockPort } from "../ports/clock.ts";
import type { Socket, SocketFailure, SocketPort } from "../ports/socket.ts";
import type { Permission, PermissionSet } from "../wire/payload.ts";
import { parseAddress, sameAddress, specialKind } from "./address.ts";
import { describeBinary, imageType, looksBinary, toBase64 } from "./content.ts";
import { parseHost } from "./flags.ts";
import type { BuiltTools } from "./fs.ts";
import { BoundedBytes, exchange, type WireAnswer, WireError } from "./http_wire.ts";
import {
  type Answer,
  type Arguments,
  type BuiltinTool,
  errorAnswer,
  quote,
  ToolError,
} from "./tool.ts";

/** What the tool works with. */
export interface HttpDeps {
  sockets: SocketPort;
  clock: ClockPort;
  version: string;
}

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
/** Set by the exchange itself, or no business of a caller's. */
const OWN_HEADERS =
  /^(?:host|connection|content-length|transfer-encoding|te|trailer|upgrade|expect|keep-alive|accept-encoding|proxy-.*)$/;
/** Sent to the origin that they were meant for only. */
const ORIGIN_HEADERS = /^(?:authorization|cookie|.*(?:token|secret|api-?key).*)$/;
/** Of an answer's headers, what a caller can act on; dates and ids would make each answer new. */
const SHOWN_HEADERS = [
  "content-type",
  "content-length",
  "content-language",
  "location",
  "etag",
  "last-modified",
  "link",
  "retry-after",
  "allow",
  "www-authenticate",
];

interface Request {
  url: URL;
  method: string;
  headers: [string, string][];
  body: Uint8Array | null;
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

function readRequest(args: Arguments): Request {
  const url = readUrl(args.text("url", FETCH_URL_CHARS_MAX), undefined);
  const method = args.text("method", 20, "GET").toUpperCase();
  if (!METHODS.includes(method)) {
    throw new ToolError(`Cannot use method ${quote(method)}: use one of ${METHODS.join(", ")}.`);
  }
  const headers: [string, string][] = [];
  for (const [name, value] of Object.entries(args.textMap("headers", FETCH_HEADERS_MAX))) {
    const lower = name.toLowerCase();
    if (!/^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(lower)) {
      throw new ToolError(`Cannot use header ${quote(name)}: that is no header name.`);
    }
    if (OWN_HEADERS.test(lower)) {
      throw new ToolError(`Cannot set header ${quote(name)}: it is set by the server itself.`);
    }
    if (!/^[\t\x20-\x7e]*$/.test(value) || value.length > 8_192) {
      throw new ToolError(
        `Cannot use header ${quote(name)}: its value has other than printable ASCII characters, ` +
          "or over 8192 of them.",
      );
    }
    headers.push([lower, value.trim()]);
  }
  const text = args.optionalText("body", FETCH_REQUEST_BYTES_MAX);
  const body = text === null ? null : new TextEncoder().encode(text);
  if (body !== null && (method === "GET" || method === "HEAD")) {
    throw new ToolError(`Cannot send a body with ${method}: use POST, PUT or PATCH.`);
  }
  if (body !== null && body.length > FETCH_REQUEST_BYTES_MAX) {
    throw new ToolError(`Cannot send ${body.length} bytes: at most ${FETCH_REQUEST_BYTES_MAX}.`);
  }
  return { url, method, headers, body };
}

function readUrl(text: string, base: URL | undefined): URL {
  if (!URL.canParse(text, base)) {
    throw new ToolError(
      `Cannot fetch ${quote(text)}: that is no URL; write it in full, as in https://host/path.`,
    );
  }
  const url = new URL(text, base);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new ToolError(`Cannot fetch ${quote(text)}: only http and https are spoken.`);
  }
  if (url.username !== "" || url.password !== "") {
    throw new ToolError(
      `Cannot fetch a URL of ${url.host} with credentials in it: send them as a header.`,
    );
  }
  url.hash = "";
  return url;
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

  async follow(first: Request): Promise<Answer> {
    let request = first;
    for (let hop = 0;; hop++) {
      const answer = await this.#send(request, hop);
      const location = answer.headers.get("location");
      const redirects = [301, 302, 303, 307, 308].includes(answer.status);
      if (!redirects || location === undefined) {
        return await describeAnswer(request, answer, hop, this.#bytesMax);
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

  async #send(request: Request, hop: number): Promise<WireAnswer> {
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

  #headers(request: Request): [string, string][] {
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

function redirect(request: Request, status: number, location: string): Request {
  const url = readUrl(location, request.url);
  const toGet = status === 303 ||
    ((status === 301 || status === 302) && request.method === "POST");
  const away = url.origin !== request.url.origin;
  const headers = request.headers.filter(([name]) =>
    !(away && ORIGIN_HEADERS.test(name)) && !(toGet && name.startsWith("content-"))
  );
  if (!toGet) return { ...request, url, headers };
  return { url, method: request.method === "HEAD" ? "HEAD" : "GET", headers, body: null };
}

async function describeAnswer(
  request: Request,
  answer: WireAnswer,
  hops: number,
  bytesMax: number,
): Promise<Answer> {
  const lines = [`HTTP ${answer.status} ${answer.reason}`.trim()];
  if (hops > 0) lines.push(`url: ${request.url.href}`);
  for (const name of SHOWN_HEADERS) {
    const value = answer.headers.get(name);
    if (value !== undefined) lines.push(`${name}: ${value.slice(0, 1_000)}`);
  }
  const decoded = await decodeBody(answer, bytesMax);
  if (decoded === undefined) {
    return errorAnswer(
      `${lines.join("\n")}\n\nThe body is in encoding ` +
        `${quote(answer.headers.get("content-encoding") ?? "")}, which cannot be read.`,
    );
  }
  const { body, complete } = decoded;
  if (!complete) {
    const total = answer.headers.get("content-length");
    lines.push(
      `body cut at ${body.length} bytes${total === undefined ? "" : ` of ${total}`}; ` +
        "max_bytes or a Range header gets more",
    );
  }
  const blocks: Answer["blocks"] = [];
  const image = imageType(body);
  if (image !== undefined && complete && body.length <= IMAGE_BYTES_MAX) {
    blocks.push({ type: "image", data: toBase64(body), mimeType: image });
  } else if (body.length > 0) {
    const text = decodeText(body, answer.headers.get("content-type") ?? "");
    if (text !== undefined) blocks.push({ type: "text", text });
    else lines.push(`body not shown: ${describeBinary(body)}, ${body.length} bytes`);
  }
  return { blocks: [{ type: "text", text: lines.join("\n") }, ...blocks], isError: false };
}

/** The body without its content encoding, within the same bound; undefined if that is unknown. */
async function decodeBody(
  answer: WireAnswer,
  bytesMax: number,
): Promise<{ body: Uint8Array; complete: boolean } | undefined> {
  const encoding = (answer.headers.get("content-encoding") ?? "identity").toLowerCase();
  if (encoding === "identity" || answer.body.length === 0) {
    return { body: answer.body, complete: answer.complete };
  }
  const format = encoding === "x-gzip" ? "gzip" : encoding;
  if (format !== "gzip" && format !== "deflate") return undefined;
  const out = new BoundedBytes(bytesMax);
  const stream = new Blob([answer.body as BlobPart]).stream()
    .pipeThrough(new DecompressionStream(format));
  const reader = stream.getReader();
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return { body: out.whole(), complete: answer.complete };
      if (!out.add(value)) {
        await reader.cancel();
        return { body: out.whole(), complete: false };
      }
    }
  } catch {
    // A body that was cut, or is damaged: what came out before that is shown as cut.
    return { body: out.whole(), complete: false };
  }
}

function decodeText(body: Uint8Array, contentType: string): string | undefined {
  const type = contentType.split(";")[0]!.trim().toLowerCase();
  const texts =
    /^text\/|[/+](?:json|xml|yaml|javascript|ecmascript|x-www-form-urlencoded|x-ndjson|graphql|toml)$|^$/;
  const charset = /charset\s*=\s*"?([^\s;"]+)/i.exec(contentType)?.[1];
  if (charset === undefined && looksBinary(body)) return undefined;
  let decoder: TextDecoder;
  try {
    decoder = new TextDecoder(charset ?? "utf-8", { fatal: !texts.test(type) });
  } catch {
    decoder = new TextDecoder();
  }
  try {
    return decoder.decode(body);
  } catch {
    return undefined;
  }
}
