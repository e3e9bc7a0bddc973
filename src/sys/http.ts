import type { HttpFailure, HttpPort, HttpRequest } from "../ports/http.ts";
import { failed, success } from "../core/outcome.ts";

const encoder = new TextEncoder();

/**
 * A body that is streamed, with its length. The runtime's own Blob would keep the bytes outside the
 * heap until the next full collection, which in a long run of large requests is hundreds of MiB.
 */
class StreamedBody extends Blob {
  readonly #chunks: readonly Uint8Array<ArrayBuffer>[];

  constructor(chunks: readonly Uint8Array<ArrayBuffer>[]) {
    super();
    this.#chunks = chunks;
  }

  override get size(): number {
    return this.#chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  }

  override stream(): ReadableStream<Uint8Array<ArrayBuffer>> {
    const chunks = this.#chunks;
    return new ReadableStream({
      start(controller) {
        for (const chunk of chunks) if (chunk.length > 0) controller.enqueue(chunk);
        controller.close();
      },
    });
  }
}

/**
 * `fetch` that sends a request with a body once. The runtime resends what it can copy, texts and
 * bytes, when a kept connection closes without an answer, though the server may have acted on it. A
 * Blob it streams, with its length, and does not resend.
 */
export const fetchOnce: typeof fetch = (input, init) => {
  const body = init?.body;
  if (typeof body !== "string" && !(body instanceof Uint8Array)) return fetch(input, init);
  // Refused by the sandbox, a streamed body would wait for its reader and keep the process alive.
  if (!mayConnect(input)) return fetch(input, init);
  const bytes = typeof body === "string" ? encoder.encode(body) : body as Uint8Array<ArrayBuffer>;
  return fetch(input, { ...init, body: new StreamedBody([bytes]) });
};

/** Shorter pieces are not worth remembering, more pieces not worth their memory. */
const PIECE_CHARS_MIN = 4_096;
const PIECES_MAX = 4;
const HOSTS_MAX = 256;

/** Encodes the pieces of bodies; what begins one request after the other is encoded once. */
class PieceEncoder {
  readonly #known = new Map<string, Uint8Array<ArrayBuffer>>();

  encode(pieces: readonly string[]): Uint8Array<ArrayBuffer>[] {
    return pieces.map((piece, index) =>
      index === pieces.length - 1 || piece.length < PIECE_CHARS_MIN
        ? encoder.encode(piece)
        : this.#recall(piece)
    );
  }

  #recall(piece: string): Uint8Array<ArrayBuffer> {
    const bytes = this.#known.get(piece) ?? encoder.encode(piece);
    // The newest stand last; the one that was not used for longest gives way.
    this.#known.delete(piece);
    this.#known.set(piece, bytes);
    const oldest = this.#known.keys().next().value;
    if (this.#known.size > PIECES_MAX && oldest !== undefined) this.#known.delete(oldest);
    return bytes;
  }
}

const pieces = new PieceEncoder();

/** Hosts that may be connected to: a Worker's permissions do not change. */
const permitted = new Set<string>();

function mayConnect(input: RequestInfo | URL): boolean {
  const { protocol, hostname, port } = new URL(input instanceof Request ? input.url : input);
  const host = `${hostname}:${port || (protocol === "https:" ? 443 : 80)}`;
  if (permitted.has(host)) return true;
  if (Deno.permissions.querySync({ name: "net", host }).state !== "granted") return false;
  if (permitted.size < HOSTS_MAX) permitted.add(host);
  return true;
}

/** HTTP over the runtime's own `fetch`, which keeps connections alive. */
export const systemHttp: HttpPort = {
  async send(request, signal) {
    try {
      const reply = await fetchOnce(request.url, {
        method: request.method,
        headers: request.headers,
        body: bodyOf(request),
        redirect: request.redirect ?? "manual",
        signal,
      });
      return success({ status: reply.status, headers: reply.headers, body: reply.body });
    } catch (error) {
      return failed(classifyHttpError(error, signal));
    }
  },
};

function bodyOf({ url, body }: HttpRequest): BodyInit | undefined {
  if (body === undefined || typeof body === "string") return body;
  if (body instanceof Uint8Array) return body as Uint8Array<ArrayBuffer>;
  return mayConnect(url) ? new StreamedBody(pieces.encode(body)) : body.join("");
}

/** The closed class of what `fetch`, or reading its body, threw. */
function classifyHttpError(error: unknown, signal: AbortSignal): HttpFailure {
  const message = error instanceof Error ? error.message : String(error);
  const text = error instanceof Error && error.cause !== undefined
    ? `${message}: ${String(error.cause)}`
    : message;
  if (signal.aborted) return { class: "aborted", message: text };
  if (error instanceof Deno.errors.NotCapable) return { class: "denied", message };
  if (/refused|os error 111|os error 61\b/i.test(text)) return { class: "refused", message: text };
  if (/dns error|failed to lookup|Name or service not known/i.test(text)) {
    return { class: "dns", message: text };
  }
  if (/certificate|tls|handshake/i.test(text)) return { class: "tls", message: text };
  if (
    /reset|broken pipe|connection closed|incomplete|unexpected eof|error (sending|reading)/i.test(
      text,
    )
  ) {
    return { class: "reset", message: text };
  }
  return { class: "other", message: text };
}
