/** The beginning of any run: its directory, its identity, its root agent's payload, its tree. */

import { SESSION_AGE_MS_MAX } from "../core/limits.ts";
import type { Settings } from "../config/settings.ts";
import { assert } from "../core/assert.ts";
import { makeUlid, toHex } from "../core/ids.ts";
import { failed, type Outcome, success } from "../core/outcome.ts";
import type { Attachment } from "../ports/runs.ts";
import type { TelemetryPort } from "../ports/telemetry.ts";
import { Artifacts } from "../record/artifacts.ts";
import type { AgentIdentity, Seed, Start } from "../wire/payload.ts";
import { leashFor } from "./leash.ts";
import { rootPayload, withEnvironment } from "./payload.ts";
import type { SupervisorPorts } from "./ports.ts";
import { explainTrifecta, judgeGrant } from "./rule_of_two.ts";
import { Tree, type TreeListener } from "./tree.ts";

/** What distinguishes one run from another of the same settings. */
export interface RootSpec {
  /** Null: one is minted. */
  runId: string | null;
  start: Start;
  /** Replaces the task's instruction; null: the task's own. */
  instruction: string | null;
  attachments: readonly Attachment[];
  listener: TreeListener;
}

/** Why a run did not begin: a user's mistake or a full disk. Nothing was started. */
export interface RunProblem {
  class: "exists" | "not_found" | "running" | "trifecta" | "disk";
  message: string;
}

/** A run that is ready to start: its directory is made, no process is there yet. */
export interface Root {
  runId: string;
  directory: string;
  startedWallMs: number;
  telemetry: TelemetryPort;
  tree: Tree;
}

/** Prepares a run. Nothing is made where it fails. */
export function openRoot(
  settings: Settings,
  ports: SupervisorPorts,
  spec: RootSpec,
): Outcome<Root, RunProblem> {
  const { clock, random } = ports;
  const startedWallMs = clock.wallMs();
  const mintId = () => makeUlid(clock.wallMs(), random.bytes(10));
  const runId = spec.runId ?? makeUlid(startedWallMs, random.bytes(10));
  const directory = `${settings.runDirectory}/${runId}`;
  const identity: AgentIdentity = {
    runId,
    agentId: mintId(),
    path: "0",
    depth: 0,
    directory,
    traceId: toHex(random.bytes(16)),
    parentSpanId: toHex(random.bytes(8)),
  };
  const telemetry = openTelemetry(settings, ports, identity);
  const allowed = judgeRoot(settings, telemetry);
  if (!allowed.ok) return allowed;
  const made = makeRunDirectory(ports, directory, spec.start);
  if (!made.ok) return made;
  const payload = rootPayload(
    settings,
    identity,
    spec.start,
    startedWallMs + settings.limits.deadlineMs +
      // A session's deadline holds per delivery, and its agent keeps it; this bounds its age.
      (spec.start.kind === "warm" ? SESSION_AGE_MS_MAX : 0),
  );
  const seeds = keepAttachments(ports, directory, spec.attachments);
  if (!seeds.ok) return seeds;
  payload.servers = withEnvironment(payload.servers, ports.variables ?? {}, settings.vault);
  payload.task = {
    ...payload.task,
    instruction: spec.instruction ?? payload.task.instruction,
    seeds: [...payload.task.seeds, ...seeds.value],
  };
  const tree = new Tree({
    ports,
    settings,
    telemetry,
    wrapper: leashFor(ports.files),
    payload,
    taken: takenPaths(ports, directory),
    mintId,
    listener: spec.listener,
  });
  return success({ runId, directory, startedWallMs, telemetry, tree });
}

function openTelemetry(
  settings: Settings,
  ports: SupervisorPorts,
  identity: AgentIdentity,
): TelemetryPort {
  return ports.openTelemetry(
    {
      run_id: identity.runId,
      agent_id: null,
      agent_path: null,
      comp: "supervisor",
      pid: ports.pid,
      trace_id: identity.traceId,
      span_id: identity.parentSpanId,
      parent_span_id: null,
    },
    settings.log,
    settings.vault,
  );
}

/** The Rule of Two at the root: refused before anything starts, unless it was allowed. */
function judgeRoot(settings: Settings, telemetry: TelemetryPort): Outcome<void, RunProblem> {
  const verdict = judgeGrant(settings.servers, settings.tools);
  if (!verdict.trifecta) return success(undefined);
  telemetry.emit("scope.trifecta", {
    agent_path: "0",
    allowed: settings.allowTrifecta,
    by: verdict.by,
  }, "warn");
  return settings.allowTrifecta
    ? success(undefined)
    : failed({ class: "trifecta", message: explainTrifecta(verdict) });
}

function makeRunDirectory(
  ports: SupervisorPorts,
  directory: string,
  start: Start,
): Outcome<void, RunProblem> {
  assert(/^(\/|[A-Za-z]:)/.test(directory), "the run directory is absolute");
  const exists = ports.files.lstat(directory).ok;
  const resumed = start.kind === "resume" || (start.kind === "warm" && start.resume);
  if (exists && !resumed) {
    return failed({
      class: "exists",
      message: `Cannot start the run: ${directory} exists already`,
    });
  }
  if (start.kind === "resume" && !exists) {
    return failed({
      class: "not_found",
      message: `Cannot resume the run: there is no ${directory}`,
    });
  }
  const made = ports.files.makeDirectory(directory);
  return made.ok ? made : failed({
    class: "disk",
    message: `Cannot make the run's directory: ${made.failure.message}`,
  });
}

/** Keeps what came with a trigger as artifacts; what the agent reads of each is where it is. */
export function keepAttachments(
  ports: SupervisorPorts,
  directory: string,
  attachments: readonly Attachment[],
): Outcome<Seed[], RunProblem> {
  const artifacts = new Artifacts({ files: ports.files, directory });
  const seeds: Seed[] = [];
  for (const { name, mimeType, bytes } of attachments) {
    const base = `trigger-${name.replace(/[^A-Za-z0-9_-]/g, "-")}`.slice(0, 40);
    const id = `${base}-${toHex(ports.random.bytes(6))}`;
    const kept = artifacts.write(id, bytes);
    if (!kept.ok) {
      return failed({ class: "disk", message: `Cannot keep ${name}: ${kept.failure.message}` });
    }
    seeds.push({
      label: `trigger ${name}`,
      text:
        `${bytes.length} bytes of ${mimeType}, kept as the artifact ${id}: artifact_read shows it.`,
    });
  }
  return success(seeds);
}

/** Paths of agents that an earlier stretch of the run had. */
function takenPaths(ports: SupervisorPorts, directory: string): Set<string> {
  const names = ports.files.list(`${directory}/agents`);
  return new Set(names.ok ? names.value : []);
}

/** Puts what an agent is handed beside its words into a delivery's instruction. */
export function withSeeds(instruction: string, seeds: readonly Seed[]): string {
  if (seeds.length === 0) return instruction;
  return `${instruction}\n\n${seeds.map((seed) => `${seed.label}: ${seed.text}`).join("\n")}`;
}
