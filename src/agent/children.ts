/** A parent's subagents, as the machine sees them. */

import { fnv64 } from "../core/hash.ts";
import { clip } from "../core/text.ts";
import type { ChildEnd } from "../wire/control.ts";
import type { Next } from "./plan.ts";
import { noteEvidence } from "./progress.ts";
import type { AgentState } from "./state.ts";

/** A subagent ended. Its result is evidence; a waiting parent goes on when none is left. */
export function endChild(state: AgentState, end: ChildEnd): Next {
  const child = state.children.get(end.childId);
  if (child === undefined || child.end !== null) return null;
  child.end = end;
  state.ended.push(end);
  if (state.phase.tag !== "waiting") return null;
  if ([...state.children.values()].some((other) => other.end === null)) return null;
  const turn = state.turn!;
  const digest = fnv64(JSON.stringify(state.ended.map((ended) => ended.result.result)));
  if (noteEvidence(state.progress, "children", digest)) turn.freshChildren = state.ended.length;
  turn.claim = null;
  return "finish";
}

/** One line for each subagent that ended. */
export function childLines(ended: readonly ChildEnd[]): string[] {
  return ended.map(({ childId, path, result }) => {
    const how = result.status ?? `abort ${result.abort}`;
    const value = typeof result.result === "string" ? result.result : JSON.stringify(result.result);
    return `- ${childId} (${path}) ${how}: ${clip(value ?? result.reason, 2_000)}`;
  });
}
