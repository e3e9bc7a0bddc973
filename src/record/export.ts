/** `agentd inspect RUN --format …`, and spans of a run as they come to be. */

import type { JsonObject } from "../core/json.ts";
import { failed, type Outcome, success } from "../core/outcome.ts";
import { type ClockPort, pause } from "../ports/clock.ts";
import type { FilesPort } from "../ports/files.ts";
import type { HttpPort } from "../ports/http.ts";
import { toAtif } from "./atif.ts";
import { toOpenai } from "./openai.ts";
import { type OtlpFailure, sendOtlp, toOtlp } from "./otlp.ts";
import { type CommandOutput, formatCount, usageError } from "./output.ts";
import { describeFault, readRecord, refusal } from "./read.ts";
import type { RunPlace } from "./runs.ts";
import { runRecords } from "./trace.ts";
import { type AgentTranscript, readTranscripts, TranscriptReader } from "./transcript.ts";

/** The formats of `--format`. */
export type ExportFormat = "atif" | "openai" | "otlp";

const EXPORT: Record<ExportFormat, (agents: readonly AgentTranscript[]) => JsonObject> = {
  atif: toAtif,
  openai: toOpenai,
  otlp: toOtlp,
};

/** How often spans of a run in progress are sent. */
const SEND_INTERVAL_MS = 5_000;
/** How long one delivery may take. */
const SEND_TIMEOUT_MS = 10_000;

/** `agentd inspect RUN --format …`: one JSON document. Damage in a record is told, and exits 1. */
export function exportCommand(
  files: FilesPort,
  place: RunPlace,
  format: ExportFormat,
): CommandOutput {
  const agents = readTranscripts(files, place.directory);
  const refused = refusedOf(files, place, agents);
  if (refused !== null) return usageError(refused);
  const stdout = JSON.stringify(EXPORT[format](agents), null, 2) + "\n";
  const stderr = damageLines(agents);
  return { exitCode: stderr === "" ? 0 : 1, stdout, stderr };
}

/** Why there is nothing to export; null if there is. */
function refusedOf(
  files: FilesPort,
  place: RunPlace,
  agents: readonly AgentTranscript[],
): string | null {
  if (agents.length > 0) return null;
  for (const item of readRecord(files, place.record)) {
    if (item.kind === "fault") return refusal("export", place, item.fault);
    break;
  }
  return `Cannot export run ${place.id}: its record does not hold its start`;
}

function damageLines(agents: readonly AgentTranscript[]): string {
  return agents.filter((agent) => agent.fault !== null).map((agent) =>
    `agentd: agent ${agent.path} is exported up to ${describeFault(agent.fault!)}\n`
  ).join("");
}

/** What sending spans needs. */
export interface SpanDeps {
  files: FilesPort;
  http: HttpPort;
  clock: ClockPort;
}

/** `agentd inspect RUN --otlp-endpoint URL`: sends the spans of a recorded run. */
export async function sendCommand(
  deps: SpanDeps,
  place: RunPlace,
  endpoint: string,
): Promise<CommandOutput> {
  const agents = readTranscripts(deps.files, place.directory);
  const refused = refusedOf(deps.files, place, agents);
  if (refused !== null) return usageError(refused);
  const body = toOtlp(agents);
  const sent = await send(deps, endpoint, body);
  if (!sent.ok) return { exitCode: 1, stdout: "", stderr: `agentd: ${sent.failure.message}\n` };
  const stdout = `${formatCount(spansOf(body).length)} spans sent\n`;
  const stderr = damageLines(agents);
  return { exitCode: stderr === "" ? 0 : 1, stdout, stderr };
}

/**
 * Sends the spans of a run while it goes on: every few seconds those that are complete, each once,
 * and the rest when `over` aborts. A delivery that fails is tried again with the next; what is left
 * at the end is the failure. The records are read, and nothing is kept of their contents.
 */
export async function streamSpans(
  deps: SpanDeps,
  directory: string,
  endpoint: string,
  over: AbortSignal,
): Promise<Outcome<number, OtlpFailure>> {
  const readers = new Map<string, TranscriptReader>();
  const sent = new Set<string>();
  for (;;) {
    const last = over.aborted;
    for (const { path, record } of runRecords(deps.files, directory)) {
      if (!readers.has(path) && deps.files.stat(record).ok) {
        readers.set(path, new TranscriptReader(path, record, false));
      }
    }
    const agents: AgentTranscript[] = [];
    for (const reader of readers.values()) {
      reader.read(deps.files);
      const transcript = reader.snapshot();
      if (transcript !== null) agents.push(transcript);
    }
    const delivered = await deliver(deps, endpoint, agents, sent);
    if (last) return delivered.ok ? success(sent.size) : delivered;
    await pause(deps.clock, SEND_INTERVAL_MS, over);
  }
}

async function deliver(
  deps: SpanDeps,
  endpoint: string,
  agents: readonly AgentTranscript[],
  sent: Set<string>,
): Promise<Outcome<void, OtlpFailure>> {
  const body = toOtlp(agents);
  const unfinished = new Set(
    agents.filter((agent) => agent.end === null).map((agent) => agent.agentId),
  );
  const spans = spansOf(body).filter((span) =>
    !sent.has(span.spanId as string) &&
    !(isAgentSpan(span) && unfinished.has(attributeOf(span, "gen_ai.agent.id")))
  );
  if (spans.length === 0) return success(undefined);
  scopeOf(body).spans = spans;
  const delivered = await send(deps, endpoint, body);
  if (delivered.ok) { for (const span of spans) sent.add(span.spanId as string); }
  return delivered;
}

async function send(
  deps: SpanDeps,
  endpoint: string,
  body: JsonObject,
): Promise<Outcome<void, OtlpFailure>> {
  if (!URL.canParse(endpoint)) return failed({ message: `Cannot send spans: no URL ${endpoint}` });
  const controller = new AbortController();
  const cancel = deps.clock.after(SEND_TIMEOUT_MS, () => controller.abort());
  try {
    return await sendOtlp(deps.http, endpoint, body, controller.signal);
  } finally {
    cancel();
  }
}

function scopeOf(body: JsonObject): { spans: JsonObject[] } {
  const [resource] = body.resourceSpans as unknown as { scopeSpans: { spans: JsonObject[] }[] }[];
  return resource!.scopeSpans[0]!;
}

function spansOf(body: JsonObject): JsonObject[] {
  return scopeOf(body).spans;
}

function isAgentSpan(span: JsonObject): boolean {
  return attributeOf(span, "gen_ai.operation.name") === "invoke_agent";
}

function attributeOf(span: JsonObject, key: string): string {
  const list = span.attributes as unknown as { key: string; value: { stringValue?: string } }[];
  return list.find((attribute) => attribute.key === key)?.value.stringValue ?? "";
}
