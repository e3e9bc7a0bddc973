import type { Outcome } from "../core/outcome.ts";

/** One request. */
export interface HttpRequest {
  method: string;
  url: string;
  headers: Record<string, string>;
  /** Pieces are sent as one body: those before the last are often the same as in the request before. */
  body?: string | Uint8Array | readonly string[];
  /** `manual`: a redirect is handed back as it is. */
  redirect?: "follow" | "manual" | "error";
}

/** Why no answer came; a status code is an answer. */
export interface HttpFailure {
  class: "refused" | "reset" | "dns" | "tls" | "denied" | "aborted" | "other";
  message: string;
}

/** Headers of the answer are there; the body may still be on its way. */
export interface HttpReply {
  status: number;
  headers: Headers;
  body: ReadableStream<Uint8Array> | null;
}

/**
 * HTTP. Contract: one request is one attempt, connections are kept alive, `signal` ends the request
 * and its body; nothing throws but reading a body that breaks off.
 */
export interface HttpPort {
  send(request: HttpRequest, signal: AbortSignal): Promise<Outcome<HttpReply, HttpFailure>>;
}
