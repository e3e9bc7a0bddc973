/**
 * A trajectory: of each turn what the loop judges it by, and nothing else. Made from events, be they
 * of a machine in memory or of a run's record, and judged again under other limits.
 */

import { fnv64 } from "../../src/core/hash.ts";
import type { ActionLine, AgentEvent, Decision } from "../../src/agent/event.ts";
import type { ObservationClass } from "../../src/agent/observation.ts";
import {
  callFingerprint,
  countAttempt,
  countTurn,
  emptyProgress,
  judgeTurn,
  noteEvidence,
} from "../../src/agent/progress.ts";
import { type Stop, stopAfterTurn } from "../../src/agent/stops.ts";
import { DEFAULT_LIMITS, type Limits } from "../../src/core/limits.ts";

/** One call: its fingerprint, the digest of what it returned, the outcome's class. */
export interface TrajectoryCall {
  tool: string;
  fingerprint: string;
  digest: string;
  class: ObservationClass;
  /** Declared as polled on purpose. */
  poll?: true;
}

/** One outcome of a declared check. */
export interface TrajectoryCheck {
  name: string;
  digest: string;
  passed: boolean;
}

export interface TrajectoryTurn {
  calls: TrajectoryCall[];
  checks?: TrajectoryCheck[];
  /** The proposal was no legal action. */
  invalid?: true;
  /** The final was accepted. */
  accepted?: true;
}

export interface Trajectory {
  name: string;
  /** `good`: work that must not be cut. `spin`: work that leads nowhere, from turn `spinFrom` on. */
  label: "good" | "spin";
  spinFrom?: number;
  /** Where it comes from: a scripted scenario, or a run of the program. */
  source: "scenario" | "run";
  turns: TrajectoryTurn[];
}

/** What the corpus keeps of a digest. */
const DIGEST_CHARS = 16;

/** Reads a trajectory's turns from a run's events and decisions, in the order of the record. */
export function turnsOf(lines: readonly (AgentEvent | Decision)[]): TrajectoryTurn[] {
  const turns: TrajectoryTurn[] = [];
  const polled = new Set<string>();
  const calls = new Map<string, TrajectoryCall>();
  let checks: TrajectoryCheck[] = [];
  let isFinal = false;
  for (const line of lines) {
    switch (line.type) {
      case "tools.listed":
        for (const tool of line.tools) if (tool.poll) polled.add(tool.name);
        break;
      case "call.intended":
        calls.set(line.call, {
          tool: line.tool,
          fingerprint: callFingerprint(line.tool, line.arguments),
          digest: "",
          class: "unknown",
          ...(polled.has(line.tool) ? { poll: true } : {}),
        });
        break;
      case "call.observed": {
        const call = calls.get(line.call);
        if (call === undefined) break;
        call.digest = line.digest.slice(0, DIGEST_CHARS);
        call.class = line.observation.class;
        break;
      }
      case "checks.ran":
        if (line.phase === "before") break;
        checks = line.outcomes.map(({ kind, name, digest, passed }) => ({
          name: `${kind} ${fnv64(name)}`,
          digest: digest.slice(0, DIGEST_CHARS),
          passed,
        }));
        break;
      case "run.ended":
        isFinal = line.status === "completed" || line.status === "refused";
        break;
      case "turn.judged":
        turns.push({
          calls: line.actions.map((action) =>
            calls.get(action.call) ?? {
              tool: action.tool,
              fingerprint: "",
              digest: "",
              class: action.class,
            }
          ),
          ...(checks.length > 0 ? { checks } : {}),
          ...(line.verdict === "invalid" ? { invalid: true } : {}),
        });
        checks = [];
        break;
      default:
        break;
    }
  }
  const last = turns.at(-1);
  if (isFinal && last !== undefined) last.accepted = true;
  return turns;
}

/** What limits would have done to a trajectory: the turn at which they stop it, or null. */
export function judgeTrajectory(
  trajectory: Trajectory,
  limits: Pick<Limits, "idleLimit" | "failLimit" | "repeatCap">,
): { turn: number; stop: Stop } | null {
  const all: Limits = { ...DEFAULT_LIMITS, ...limits, maxSteps: Infinity };
  const progress = emptyProgress();
  for (const [index, turn] of trajectory.turns.entries()) {
    const actions = turn.calls.map((call, place) => judgeCall(progress, call, `${place}`, all));
    const freshChecks = { passed: 0, failed: 0 };
    for (const check of turn.checks ?? []) {
      if (!noteEvidence(progress, `verify:${check.name}`, check.digest)) continue;
      if (check.passed) freshChecks.passed++;
      else freshChecks.failed++;
    }
    const summary = {
      actions,
      freshChecks,
      rose: false,
      accepted: turn.accepted === true,
      invalid: turn.invalid === true,
      polled: turn.calls.length > 0 && turn.calls.every((call) => call.poll) &&
        actions.every((action) => isSuccessClass(action.class)),
      freshChildren: 0,
    };
    countTurn(progress, summary, judgeTurn(summary).delta);
    if (turn.accepted) return null;
    const spent = { steps: 0, tokens: 0, cost: null, elapsedMs: 0 };
    const stop = stopAfterTurn(all, spent, progress, null);
    if (stop !== null) return { turn: index + 1, stop };
  }
  return null;
}

function judgeCall(
  progress: ReturnType<typeof emptyProgress>,
  call: TrajectoryCall,
  place: string,
  limits: Limits,
): ActionLine {
  const line = { call: place, tool: call.tool, class: call.class, fresh: false, attempts: 0 };
  if (call.fingerprint === "") return line;
  line.attempts = countAttempt(progress, call.fingerprint, call.poll === true);
  if (line.attempts > limits.repeatCap) return { ...line, class: "refused" };
  if (isSuccessClass(call.class) || call.class === "error") {
    line.fresh = noteEvidence(progress, call.fingerprint, call.digest);
  }
  return line;
}

function isSuccessClass(outcome: ObservationClass): boolean {
  return outcome === "ok" || outcome === "truncated" || outcome === "partial";
}
