/**
 * A streamable-HTTP server as a transport of the SDK: its headers are filled in only when a request
 * leaves for its own origin, bodies are bounded, and a stream that ends without its answer says so.
 */

import { TOOL_RESULT_BYTES_MAX } from "../core/limits.ts";
import type { Vault } from "../core/secret.ts";
import type { HttpServer } from "../wire/payload.ts";
import { HttpFault } from "./failure.ts";
import { oversizedAnswer, streamEndedAnswer } from "./message.ts";
import type { Message, Sdk, SdkTransport, SendOptions } from "./sdk.ts";

/** `fetch`, as it is passed in. */
export type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

/** What else of a server's HTTP is worth knowing. */
export interface HttpEvents {
  /** The server no longer knows our session. */
  sessionLost(): void;
  /** The stream of notifications was opened again: some may have been missed. */
  streamReopened(): void;
  /** The stream of notifications could not be opened; it is tried again. */
  streamFailed(): void;
}

/** Of a response that is an error, what is read. */
const ERROR_BODY_BYTES_MAX = 64 * 1024;
/** Tells the request below which message it carries; it never leaves. */
const MESSAGE_HEADER = "x-agentd-message";
/** The stream of notifications comes back as long as the server lives, ever more slowly. */
const RECONNECTION = {
  initialReconnectionDelay: 500,
  maxReconnectionDelay: 30_000,
  reconnectionDelayGrowFactor: 2,
  maxRetries: 1_000_000,
};

/** The transport: the SDK's own, with what it leaves open closed. */
export class HttpTransport implements SdkTransport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: SdkTransport["onmessage"];
  readonly hasPerRequestStream = true;
  readonly #inner: InstanceType<Sdk["StreamableHTTPClientTransport"]>;
  readonly #server: HttpServer;
  readonly #origin: string;
  readonly #vault: Vault;
  readonly #fetch: Fetch;
  readonly #events: HttpEvents;
  readonly #open = new Map<string | number, AbortController>();
  /** Openings of the stream of notifications that came, or failed. */
  #streamsTried = 0;
  #wantsLength = false;
  #closed = false;

  constructor(sdk: Sdk, server: HttpServer, vault: Vault, fetch: Fetch, events: HttpEvents) {
    const url = new URL(server.url);
    this.#server = server;
    this.#origin = url.origin;
    this.#vault = vault;
    this.#fetch = fetch;
    this.#events = events;
    this.#inner = new sdk.StreamableHTTPClientTransport(url, {
      fetch: (target, init) => this.#send(target, init),
      reconnectionOptions: RECONNECTION,
      onInsufficientScope: "throw",
    });
    this.#inner.onmessage = (message: Message) => {
      if ("id" in message && !("method" in message) && message.id !== undefined) {
        this.#open.delete(message.id);
      }
      this.onmessage?.(message);
    };
    this.#inner.onerror = (error) => this.onerror?.(error);
    this.#inner.onclose = () => this.onclose?.();
  }

  get sessionId(): string | undefined {
    return this.#inner.sessionId;
  }

  setProtocolVersion(version: string): void {
    this.#inner.setProtocolVersion(version);
  }

  start(): Promise<void> {
    return this.#inner.start();
  }

  async send(message: Message, options?: SendOptions): Promise<void> {
    if (!("method" in message)) return await this.#inner.send(message, options);
    if (!("id" in message)) {
      await this.#inner.send(message, options);
      const withdrawn = message.method === "notifications/cancelled"
        ? message.params?.requestId
        : undefined;
      if (typeof withdrawn === "number") this.#drop(withdrawn);
      return;
    }
    const { id } = message;
    const abort = new AbortController();
    this.#open.set(id, abort);
    options?.requestSignal?.addEventListener("abort", () => this.#drop(id), { once: true });
    try {
      await this.#inner.send(message, {
        ...options,
        headers: { ...options?.headers, [MESSAGE_HEADER]: `${id} ${message.method}` },
        requestSignal: abort.signal,
        onRequestStreamEnd: () => {
          options?.onRequestStreamEnd?.();
          // The SDK's own subscriptions have string ids and are told by the line above.
          if (typeof id === "number" && this.#open.delete(id)) {
            this.onmessage?.(streamEndedAnswer(id));
          }
        },
      });
    } catch (error) {
      this.#open.delete(id);
      throw error;
    }
  }

  /** Ends the session at the server, as far as it listens, within the signal. */
  async terminate(): Promise<void> {
    if (this.#inner.sessionId === undefined) return;
    try {
      await this.#inner.terminateSession();
    } catch { /* it is over for us in any case */ }
  }

  close(): Promise<void> {
    if (this.#closed) return Promise.resolve();
    this.#closed = true;
    for (const id of [...this.#open.keys()]) this.#drop(id);
    return this.#inner.close();
  }

  #drop(id: string | number): void {
    const abort = this.#open.get(id);
    this.#open.delete(id);
    abort?.abort();
  }

  async #send(target: string | URL, init: RequestInit = {}): Promise<Response> {
    const url = new URL(target);
    if (url.origin !== this.#origin) {
      throw new HttpFault(`Cannot leave ${this.#origin} for ${url.origin}`, false, false);
    }
    const headers = new Headers(init.headers);
    const [id, method] = headers.get(MESSAGE_HEADER)?.split(" ") ?? [];
    headers.delete(MESSAGE_HEADER);
    for (const [name, text] of Object.entries(this.#server.headers)) {
      headers.set(name, this.#vault.fill(text).reveal());
    }
    const isStream = init.method === "GET";
    let response: Response;
    try {
      response = await this.#fetchOnce(url, { ...init, headers }, method === "tools/call");
    } catch (error) {
      if (isStream && init.signal?.aborted !== true) this.#failStream();
      throw error;
    }
    if (isStream) this.#judgeStream(response, headers.has("mcp-session-id"));
    return this.#bounded(response, id === undefined ? undefined : Number(id));
  }

  /**
   * One request that is one attempt. Deno sends a request a second time, by itself, when a kept
   * connection breaks before the response and the body can be read again; a stream cannot. So calls
   * go as streams, unless the server insists on a length (RFC 9110, 15.5.12).
   */
  async #fetchOnce(url: URL, init: RequestInit, once: boolean): Promise<Response> {
    const { body } = init;
    const streamed = once && typeof body === "string" && !this.#wantsLength;
    try {
      if (!streamed) return await this.#fetch(url, init);
      const response = await this.#fetch(url, { ...init, body: streamOf(body) });
      if (response.status !== 411) return response;
      this.#wantsLength = true;
      await response.body?.cancel();
      return await this.#fetch(url, init);
    } catch (error) {
      throw init.signal?.aborted ? error : toFault(error);
    }
  }

  /** What the answer to opening the stream of notifications says; calls are judged by the caller. */
  #judgeStream(response: Response, inSession: boolean): void {
    if (this.#closed) return;
    if (response.status >= 500) this.#failStream();
    if (response.ok && this.#streamsTried++ > 0) this.#events.streamReopened();
    // There is nothing else in such a request that could be wrong or not be found.
    if (inSession && (response.status === 404 || response.status === 400)) {
      this.#events.sessionLost();
    }
  }

  #failStream(): void {
    this.#streamsTried++;
    if (!this.#closed) this.#events.streamFailed();
  }

  #bounded(response: Response, id: number | undefined): Response {
    if (response.body === null) return response;
    const stream = response.headers.get("content-type")?.startsWith("text/event-stream") ?? false;
    const declared = Number(response.headers.get("content-length") ?? "NaN");
    const bytesMax = response.ok ? TOOL_RESULT_BYTES_MAX : ERROR_BODY_BYTES_MAX;
    if (!stream && declared <= bytesMax) return response;
    const body = boundBody(response.body, bytesMax, stream, response.ok, (bytes) => {
      const known = id !== undefined && this.#open.delete(id);
      if (known) this.onmessage?.(oversizedAnswer(id, Math.max(bytes, declared || 0)));
    });
    const { status, statusText } = response;
    return new Response(body, { status, statusText, headers: response.headers });
  }
}

/**
 * A body with a bound: of the whole, or of each event of a stream. Over it, the body fails, or just
 * ends (`fails` false), and `over` hears of the bytes that had come.
 */
export function boundBody(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  bytesMax: number,
  events: boolean,
  fails: boolean,
  over: (bytes: number) => void,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  let bytes = 0;
  let lineBytes = 0;
  return body.pipeThrough(
    new TransformStream({
      transform(chunk, controller): void {
        bytes += chunk.length;
        if (events) {
          // An empty line ends an event (HTML standard, 9.2.6), and what counts starts anew.
          let start = 0;
          for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
            lineBytes += end - start;
            const empty = lineBytes === 0 || (lineBytes === 1 && end > 0 && chunk[end - 1] === 13);
            if (empty) bytes = chunk.length - end - 1;
            lineBytes = 0;
            start = end + 1;
          }
          lineBytes += chunk.length - start;
        }
        if (bytes <= bytesMax) return controller.enqueue(chunk);
        over(bytes);
        if (fails) controller.error(new Error(`the body is over ${bytesMax} bytes`));
        else {
          controller.enqueue(chunk.subarray(0, Math.max(0, bytesMax - (bytes - chunk.length))));
          controller.terminate();
        }
      },
    }),
  );
}

function streamOf(text: string): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller): void {
      controller.enqueue(new TextEncoder().encode(text));
      controller.close();
    },
  });
}

/** What `fetch` threw, by whether the request may have arrived. */
function toFault(error: unknown): HttpFault {
  const message = error instanceof Error
    ? error.cause === undefined ? error.message : `${error.message}: ${error.cause}`
    : String(error);
  const denied = error instanceof Error &&
    (error.name === "NotCapable" || error.name === "PermissionDenied");
  const connected = !/\(Connect\)|refused|dns error|failed to lookup|unreachable/i.test(message);
  return new HttpFault(message, connected && !denied, denied);
}
