/**
 * `agentd inspect --import FILE`: another program's trajectory under the agent's own judgement. The
 * verdicts, deltas and stops are those of the loop's own functions.
 */

import { maskTime } from "../agent/mask.ts";
import type { ActionLine } from "../agent/event.ts";
import {
  callFingerprint,
  countAttempt,
  countTurn,
  emptyProgress,
  judgeTurn,
  noteEvidence,
  type Progress,
  turnSignature,
} from "../agent/progress.ts";
import { type Spent, type Stop, stopAfterTurn, stopBeforeCall } from "../agent/stops.ts";
import { DEFAULT_LIMITS, IMPORT_BYTES_MAX, type Limits } from "../core/limits.ts";
import type { DigestPort } from "../ports/digest.ts";
import type { FilesPort } from "../ports/files.ts";
import { type ForeignTrajectory, type ForeignTurn, readForeign } from "./foreign.ts";
import { type CommandOutput, formatCount, oneLine, renderTable, usageError } from "./output.ts";

/** One foreign turn, judged. */
export interface JudgedTurn {
  step: number;
  actions: ActionLine[];
  verdict: string;
  delta: number;
  idle: number;
  failing: number;
  signature: string;
  tokens: number;
  /** Calls that the repeat cap would have refused. */
  refused: number;
  /** Names of the stop checks that would have fired here for the first time. */
  stops: string[];
}

/** One stop check, and where it would have fired; `step` is null where it never would. */
export interface StopCheck {
  check: string;
  limit: number;
  step: number | null;
  status: string | null;
  reason: string | null;
}

/** A trajectory, judged. */
export interface ImportResult {
  format: string;
  turns: JudgedTurn[];
  stops: StopCheck[];
  first_non_advancing: number | null;
}

/** Every check alone: its limit as configured, all others out of reach. */
const CHECKS: readonly { check: string; key: keyof Limits }[] = [
  { check: "deadline", key: "deadlineMs" },
  { check: "tokens", key: "maxTokens" },
  { check: "cost", key: "maxCost" },
  { check: "steps", key: "maxSteps" },
  { check: "idle", key: "idleLimit" },
  { check: "failing", key: "failLimit" },
  { check: "repeat", key: "repeatCap" },
];

const BOUNDLESS: Limits = {
  ...DEFAULT_LIMITS,
  deadlineMs: Infinity,
  maxTokens: Infinity,
  maxCost: null,
  maxSteps: Infinity,
  idleLimit: Infinity,
  failLimit: Infinity,
  repeatCap: Infinity,
};

/** Judges a trajectory turn by turn, and goes on where a run would have stopped. */
export async function judgeForeign(
  trajectory: ForeignTrajectory,
  limits: Limits,
  digest: DigestPort,
): Promise<ImportResult> {
  const progress = emptyProgress();
  const spent: Spent = { steps: 0, tokens: 0, cost: 0, elapsedMs: 0 };
  const stops: StopCheck[] = CHECKS.filter(({ key }) => limits[key] !== null)
    .map(({ check, key }) => ({
      check,
      limit: limits[key] as number,
      step: null,
      status: null,
      reason: null,
    }));
  const beganMs = trajectory.turns.find((turn) => turn.wallMs !== null)?.wallMs ?? null;
  const turns: JudgedTurn[] = [];
  for (const turn of trajectory.turns) {
    spent.steps++;
    spent.tokens += turn.tokens;
    if (turn.cost !== null) spent.cost = (spent.cost ?? 0) + turn.cost;
    if (turn.wallMs !== null && beganMs !== null) spent.elapsedMs = turn.wallMs - beganMs;
    const judged = await judgeOne(turn, spent.steps, progress, limits, digest);
    for (const stop of stops) {
      if (stop.step !== null) continue;
      const fired = fires(stop.check, limits, spent, progress);
      if (fired === null) continue;
      Object.assign(stop, { step: spent.steps, status: fired.status, reason: fired.reason });
      judged.stops.push(stop.check);
    }
    turns.push(judged);
  }
  return {
    format: trajectory.format,
    turns,
    stops,
    first_non_advancing: turns.find((turn) => turn.delta === 0)?.step ?? null,
  };
}

async function judgeOne(
  turn: ForeignTurn,
  step: number,
  progress: Progress,
  limits: Limits,
  digest: DigestPort,
): Promise<JudgedTurn> {
  const digests: string[] = [];
  const actions: ActionLine[] = [];
  let refused = 0;
  for (const call of turn.calls) {
    const line: ActionLine = {
      call: call.id,
      tool: call.name,
      class: "invalid",
      fresh: false,
      attempts: 0,
    };
    actions.push(line);
    const content = await digest.sha256(maskTime(call.result ?? ""));
    digests.push(content);
    if (call.broken) continue;
    const fingerprint = callFingerprint(call.name, call.arguments);
    line.attempts = countAttempt(progress, fingerprint, false);
    if (line.attempts > limits.repeatCap) refused++;
    line.class = call.class;
    // The words of a harness are no evidence: only what a tool said is.
    if (call.class === "ok" || call.class === "error") {
      line.fresh = noteEvidence(progress, fingerprint, content);
    }
  }
  const summary = {
    actions,
    freshChecks: { passed: 0, failed: 0 },
    rose: false,
    accepted: turn.calls.length === 0 && turn.text.trim() !== "",
    invalid: turn.calls.length === 0 && turn.text.trim() === "",
    polled: false,
    freshChildren: 0,
  };
  const { verdict, delta } = judgeTurn(summary);
  countTurn(progress, summary, delta);
  return {
    step,
    actions,
    verdict,
    delta,
    idle: progress.idle,
    failing: progress.failing,
    signature: turnSignature(digests, await digest.sha256(maskTime(turn.text))),
    tokens: turn.tokens,
    refused,
    stops: [],
  };
}

function fires(check: string, limits: Limits, spent: Spent, progress: Progress): Stop | null {
  const { key } = CHECKS.find((candidate) => candidate.check === check)!;
  const alone = { ...BOUNDLESS, [key]: limits[key] };
  return stopBeforeCall(alone, spent, null, 0, 0) ?? stopAfterTurn(alone, spent, progress, null);
}

/** What importing needs. */
export interface ImportDeps {
  files: FilesPort;
  digest: DigestPort;
}

/** `agentd inspect --import FILE`. A file in neither format is one line, exit 2. */
export async function importCommand(
  deps: ImportDeps,
  file: string,
  options: { json: boolean; limits?: Limits },
): Promise<CommandOutput> {
  const cannot = (why: string): CommandOutput => usageError(`Cannot import ${file}: ${why}`);
  const content = deps.files.readText(file, IMPORT_BYTES_MAX);
  if (!content.ok) return cannot(content.failure.message);
  const trajectory = readForeign(content.value);
  if (!trajectory.ok) return cannot(oneLine(trajectory.failure, 300));
  if (trajectory.value.turns.length === 0) return cannot("it holds no reply of a model");
  const limits = options.limits ?? DEFAULT_LIMITS;
  const result = await judgeForeign(trajectory.value, limits, deps.digest);
  const stdout = options.json ? JSON.stringify(result, null, 2) + "\n" : renderImport(result);
  return { exitCode: 0, stdout, stderr: "" };
}

function renderImport(result: ImportResult): string {
  const rows = result.turns.map((turn) => [
    String(turn.step),
    oneLine(shortCalls(turn), 40) || (turn.verdict === "answered" ? "(answer)" : "–"),
    turn.verdict,
    String(turn.delta),
    String(turn.idle),
    String(turn.failing),
    formatCount(turn.tokens),
    [
      ...(turn.step === result.first_non_advancing ? ["<- first without new evidence"] : []),
      ...(turn.refused > 0 ? [`${turn.refused} call(s) over the repeat cap`] : []),
      ...turn.stops.map((stop) => `STOP ${stop}`),
    ].join("; "),
  ]);
  const table = renderTable([
    { head: "STEP" },
    { head: "ACTIONS" },
    { head: "VERDICT" },
    { head: "DELTA", right: true },
    { head: "IDLE", right: true },
    { head: "FAILING", right: true },
    { head: "TOKENS", right: true },
    { head: "" },
  ], rows);
  const stops = result.stops.map((stop) =>
    stop.step === null
      ? `${stop.check}: would not have fired (limit ${stop.limit})\n`
      : `${stop.check}: step ${stop.step}, ${stop.status} (${stop.reason})\n`
  );
  return `${result.turns.length} turns (${result.format})\n\n${table}\nStop checks, each by itself:\n${
    stops.join("")
  }`;
}

function shortCalls(turn: JudgedTurn): string {
  const counts = new Map<string, number>();
  for (const { tool } of turn.actions) counts.set(tool, (counts.get(tool) ?? 0) + 1);
  return [...counts].map(([tool, times]) => times === 1 ? tool : `${tool} x${times}`).join(", ");
}
