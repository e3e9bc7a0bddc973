/** One request and what came back for it: one attempt, with its own clocks. */

import { isObject, parseJson } from "../core/json.ts";
import { MODEL_REPLY_BYTES_MAX } from "../core/limits.ts";
import { failed, type Outcome } from "../core/outcome.ts";
import type { Cancel, ClockPort } from "../ports/clock.ts";
import type { HttpFailure, HttpPort, HttpReply, HttpRequest } from "../ports/http.ts";
import type { Draft, ReplyReader } from "./dialect.ts";
import type { Trouble } from "./retry.ts";
import { SseFeed } from "./sse.ts";

/** A whole reply's bytes, and those of a stream with all its framing. */
const WHOLE_BYTES_MAX = 4 * MODEL_REPLY_BYTES_MAX;
const STREAM_BYTES_MAX = 16 * MODEL_REPLY_BYTES_MAX;
const ERROR_BYTES_MAX = 64 * 1024;
/** After the end mark, how long the end of the body is waited for, to keep the connection. */
const LINGER_MS = 250;
/** After the reason why the model stopped, how long usage and the end mark are waited for. */
const TRAILER_MS = 2_000;
const REDIRECTS_MAX = 3;
const LOST: HttpFailure = { class: "reset", message: "the connection was lost" };

/** What an attempt needs of its surroundings. */
export interface ExchangePorts {
  http: HttpPort;
  clock: ClockPort;
}

/** How long an attempt may take, and how long it may be silent. */
export interface ExchangeLimits {
  requestTimeoutMs: number;
  /** Silence inside a body; Infinity for none. */
  idleTimeoutMs: number;
}

/** What an attempt came to. `requests`: how many were sent for it, redirects included. */
export type Exchanged =
  & { requests: number }
  & ({ ok: true; draft: Draft } | { ok: false; trouble: Trouble });

/** Ends a request by time, by silence or by the caller, and remembers by which. */
class Watch {
  readonly #controller = new AbortController();
  readonly #clock: ClockPort;
  readonly #outer: AbortSignal;
  readonly limits: ExchangeLimits;
  readonly #onOuter = () => this.#end("cancelled");
  #cancelRequest: Cancel;
  #cancelIdle: Cancel | null = null;
  #activeAtMs = 0;
  /** Called at the end: a runtime may lose the signal's way to a body that is being read. */
  onEnd: (() => void) | null = null;
  ended: "request" | "idle" | "cancelled" | "linger" | null = null;

  constructor(clock: ClockPort, outer: AbortSignal, limits: ExchangeLimits) {
    this.#clock = clock;
    this.#outer = outer;
    this.limits = limits;
    this.#cancelRequest = clock.after(limits.requestTimeoutMs, () => this.#end("request"));
    outer.addEventListener("abort", this.#onOuter);
    if (outer.aborted) this.#end("cancelled");
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Something came. One timer is armed and looks, when it fires, how long ago that was. */
  touch(): void {
    this.#activeAtMs = this.#clock.monotonicMs();
    if (this.#cancelIdle === null && Number.isFinite(this.limits.idleTimeoutMs)) {
      this.#armIdle(this.limits.idleTimeoutMs);
    }
  }

  /** The reply is complete: from here on, what follows is waited for only a moment. */
  linger(delayMs: number): void {
    this.#cancelIdle?.();
    this.#cancelIdle = this.#clock.after(delayMs, () => this.#end("linger"));
  }

  /** Nothing more is wanted; a request still on its way is given up. */
  close(isComplete: boolean): void {
    this.#outer.removeEventListener("abort", this.#onOuter);
    this.#cancelRequest();
    this.#cancelIdle?.();
    if (!isComplete) this.#controller.abort();
  }

  #armIdle(delayMs: number): void {
    this.#cancelIdle = this.#clock.after(delayMs, () => {
      const silentMs = this.#clock.monotonicMs() - this.#activeAtMs;
      const leftMs = this.limits.idleTimeoutMs - silentMs;
      if (leftMs <= 0) this.#end("idle");
      else this.#armIdle(Math.ceil(leftMs));
    });
  }

  #end(why: "request" | "idle" | "cancelled" | "linger"): void {
    if (this.ended !== null) return;
    this.ended = why;
    this.#controller.abort();
    this.onEnd?.();
  }
}

/** Sends one completion request and reads its reply, streamed or whole. */
export async function exchange(
  ports: ExchangePorts,
  request: HttpRequest,
  reader: ReplyReader,
  limits: ExchangeLimits,
  signal: AbortSignal,
): Promise<Exchanged> {
  const watch = new Watch(ports.clock, signal, limits);
  const count = { requests: 0 };
  const body: BodyState = { complete: false };
  try {
    const sent = await sendWithin(ports.http, request, watch, count);
    if ("trouble" in sent) return { ok: false, trouble: sent.trouble, ...count };
    const { reply } = sent;
    if (reply.status < 200 || reply.status > 299) {
      const text = await readText(reply, ERROR_BYTES_MAX, watch, body);
      const trouble: Trouble = text.ok
        ? { kind: "status", status: reply.status, headers: reply.headers, body: text.text }
        : text.trouble;
      return { ok: false, trouble, ...count };
    }
    const trouble = await readReply(reply, reader, watch, body);
    if (trouble !== null) return { ok: false, trouble, ...count };
    return { ok: true, draft: reader.draft(), ...count };
  } finally {
    watch.close(body.complete);
  }
}

/** Sends one small request and reads its JSON, within the limits. */
export async function fetchJson(
  ports: ExchangePorts,
  request: HttpRequest,
  limits: ExchangeLimits,
  signal: AbortSignal,
): Promise<{ ok: true; value: unknown } | { ok: false; trouble: Trouble }> {
  const watch = new Watch(ports.clock, signal, limits);
  const body: BodyState = { complete: false };
  try {
    const sent = await sendWithin(ports.http, request, watch, { requests: 0 });
    if ("trouble" in sent) return { ok: false, trouble: sent.trouble };
    const { reply } = sent;
    const text = await readText(reply, WHOLE_BYTES_MAX, watch, body);
    if (!text.ok) return text;
    if (reply.status < 200 || reply.status > 299) {
      const { status, headers } = reply;
      return { ok: false, trouble: { kind: "status", status, headers, body: text.text } };
    }
    const parsed = parseJson(text.text);
    return parsed.ok ? parsed : { ok: false, trouble: garbled(text.text) };
  } finally {
    watch.close(body.complete);
  }
}

/** Whether a body was read to its end, so that its connection can serve again. */
interface BodyState {
  complete: boolean;
}

/** Follows redirects within the origin only: headers hold credentials of this one. */
async function sendWithin(
  http: HttpPort,
  request: HttpRequest,
  watch: Watch,
  count: { requests: number },
): Promise<{ reply: HttpReply } | { trouble: Trouble }> {
  let url = request.url;
  for (let hops = 0;; hops++) {
    count.requests++;
    const sent = await sendOrEnd(http, { ...request, url, redirect: "manual" }, watch);
    if (!sent.ok) return { trouble: endedTrouble(watch, sent.failure) };
    const { status, headers, body } = sent.value;
    const location = headers.get("location");
    if (status < 300 || status > 399 || location === null) return { reply: sent.value };
    await body?.cancel().catch(() => {});
    const target = URL.canParse(location, url) ? new URL(location, url) : null;
    if (target === null || target.origin !== new URL(url).origin || hops >= REDIRECTS_MAX) {
      return { trouble: { kind: "redirect", status, location } };
    }
    url = target.href;
  }
}

/** The reply's head, or the failure at the end of the watch, whichever comes first. */
function sendOrEnd(
  http: HttpPort,
  request: HttpRequest,
  watch: Watch,
): Promise<Outcome<HttpReply, HttpFailure>> {
  if (watch.ended !== null) return Promise.resolve(failed(LOST));
  return new Promise((resolve) => {
    const sending = http.send(request, watch.signal);
    watch.onEnd = () => {
      resolve(failed({ class: "aborted", message: "ended by its own clock or by the caller" }));
      void sending.then((sent) => sent.ok ? sent.value.body?.cancel() : undefined).catch(() => {});
    };
    sending.then((sent) => {
      watch.onEnd = null;
      resolve(sent);
    });
  });
}

async function readReply(
  reply: HttpReply,
  reader: ReplyReader,
  watch: Watch,
  state: BodyState,
): Promise<Trouble | null> {
  if (reply.body === null) return { kind: "garbled", detail: "the reply has no body" };
  const type = reply.headers.get("content-type") ?? "";
  let form = null as "stream" | "whole" | null;
  let trouble: Trouble | null = null;
  const feed = new SseFeed((data) => {
    trouble = takeData(reader, data);
    return trouble !== null || reader.ended || reader.cut !== null;
  });
  const whole: Uint8Array[] = [];
  let bytes = 0;
  let isOver = false;
  let isTrailing = false;
  const broken = await readChunks(reply.body, watch, state, (chunk) => {
    if (isOver) return "on";
    bytes += chunk.length;
    form ??= formOf(type, chunk);
    if (form === "whole") {
      if (bytes > WHOLE_BYTES_MAX) trouble = { kind: "oversized", bytesMax: WHOLE_BYTES_MAX };
      else whole.push(chunk);
      return trouble === null ? "on" : "stop";
    }
    if (bytes > STREAM_BYTES_MAX) trouble = { kind: "oversized", bytesMax: STREAM_BYTES_MAX };
    else isOver = feed.push(chunk);
    if (feed.oversized) trouble = { kind: "oversized", bytesMax: 2 * MODEL_REPLY_BYTES_MAX };
    if (trouble !== null || reader.cut !== null) return "stop";
    if (isOver) watch.linger(LINGER_MS);
    else if (reader.finished && !isTrailing) {
      isTrailing = true;
      watch.linger(TRAILER_MS);
    }
    return "on";
  });
  if (trouble !== null) return trouble;
  if (form === "whole") {
    const text = joinText(whole);
    if (!EVENT.test(text)) return broken ?? takeWhole(reader, text);
    // Its first piece did not yet show that it is a stream.
    isOver = feed.push(new TextEncoder().encode(text));
  }
  if (!isOver && broken === null) feed.end();
  if (trouble !== null) return trouble;
  if (reader.finished || reader.cut !== null) return null;
  return broken ?? (bytes === 0 ? garbled("") : { kind: "truncated" });
}

/** Of a body, by its beginning before its type: some servers name another one. */
function formOf(type: string, chunk: Uint8Array): "stream" | "whole" {
  const head = new TextDecoder().decode(chunk.subarray(0, 64));
  if (EVENT.test(head)) return "stream";
  return /^\s*\{/.test(head) || /json/i.test(type) ? "whole" : "stream";
}

/** How an event stream begins (HTML standard, 9.2.5): a field, or a comment. */
const EVENT = /^\s*(?:data|event|id|retry)?:/;

/** Reads a body to its end or until told to stop; what broke it off, if anything did. */
async function readChunks(
  body: ReadableStream<Uint8Array>,
  watch: Watch,
  state: BodyState,
  take: (chunk: Uint8Array) => "on" | "stop",
): Promise<Trouble | null> {
  const reader = body.getReader();
  // Cancelling settles a read that is under way.
  const cancel = () => void reader.cancel().catch(() => {});
  if (watch.ended !== null) cancel();
  watch.onEnd = cancel;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (watch.ended !== null) return endedTrouble(watch, LOST);
      if (done) {
        state.complete = true;
        return null;
      }
      watch.touch();
      if (take(value) === "stop") {
        await reader.cancel().catch(() => {});
        return null;
      }
    }
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return endedTrouble(watch, { class: "reset", message });
  } finally {
    watch.onEnd = null;
    reader.releaseLock();
  }
}

async function readText(
  reply: HttpReply,
  bytesMax: number,
  watch: Watch,
  state: BodyState,
): Promise<{ ok: true; text: string } | { ok: false; trouble: Trouble }> {
  if (reply.body === null) return { ok: true, text: "" };
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  const broken = await readChunks(reply.body, watch, state, (chunk) => {
    if (bytes < bytesMax) chunks.push(chunk);
    bytes += chunk.length;
    return bytes > 2 * bytesMax ? "stop" : "on";
  });
  return broken === null || reply.status > 299
    ? { ok: true, text: joinText(chunks) }
    : { ok: false, trouble: broken };
}

function takeData(reader: ReplyReader, data: string): Trouble | null {
  if (reader.isEndMark(data)) return null;
  const parsed = parseJson(data);
  if (!parsed.ok || !isObject(parsed.value)) return garbled(data);
  return reported(reader.take(parsed.value));
}

function takeWhole(reader: ReplyReader, text: string): Trouble | null {
  const parsed = parseJson(text);
  if (!parsed.ok || !isObject(parsed.value)) return garbled(text);
  return reported(reader.take(parsed.value)) ?? (reader.finished ? null : garbled(text));
}

function reported(error: { status: number; body: string } | null): Trouble | null {
  return error === null
    ? null
    : { kind: "status", status: error.status, headers: new Headers(), body: error.body };
}

/** Lengths only: what came may hold anything. */
function garbled(text: string): Trouble {
  const what = text.trim() === ""
    ? "an empty reply"
    : /^\s*</.test(text)
    ? "a page of markup instead of a reply; is the base URL right (as far as /v1)?"
    : `a reply of ${text.length} characters that is not of this dialect`;
  return { kind: "garbled", detail: what };
}

function endedTrouble(watch: Watch, failure: HttpFailure): Trouble {
  switch (watch.ended) {
    case "request":
      return { kind: "timeout", which: "request", ms: watch.limits.requestTimeoutMs };
    case "idle":
      return { kind: "timeout", which: "idle", ms: watch.limits.idleTimeoutMs };
    case "cancelled":
      return { kind: "transport", failure: { ...failure, class: "aborted" } };
    default:
      return { kind: "transport", failure };
  }
}

function joinText(chunks: readonly Uint8Array[]): string {
  const decoder = new TextDecoder();
  let text = "";
  for (const chunk of chunks) text += decoder.decode(chunk, { stream: true });
  return text + decoder.decode();
}
