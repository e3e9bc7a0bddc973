/** Requests of the http server: what a caller may ask for, and what a redirect makes of it. */

import {
  FETCH_HEADERS_MAX,
  FETCH_REQUEST_BYTES_MAX,
  FETCH_URL_CHARS_MAX,
} from "../core/tool_limits.ts";
import { type Arguments, quote, ToolError } from "./tool.ts";

/** Methods that may be used. */
export const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
/** Set by the exchange itself, or no business of a caller's. */
const OWN_HEADERS =
  /^(?:host|connection|content-length|transfer-encoding|te|trailer|upgrade|expect|keep-alive|accept-encoding|proxy-.*)$/;
/** Sent to the origin that they were meant for only, as `X-Auth-Key` and `Subscription-Key` are. */
const ORIGIN_HEADERS = /auth|cookie|credential|key|passw|secret|session|signature|token/;
/** One request, checked. */
export interface FetchRequest {
  url: URL;
  method: string;
  headers: [string, string][];
  body: Uint8Array | null;
}

/** Reads a call's arguments. */
export function readRequest(args: Arguments): FetchRequest {
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

/** The request that a redirect asks for; secrets stay with the origin that they were meant for. */
export function redirect(request: FetchRequest, status: number, location: string): FetchRequest {
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
