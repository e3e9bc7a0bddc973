import type { HttpFailure, HttpPort } from "../ports/http.ts";
import { failed, success } from "../core/outcome.ts";

const encoder = new TextEncoder();

/**
 * A body that is streamed, with its length. The runtime's own Blob would keep the bytes outside the
 * heap until the next full collection, which in a long run of large requests is hundreds of MiB.
 */
class StreamedBody extends Blob {
  readonly #bytes: Uint8Array<ArrayBuffer>;

  constructor(bytes: Uint8Array<ArrayBuffer>) {
    super();
    this.#bytes = bytes;
  }

  override get size(): number {
    return this.#bytes.length;
  }

  override stream(): ReadableStream<Uint8Array<ArrayBuffer>> {
    const bytes = this.#bytes;
    return new ReadableStream({
      start(controller) {
        if (bytes.length > 0) controller.enqueue(bytes);
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
  return fetch(input, { ...init, body: new StreamedBody(bytes) });
};

function mayConnect(input: RequestInfo | URL): boolean {
  const { protocol, hostname, port } = new URL(input instanceof Request ? input.url : input);
  const host = `${hostname}:${port || (protocol === "https:" ? 443 : 80)}`;
  return Deno.permissions.querySync({ name: "net", host }).state === "granted";
}

/** HTTP over the runtime's own `fetch`, which keeps connections alive. */
export const systemHttp: HttpPort = {
  async send(request, signal) {
    try {
      const reply = await fetchOnce(request.url, {
        method: request.method,
        headers: request.headers,
        body: request.body as BodyInit | undefined,
        redirect: request.redirect ?? "manual",
        signal,
      });
      return success({ status: reply.status, headers: reply.headers, body: reply.body });
    } catch (error) {
      return failed(classifyHttpError(error, signal));
    }
  },
};

/** The closed class of what `fetch`, or reading its body, threw. */
export function classifyHttpError(error: unknown, signal: AbortSignal): HttpFailure {
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
