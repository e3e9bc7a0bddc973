/** Puts a reply together from its pieces, within its bound, and cuts it where it goes nowhere. */

import { MODEL_REPLY_BYTES_MAX, REPETITION_CHARS_MAX } from "../core/limits.ts";
import type { ToolCall } from "../ports/model.ts";
import { RepetitionGauge, withoutRepetition } from "./repetition.ts";

/** What an empty call counts for, so that calls without arguments are bounded too. */
const CALL_CHARS = 64;
/** Arguments may hold data that honestly repeats: they are given more room than prose. */
const ARGUMENT_REPETITION_FACTOR = 4;

interface OpenCall {
  id: string;
  name: string;
  arguments: string;
  gauge: RepetitionGauge;
}

/** A growing reply. Pieces that come after it was cut are dropped. */
export class ReplyBuilder {
  #text = "";
  #reasoning = "";
  #calls: OpenCall[] = [];
  #period = 0;
  readonly #textGauge = new RepetitionGauge();
  readonly #reasoningGauge = new RepetitionGauge();
  /** Characters received. */
  chars = 0;
  cut: "repetition" | "length" | null = null;

  get text(): string {
    return this.cut === "repetition" && this.#period > 0
      ? withoutRepetition(this.#text, this.#period)
      : this.#text;
  }

  get reasoning(): string {
    return this.#reasoning;
  }

  /** Calls so far; none once the reply was cut for repeating itself. */
  get calls(): ToolCall[] {
    if (this.cut === "repetition") return [];
    return this.#calls.map(({ id, name, arguments: text }) => ({ id, name, arguments: text }));
  }

  get callCount(): number {
    return this.#calls.length;
  }

  /** Adds to the text. */
  addText(delta: string): void {
    if (!this.#admit(delta.length)) return;
    this.#text += delta;
    this.#period = this.#textGauge.push(delta);
    if (this.#period > 0) this.cut = "repetition";
  }

  /** Adds to what the model thinks before it speaks. */
  addReasoning(delta: string): void {
    if (!this.#admit(delta.length)) return;
    this.#reasoning += delta;
    if (this.#reasoningGauge.push(delta) > 0) this.cut = "repetition";
  }

  /** Begins a call and returns its place. */
  openCall(id: string, name: string): number {
    this.#admit(CALL_CHARS + name.length);
    const gauge = new RepetitionGauge(ARGUMENT_REPETITION_FACTOR * REPETITION_CHARS_MAX);
    return this.#calls.push({ id, name, arguments: "", gauge }) - 1;
  }

  /** What a call has so far. */
  callAt(index: number): Readonly<ToolCall> | undefined {
    return this.#calls[index];
  }

  /** Completes the name of a call that came in pieces. */
  addName(index: number, delta: string): void {
    const call = this.#calls[index];
    if (call === undefined || !this.#admit(delta.length)) return;
    call.name += delta;
  }

  /** Adds to the arguments of a call. */
  addArguments(index: number, delta: string): void {
    const call = this.#calls[index];
    if (call === undefined || !this.#admit(delta.length)) return;
    call.arguments += delta;
    if (call.gauge.push(delta) > 0) this.cut = "repetition";
  }

  /** Counts what is kept apart (opaque blocks). */
  addOpaque(chars: number): void {
    this.#admit(chars);
  }

  #admit(chars: number): boolean {
    if (this.cut !== null) return false;
    if (this.chars + chars > MODEL_REPLY_BYTES_MAX) {
      this.cut = "length";
      return false;
    }
    this.chars += chars;
    return true;
  }
}
