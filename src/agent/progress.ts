/**
 * Feedback: what of a turn is new evidence, how often a call was tried without any,
 * and the one verdict of the turn. Pure; no model is asked and prose counts for nothing.
 */

import { Fnv64, fnv64 } from "../core/hash.ts";
import { canonicalJson, type JsonObject } from "../core/json.ts";
import { EVIDENCE_ENTRIES_MAX } from "../core/limits.ts";
import { RecentCounts } from "../core/recent_counts.ts";
import type { ActionLine, Verdict } from "./event.ts";
import { isSuccess, type Observation } from "./observation.ts";

/** What is remembered of a run to judge its turns. */
export interface Progress {
  /** Every (call, content) seen, as fingerprint and digest: 1 each. */
  evidence: RecentCounts;
  /** Attempts of a call since it last brought new content, that one included. */
  attempts: RecentCounts;
  /** Consecutive turns without new evidence. */
  idle: number;
  /** Consecutive turns without a success. */
  failing: number;
  /** The highest attempt count that any call of this run reached. */
  attemptsHigh: number;
  /** The best graded signal of each check so far, as a share. */
  graded: Map<string, number>;
}

/** No evidence yet. */
export function emptyProgress(): Progress {
  return {
    evidence: new RecentCounts(EVIDENCE_ENTRIES_MAX),
    attempts: new RecentCounts(EVIDENCE_ENTRIES_MAX),
    idle: 0,
    failing: 0,
    attemptsHigh: 0,
    graded: new Map(),
  };
}

/** The fingerprint of a call: tool and canonical arguments. */
export function callFingerprint(tool: string, args: JsonObject): string {
  return fnv64(tool + "\n" + canonicalJson(args));
}

/**
 * Counts one more attempt of a call and says which it is (1 for the first). Attempts of a tool that
 * is polled on purpose are not counted.
 */
export function countAttempt(progress: Progress, fingerprint: string, poll: boolean): number {
  if (poll) return 1;
  const attempts = progress.attempts.get(fingerprint) + 1;
  progress.attempts.set(fingerprint, attempts);
  progress.attemptsHigh = Math.max(progress.attemptsHigh, attempts);
  return attempts;
}

/**
 * Whether this content is new for this call; it is remembered, and a repeat that brings new content
 * starts its count anew, at itself and the `open` attempts that have no answer yet.
 */
export function noteEvidence(
  progress: Progress,
  fingerprint: string,
  digest: string,
  open = 0,
): boolean {
  const key = `${fingerprint}:${digest.slice(0, 32)}`;
  if (progress.evidence.get(key) > 0) return false;
  progress.evidence.set(key, 1);
  if (progress.attempts.get(fingerprint) > 0) progress.attempts.set(fingerprint, 1 + open);
  return true;
}

/** The harness's own words are never evidence: only what a tool, or its protocol, said is. */
export function isEvidence(observation: Observation): boolean {
  return isSuccess(observation) || observation.class === "error";
}

/** What a turn came to, before the verdict. */
export interface TurnSummary {
  actions: readonly ActionLine[];
  /** Fresh outcomes of declared checks and failed verification items. */
  freshChecks: { passed: number; failed: number };
  /** A check's graded signal rose. */
  rose: boolean;
  /** A final was accepted. */
  accepted: boolean;
  /** The proposal was no legal action at all. */
  invalid: boolean;
  /** Every call was a poll of a tool declared as polled, and was made. */
  polled: boolean;
  /** New results of subagents. */
  freshChildren: number;
}

/** The verdict and delta of a turn, in their order of precedence. */
export function judgeTurn(turn: TurnSummary): { verdict: Verdict; delta: number } {
  let freshSuccess = turn.freshChecks.passed + turn.freshChildren;
  let freshError = turn.freshChecks.failed;
  for (const action of turn.actions) {
    if (!action.fresh) continue;
    if (action.class === "error") freshError++;
    else freshSuccess++;
  }
  let delta = freshSuccess + freshError;
  if (turn.accepted) return { verdict: "answered", delta: Math.max(1, delta) };
  if (turn.rose) delta = Math.max(1, delta);
  if (turn.rose || freshSuccess > 0) return { verdict: "advanced", delta };
  if (freshError > 0) return { verdict: "failed", delta };
  const classes = new Set(turn.actions.map((action) => action.class));
  if (classes.has("unknown")) return { verdict: "unknown", delta };
  if (classes.has("refused")) return { verdict: "refused", delta };
  if (classes.has("invalid") || turn.invalid) return { verdict: "invalid", delta };
  return { verdict: "repeated", delta };
}

/** Counts the turn into the consecutive counters that stops look at. */
export function countTurn(progress: Progress, turn: TurnSummary, delta: number): void {
  if (delta > 0) progress.idle = 0;
  else if (!turn.polled) progress.idle++;
  const succeeded = turn.accepted || turn.rose || turn.freshChecks.passed > 0 ||
    turn.freshChildren > 0 || turn.actions.some(isSuccess);
  progress.failing = succeeded ? 0 : progress.failing + 1;
}

/** FNV-1a/64 over the digests of a turn's results and of its text. */
export function turnSignature(resultDigests: readonly string[], textDigest: string): string {
  const hash = new Fnv64();
  for (const digest of resultDigests) hash.write(digest).write("\n");
  return hash.write(textDigest).hex();
}
