/**
 * What to do after a request that brought no reply: pure, from what was seen of it.
 * Transport trouble is retried, `Retry-After` is honoured up to 60 s, a quota that is
 * spent and refused credentials are final.
 */

import { isObject, type Json, parseJson } from "../core/json.ts";
import { RETRY_AFTER_MS_MAX } from "../core/limits.ts";
import { clip } from "../core/text.ts";
import { parseIso } from "../core/time.ts";
import type { HttpFailure } from "../ports/http.ts";
import type { ModelFailureClass } from "../ports/model.ts";

/** What happened instead of a reply. */
export type Trouble =
  | { kind: "status"; status: number; headers: Pick<Headers, "get">; body: string }
  /** A redirect that leads to another origin: credentials do not go there. */
  | { kind: "redirect"; status: number; location: string }
  | { kind: "transport"; failure: HttpFailure }
  /** No answer in time, or silence inside a stream. */
  | { kind: "timeout"; which: "request" | "idle"; ms: number }
  /** The stream ended before the wire said why. */
  | { kind: "truncated" }
  /** What came is not the dialect. */
  | { kind: "garbled"; detail: string }
  | { kind: "oversized"; bytesMax: number };

/** What to do about it. `reason` is short and holds nothing of the conversation. */
export type RetryVerdict =
  | { retry: true; afterMs: number | null; reason: string; detail: string }
  | {
    retry: false;
    class: ModelFailureClass;
    retryable: boolean;
    reason: string;
    detail: string;
  };

const DETAIL_CHARS_MAX = 400;

const CONTEXT_LENGTH = [
  /context_length_exceeded|exceed_context_size|context_window_exceeded/i,
  /maximum context length|max(imum)?_?(model|context|seq)_?len|context (length|window|size)/i,
  /prompt is too long|prompt too long|input is too long|too many (input )?tokens|input length/i,
  /exceeds? (the )?(available )?context|context shift|longer than the (model's )?context/i,
  /input token count.*exceeds|reduce the length of (the|your) (messages|prompt|input)/i,
];
const TOOLS_UNSUPPORTED = [
  /does not support (tools|tool|function)/i,
  /(tools?|tool[ _]?(use|calling|calls|choice)|function[ _]call\w*)\b[^.]{0,60}\b(not supported|unsupported|not available|not enabled)/i,
  /no endpoints found that support tool use/i,
  /--enable-auto-tool-choice|tools? param requires --jinja|--jinja flag/i,
  /unsupported (parameter|field|value)[^.]{0,20}['"`]?tools?['"`]?/i,
];
const QUOTA_SPENT = [
  /insufficient_quota|billing_hard_limit|billing_not_active|quota_exceeded_permanently/i,
  /credit balance|insufficient (balance|credits?|funds)|out of credits|more credits/i,
  /(monthly|yearly|annual|weekly|plan|usage|spend(ing)?) (quota|limit|budget|cap)\b/i,
  /payment required|billing_error/i,
];
const QUOTA_MENTIONED =
  /exceeded your (current )?quota|quota (has been )?(exceeded|exhausted|spent)/i;
const RATE_LIMITED = /per[ _-]?(minute|second|hour)|retry in|try again in|rate[ _-]?limit/i;
const MODEL_NOT_FOUND = [
  /model_not_found|unknown_model|invalid_model/i,
  /model\b[^.]{0,120}\b(not found|does not exist|not exist|is not available|not a valid model)/i,
  /not a valid model( id)?|no such model|unknown model|not_found_error[^}]*model/i,
  /try pulling it first/i,
];

/** The verdict. `wallMs` tells a date in `Retry-After` from a delay. */
export function judgeTrouble(trouble: Trouble, wallMs: number): RetryVerdict {
  switch (trouble.kind) {
    case "status":
      return judgeStatus(trouble, wallMs);
    case "transport":
      return judgeTransport(trouble.failure);
    case "timeout":
      return again(
        trouble.which === "idle" ? "idle_timeout" : "request_timeout",
        trouble.which === "idle"
          ? `silence for ${trouble.ms} ms inside the stream`
          : `no reply within ${trouble.ms} ms`,
      );
    case "truncated":
      return again("truncated", "the stream ended in the middle of the reply");
    case "garbled":
      return again("garbled", trouble.detail);
    case "oversized":
      return final("bad_request", false, "oversized", `a reply over ${trouble.bytesMax} bytes`);
    case "redirect":
      return final(
        "bad_request",
        false,
        `status ${trouble.status}`,
        `it redirects to ${
          clip(trouble.location, 200)
        }, where its credentials must not go; name that URL if it is the right one`,
      );
  }
}

function judgeTransport(failure: HttpFailure): RetryVerdict {
  const detail = clip(failure.message, DETAIL_CHARS_MAX);
  switch (failure.class) {
    case "denied":
      return final("unreachable", false, "denied", detail);
    case "tls":
      return final("unreachable", false, "tls", detail);
    case "aborted":
      return final("cancelled", true, "cancelled", detail);
    default:
      return again(failure.class, detail);
  }
}

function judgeStatus(
  trouble: Extract<Trouble, { kind: "status" }>,
  wallMs: number,
): RetryVerdict {
  const { status, headers, body } = trouble;
  const reason = `status ${status}`;
  const told = errorText(body);
  const detail = `${status}${told === "" ? "" : `: ${clip(told, DETAIL_CHARS_MAX)}`}`;
  const matches = (patterns: readonly RegExp[]) => patterns.some((pattern) => pattern.test(told));
  const waitMs = retryAfterMs(headers, wallMs);

  if (status === 402 || matches(QUOTA_SPENT) || spendsQuota(status, told, waitMs)) {
    return final("quota", false, reason, detail);
  }
  if (status === 401) return final("auth", false, reason, detail);
  if (matches(MODEL_NOT_FOUND) && status >= 400 && status < 500 && status !== 429) {
    return final("not_found", false, reason, detail);
  }
  if (status === 403) return final("auth", false, reason, detail);
  if (status === 413 || (status !== 429 && status !== 503 && matches(CONTEXT_LENGTH))) {
    return final("context_length", false, reason, detail);
  }
  if (status !== 429 && status !== 503 && matches(TOOLS_UNSUPPORTED)) {
    return final("tools_unsupported", false, reason, detail);
  }
  if (status === 404) return final("not_found", false, reason, detail);
  if (status === 408 || status === 425 || status === 429 || status >= 500) {
    if (waitMs !== null && waitMs > RETRY_AFTER_MS_MAX) {
      const late = `${detail} (it asks to wait ${Math.ceil(waitMs / 1000)} s)`;
      return final("unreachable", true, reason, late);
    }
    return { retry: true, afterMs: waitMs, reason, detail };
  }
  return final("bad_request", false, reason, detail);
}

/** "Quota" alone is also how rate limits are told: the text or a short wait tells them apart. */
function spendsQuota(status: number, told: string, waitMs: number | null): boolean {
  if (status !== 429 && status !== 403 && status !== 400) return false;
  if (!QUOTA_MENTIONED.test(told) || RATE_LIMITED.test(told)) return false;
  return waitMs === null || waitMs > RETRY_AFTER_MS_MAX;
}

/** Milliseconds that the endpoint asks to wait, or null. Seconds, or an HTTP date. */
export function retryAfterMs(headers: Pick<Headers, "get">, wallMs: number): number | null {
  const exact = headers.get("retry-after-ms");
  if (exact !== null && /^\d+(\.\d+)?$/.test(exact.trim())) return Math.ceil(Number(exact));
  const value = headers.get("retry-after")?.trim();
  if (value === undefined || value === "") return null;
  if (/^\d+(\.\d+)?$/.test(value)) return Math.ceil(Number(value) * 1000);
  const at = parseHttpDate(value);
  return at === undefined ? null : Math.max(0, at - wallMs);
}

const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/** Milliseconds since the epoch of an IMF-fixdate (RFC 9110, 5.6.7), else undefined. */
export function parseHttpDate(text: string): number | undefined {
  const match = /^[A-Za-z]{3,9}, (\d\d)[ -]([A-Za-z]{3})[ -](\d{4}) (\d\d):(\d\d):(\d\d) GMT$/.exec(
    text,
  );
  if (!match) return undefined;
  const month = MONTHS.indexOf(match[2]!.toLowerCase()) + 1;
  if (month === 0) return undefined;
  const two = String(month).padStart(2, "0");
  return parseIso(`${match[3]}-${two}-${match[1]}T${match[4]}:${match[5]}:${match[6]}Z`);
}

/** The words of an error body: its message, type and code, or the text as it is. */
export function errorText(body: string): string {
  const parsed = parseJson(body);
  if (!parsed.ok) return body.replace(/\s+/g, " ").trim();
  const words: string[] = [];
  collectWords(parsed.value, words, 0);
  return [...new Set(words)].join(" ").replace(/\s+/g, " ").trim();
}

const WORD_KEYS = [
  "message",
  "error",
  "detail",
  "msg",
  "type",
  "code",
  "status",
  "title",
  "metadata",
  "raw",
];

function collectWords(value: Json, words: string[], depth: number): void {
  if (depth > 4 || words.length > 20) return;
  if (typeof value === "string") words.push(value);
  else if (Array.isArray(value)) {
    for (const item of value.slice(0, 5)) collectWords(item, words, depth + 1);
  } else if (isObject(value)) {
    for (const key of WORD_KEYS) {
      const member = value[key];
      if (member !== undefined && member !== null) collectWords(member, words, depth + 1);
    }
  }
}

function again(reason: string, detail: string): RetryVerdict {
  return { retry: true, afterMs: null, reason, detail };
}

function final(
  failureClass: ModelFailureClass,
  retryable: boolean,
  reason: string,
  detail: string,
): RetryVerdict {
  return { retry: false, class: failureClass, retryable, reason, detail };
}
