/** Why a request has no result, in the closed classes of the tools port. */

import { isObject, parseJson } from "../core/json.ts";
import { clip, withoutControls } from "../core/text.ts";
import type { ToolFailure } from "../ports/tools.ts";
import { OVERSIZED, STREAM_ENDED } from "./message.ts";
import type { Sdk } from "./sdk.ts";

/** What a stranger's error text may take of ours. */
const MESSAGE_CHARS_MAX = 800;

/** What the SDK puts in front of a response's text. */
const SDK_PREFIX = /^Error POSTing to endpoint: /;

/** A message that never left. */
export class NotSent extends Error {
  override name = "NotSent";
}

/** A call that we do not send, for a reason that sending it again would not change. */
export class Refused extends Error {
  override name = "Refused";
}

/** An HTTP request that brought no response. `sent`: it may have reached the server. */
export class HttpFault extends Error {
  override name = "HttpFault";
  readonly sent: boolean;
  readonly denied: boolean;

  constructor(message: string, sent: boolean, denied: boolean) {
    super(message);
    this.sent = sent;
    this.denied = denied;
  }
}

/** A failure, and what may be done about it below the port. */
export interface Fault {
  failure: ToolFailure;
  /**
   * `transport`: a retry may help, if the call cannot have had an effect; `session`: the server
   * forgot our session and did nothing; `oversized`: it answered, but with too much; `timeout`: it
   * did not answer in time; `no`.
   */
  remedy: "transport" | "session" | "oversized" | "timeout" | "no";
}

/** A fault of a class, never retried. */
export function finalFault(
  failureClass: ToolFailure["class"],
  message: string,
  retryable = false,
): Fault {
  return { failure: { class: failureClass, message, retryable }, remedy: "no" };
}

/** How the SDK says that a reply has another shape: every fault of every shape tried, in lines. */
const SHAPE_FAULTS = /\[\s*\{\s*"(?:code|expected|origin|format)":[^]*$/;
/** What of the SDK's words is for its callers. */
const CALLERS_ONLY = / \(redirectPolicy: '[a-z-]+'\)/;

/** A text of a stranger's, bounded and without control characters. */
export function boundedMessage(text: string): string {
  return clip(withoutControls(text), MESSAGE_CHARS_MAX);
}

/** What the SDK itself says of a reply, without what only its callers can use. */
export function plainMessage(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.replace(SHAPE_FAULTS, "the reply is no message of the protocol")
    .replace(CALLERS_ONLY, "");
}

/** What went wrong with one request, from what the SDK or a transport threw. */
export function classifyError(sdk: Sdk, error: unknown, hadSession: boolean): Fault {
  if (error instanceof Refused) return finalFault("not_sent", error.message);
  if (error instanceof NotSent) return transportFault("not_sent", error.message);
  if (error instanceof HttpFault) {
    if (error.denied) return finalFault("denied", boundedMessage(error.message));
    return transportFault(error.sent ? "lost" : "not_sent", error.message);
  }
  if (error instanceof sdk.ProtocolError) {
    if (error.data === OVERSIZED) {
      return { ...finalFault("lost", error.message), remedy: "oversized" };
    }
    if (error.data === STREAM_ENDED) return transportFault("lost", error.message);
    return {
      failure: {
        class: "protocol",
        message: boundedMessage(error.message),
        code: error.code,
        retryable: false,
      },
      remedy: "no",
    };
  }
  if (error instanceof sdk.SdkHttpError) {
    const { text } = error.data;
    const said = typeof text === "string" && text !== "" ? text : error.message;
    const plain = said.replace(SDK_PREFIX, "").replace(CALLERS_ONLY, "");
    return classifyStatus(error.status, plain, hadSession);
  }
  const message = plainMessage(error);
  if (error instanceof sdk.SdkError) return classifySdkError(sdk, error.code, message);
  if (message === "Not connected") return transportFault("not_sent", "not connected");
  return transportFault("lost", message);
}

function classifySdkError(sdk: Sdk, code: string, message: string): Fault {
  const { SdkErrorCode } = sdk;
  switch (code) {
    case SdkErrorCode.NotConnected:
      return transportFault("not_sent", "not connected");
    case SdkErrorCode.UnsupportedResultType:
      return finalFault("protocol", "the tool asks for more input, which nobody is here to give");
    case SdkErrorCode.InvalidResult:
    case SdkErrorCode.CapabilityNotSupported:
    case SdkErrorCode.MethodNotSupportedByProtocolVersion:
      return finalFault("protocol", boundedMessage(message));
    default:
      return transportFault("lost", message);
  }
}

/** The fault that an HTTP status means (RFC 9110), with the response's text. */
export function classifyStatus(status: number, text: string, hadSession: boolean): Fault {
  const said = serverMessage(text);
  const message = boundedMessage(`HTTP ${status}${said === "" ? "" : `: ${said}`}`);
  if (hadSession && (status === 404 || (status === 400 && /session/i.test(text)))) {
    return { failure: { class: "not_sent", message, retryable: true }, remedy: "session" };
  }
  if (status === 408 || status === 425 || status === 429) {
    return transportFault("not_sent", message);
  }
  if (status >= 500) return transportFault("lost", message);
  return finalFault("protocol", message);
}

/** The message inside a JSON-RPC error body, else the body's own text. */
function serverMessage(text: string): string {
  const json = text.startsWith("{") ? parseJson(text) : undefined;
  if (json?.ok && isObject(json.value) && isObject(json.value.error)) {
    const { message } = json.value.error;
    if (typeof message === "string") return message;
  }
  return text.trim();
}

function transportFault(failureClass: "not_sent" | "lost", message: string): Fault {
  return {
    failure: { class: failureClass, message: boundedMessage(message), retryable: true },
    remedy: "transport",
  };
}
