/** A parent's subagents, as the machine sees them. */

import { fnv64 } from "../core/hash.ts";
import { clip } from "../core/text.ts";
import type { ChildEnd } from "../wire/control.ts";
import { failedResult } from "../wire/result.ts";
import type { Observation } from "./observation.ts";
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

/** What a call has shown of ended subagents needs no note beside it. */
export function forgetShown(state: AgentState, observation: Observation): void {
  if (state.ended.length === 0) return;
  const shown = JSON.stringify(observation);
  state.ended = state.ended.filter(({ childId }) => !shown.includes(`child_id\\":\\"${childId}`));
}

/** The process that they belonged to is gone, and they with it: nobody will ever tell their end. */
export function loseChildren(state: AgentState): void {
  for (const { id, path, end } of [...state.children.values()]) {
    if (end !== null) continue;
    const result = failedResult("cancelled", "the run was cut while it ran; its work is lost");
    endChild(state, { childId: id, path, status: "cancelled", result });
  }
}

/** Of a result that nobody awaited, what is shown; and of all that ended in one turn. */
const SHOWN_CHARS_MAX = 2_000;
const ALL_SHOWN_CHARS_MAX = 16_000;

/** One line for each subagent that ended. */
export function childLines(ended: readonly ChildEnd[]): string[] {
  const charsMax = Math.min(SHOWN_CHARS_MAX, Math.ceil(ALL_SHOWN_CHARS_MAX / ended.length));
  return ended.map(({ childId, path, result }) => {
    const how = result.status ?? `abort ${result.abort}`;
    const value = typeof result.result === "string" ? result.result : JSON.stringify(result.result);
    const said = result.result === null ? result.reason : value;
    const whole = said.length > charsMax
      ? ` (cut; subagent_await ${JSON.stringify({ ids: [path] })} gives it whole)`
      : "";
    return `- ${childId} (${path}) ${how}: ${clip(said, charsMax)}${whole}`;
  });
}
