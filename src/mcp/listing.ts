/** Lists of a server, page by page, bounded: an endless or circling list ends. */

import { isObject, type Json, type JsonObject } from "../core/json.ts";
import { LIST_PAGES_MAX } from "../core/limits.ts";

/** A list, and why it was not read to its end, if so. */
export interface Listing {
  items: Json[];
  cut: "items" | "pages" | "cursor" | null;
}

/** Asks for one page. */
export type AskPage = (params: JsonObject | undefined) => Promise<unknown>;

/** Reads every page of a list whose entries are under `key`; at most `itemsMax` entries. */
export async function readList(ask: AskPage, key: string, itemsMax: number): Promise<Listing> {
  const items: Json[] = [];
  const cursors = new Set<string>();
  let cursor: string | undefined;
  for (let page = 1;; page++) {
    const result = await ask(cursor === undefined ? undefined : { cursor });
    if (!isObject(result) || !Array.isArray(result[key])) {
      throw new Error(`the server's list of ${key} is malformed`);
    }
    for (const item of result[key]) {
      if (items.length === itemsMax) return { items, cut: "items" };
      items.push(item);
    }
    const { nextCursor } = result;
    // An empty cursor is what some servers send for none.
    if (typeof nextCursor !== "string" || nextCursor === "") return { items, cut: null };
    if (cursors.has(nextCursor)) return { items, cut: "cursor" };
    if (page === LIST_PAGES_MAX) return { items, cut: "pages" };
    cursors.add(nextCursor);
    cursor = nextCursor;
  }
}
