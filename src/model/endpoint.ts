/** One endpoint over HTTP: its retries, what it is learned not to take, and its models. */

import { backoffMs } from "../core/backoff.ts";
import { IMAGE_BYTES_EQUIVALENT, TRANSPORT_BACKOFF } from "../core/limits.ts";
import { failed, type Outcome, success } from "../core/outcome.ts";
import type { Vault } from "../core/secret.ts";
import { byteLength, clip } from "../core/text.ts";
import { type ClockPort, pause } from "../ports/clock.ts";
import type { HttpPort, HttpRequest } from "../ports/http.ts";
import type { ModelFailure, ModelReply, ModelRequest, Usage } from "../ports/model.ts";
import type { RandomPort } from "../ports/random.ts";
import type { TelemetryPort } from "../ports/telemetry.ts";
import type { Endpoint, ModelSettings } from "../wire/payload.ts";
import { AnthropicDialect } from "./anthropic.ts";
import { type Dialect, type Draft, FULL_QUIRKS, type Quirks, wantsStream } from "./dialect.ts";
import { exchange, fetchJson } from "./exchange.ts";
import type { Member } from "./failover.ts";
import { namesOf } from "./listing.ts";
import { OpenAiDialect } from "./openai.ts";
import { errorText, judgeTrouble, type RetryVerdict, type Trouble } from "./retry.ts";
import { isImage } from "./wire_form.ts";

/** How long a server found by `auto` may take to say that it is there. */
const PROBE_MS = 500;
const MODELS_MS = 10_000;
/** Models that a failure names. */
const MODELS_SHOWN_MAX = 20;

/** What an endpoint needs of its surroundings. */
export interface EndpointDeps {
  settings: ModelSettings;
  vault: Vault;
  http: HttpPort;
  clock: ClockPort;
  random: RandomPort;
  telemetry: TelemetryPort;
}

type Attempted =
  & { requests: number; body: readonly string[] }
  & ({ ok: true; draft: Draft } | { ok: false; trouble: Trouble });

/** An endpoint with a wire. */
export class HttpEndpoint implements Member {
  readonly label: string;
  readonly mustProbe: boolean;
  readonly #deps: EndpointDeps;
  readonly #endpoint: Endpoint;
  readonly #dialect: Dialect;
  #quirks: Quirks;
  #model: string | null;

  constructor(deps: EndpointDeps, endpoint: Endpoint) {
    this.#deps = deps;
    this.#endpoint = endpoint;
    this.#dialect = endpoint.dialect === "anthropic"
      ? new AnthropicDialect(deps.settings)
      : new OpenAiDialect(deps.settings);
    this.#model = deps.settings.name;
    const url = new URL(endpoint.url);
    this.label = `${url.origin}${url.pathname.replace(/\/+$/, "")}`;
    this.mustProbe = endpoint.probe;
    this.#quirks = url.hostname === "api.openai.com"
      ? { ...FULL_QUIRKS, maxTokensField: "max_completion_tokens" }
      : FULL_QUIRKS;
  }

  /** Whether a server answers here and has a model to offer. */
  async probe(signal: AbortSignal): Promise<boolean> {
    const listed = await this.#listModels(signal, PROBE_MS);
    if (!listed.ok) return false;
    if (this.#model === null) this.#model = listed.names[0] ?? null;
    return this.#model !== null;
  }

  async complete(
    request: ModelRequest,
    signal: AbortSignal,
    hasNext: boolean,
  ): Promise<Outcome<ModelReply, ModelFailure>> {
    let attempts = 0;
    for (let retries = 0;;) {
      const tried = await this.#attempt(request, signal);
      attempts += tried.requests;
      if (tried.ok) return success(this.#reply(tried, request, attempts));
      if (this.#learn(tried)) {
        this.#tellRetry(attempts, "adapted", 0);
        continue;
      }
      const verdict = signal.aborted
        ? cancelled()
        : judgeTrouble(tried.trouble, this.#deps.clock.wallMs());
      if (!verdict.retry) {
        if (verdict.reason === "denied") this.#tellDenied();
        return failed(await this.#failure(verdict, attempts, signal));
      }
      retries++;
      const waitMs = Math.max(
        verdict.afterMs ?? 0,
        backoffMs(TRANSPORT_BACKOFF, retries, this.#deps.random.unit()),
      );
      // Where another endpoint stands ready, a long wait here is no use.
      const isLong = hasNext && waitMs > TRANSPORT_BACKOFF.capMs;
      if (retries > TRANSPORT_BACKOFF.attemptsMax || isLong) {
        return failed(await this.#failure(exhausted(verdict), attempts, signal));
      }
      this.#tellRetry(attempts, verdict.reason, waitMs);
      if (!await pause(this.#deps.clock, waitMs, signal)) {
        return failed(await this.#failure(cancelled(), attempts, signal));
      }
    }
  }

  async #attempt(request: ModelRequest, signal: AbortSignal): Promise<Attempted> {
    if (this.#model === null) {
      const listed = await this.#listModels(signal, MODELS_MS);
      if (!listed.ok) return { ok: false, trouble: listed.trouble, requests: 0, body: [] };
      const first = listed.names[0];
      if (first === undefined) {
        const body = "model not found: GET /models lists none; name one with --model";
        const trouble: Trouble = { kind: "status", status: 404, headers: new Headers(), body };
        return { ok: false, trouble, requests: 0, body: [] };
      }
      this.#model = first;
    }
    const { settings } = this.#deps;
    const body = this.#dialect.render(request, this.#model, this.#quirks);
    this.#deps.telemetry.emit("intel.call", {
      endpoint: this.label,
      model: this.#model,
      purpose: request.purpose,
      messages: request.messages.length,
      tools: request.tools.length,
      bytes: charsOf(body),
    }, "debug");
    const accept = wantsStream(settings.options) ? "text/event-stream" : "application/json";
    const sent = await exchange(
      this.#deps,
      {
        method: "POST",
        url: this.#urlOf(this.#dialect.path),
        headers: {
          "content-type": "application/json",
          accept,
          traceparent: request.traceparent,
          ...this.#headers(),
        },
        body,
      },
      this.#dialect.startReply(),
      { requestTimeoutMs: settings.requestTimeoutMs, idleTimeoutMs: settings.idleTimeoutMs },
      signal,
    );
    return { ...sent, body };
  }

  #learn(tried: { trouble: Trouble; body: readonly string[] }): boolean {
    const { trouble } = tried;
    if (trouble.kind !== "status") return false;
    const told = errorText(trouble.body);
    const learned = this.#dialect.learn(trouble.status, told, tried.body.join(""), this.#quirks);
    if (learned === null) return false;
    this.#quirks = learned;
    return true;
  }

  #reply(
    tried: { draft: Draft; body: readonly string[] },
    request: ModelRequest,
    attempts: number,
  ): ModelReply {
    const { draft } = tried;
    return {
      text: draft.text,
      calls: draft.calls,
      finish: draft.finish,
      refusal: draft.refusal,
      opaque: draft.opaque,
      usage: completeUsage(draft, () => estimatePrompt(tried.body, request, this.#quirks.images)),
      model: draft.model ?? this.#model ?? "",
      endpoint: this.label,
      attempts,
    };
  }

  async #failure(
    verdict: Extract<RetryVerdict, { retry: false }>,
    attempts: number,
    signal: AbortSignal,
  ): Promise<ModelFailure> {
    const detail = `${verdict.detail}${await this.#hint(verdict, signal)}`;
    const what = FAILURE_WORDS[verdict.class] ?? "Cannot use the model endpoint";
    const model = this.#model === null ? "" : `, model ${this.#model}`;
    const message = `${what} ${this.label}${model}: ${detail}${
      attempts > 1 ? ` (${attempts} requests)` : ""
    }`;
    return {
      class: verdict.class,
      message: this.#deps.vault.mask(clip(message, 2_000)),
      retryable: verdict.retryable,
      endpoint: this.label,
      attempts,
    };
  }

  async #hint(verdict: { class: string; detail: string }, signal: AbortSignal): Promise<string> {
    if (verdict.class === "auth") {
      return this.#endpoint.token === null ? "; no token was given for it" : "";
    }
    if (verdict.class !== "not_found" || signal.aborted) return "";
    const listed = await this.#listModels(signal, MODELS_MS);
    if (!listed.ok) return "; is the base URL right (as far as /v1)?";
    if (listed.names.length === 0) return "; it lists no models";
    const shown = listed.names.slice(0, MODELS_SHOWN_MAX).join(", ");
    const more = listed.names.length - MODELS_SHOWN_MAX;
    return `; its models: ${shown}${more > 0 ? ` and ${more} more` : ""}`;
  }

  async #listModels(
    signal: AbortSignal,
    timeoutMs: number,
  ): Promise<{ ok: true; names: string[] } | { ok: false; trouble: Trouble }> {
    const request: HttpRequest = {
      method: "GET",
      url: this.#urlOf("/models"),
      headers: { accept: "application/json", ...this.#headers() },
    };
    const limits = { requestTimeoutMs: timeoutMs, idleTimeoutMs: Infinity };
    const answer = await fetchJson(this.#deps, request, limits, signal);
    if (!answer.ok) return answer;
    return { ok: true, names: namesOf(answer.value) };
  }

  #urlOf(path: string): string {
    const url = new URL(this.#endpoint.url);
    url.pathname = url.pathname.replace(/\/+$/, "") + path;
    return url.href;
  }

  /** Secrets are in the clear only here, on their way out. */
  #headers(): Record<string, string> {
    const { vault } = this.#deps;
    const { token, headers } = this.#endpoint;
    const clear = token === null ? "" : vault.fill(token).reveal().trim();
    const out = this.#dialect.headers(clear === "" ? null : clear);
    for (const [name, value] of Object.entries(headers)) {
      out[name.toLowerCase()] = vault.fill(value).reveal();
    }
    return out;
  }

  #tellDenied(): void {
    const host = new URL(this.#endpoint.url).host;
    this.#deps.telemetry.emit("permission.denied", { kind: "net", target: host }, "warn");
  }

  #tellRetry(attempt: number, reason: string, waitMs: number): void {
    this.#deps.telemetry.emit("intel.retry", {
      endpoint: this.label,
      attempt,
      reason,
      wait_ms: waitMs,
    });
  }
}

const FAILURE_WORDS: Readonly<Record<string, string>> = {
  auth: "Cannot use the model endpoint, it refused the credentials:",
  quota: "Cannot go on, the quota is spent at",
  unreachable: "Cannot reach the model at",
  not_found: "Cannot find the model at",
  bad_request: "Cannot ask the model at",
  context_length: "Cannot ask the model, the conversation is too long for",
  tools_unsupported: "Cannot offer tools to the model at",
  cancelled: "Cancelled a call of the model at",
};

function charsOf(pieces: readonly string[]): number {
  return pieces.reduce((sum, piece) => sum + piece.length, 0);
}

/** Tokens of a prompt that nobody counted: a quarter of its bytes, an image by its equivalent. */
function estimatePrompt(
  body: readonly string[],
  request: ModelRequest,
  showsImages: boolean,
): number {
  let bytes = body.reduce((sum, piece) => sum + byteLength(piece), 0);
  for (const message of showsImages ? request.messages : []) {
    if (message.role === "assistant") continue;
    for (const part of message.parts) {
      if (isImage(part)) bytes += IMAGE_BYTES_EQUIVALENT - part.data.length;
    }
  }
  return Math.ceil(Math.max(0, bytes) / 4);
}

/**
 * What the endpoint reported, or the estimate where it reported none or was cut off. No prompt is
 * empty: one of 0 tokens was not counted, and believed it would lift the limit.
 */
function completeUsage(draft: Draft, estimateIn: () => number): Usage {
  const tokensOut = Math.ceil(draft.chars / 4);
  if (draft.usage === null || draft.usage.tokensIn === 0) {
    return {
      tokensIn: estimateIn(),
      tokensOut: Math.max(tokensOut, draft.usage?.tokensOut ?? 0),
      tokensCached: 0,
      estimated: true,
    };
  }
  // A reply that was cut off was not counted to its end.
  return draft.finish === "repetition" && draft.usage.tokensOut < tokensOut
    ? { ...draft.usage, tokensOut, estimated: true }
    : { ...draft.usage, estimated: false };
}

function cancelled(): Extract<RetryVerdict, { retry: false }> {
  return {
    retry: false,
    class: "cancelled",
    retryable: true,
    reason: "cancelled",
    detail: "cancelled",
  };
}

function exhausted(verdict: { reason: string; detail: string }): Extract<
  RetryVerdict,
  { retry: false }
> {
  const { reason, detail } = verdict;
  return { retry: false, class: "unreachable", retryable: true, reason, detail };
}
