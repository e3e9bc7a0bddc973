/** What `GET /models` answers, on either wire and in Ollama's own form. */

import { isObject, type Json } from "../core/json.ts";

/** The names of the models that a listing holds; none of what is no listing. */
export function namesOf(listing: unknown): string[] {
  if (!isObject(listing as Json)) return [];
  const { data, models } = listing as { data?: unknown; models?: unknown };
  const list = data ?? models;
  return (Array.isArray(list) ? list : []).map((model) =>
    isObject(model) ? model["id"] ?? model["name"] : null
  ).filter((name): name is string => typeof name === "string" && name !== "");
}
