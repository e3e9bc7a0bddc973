/** Server-sent events out of byte chunks, bounded. */

import { createParser } from "eventsource-parser";
import { MODEL_REPLY_BYTES_MAX } from "../core/limits.ts";

/** One event's buffered data: above any reply that is admitted, in its JSON escapes. */
const EVENT_CHARS_MAX = 2 * MODEL_REPLY_BYTES_MAX;

/** What an event's data is handed to; true ends the reading. */
export type TakeData = (data: string) => boolean;

/** Feeds chunks of a stream and hands out the data of each event, until told to stop. */
export class SseFeed {
  readonly #decoder = new TextDecoder();
  readonly #parser;
  #stopped = false;
  #oversized = false;

  constructor(take: TakeData) {
    this.#parser = createParser({
      maxBufferSize: EVENT_CHARS_MAX,
      onEvent: (event) => {
        if (!this.#stopped && event.data !== "" && take(event.data)) this.#stopped = true;
      },
      onError: (error) => {
        if (error.type === "max-buffer-size-exceeded") this.#oversized = this.#stopped = true;
      },
    });
  }

  /** True once nothing more is wanted. */
  push(chunk: Uint8Array): boolean {
    if (!this.#stopped) this.#parser.feed(this.#decoder.decode(chunk, { stream: true }));
    return this.#stopped;
  }

  /** The stream is over; an event without its closing blank line still counts. */
  end(): void {
    if (!this.#stopped) this.#parser.feed(this.#decoder.decode() + "\n\n");
  }

  /** One event alone was over the bound. */
  get oversized(): boolean {
    return this.#oversized;
  }
}
