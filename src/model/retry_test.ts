import assert from "node:assert/strict";
import { RETRY_AFTER_MS_MAX } from "../core/limits.ts";
import type { ModelFailureClass } from "../ports/model.ts";
import { errorText, judgeTrouble, parseHttpDate, retryAfterMs } from "./retry.ts";

const NOW = Date.UTC(2026, 0, 1, 12, 0, 0);

function judge(status: number, body: unknown, headers: Record<string, string> = {}) {
  return judgeTrouble({
    kind: "status",
    status,
    headers: new Headers(headers),
    body: typeof body === "string" ? body : JSON.stringify(body),
  }, NOW);
}

const openai = (message: string, code: string | null = null, type = "invalid_request_error") => ({
  error: { message, type, code },
});
const anthropic = (type: string, message: string) => ({ type: "error", error: { type, message } });

Deno.test("judgeTrouble: what is final, by the words that endpoints use", () => {
  const rows: [ModelFailureClass, boolean, number, unknown, Record<string, string>?][] = [
    // Credentials.
    ["auth", false, 401, openai("Incorrect API key provided: sk-***", "invalid_api_key")],
    ["auth", false, 401, ""],
    ["auth", false, 403, anthropic("permission_error", "Your API key may not use this resource")],
    // Quotas that are spent.
    [
      "quota",
      false,
      429,
      openai(
        "You exceeded your current quota, please check your plan and billing details.",
        "insufficient_quota",
        "insufficient_quota",
      ),
    ],
    ["quota", false, 429, openai("Your monthly quota is spent.")],
    ["quota", false, 429, openai("monthly quota exceeded"), { "retry-after": String(16 * 86_400) }],
    ["quota", false, 429, openai("You have reached your monthly usage limit"), {
      "retry-after": "5",
    }],
    ["quota", false, 429, openai("Quota exceeded"), { "retry-after": "86400" }],
    ["quota", false, 402, openai("Insufficient Balance")],
    ["quota", false, 402, ""],
    [
      "quota",
      false,
      400,
      anthropic("invalid_request_error", "Your credit balance is too low to access the API."),
    ],
    [
      "quota",
      false,
      403,
      openai("Billing hard limit has been reached", "billing_hard_limit_reached"),
    ],
    // Models.
    [
      "not_found",
      false,
      404,
      openai(
        "The model `gpt-9` does not exist or you do not have access to it.",
        "model_not_found",
      ),
    ],
    [
      "not_found",
      false,
      404,
      openai('model "llama9" not found, try pulling it first', null, "api_error"),
    ],
    ["not_found", false, 404, anthropic("not_found_error", "model: claude-9")],
    ["not_found", false, 400, openai("gpt-9 is not a valid model ID")],
    [
      "not_found",
      false,
      403,
      openai("Project does not have access to model gpt-9", "model_not_found"),
    ],
    ["not_found", false, 404, "404 page not found"],
    // Contexts.
    [
      "context_length",
      false,
      400,
      openai(
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
        "context_length_exceeded",
      ),
    ],
    [
      "context_length",
      false,
      400,
      anthropic("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
    ],
    [
      "context_length",
      false,
      400,
      anthropic(
        "invalid_request_error",
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
      ),
    ],
    [
      "context_length",
      false,
      400,
      {
        error: {
          code: 400,
          message: "the request exceeds the available context size, try increasing it",
          type: "exceed_context_size_error",
        },
      },
    ],
    ["context_length", false, 500, openai("context shift is disabled")],
    ["context_length", false, 400, {
      object: "error",
      message: "This model's maximum context length is 4096 tokens.",
      code: 400,
    }],
    [
      "context_length",
      false,
      400,
      openai("input token count (40000) exceeds the maximum number of tokens allowed"),
    ],
    [
      "context_length",
      false,
      413,
      anthropic("request_too_large", "Request exceeds the maximum size"),
    ],
    // Tools.
    [
      "tools_unsupported",
      false,
      400,
      openai("registry.ollama.ai/library/gemma:2b does not support tools", null, "api_error"),
    ],
    [
      "tools_unsupported",
      false,
      400,
      {
        message:
          '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
      },
    ],
    ["tools_unsupported", false, 500, openai("tools param requires --jinja flag")],
    ["tools_unsupported", false, 404, openai("No endpoints found that support tool use.")],
    ["tools_unsupported", false, 400, openai("tool calling is not supported by this model")],
    ["tools_unsupported", false, 400, openai("Function calling is not enabled for this model")],
    // Too long to wait.
    ["unreachable", true, 429, openai("slow down"), { "retry-after": "86400" }],
    ["unreachable", true, 503, "", { "retry-after": "61" }],
    // The rest.
    ["bad_request", false, 400, openai("temperature must be at most 2")],
    ["bad_request", false, 422, { detail: [{ msg: "field required" }] }],
    ["bad_request", false, 405, ""],
  ];
  for (const [failureClass, retryable, status, body, headers] of rows) {
    const verdict = judge(status, body, headers);
    assert.equal(verdict.retry, false, JSON.stringify(body));
    if (verdict.retry) continue;
    assert.deepEqual(
      [verdict.class, verdict.retryable],
      [failureClass, retryable],
      JSON.stringify(body),
    );
  }
});

Deno.test("judgeTrouble: what passes is retried, as late as the endpoint asks up to the bound", () => {
  const rows: [number, unknown, Record<string, string>, number | null][] = [
    [429, openai("Rate limit reached for requests", "rate_limit_exceeded"), {}, null],
    [429, "", { "retry-after": "2" }, 2_000],
    [429, "", { "retry-after": "60" }, RETRY_AFTER_MS_MAX],
    [429, "", { "retry-after-ms": "250" }, 250],
    [429, "", { "retry-after": "Thu, 01 Jan 2026 12:00:30 GMT" }, 30_000],
    [429, "", { "retry-after": "Thu, 01 Jan 2026 11:00:00 GMT" }, 0],
    [429, "", { "retry-after": "soon" }, null],
    [
      429,
      openai("You exceeded your current quota: requests per minute. Please retry in 12s."),
      {},
      null,
    ],
    [429, openai("quota exceeded"), { "retry-after": "3" }, 3_000],
    [429, openai("Too many tokens per minute; maximum context length is unaffected"), {}, null],
    [408, "", {}, null],
    [500, "", {}, null],
    [502, "<html>bad gateway</html>", {}, null],
    [503, openai("the server is overloaded"), {}, null],
    [504, "", {}, null],
    [529, anthropic("overloaded_error", "Overloaded"), {}, null],
  ];
  for (const [status, body, headers, afterMs] of rows) {
    const verdict = judge(status, body, headers);
    assert.equal(verdict.retry, true, `${status} ${JSON.stringify(body)}`);
    if (verdict.retry) {
      assert.equal(verdict.afterMs, afterMs, `${status} ${JSON.stringify(headers)}`);
    }
  }
});

Deno.test("judgeTrouble: transport, timeouts and half replies", () => {
  const transport = (name: "refused" | "reset" | "dns" | "tls" | "denied" | "aborted" | "other") =>
    judgeTrouble({ kind: "transport", failure: { class: name, message: "m" } }, NOW);
  for (const name of ["refused", "reset", "dns", "other"] as const) {
    assert.equal(transport(name).retry, true, name);
  }
  for (const name of ["tls", "denied"] as const) {
    const verdict = transport(name);
    assert.ok(!verdict.retry && verdict.class === "unreachable" && !verdict.retryable, name);
  }
  const aborted = transport("aborted");
  assert.ok(!aborted.retry && aborted.class === "cancelled");
  assert.equal(judgeTrouble({ kind: "timeout", which: "idle", ms: 5 }, NOW).retry, true);
  assert.equal(judgeTrouble({ kind: "timeout", which: "request", ms: 5 }, NOW).retry, true);
  assert.equal(judgeTrouble({ kind: "truncated" }, NOW).retry, true);
  assert.equal(judgeTrouble({ kind: "garbled", detail: "d" }, NOW).retry, true);
  assert.equal(judgeTrouble({ kind: "oversized", bytesMax: 1 }, NOW).retry, false);
  const redirect = judgeTrouble({ kind: "redirect", status: 307, location: "http://other/" }, NOW);
  assert.ok(
    !redirect.retry && redirect.class === "bad_request" && /http:\/\/other\//.test(redirect.detail),
  );
});

Deno.test("retryAfterMs and parseHttpDate: agree with the platform's own reading of dates", () => {
  for (const text of ["Sun, 06 Nov 1994 08:49:37 GMT", "Thu, 29 Feb 2024 23:59:59 GMT"]) {
    assert.equal(parseHttpDate(text), Date.parse(text));
  }
  for (const text of ["", "tomorrow", "Sun, 06 Nom 1994 08:49:37 GMT", "1994-11-06"]) {
    assert.equal(parseHttpDate(text), undefined, text);
  }
  assert.equal(retryAfterMs(new Headers(), NOW), null);
  assert.equal(retryAfterMs(new Headers({ "retry-after": "1.5" }), NOW), 1_500);
});

Deno.test("errorText: the words of an error in any of the usual shapes", () => {
  const rows: [string, string][] = [
    ['{"error":{"message":"no","type":"t","code":null}}', "no t"],
    ['{"error":"plain"}', "plain"],
    [
      '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
      "Overloaded overloaded_error error",
    ],
    ['{"detail":[{"msg":"required"},{"msg":"short"}]}', "required short"],
    ["<h1>\n  Bad\n</h1>", "<h1> Bad </h1>"],
    ["", ""],
  ];
  for (const [body, words] of rows) assert.equal(errorText(body), words);
});
