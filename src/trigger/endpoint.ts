/** The daemon's small HTTP endpoint: probes, figures, and triggers from outside. */

import { joinBytes } from "../core/bytes.ts";
import { TRIGGER_BODY_BYTES_MAX, TRIGGER_BODY_TIMEOUT_MS } from "../core/limits.ts";
import type { Secret } from "../core/secret.ts";
import type { ClockPort } from "../ports/clock.ts";
import type { DigestPort } from "../ports/digest.ts";
import { TRIGGER_NAME } from "./check.ts";
import type { HealthReport } from "./health.ts";

/** A trigger that came in. */
export interface TriggerCall {
  name: string;
  mimeType: string;
  body: Uint8Array;
}

/** What became of it: the run's id, or why there is none. */
export type TriggerAnswer =
  | { kind: "accepted"; runId: string }
  | { kind: "full" | "unrouted" | "draining" | "failed"; message: string };

/** What the endpoint answers from. */
export interface EndpointDeps {
  clock: ClockPort;
  digest: DigestPort;
  /** Null: POST /trigger is off. */
  token: Secret | null;
  health(): HealthReport;
  metrics(): string;
  trigger(call: TriggerCall): TriggerAnswer;
}

/** Answers one request. */
export async function answerRequest(request: Request, deps: EndpointDeps): Promise<Response> {
  // The host that the request names is part of it, and may be anything.
  if (!URL.canParse(request.url)) return text(400, "bad request");
  const { pathname } = new URL(request.url);
  const name = /^\/trigger\/([^/]+)$/.exec(pathname)?.[1];
  if (name !== undefined) return await answerTrigger(request, name, deps);
  const answer = answerProbe(pathname, deps);
  if (answer === undefined) return text(404, "not found");
  if (request.method !== "GET" && request.method !== "HEAD") {
    return text(405, "method not allowed", { allow: "GET, HEAD" });
  }
  return answer;
}

function answerProbe(pathname: string, deps: EndpointDeps): Response | undefined {
  switch (pathname) {
    case "/healthz": {
      const { healthy, why, lagMs } = deps.health();
      return healthy
        ? text(200, `ok lag_ms=${Math.round(lagMs)}`)
        : text(503, `unhealthy: ${why} lag_ms=${Math.round(lagMs)}`);
    }
    case "/readyz": {
      const { ready, why } = deps.health();
      return ready ? text(200, "ready") : text(503, `not ready: ${why}`);
    }
    case "/metrics":
      return new Response(deps.metrics(), {
        headers: { "content-type": "text/plain; version=0.0.4; charset=utf-8" },
      });
  }
  return undefined;
}

async function answerTrigger(
  request: Request,
  name: string,
  deps: EndpointDeps,
): Promise<Response> {
  if (deps.token === null) return text(404, "not found");
  if (!await isBearer(request.headers.get("authorization"), deps.token, deps.digest)) {
    await request.body?.cancel();
    return text(401, "unauthorized", { "www-authenticate": "Bearer" });
  }
  if (request.method !== "POST") return text(405, "method not allowed", { allow: "POST" });
  if (!TRIGGER_NAME.test(name)) return text(404, "not found");
  const body = await readBody(request, deps.clock);
  if (body === "late") return text(408, "the body took too long");
  if (body === null) return text(413, `the body is over ${TRIGGER_BODY_BYTES_MAX} bytes`);
  const mimeType = mimeTypeOf(request.headers.get("content-type") ?? "");
  const answer = deps.trigger({ name, mimeType, body });
  switch (answer.kind) {
    case "accepted":
      return Response.json({ run_id: answer.runId }, { status: 202 });
    case "unrouted":
      return text(404, answer.message);
    case "full":
    case "draining":
      return text(503, answer.message, { "retry-after": "5" });
    case "failed":
      return text(500, answer.message);
  }
}

const MIME_TYPE_CHARS_MAX = 128;
const MIME_TYPE = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+(?:\s*;\s*[\w.-]+="?[\w!#$&^.+-]*"?)*$/;

/** A media type, or that of any bytes: the agent reads it, and a header may hold any words. */
function mimeTypeOf(header: string): string {
  const type = header.trim();
  return type.length <= MIME_TYPE_CHARS_MAX && MIME_TYPE.test(type)
    ? type
    : "application/octet-stream";
}

/** Compares digests, whose bytes say nothing about the token, in constant time. */
async function isBearer(
  header: string | null,
  token: Secret,
  digest: DigestPort,
): Promise<boolean> {
  const given = /^Bearer +(\S+)$/i.exec(header ?? "")?.[1] ?? "";
  const [a, b] = await Promise.all([digest.sha256(given), digest.sha256(token.reveal().trim())]);
  let difference = 0;
  for (let i = 0; i < b.length; i++) difference |= a.charCodeAt(i) ^ b.charCodeAt(i);
  return difference === 0 && given !== "";
}

/** The whole body; null: over the bound; `late`: not here in time. Then the rest is not read. */
async function readBody(request: Request, clock: ClockPort): Promise<Uint8Array | null | "late"> {
  if (Number(request.headers.get("content-length") ?? 0) > TRIGGER_BODY_BYTES_MAX) {
    await request.body?.cancel();
    return null;
  }
  if (request.body === null) return new Uint8Array(0);
  const reader = request.body.getReader();
  const late = Promise.withResolvers<"late">();
  const timer = clock.after(TRIGGER_BODY_TIMEOUT_MS, () => late.resolve("late"));
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    for (;;) {
      const read = await Promise.race([reader.read(), late.promise]);
      if (read === "late") break;
      if (read.done) return joinBytes(chunks);
      bytes += read.value.length;
      if (bytes > TRIGGER_BODY_BYTES_MAX) break;
      chunks.push(read.value);
    }
  } finally {
    timer();
  }
  await reader.cancel().catch(() => {});
  return bytes > TRIGGER_BODY_BYTES_MAX ? null : "late";
}

function text(status: number, message: string, headers: Record<string, string> = {}): Response {
  return new Response(`${message}\n`, {
    status,
    headers: { "content-type": "text/plain; charset=utf-8", ...headers },
  });
}
