/**
 * Verification: a final answer is a claim, held against what was declared: schema,
 * artifacts, commands, `on_stop` hooks. Nothing else counts and no model judges.
 */

import { fnv64 } from "../core/hash.ts";
import type { Json } from "../core/json.ts";
import { CHECK_DETAIL_CHARS_MAX } from "../core/limits.ts";
import { clip } from "../core/text.ts";
import type { VerificationItem } from "../wire/result.ts";
import type { CheckOutcome, CheckPhase, EventOf } from "./event.ts";
import { findJsonValue } from "./json_action.ts";
import { noteEvidence } from "./progress.ts";
import { failedClaimNote, turnCheckNote } from "./prompt.ts";
import { schemaFaults } from "./schema.ts";
import type { AgentState, Turn } from "./state.ts";
import type { Action, Next } from "./plan.ts";

/** A final was given: what of it can be judged at once, and then the declared checks. */
export function verifyClaim(
  state: AgentState,
  turn: Turn,
  text: string,
  value: { json: Json } | null,
  out: Action[],
): Next {
  const { task } = state;
  const items: VerificationItem[] = [];
  let result: Json = value === null ? text : value.json;
  if (task.outputSchema !== null) {
    const parsed = value === null || typeof value.json === "string"
      ? findJsonValue(value === null ? text : String(value.json))
      : value.json;
    const faults = parsed === undefined
      ? ["the answer holds no JSON value"]
      : schemaFaults(task.outputSchema, parsed, true);
    // A schema may ask for a plain string: then the text itself is the value.
    const plain = faults.length > 0 && schemaFaults(task.outputSchema, result, true).length === 0;
    if (faults.length === 0) result = parsed ?? null;
    items.push({
      kind: "schema",
      name: "output schema",
      passed: faults.length === 0 || plain,
      passed_before: false,
      detail: plain ? "" : faults.join("\n"),
    });
  }
  turn.claim = { value: result, items };
  if ([...state.children.values()].some((child) => child.end === null)) {
    state.phase = { tag: "waiting" };
    return null;
  }
  if (task.require.length + task.checks.length > 0) return runChecks(state, "final", out);
  return afterItems(state, turn, out);
}

function runChecks(state: AgentState, phase: CheckPhase, out: Action[]): null {
  state.phase = { tag: "checking", phase };
  out.push({ do: "append", decision: { type: "checks.requested", phase } });
  out.push({ do: "runChecks", phase });
  return null;
}

/** Runs the checks declared for every acting turn; false if there are none. */
export function checkAfterTurn(state: AgentState, out: Action[]): boolean {
  if (!state.task.checks.some((check) => check.when === "turn")) return false;
  runChecks(state, "turn", out);
  return true;
}

/** Declared checks, or hooks, ran. */
export function takeChecks(state: AgentState, event: EventOf<"checks.ran">, out: Action[]): Next {
  if (event.phase === "before") {
    for (const outcome of event.outcomes) {
      if (outcome.passed) state.passedBefore.add(`${outcome.kind} ${outcome.name}`);
      noteGraded(state, outcome);
    }
    return "assemble";
  }
  const turn = state.turn!;
  turn.checks = event.outcomes;
  for (const outcome of event.outcomes) countOutcome(state, turn, outcome);
  if (event.phase === "turn") return "finish";
  const claim = turn.claim!;
  for (const outcome of event.outcomes) {
    claim.items.push({
      kind: outcome.kind,
      name: outcome.name,
      passed: outcome.passed,
      passed_before: state.passedBefore.has(`${outcome.kind} ${outcome.name}`),
      detail: clip(outcome.detail, CHECK_DETAIL_CHARS_MAX),
    });
  }
  if (event.phase === "final") return afterItems(state, turn, out);
  return judgeClaim(state, turn, out);
}

/** When everything else passed, the `on_stop` hooks are asked, once per final. */
function afterItems(state: AgentState, turn: Turn, out: Action[]): Next {
  if (state.stopHooks > 0 && turn.claim!.items.every((item) => item.passed)) {
    return runChecks(state, "stop", out);
  }
  return judgeClaim(state, turn, out);
}

function judgeClaim(state: AgentState, turn: Turn, out: Action[]): Next {
  const { items } = turn.claim!;
  state.verification = items;
  turn.verified = items.every((item) => item.passed);
  const schema = items.find((item) => item.kind === "schema");
  if (schema !== undefined && !schema.passed) {
    if (noteEvidence(state.progress, "verify:schema", fnv64(schema.detail))) {
      turn.freshChecks.failed++;
    }
  }
  if (items.length > 0) {
    out.push({
      do: "append",
      decision: {
        type: "verify.judged",
        step: turn.step,
        passed: turn.verified,
        items,
      },
    });
  }
  return "finish";
}

/** What a check printed is evidence, like a tool's result; a graded signal that rises is progress. */
function countOutcome(state: AgentState, turn: Turn, outcome: CheckOutcome): void {
  const fingerprint = `verify:${outcome.kind}:${outcome.name}`;
  if (noteEvidence(state.progress, fingerprint, outcome.digest)) {
    if (outcome.passed) turn.freshChecks.passed++;
    else turn.freshChecks.failed++;
  }
  if (noteGraded(state, outcome)) turn.rose = true;
}

/** Whether the outcome's graded signal is higher than any before of the same check. */
function noteGraded(state: AgentState, outcome: CheckOutcome): boolean {
  if (outcome.progress === null || outcome.progress.total <= 0) return false;
  const { graded } = state.progress;
  const share = outcome.progress.done / outcome.progress.total;
  const before = graded.get(outcome.name);
  if (before === undefined || share > before) graded.set(outcome.name, share);
  return before !== undefined && share > before;
}

/** What the model reads of a final that was not accepted; null if there was none. */
export function failedClaimText(turn: Turn): string | null {
  if (turn.claim === null) return null;
  const faults = turn.claim.items.filter((item) => !item.passed).map(faultLine);
  return faults.length === 0 ? null : failedClaimNote(faults);
}

function faultLine(item: VerificationItem): string {
  switch (item.kind) {
    case "schema":
      return `- schema: ${item.detail}`;
    case "require":
      return `- missing: ${item.name}${item.detail === "" ? "" : ` (${item.detail})`}`;
    case "check":
      return `- check \`${item.name}\` failed: ${item.detail}`;
    case "hook":
      return `- ${item.name}: ${item.detail}`;
  }
}

/** What the model reads of checks that ran after an acting turn. */
export function turnCheckText(turn: Turn): string | null {
  if (turn.claim !== null || turn.checks.length === 0) return null;
  return turnCheckNote(turn.checks.map((outcome) => {
    const how = outcome.passed
      ? "passed"
      : `failed: ${clip(outcome.detail, CHECK_DETAIL_CHARS_MAX)}`;
    const graded = outcome.progress === null
      ? ""
      : ` (${outcome.progress.done} of ${outcome.progress.total})`;
    return `- \`${outcome.name}\`${graded} ${how}`;
  }));
}
