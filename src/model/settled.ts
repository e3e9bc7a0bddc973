/**
 * The beginning of a conversation that changes no more, rendered: each request adds to the end and
 * changes the last results, so what stands before them is joined once and not again every turn.
 */

import type { Message } from "../ports/model.ts";

/** Replies at the end that may still change, or whose surroundings may: more than the levers touch. */
const OPEN_REPLIES = 16;
/** The settled part grows by at least so many messages at a time. */
const GROWTH_MESSAGES = 32;

/** Which ends of the conversation a range holds. */
export interface RangePlace {
  isStart: boolean;
  isEnd: boolean;
}

/** Members of a JSON array, joined by commas; empty for none. */
export type RenderRange = (messages: readonly Message[], place: RangePlace) => string;

/** One renderer's memory of the last conversation's beginning. */
export class SettledPrefix {
  #messages: readonly Message[] = [];
  #json = "";

  /**
   * Renders a conversation: the settled part, and the rest. `render` must give the same for a whole as for its parts, joined, where
   * a part begins with a reply after something else.
   */
  render(messages: readonly Message[], render: RenderRange): { settled: string; rest: string } {
    if (!this.#holds(messages)) this.#messages = [], this.#json = "";
    const from = this.#messages.length;
    const to = settledEnd(messages);
    if (to - from >= GROWTH_MESSAGES) {
      const place = { isStart: from === 0, isEnd: false };
      this.#json = join(this.#json, render(messages.slice(from, to), place));
      this.#messages = messages.slice(0, to);
    }
    const { length } = this.#messages;
    const rest = length === 0 ? messages : messages.slice(length);
    return {
      settled: this.#json,
      rest: render(rest, { isStart: length === 0, isEnd: true }),
    };
  }

  #holds(messages: readonly Message[]): boolean {
    const known = this.#messages;
    if (known.length > messages.length) return false;
    for (let i = 0; i < known.length; i++) if (known[i] !== messages[i]) return false;
    return true;
  }
}

/** Where the settled part may end: before a reply that follows something else, with enough behind. */
function settledEnd(messages: readonly Message[]): number {
  let replies = 0;
  for (let i = messages.length - 1; i > 0; i--) {
    if (messages[i]!.role !== "assistant" || messages[i - 1]!.role === "assistant") continue;
    if (++replies === OPEN_REPLIES) return i;
  }
  return 0;
}

/** Members of an array in three pieces, commas included; the middle one stays the same for long. */
export interface Pieces {
  head: string;
  settled: string;
  rest: string;
}

/** Puts the commas where they belong: never into the piece that stays the same. */
export function toPieces(head: string, settled: string, rest: string): Pieces {
  return {
    head: head !== "" && settled + rest !== "" ? `${head},` : head,
    settled,
    rest: settled !== "" && rest !== "" ? `,${rest}` : rest,
  };
}

function join(first: string, second: string): string {
  return first === "" ? second : second === "" ? first : `${first},${second}`;
}
