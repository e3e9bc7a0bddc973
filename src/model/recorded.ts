/** The recorded model: answers from a recording, or says what it does not cover. */

import { failed, type Outcome, success } from "../core/outcome.ts";
import type { ModelFailure, ModelReply, ModelRequest } from "../ports/model.ts";
import type { Member } from "./failover.ts";
import {
  describeDifference,
  parseRecording,
  printRequest,
  type RecordingEntry,
} from "./recording.ts";

/** How recorded endpoints are named in telemetry, results and failures. */
const RECORDED_LABEL = "recorded";

/**
 * Playback. Requests that look the same are answered in the order of the recording; once it has no
 * more for them, the last one answers again.
 */
export class RecordedEndpoint implements Member {
  readonly label = RECORDED_LABEL;
  readonly mustProbe = false;
  readonly #text: string;
  #fault: string | null = null;
  #entries: RecordingEntry[] | null = null;
  readonly #replies = new Map<string, { entries: RecordingEntry[]; next: number }>();

  /** `text`: the recording's lines. Parsed with the first request. */
  constructor(text: string) {
    this.#text = text;
  }

  probe(): Promise<boolean> {
    return Promise.resolve(true);
  }

  complete(
    request: ModelRequest,
    signal: AbortSignal,
  ): Promise<Outcome<ModelReply, ModelFailure>> {
    return Promise.resolve(this.#answer(request, signal));
  }

  #answer(request: ModelRequest, signal: AbortSignal): Outcome<ModelReply, ModelFailure> {
    if (signal.aborted) return this.#failed("cancelled", "Cancelled a call of the recorded model");
    const entries = this.#load();
    if (entries === null) return this.#failed("uncovered", this.#fault!);
    const print = printRequest(request);
    const found = this.#replies.get(keyOf(print.task, print.history.at(-1)!));
    if (found === undefined) {
      const what = describeDifference(entries, print);
      return this.#failed(
        "uncovered",
        `Cannot answer from the recording: it does not cover this request: ${what}`,
      );
    }
    const entry = found.entries[Math.min(found.next, found.entries.length - 1)]!;
    found.next++;
    return success({ ...entry.reply, endpoint: RECORDED_LABEL, attempts: 1 });
  }

  #load(): RecordingEntry[] | null {
    if (this.#entries !== null || this.#fault !== null) return this.#entries;
    const parsed = parseRecording(this.#text);
    if (!parsed.ok) {
      this.#fault =
        `Cannot read the recording: line ${parsed.failure.line}: ${parsed.failure.message}`;
      return null;
    }
    for (const entry of parsed.value) {
      const key = keyOf(entry.task, entry.conversation);
      const same = this.#replies.get(key);
      if (same) same.entries.push(entry);
      else this.#replies.set(key, { entries: [entry], next: 0 });
    }
    return this.#entries = parsed.value;
  }

  #failed(
    failureClass: "uncovered" | "cancelled",
    message: string,
  ): Outcome<ModelReply, ModelFailure> {
    return failed({
      class: failureClass,
      message,
      retryable: failureClass === "cancelled",
      endpoint: RECORDED_LABEL,
      attempts: 0,
    });
  }
}

function keyOf(task: string, conversation: string): string {
  return `${task}/${conversation}`;
}
