/**
 * Recorded replies: JSON lines, a header and then one reply each. A request is told by four things
 * only: its purpose, the task's instruction (the first text of the first user message), the names of
 * the tools offered, and the model's own replies before it (their texts, and the names and arguments
 * of their calls). What tools returned, the harness's words and the system prompt are left out, so
 * that a recording still serves when files have changed.
 */

import { chain, fnv64 } from "../core/hash.ts";
import { canonicalJson, isObject, type Json, type JsonObject, parseJson } from "../core/json.ts";
import { failed, type Outcome, success } from "../core/outcome.ts";
import { clip } from "../core/text.ts";
import type { FinishReason, Message, ModelReply, ModelRequest, ToolCall } from "../ports/model.ts";

/** The version of the format that is written, and the only one that is read. */
const RECORDING_VERSION = 1;
const RECORDING_KIND = "agentd-recording";
const INSTRUCTION_CHARS_MAX = 500;

/** The first line of a recording. */
export const RECORDING_HEADER = JSON.stringify({ v: RECORDING_VERSION, kind: RECORDING_KIND });

/** How a request is told from others. `history[k]` is the conversation after k own replies. */
export interface RequestPrint {
  purpose: "turn" | "summary";
  instruction: string;
  tools: string[];
  /** Over purpose, instruction and tools. */
  task: string;
  history: string[];
  /** Digests of the model's own replies. */
  replies: string[];
}

/** What is kept of a reply. */
export type RecordedReply = Pick<
  ModelReply,
  "text" | "calls" | "finish" | "refusal" | "opaque" | "usage" | "model"
>;

/** One recorded reply with the fingerprints of its request. */
export interface RecordingEntry {
  purpose: "turn" | "summary";
  /** Clipped: for people, and to say what differs. */
  instruction: string;
  tools: string[];
  task: string;
  conversation: string;
  reply: RecordedReply;
}

/** Why a text is no recording. */
export interface RecordingFault {
  line: number;
  message: string;
}

const digests = new WeakMap<Message, string>();

/** The print of a request; each earlier reply is digested once. */
export function printRequest(request: ModelRequest): RequestPrint {
  const instruction = firstText(request.messages);
  const tools = request.tools.map((tool) => tool.name).sort();
  const task = fnv64(canonicalJson([request.purpose, instruction, tools]));
  const replies: string[] = [];
  const history = [""];
  for (const message of request.messages) {
    if (message.role !== "assistant") continue;
    let digest = digests.get(message);
    if (digest === undefined) digests.set(message, digest = digestReply(message));
    replies.push(digest);
    history.push(chain(history.at(-1)!, digest));
  }
  return { purpose: request.purpose, instruction, tools, task, history, replies };
}

/** The digest of what the model said: text, call names and canonical arguments; no ids. */
function digestReply(reply: { text: string; calls: readonly ToolCall[] }): string {
  const calls = reply.calls.map((call): Json => {
    const parsed = parseJson(call.arguments);
    return [call.name, parsed.ok ? parsed.value : call.arguments];
  });
  return fnv64(canonicalJson([reply.text, calls]));
}

/** One line of a recording, without its line feed. */
export function writeEntry(print: RequestPrint, reply: RecordedReply): string {
  const { text, calls, finish, refusal, opaque, usage, model } = reply;
  return JSON.stringify({
    purpose: print.purpose,
    instruction: clip(print.instruction, INSTRUCTION_CHARS_MAX),
    tools: print.tools,
    replies: print.replies.length,
    task: print.task,
    conversation: print.history.at(-1),
    reply: { text, calls, finish, refusal, opaque, usage, model },
  });
}

/** Reads a recording; a fault names its line. Headers in the middle (joined files) are passed over. */
export function parseRecording(text: string): Outcome<RecordingEntry[], RecordingFault> {
  const entries: RecordingEntry[] = [];
  let hasHeader = false;
  const lines = text.split("\n");
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i]!.trim();
    if (line === "") continue;
    const fault = (message: string) => failed({ line: i + 1, message });
    const parsed = parseJson(line);
    if (!parsed.ok) return fault(`not JSON: ${parsed.failure.message}`);
    if (!isObject(parsed.value)) return fault("not a JSON object");
    if (parsed.value["kind"] === RECORDING_KIND) {
      const version = parsed.value["v"];
      if (version !== RECORDING_VERSION) {
        return fault(
          `version ${JSON.stringify(version ?? null)}; only ${RECORDING_VERSION} is read`,
        );
      }
      hasHeader = true;
      continue;
    }
    if (!hasHeader) return fault(`no header of kind ${RECORDING_KIND}`);
    const entry = readEntry(parsed.value);
    if (typeof entry === "string") return fault(entry);
    entries.push(entry);
  }
  if (!hasHeader) return failed({ line: 1, message: `no header of kind ${RECORDING_KIND}` });
  return success(entries);
}

const FINISHES: readonly FinishReason[] = [
  "stop",
  "tool_calls",
  "length",
  "refusal",
  "repetition",
  "other",
];

function readEntry(value: JsonObject): RecordingEntry | string {
  const { purpose, instruction, tools, task, conversation, reply } = value;
  if (purpose !== "turn" && purpose !== "summary") return "purpose is neither turn nor summary";
  if (typeof instruction !== "string") return "instruction is no text";
  if (!Array.isArray(tools) || !tools.every((name) => typeof name === "string")) {
    return "tools is no list of names";
  }
  if (typeof task !== "string" || typeof conversation !== "string") {
    return "task and conversation are no fingerprints";
  }
  if (!isObject(reply) || typeof reply["text"] !== "string") return "reply has no text";
  const read = readReply(reply);
  if (typeof read === "string") return read;
  return { purpose, instruction, tools: tools as string[], task, conversation, reply: read };
}

function readReply(reply: JsonObject): RecordedReply | string {
  const { text, calls, finish, refusal, opaque, usage, model } = reply;
  const isCall = (call: Json) =>
    isObject(call) && typeof call["id"] === "string" && typeof call["name"] === "string" &&
    typeof call["arguments"] === "string";
  if (!Array.isArray(calls) || !calls.every(isCall)) return "reply.calls is no list of calls";
  if (!FINISHES.includes(finish as FinishReason)) return "reply.finish is unknown";
  const numbers = isObject(usage)
    ? [usage["tokensIn"], usage["tokensOut"], usage["tokensCached"]]
    : [];
  if (numbers.length !== 3 || !numbers.every((number) => typeof number === "number")) {
    return "reply.usage has no counts";
  }
  const [tokensIn, tokensOut, tokensCached] = numbers as number[];
  const isOpaque = isObject(opaque) && typeof opaque["dialect"] === "string";
  return {
    text: text as string,
    calls: calls as unknown as ToolCall[],
    finish: finish as FinishReason,
    refusal: typeof refusal === "string" ? refusal : null,
    opaque: isOpaque ? opaque as { dialect: string; blocks: Json } : null,
    usage: {
      tokensIn: tokensIn!,
      tokensOut: tokensOut!,
      tokensCached: tokensCached!,
      estimated: isObject(usage) && usage["estimated"] === true,
    },
    model: typeof model === "string" ? model : "recorded",
  };
}

/** What differs between a request and the nearest that a recording holds, in words. */
export function describeDifference(
  entries: readonly RecordingEntry[],
  print: RequestPrint,
): string {
  if (entries.length === 0) return "it holds no replies";
  const samePurpose = entries.filter((entry) => entry.purpose === print.purpose);
  if (samePurpose.length === 0) return `it holds no reply for a ${print.purpose}`;
  const instruction = clip(print.instruction, INSTRUCTION_CHARS_MAX);
  const sameTask = samePurpose.filter((entry) => entry.instruction === instruction);
  if (sameTask.length === 0) {
    return `the instruction differs: recorded ${quote(samePurpose[0]!.instruction)}, asked ${
      quote(instruction)
    }`;
  }
  const sameTools = sameTask.filter((entry) => entry.task === print.task);
  if (sameTools.length === 0) return describeTools(sameTask[0]!.tools, print.tools);
  for (let k = print.replies.length; k > 0; k--) {
    const before = sameTools.filter((entry) => entry.conversation === print.history[k - 1]);
    if (before.length === 0) continue;
    return before.some((entry) => digestReply(entry.reply) === print.replies[k - 1])
      ? `it ends after reply ${k} of this conversation`
      : `reply ${k} of the conversation is not the recorded one`;
  }
  return "the conversation does not begin as the recorded one";
}

function describeTools(recorded: readonly string[], offered: readonly string[]): string {
  const missing = recorded.filter((name) => !offered.includes(name));
  const extra = offered.filter((name) => !recorded.includes(name));
  const parts = [
    ...(missing.length > 0 ? [`recorded with ${missing.join(", ")}`] : []),
    ...(extra.length > 0 ? [`now offered ${extra.join(", ")}`] : []),
  ];
  return parts.length > 0
    ? `the tools differ: ${parts.join("; ")}`
    : "the instruction differs beyond its beginning";
}

function quote(text: string): string {
  return JSON.stringify(clip(text, 80));
}

function firstText(messages: readonly Message[]): string {
  const first = messages[0];
  if (first === undefined || first.role !== "user") return "";
  const part = first.parts.find((part) => part.type === "text");
  return part?.type === "text" ? part.text : "";
}
