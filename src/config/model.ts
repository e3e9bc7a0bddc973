/** The model from the configuration: endpoints, their token, the window's arithmetic, prices. */

import { ENDPOINTS_MAX, RECORDING_FILE_BYTES_MAX } from "../core/config_limits.ts";
import { isObject } from "../core/json.ts";
import { CONVERSATION_TOKENS_MIN } from "../core/limits.ts";
import type { SecretText } from "../core/secret.ts";
import { parseRecording } from "../model/recording.ts";
import type { Endpoint, ModelSettings, Prices } from "../wire/payload.ts";
import { showValue } from "./problem.ts";
import type { Reading } from "./reading.ts";
import { hasReference } from "./secrets.ts";
import { didYouMean } from "./suggest.ts";
import { readFile } from "./task.ts";
import { checkUrl } from "./url.ts";

type Dialect = Endpoint["dialect"];

/** Public bases by dialect, and the variables that hold their keys and other bases. */
const PUBLIC: Readonly<Record<Dialect, { base: string; key: string; baseVariable: string }>> = {
  openai: {
    base: "https://api.openai.com/v1",
    key: "OPENAI_API_KEY",
    baseVariable: "OPENAI_BASE_URL",
  },
  anthropic: {
    base: "https://api.anthropic.com/v1",
    key: "ANTHROPIC_API_KEY",
    baseVariable: "ANTHROPIC_BASE_URL",
  },
};

/** Where Ollama, llama.cpp and LM Studio listen unless told otherwise. */
export const LOCAL_BASES: readonly string[] = [
  "http://127.0.0.1:11434/v1",
  "http://127.0.0.1:8080/v1",
  "http://127.0.0.1:1234/v1",
];

/** Reads the model's settings. */
export function readModel(reading: Reading): ModelSettings {
  const dialect = reading.text("dialect") as Dialect | null;
  const token = readToken(reading);
  const endpoints: Endpoint[] = [];
  reading.texts("intelligence").forEach((item, index) => {
    endpoints.push(...readEndpoint(reading, item, String(index), dialect, token));
  });
  if (endpoints.length > ENDPOINTS_MAX) {
    reading.report(
      reading.where("intelligence"),
      endpoints.length,
      `${endpoints.length} endpoints`,
      `at most ${ENDPOINTS_MAX}`,
    );
  }
  if (reading.texts("intelligence").length === 0) {
    reading.report(
      reading.where("intelligence"),
      "",
      "no endpoint is given",
      "write a URL as far as /v1, auto, or recorded:FILE",
    );
  }
  checkWindow(reading);
  const prices = readPrices(reading);
  if (reading.number("max_cost") !== null && prices === null) {
    reading.report(
      reading.where("max_cost"),
      reading.number("max_cost"),
      "a cost limit needs the model's prices, which are not known",
      "set model.prices {input, cached_input, output} in the configuration file, in USD per million tokens",
    );
  }
  const recordTo = reading.text("record_model");
  return {
    endpoints,
    name: reading.text("model"),
    toolMode: (reading.text("tool_mode") ?? "auto") as ModelSettings["toolMode"],
    maxOutputTokens: reading.number("max_output_tokens")!,
    contextWindow: reading.number("context_window")!,
    temperature: reading.number("temperature"),
    reasoningEffort: reading.text("reasoning_effort"),
    requestTimeoutMs: reading.ms("request_timeout")!,
    idleTimeoutMs: reading.ms("idle_timeout")!,
    options: (() => {
      const options = reading.get("model_options");
      return isObject(options) ? options : {};
    })(),
    prices,
    recordTo: recordTo === null ? null : reading.absolute(recordTo),
  };
}

function readToken(reading: Reading): SecretText | null {
  const written = reading.text("token");
  if (written === null) return null;
  const where = reading.where("token");
  if (!hasReference(written)) {
    reading.report(
      where,
      "***",
      "a token may not stand in the file itself",
      "write ${env:NAME} or ${file:PATH}",
    );
    return null;
  }
  return reading.headerText(written, where) ?? null;
}

function readEndpoint(
  reading: Reading,
  item: string,
  index: string,
  dialect: Dialect | null,
  token: SecretText | null,
): Endpoint[] {
  const where = reading.where("intelligence", index);
  if (item === "auto") return findEndpoints(reading, dialect);
  if (item.startsWith("recorded:")) {
    const path = item.slice("recorded:".length);
    const recording = readRecording(reading, path, where);
    return recording === undefined ? [] : [{
      ...bare(`recorded:${reading.absolute(path)}`, dialect ?? "openai"),
      kind: "recorded",
      recording,
    }];
  }
  const insecure = reading.on("allow_insecure");
  const url = checkUrl(item, insecure);
  if (!url.ok) {
    const near = /^[a-z]+$/i.test(item) ? didYouMean(item, ["auto"]) : "";
    reading.report(where, url.failure.value, url.failure.message, near || url.failure.hint);
    return [];
  }
  const base = baseOf(url.value);
  if (base !== null) {
    reading.report(where, url.value, `${showValue(url.value)} is not a base URL`, `write ${base}`);
    return [];
  }
  const spoken = dialect ?? dialectOf(url.value);
  return [{
    ...bare(url.value, spoken),
    token: token ?? keyOf(reading, spoken),
  }];
}

/** The base of a URL that goes on to what requests are sent to; null for one that does not. */
function baseOf(url: string): string | null {
  const { origin, pathname, search } = new URL(url);
  const end = /\/(chat\/completions|messages)\/*$/.exec(pathname);
  return end === null ? null : `${origin}${pathname.slice(0, end.index)}${search}`;
}

function bare(url: string, dialect: Dialect): Endpoint {
  return { url, kind: "http", dialect, token: null, headers: {}, probe: false, recording: null };
}

/** The messages wire for hosts and paths that name it, chat/completions for all others. */
export function dialectOf(url: string): Dialect {
  const { hostname, pathname } = new URL(url);
  return /(^|\.)anthropic\.com$/.test(hostname) || /(^|\/)anthropic(\/|$)/.test(pathname)
    ? "anthropic"
    : "openai";
}

function keyOf(reading: Reading, dialect: Dialect): SecretText | null {
  const name = PUBLIC[dialect].key;
  const value = reading.input.env[name];
  if (value === undefined || value === "") return null;
  reading.vault.add(`env:${name}`, value);
  const key = [{ secret: `env:${name}` }];
  return reading.fitsHeader(key, name) ? key : null;
}

/** `auto`: the provider whose key is set, else what may listen on this machine. */
function findEndpoints(reading: Reading, dialect: Dialect | null): Endpoint[] {
  const named = /^claude/i.test(reading.text("model") ?? "");
  const order: Dialect[] = dialect
    ? [dialect]
    : named
    ? ["anthropic", "openai"]
    : ["openai", "anthropic"];
  for (const each of order) {
    const token = keyOf(reading, each);
    if (!token) continue;
    const variable = PUBLIC[each].baseVariable;
    const other = reading.input.env[variable];
    if (other === undefined || other === "") return [{ ...bare(PUBLIC[each].base, each), token }];
    const url = checkUrl(other, reading.on("allow_insecure"));
    if (!url.ok) {
      reading.report(variable, url.failure.value, url.failure.message, url.failure.hint);
      return [];
    }
    // This provider's own clients take a base without the version.
    const base = each === "anthropic" && new URL(url.value).pathname === "/"
      ? `${url.value}/v1`
      : url.value;
    return [{ ...bare(base, each), token }];
  }
  return LOCAL_BASES.map((base) => ({ ...bare(base, "openai"), probe: true }));
}

function readRecording(reading: Reading, path: string, where: string): string | undefined {
  if (path === "") {
    reading.report(where, "recorded:", "no file is named", "write recorded:FILE");
    return undefined;
  }
  const text = readFile(reading, path, where, "the recording", RECORDING_FILE_BYTES_MAX);
  if (text === undefined) return undefined;
  const recording = parseRecording(text);
  if (recording.ok) return text;
  const { line, message } = recording.failure;
  reading.report(where, path, `Cannot read the recording: ${path}:${line}: ${message}`);
  return undefined;
}

function checkWindow(reading: Reading): void {
  const window = reading.number("context_window")!;
  const output = reading.number("max_output_tokens")!;
  const share = reading.number("compact_at")!;
  const room = Math.floor((window - output) * share);
  if (room >= CONVERSATION_TOKENS_MIN) return;
  const least = output + Math.ceil(CONVERSATION_TOKENS_MIN / share);
  const most = window - Math.ceil(CONVERSATION_TOKENS_MIN / share);
  reading.report(
    reading.layers.level("context_window") === "default"
      ? reading.where("max_output_tokens")
      : reading.where("context_window"),
    window,
    `a window of ${tokens(window)} less ${tokens(output)} for output leaves ${
      tokens(window - output)
    }, of which ${share} are ${tokens(room)} tokens for the conversation; it needs ${
      tokens(CONVERSATION_TOKENS_MIN)
    }`,
    `raise context_window to ${tokens(least)}${
      most >= 1 ? ` or lower max_output_tokens to ${tokens(most)}` : ""
    }`,
  );
}

function tokens(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ",");
}

function readPrices(reading: Reading): Prices | null {
  const prices = reading.get("prices");
  if (!isObject(prices)) return null;
  const input = Number(prices.input);
  return {
    input,
    cachedInput: typeof prices.cached_input === "number" ? prices.cached_input : input,
    output: Number(prices.output),
  };
}
