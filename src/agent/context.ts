/**
 * The context: a projection of the record, made fresh each turn in a fixed order: system prompt,
 * instruction and seeds, transcript as the levers left it. Its hash is a chain over message hashes,
 * so a turn costs what is new in it.
 */

import { chain, Fnv64 } from "../core/hash.ts";
import { IMAGE_BYTES_EQUIVALENT } from "../core/limits.ts";
import type { Message, Part } from "../ports/model.ts";
import { isOwnWord, stubText } from "./prompt.ts";

/** What a stub must name of the result it stands for. */
export interface StubFacts {
  call: string;
  tool: string;
  args: string;
  class: string;
  /** Bytes of the whole content. */
  bytes: number;
}

/** One message with what its levers need to know. */
export interface Entry {
  message: Message;
  hash: string;
  bytes: number;
  /** The step that made it. */
  step: number;
  /** Set for a tool result that may give way. */
  stub: StubFacts | null;
  /** What is asked for: of such messages the last one never gives way. */
  pinned: boolean;
}

/** The running conversation after the first user message. Changed only by the functions here. */
export interface Transcript {
  /** Task, seeds and, after a compaction, ledger and summary: the first user message. */
  first: Message;
  firstHash: string;
  firstBytes: number;
  entries: Entry[];
  /** `chains[i]` is the hash of the conversation up to and with entry i. */
  chains: string[];
  bytes: number;
  /** Indices of entries whose results are still whole, oldest first. */
  whole: number[];
}

const MESSAGE_OVERHEAD_BYTES = 24;

/** A conversation that holds only its first message. */
export function startTranscript(parts: readonly Part[]): Transcript {
  const first: Message = { role: "user", parts };
  const { hash, bytes } = measure(first);
  return {
    first,
    firstHash: hash,
    firstBytes: bytes,
    entries: [],
    chains: [],
    bytes: 0,
    whole: [],
  };
}

/** Replaces the first message; every later chain hash follows from it. */
export function setFirst(transcript: Transcript, parts: readonly Part[]): void {
  transcript.first = { role: "user", parts };
  const { hash, bytes } = measure(transcript.first);
  transcript.firstHash = hash;
  transcript.firstBytes = bytes;
  rechain(transcript, 0);
}

/** Adds a message at the end. */
export function pushMessage(
  transcript: Transcript,
  message: Message,
  step: number,
  stub: StubFacts | null,
  pinned = false,
): void {
  const entry = { message, ...measure(message), step, stub, pinned };
  transcript.entries.push(entry);
  transcript.bytes += entry.bytes;
  transcript.chains.push(chain(transcript.chains.at(-1) ?? transcript.firstHash, entry.hash));
  if (stub !== null) transcript.whole.push(transcript.entries.length - 1);
}

/** Puts the harness's words at the end of the last message; into the first if there is no other. */
export function noteOnLast(transcript: Transcript, note: string): void {
  const last = transcript.entries.at(-1);
  if (last === undefined) {
    const parts = transcript.first.role === "user" ? transcript.first.parts : [];
    setFirst(transcript, [...parts, { type: "text", text: note }]);
    return;
  }
  const { message, step } = last;
  const words: Part = { type: "text", text: note };
  if (message.role === "assistant") {
    return pushMessage(transcript, { role: "user", parts: [words] }, step, null);
  }
  const index = transcript.entries.length - 1;
  replace(
    transcript,
    index,
    message.role === "user"
      ? { ...message, parts: [...message.parts, words] }
      : { ...message, note: message.note === undefined ? note : `${message.note}\n${note}` },
  );
  rechain(transcript, index);
}

/**
 * Lever 1: tool results older than the last `keep` give way to stubs that name tool, arguments and
 * artifact. Results of the newest turn stay whole, however many: the model has not seen them yet.
 * Returns the ids of the calls whose results gave way.
 */
export function stubStale(transcript: Transcript, keep: number): string[] {
  const newest = transcript.entries.at(-1)?.step ?? 0;
  const stubbed: string[] = [];
  let lowest = transcript.entries.length;
  while (transcript.whole.length > keep) {
    const index = transcript.whole[0]!;
    const entry = transcript.entries[index]!;
    if (entry.step >= newest) break;
    transcript.whole.shift();
    const message = stubMessage(entry);
    if (message === null) continue;
    replace(transcript, index, message);
    stubbed.push(entry.stub!.call);
    lowest = Math.min(lowest, index);
  }
  if (stubbed.length > 0) rechain(transcript, lowest);
  return stubbed;
}

/** The stub that takes the place of a result; null where it would be no shorter. */
function stubMessage(entry: Entry): Message | null {
  const { message, stub } = entry;
  if (stub === null) return null;
  const text = stubText(stub.tool, stub.args, stub.class, stub.bytes, stub.call);
  const parts: Part[] = [{ type: "text", text }];
  if (message.role === "tool") {
    return shorter({ ...message, parts }, entry);
  }
  if (message.role !== "user") return null;
  // In JSON mode the runtime's notes are parts of the message; a tool's parts cannot pass for them.
  for (const part of message.parts) {
    if (part.type === "text" && isOwnWord(part.text)) parts.push(part);
  }
  return shorter({ ...message, parts }, entry);
}

function shorter(message: Message, entry: Entry): Message | null {
  return measure(message).bytes < entry.bytes ? message : null;
}

/** Steps of the turns that could give way, the newest included. */
export function turnSteps(transcript: Transcript): ReadonlySet<number> {
  return new Set(
    transcript.entries.filter((entry) => !entry.pinned).map((entry) => entry.step),
  );
}

/**
 * Drops everything before the turns that hold the last `keep` results but the last message that is
 * pinned, and returns how many turns were dropped. With `keep` 0 only the newest turn stays.
 */
export function dropOld(transcript: Transcript, keep: number): { turns: number; bytes: number } {
  const { entries } = transcript;
  const newest = entries.at(-1)?.step ?? 0;
  let from = entries.length;
  let results = 0;
  while (from > 0) {
    const step = entries[from - 1]!.step;
    if (step !== newest && results >= keep) break;
    while (from > 0 && entries[from - 1]!.step === step) {
      from--;
      if (entries[from]!.stub !== null) results++;
    }
  }
  const pin = entries.findLastIndex((entry) => entry.pinned);
  const isKept = pin !== -1 && pin < from;
  const dropped = entries.slice(0, from).filter((_entry, index) => index !== pin);
  const turns = new Set(dropped.map((entry) => entry.step)).size;
  const bytes = dropped.reduce((sum, entry) => sum + entry.bytes, 0);
  transcript.entries = [...(isKept ? [entries[pin]!] : []), ...entries.slice(from)];
  transcript.bytes -= bytes;
  transcript.whole = transcript.whole.filter((index) => index >= from).map((index) =>
    index - dropped.length
  );
  transcript.chains = [];
  rechain(transcript, 0);
  return { turns, bytes };
}

/** The messages in order. */
export function projectMessages(transcript: Transcript): Message[] {
  return [transcript.first, ...transcript.entries.map((entry) => entry.message)];
}

/** The hash of the whole context: what stands before the conversation, and the conversation. */
export function contextHash(prefixHash: string, transcript: Transcript): string {
  return chain(prefixHash, transcript.chains.at(-1) ?? transcript.firstHash);
}

/** Bytes of the conversation, as the estimate counts them. */
export function transcriptBytes(transcript: Transcript): number {
  return transcript.firstBytes + transcript.bytes;
}

function replace(transcript: Transcript, index: number, message: Message): void {
  const entry = transcript.entries[index]!;
  const measured = measure(message);
  transcript.bytes += measured.bytes - entry.bytes;
  transcript.entries[index] = { ...entry, message, ...measured };
}

function rechain(transcript: Transcript, from: number): void {
  for (let i = from; i < transcript.entries.length; i++) {
    const previous = i === 0 ? transcript.firstHash : transcript.chains[i - 1]!;
    transcript.chains[i] = chain(previous, transcript.entries[i]!.hash);
  }
}

const encoder = new TextEncoder();

/**
 * FNV-1a/64 of everything of a message that a model sees, and its bytes as the estimate counts them:
 * both from one encoding of each text.
 */
function measure(message: Message): { hash: string; bytes: number } {
  const hash = new Fnv64();
  let bytes = MESSAGE_OVERHEAD_BYTES;
  // Each text stands behind its length, so that no two messages read the same.
  const add = (text: string, extraBytes = 0) => {
    const encoded = encoder.encode(text);
    hash.write(`${encoded.length}:`).writeBytes(encoded);
    bytes += encoded.length + extraBytes;
  };
  hash.write(message.role);
  if (message.role === "assistant") {
    add(message.text);
    for (const call of message.calls) {
      hash.write(`call ${call.id.length}:${call.id}`);
      add(call.name, MESSAGE_OVERHEAD_BYTES);
      add(call.arguments);
    }
    if (message.opaque !== undefined) {
      add(message.opaque.dialect);
      add(JSON.stringify(message.opaque.blocks));
    }
    return { hash: hash.hex(), bytes };
  }
  if (message.role === "tool") {
    hash.write(`${message.isError} ${message.callId.length}:${message.callId}`);
    hash.write(`${message.name.length}:${message.name}`);
  }
  for (const part of message.parts) {
    hash.write(part.type);
    if (part.type === "text") add(part.text);
    else {
      hash.write(`${part.mimeType.length}:${part.mimeType}${part.data.length}:${part.data}`);
      bytes += IMAGE_BYTES_EQUIVALENT;
    }
  }
  if (message.role === "tool" && message.note !== undefined) {
    hash.write("note");
    add(message.note);
  }
  return { hash: hash.hex(), bytes };
}

/** Rewrites every message, when the conversation changes its form. */
export function rewriteAll(transcript: Transcript, rewrite: (message: Message) => Message): void {
  for (let i = 0; i < transcript.entries.length; i++) {
    const { message } = transcript.entries[i]!;
    const rewritten = rewrite(message);
    if (rewritten !== message) replace(transcript, i, rewritten);
  }
  rechain(transcript, 0);
}
