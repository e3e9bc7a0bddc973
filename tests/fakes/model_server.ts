/**
 * A model endpoint that does what a script says, over real sockets, in a process of its own:
 *
 *     deno run --no-prompt --allow-net=127.0.0.1 [--allow-read=FILE] tests/fakes/model_server.ts [FILE]
 *
 * Prints `{"port":N}` as one line on stdout and ends with its stdin. POST /v1/chat/completions and
 * /v1/messages answer by the script; GET /v1/models lists. POST /__script sets a script and forgets
 * what was; GET /__requests hands out what came, GET /__stats counts.
 */

import { joinBytes } from "../../src/core/bytes.ts";
import { findFault } from "./model_rules.ts";
import { renderReply, type Script, type ScriptReply } from "./model_script.ts";
import {
  chunkOf,
  headOf,
  LAST_CHUNK,
  type RawConnection,
  type RawRequest,
  serveRaw,
} from "./raw_http.ts";

// deno-lint-ignore no-explicit-any
type Loose = any;

/** What came, as GET /__requests tells it. `body` is null where bodies are not kept. */
export interface LoggedRequest {
  method: string;
  path: string;
  headers: Record<string, string>;
  body: Loose;
  bytes: number;
  /** Milliseconds since the server started. */
  atMs: number;
  /** Bytes of the answer that were written. */
  sentBytes: number;
  /** The answer's status; null while there is none. */
  status: number | null;
  /** The client left before the answer's end. */
  aborted: boolean;
}

const LOG_BYTES_MAX = 64 * 1024 * 1024;
const encoder = new TextEncoder();

/** A list of replies with its place. */
class Lane {
  readonly #replies: ScriptReply[] = [];
  readonly #loop: boolean;
  readonly #byTurn: boolean;
  #next = 0;

  constructor(replies: readonly ScriptReply[], loop: boolean, byTurn: boolean) {
    for (const reply of replies) {
      for (let i = 0; i < (reply.repeat ?? 1); i++) this.#replies.push(reply);
    }
    this.#loop = loop;
    this.#byTurn = byTurn;
  }

  take(turn: number): ScriptReply | null {
    const at = this.#byTurn ? turn : this.#next++;
    return this.#replies[at] ?? (this.#loop ? this.#replies.at(-1) ?? null : null);
  }
}

class ModelServer {
  #script: Script = {};
  #lane = new Lane([], false, false);
  #routes: { when: string; lane: Lane }[] = [];
  #log: LoggedRequest[] = [];
  #logBytes = 0;
  #count = 0;
  /** Since the start, whatever the script. */
  connections = 0;

  setScript(script: Script): void {
    this.#script = script;
    this.#lane = new Lane(script.replies ?? [], script.loop === true, script.by === "turn");
    this.#routes = (script.routes ?? []).map(({ when, replies, loop, by }) => ({
      when,
      lane: new Lane(replies, loop === true, by === "turn"),
    }));
    this.#log = [];
    this.#logBytes = 0;
    this.#count = 0;
  }

  async handle(request: RawRequest, connection: RawConnection): Promise<"keep" | "close"> {
    const path = request.path.split("?")[0]!;
    if (path.startsWith("/__")) return await this.#control(path, request, connection);
    const logged = this.#note(request);
    const outcome = await this.#answer(path, request, connection, logged);
    logged.sentBytes = connection.sentBytes;
    return outcome;
  }

  async #control(path: string, request: RawRequest, connection: RawConnection) {
    const json = (value: Loose) =>
      connection.answer(200, { "content-type": "application/json" }, JSON.stringify(value));
    if (path === "/__script" && request.method === "POST") {
      this.setScript(JSON.parse(request.body));
      await json({ ok: true });
    } else if (path === "/__requests") await json(this.#log);
    else if (path === "/__stats") {
      await json({
        completions: this.#count,
        requests: this.#log.length,
        connections: this.connections,
      });
    } else await connection.answer(404, {}, "no such control");
    return "keep" as const;
  }

  #note(request: RawRequest): LoggedRequest {
    const keeps = this.#script.log !== false;
    const logged: LoggedRequest = {
      method: request.method,
      path: request.path,
      headers: request.headers,
      body: keeps && request.body !== "" ? parseOr(request.body) : null,
      bytes: request.body.length,
      atMs: Math.round(performance.now()),
      sentBytes: 0,
      status: null,
      aborted: false,
    };
    this.#log.push(logged);
    if (keeps) this.#logBytes += request.body.length;
    for (let i = 0; this.#logBytes > LOG_BYTES_MAX && i < this.#log.length; i++) {
      const old = this.#log[i]!;
      if (old.body === null) continue;
      this.#logBytes -= old.bytes;
      old.body = null;
    }
    if (!keeps && this.#log.length > 1000) this.#log.shift();
    return logged;
  }

  async #answer(
    path: string,
    request: RawRequest,
    connection: RawConnection,
    logged: LoggedRequest,
  ): Promise<"keep" | "close"> {
    const dialect = path.endsWith("/messages") ? "anthropic" : "openai";
    const reject = (status: number, message: string, type: string) => {
      logged.status = status;
      const error = { message, type };
      const body = dialect === "openai" ? { error } : { type: "error", error };
      return sendWhole(connection, { status, body: body as Loose });
    };
    const token = request.headers["x-api-key"] ??
      request.headers["authorization"]?.replace(/^Bearer /, "");
    if (this.#script.token !== undefined && token !== this.#script.token) {
      return await reject(401, "invalid api key", "authentication_error");
    }
    if (path.endsWith("/models") && request.method === "GET") {
      logged.status = 200;
      const models = this.#script.models ?? ["fake-model"];
      return await sendWhole(connection, {
        body: { object: "list", data: models.map((id) => ({ id, object: "model" })) },
      });
    }
    if (!/\/(chat\/completions|messages)$/.test(path) || request.method !== "POST") {
      return await reject(404, `no route ${request.method} ${path}`, "not_found_error");
    }
    const body = logged.body ?? parseOr(request.body);
    this.#count++;
    const fault = this.#script.check === false ? null : findFault(dialect, body);
    if (fault !== null) return await reject(400, fault, "invalid_request_error");
    const turn = turnsOf(body);
    const reply = this.#laneFor(body).take(turn);
    if (reply === null) {
      return await reject(400, "the script has no more replies", "script_exhausted");
    }
    const facts = {
      n: this.#count,
      turn,
      last: lastText(body),
      model: body.model,
      bodyChars: request.body.length,
    };
    return await sendReply(connection, dialect, body, reply, facts, logged);
  }

  #laneFor(body: Loose): Lane {
    if (this.#routes.length === 0) return this.#lane;
    const system = body.messages[0]?.role === "system" ? body.messages[0] : null;
    const first = body.messages[system === null ? 0 : 1];
    const text = JSON.stringify([system, body.system ?? null, first]);
    return this.#routes.find((route) => text.includes(JSON.stringify(route.when).slice(1, -1)))
      ?.lane ??
      this.#lane;
  }
}

async function sendReply(
  connection: RawConnection,
  dialect: "openai" | "anthropic",
  body: Loose,
  reply: ScriptReply,
  facts: Parameters<typeof renderReply>[2],
  logged: LoggedRequest,
): Promise<"keep" | "close"> {
  if (reply.delayMs !== undefined) await pause(reply.delayMs);
  if (reply.hang) {
    await connection.untilGone();
    logged.aborted = true;
    return "close";
  }
  if (reply.reset) return "close";
  logged.status = reply.status ?? 200;
  if (reply.raw !== undefined) {
    const type = { "content-type": "text/event-stream" };
    return await sent(
      connection.answer(logged.status, { ...type, ...reply.headers }, reply.raw),
      logged,
    );
  }
  if (reply.status !== undefined) {
    return await sendWhole(connection, {
      status: reply.status,
      headers: reply.headers,
      body: reply.body,
    });
  }
  const wire = renderReply(dialect, reply, facts);
  if (reply.whole || body.stream !== true) return await sendWhole(connection, { body: wire.whole });
  return await sendStream(connection, wire.events, reply, logged);
}

async function sendWhole(
  connection: RawConnection,
  answer: { status?: number; headers?: Record<string, string>; body?: Loose },
): Promise<"keep" | "close"> {
  const isText = typeof answer.body === "string";
  const type = { "content-type": isText ? "text/plain" : "application/json" };
  const body = answer.body === undefined ? "" : isText ? answer.body : JSON.stringify(answer.body);
  const ok = await connection.answer(answer.status ?? 200, { ...type, ...answer.headers }, body);
  return ok ? "keep" : "close";
}

/** Events in as few writes as the script allows; in groups where there are many, to notice an abort. */
async function sendStream(
  connection: RawConnection,
  events: readonly string[],
  reply: ScriptReply,
  logged: LoggedRequest,
): Promise<"keep" | "close"> {
  const cut = reply.cutAfter === undefined ? events : events.slice(0, reply.cutAfter);
  const head = headOf(200, {
    "content-type": "text/event-stream",
    "transfer-encoding": "chunked",
    ...reply.headers,
  });
  const isCut = reply.cutAfter !== undefined;
  const group = reply.eventDelayMs !== undefined ? 1 : 64;
  let pending: Uint8Array[] = [head];
  const flush = async () => {
    const ok = await connection.write(joinBytes(pending));
    pending = [];
    if (!ok) logged.aborted = true;
    return ok;
  };
  for (let at = 0; at < cut.length; at += group) {
    const text = cut.slice(at, at + group).map((data) => eventText(data, reply)).join("");
    for (const bytes of split(encoder.encode(text), reply.splitBytes)) {
      pending.push(chunkOf(bytes));
      if (reply.splitBytes !== undefined && !await flush()) return "close";
    }
    const isLast = at + group >= cut.length;
    if (isLast && !isCut && !reply.keepOpen) pending.push(LAST_CHUNK);
    if (pending.length > 0 && !await flush()) return "close";
    logged.sentBytes = connection.sentBytes;
    if (!isLast) await pause(reply.eventDelayMs ?? 0);
  }
  if (!isCut && !reply.keepOpen) return "keep";
  if (reply.then === "reset") return "close";
  if (reply.then === "end") return await sent(connection.write(LAST_CHUNK), logged);
  await connection.untilGone();
  logged.aborted = true;
  return "close";
}

function eventText(data: string, reply: ScriptReply): string {
  const type = /^\{"type":"([a-z_]+)"/.exec(data)?.[1];
  const event = type === undefined ? "" : `event: ${type}\n`;
  if (!reply.noise) return `${event}data: ${data}\n\n`;
  return `: noise\r\n\r\n${event.replace("\n", "\r\n")}data: ${data}\r\n\r\nretry: 10\r\n\r\n`;
}

function split(bytes: Uint8Array, size: number | undefined): Uint8Array[] {
  if (size === undefined) return [bytes];
  const parts: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += size) parts.push(bytes.subarray(at, at + size));
  return parts;
}

async function sent(writing: Promise<boolean>, logged: LoggedRequest): Promise<"keep" | "close"> {
  if (await writing) return "keep";
  logged.aborted = true;
  return "close";
}

function turnsOf(body: Loose): number {
  return body.messages.filter((message: Loose) => message.role === "assistant").length;
}

function lastText(body: Loose): string {
  const content = body.messages.at(-1)?.content;
  return textOf(content);
}

function textOf(content: Loose): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((part) => part.text ?? textOf(part.content)).filter((text) => text !== "")
    .join("\n");
}

function parseOr(text: string): Loose {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

async function main(): Promise<void> {
  const server = new ModelServer();
  const file = Deno.args[0];
  if (file !== undefined) server.setScript(JSON.parse(await Deno.readTextFile(file)));
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  console.log(JSON.stringify({ port: listener.addr.port }));
  // The end of stdin is the end of whoever started it.
  void (async () => {
    for await (const _chunk of Deno.stdin.readable) { /* nothing is expected */ }
    Deno.exit(0);
  })();
  await serveRaw(
    listener,
    () => server.connections++,
    (request, connection) => server.handle(request, connection),
  );
}

if (import.meta.main) await main();
