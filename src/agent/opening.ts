/** What the conversation opens with. */

import type { Part } from "../ports/model.ts";
import { seedText } from "./prompt.ts";
import type { AgentState } from "./state.ts";

/** Instruction and seeds: what the first user message begins with, whatever compaction does. */
export function firstParts(state: AgentState): Part[] {
  const parts: Part[] = [{ type: "text", text: state.task.instruction }];
  for (const seed of state.task.seeds) {
    const body = seed.text ?? `(read it with resource_read: ${seed.resource ?? ""})`;
    parts.push({ type: "text", text: seedText(seed.label, body) });
  }
  return parts;
}

/** What a delivery says: the instruction and the URIs that changed, never their bodies. */
export function deliveryText(instruction: string, uris: readonly string[]): string {
  if (uris.length === 0) return instruction;
  return `${instruction}\nChanged:\n${uris.map((uri) => `- ${uri}`).join("\n")}`;
}
