/**
 * One run's tree of agents: the only place where a request of an agent becomes a process. It holds
 * the fleet's accounts, starts and ends agents, and answers what they ask.
 */

import { KILL_RUNG_MS, TERM_RUNG_MS } from "../core/limits.ts";
import type { Json } from "../core/json.ts";
import type { Outcome } from "../core/outcome.ts";
import type { Settings } from "../config/settings.ts";
import type { Cancel } from "../ports/clock.ts";
import type { ProcessRow } from "../ports/process.ts";
import type { TelemetryPort } from "../ports/telemetry.ts";
import type { CancelReason, Delivery, FromAgent } from "../wire/control.ts";
import type { AgentPayload } from "../wire/payload.ts";
import { type AgentResult, failedResult } from "../wire/result.ts";
import { Agent, planFor } from "./agent.ts";
import { childPayload } from "./child_payload.ts";
import {
  account,
  addChild,
  admit,
  aliveBelow,
  closeFleet,
  endNode,
  type Fleet,
  isBelow,
  isDetached,
  type Node,
  plantFleet,
  type Refusal,
  renewFleet,
} from "./fleet.ts";
import { tellEnd } from "./ending.ts";
import { processGrant } from "./grant.ts";
import { descend } from "./descent.ts";
import { judgeOrder, type OrderRefusal } from "./judgement.ts";
import { planLadder } from "./ladder.ts";
import { serveSubscription, type TreeListener } from "./listener.ts";
import { type ChildFacts, listChildren } from "./listing.ts";
import { type MemoryWatch, runsPrograms, type Sight, watchMemory } from "./memory.ts";
import type { SupervisorPorts } from "./ports.ts";
import { largestCall, secretsFor } from "./payload.ts";

export type { TreeListener } from "./listener.ts";

/** What one run's tree needs. */
export interface TreeDeps {
  ports: SupervisorPorts;
  settings: Settings;
  telemetry: TelemetryPort;
  /** Words before the program that bind an agent's life to ours; empty: none. */
  wrapper: readonly string[];
  /** The root's payload, whole. */
  payload: AgentPayload;
  /** Paths that an earlier stretch of this run has used. */
  taken: ReadonlySet<string>;
  mintId(): string;
  listener?: TreeListener;
}

type RequestFrame = Extract<FromAgent, { type: "request" }>;

/** A root agent and everything below it. `ended` never rejects; nothing is alive then. */
export class Tree {
  readonly ended: Promise<AgentResult>;
  readonly #deps: TreeDeps;
  readonly #fleet: Fleet;
  readonly #agents = new Map<string, Agent>();
  readonly #payloads = new Map<string, AgentPayload>();
  readonly #ends = new Map<string, AgentResult>();
  readonly #settled = Promise.withResolvers<AgentResult>();
  #stopping: CancelReason | null = null;
  #timers: Cancel[] = [];
  /** Deliveries that the root has not ended. */
  readonly #deliveries = new Set<string>();
  #watch: MemoryWatch | null = null;
  /** Who was alive when the root ended by itself. */
  #cut: string[] = [];

  constructor(deps: TreeDeps) {
    this.#deps = deps;
    this.ended = this.#settled.promise;
    const { clock } = deps.ports;
    const { payload } = deps;
    const nowMs = clock.monotonicMs();
    this.#fleet = plantFleet(payload.limits, {
      id: payload.identity.agentId,
      grant: payload.tools.grant,
      deadlineMs: nowMs + payload.deadlineWallMs - clock.wallMs(),
      maxTokens: Math.min(payload.limits.maxTokens, payload.limits.treeTokensMax),
    }, nowMs);
  }

  /** Tokens of the whole tree so far. */
  get tokens(): number {
    return this.#fleet.tokens;
  }

  /** Process id of the root agent; null where it did not start. */
  get pid(): number | null {
    return this.#agents.get("0")?.pid ?? null;
  }

  start(): void {
    this.#launch(this.#fleet.nodes.get("0")!, this.#deps.payload);
    this.#watch = watchMemory(this.#deps.ports, (rows) => this.#observe(rows));
  }

  /** Winds the whole tree down, deepest first, within the drain time. */
  stop(reason: CancelReason, drainMs: number = this.#deps.settings.drainTimeoutMs): void {
    closeFleet(this.#fleet);
    if (this.#stopping !== null) return;
    this.#stopping = reason;
    const alive = [...this.#fleet.nodes.values()].filter((node) => !node.over);
    this.#descend(alive, reason, drainMs);
  }

  /** SIGKILL to every group, now. */
  kill(reason: CancelReason): void {
    closeFleet(this.#fleet);
    this.#stopping ??= reason;
    for (const agent of this.#agents.values()) agent.kill(reason);
  }

  /** Hands a delivery to the root; false where it is not taken. */
  deliver(delivery: Delivery): boolean {
    const { payload, ports } = this.#deps;
    renewFleet(this.#fleet, payload.limits, ports.clock.monotonicMs());
    if (!this.#agents.get("0")?.send({ v: 1, type: "deliver", delivery })) return false;
    this.#deliveries.add(delivery.id);
    this.#excuse("0");
    return true;
  }

  /** Changes what the root watches. */
  watch(add: readonly string[], remove: readonly string[]): void {
    this.#agents.get("0")?.send({ v: 1, type: "watch", add: [...add], remove: [...remove] });
  }

  #launch(node: Node, payload: AgentPayload): void {
    const { ports, settings, telemetry, wrapper } = this.#deps;
    const { path, depth } = node;
    const vault = secretsFor(payload, settings.vault);
    const agent = new Agent({ ...ports, wrapper, telemetry, vault, mask: settings.vault }, {
      ready: () => {
        if (path === "0") this.#deps.listener?.ready?.();
      },
      progress: (progress) => {
        if (node.over) return;
        this.#watch?.stir();
        this.#account(path, progress);
      },
      frame: (frame) => {
        if (!node.over) this.#hear(path, frame);
      },
    });
    this.#agents.set(path, agent);
    this.#payloads.set(path, payload);
    const cancelRungMs = Math.max(0, settings.drainTimeoutMs - TERM_RUNG_MS - KILL_RUNG_MS);
    agent.start(
      payload,
      processGrant(payload.worker),
      planFor(payload, node.deadlineMs, cancelRungMs),
    );
    telemetry.emit("subagent.spawn", {
      child_path: path,
      child_id: node.id,
      depth,
      child_pid: agent.pid,
      max_tokens: node.maxTokens,
      deadline_ms: Math.round(node.deadlineMs - ports.clock.monotonicMs()),
    });
    void agent.ended.then((result) => this.#over(node, result));
    this.#excuse(path);
    if (node.parent !== null) this.#excuse(node.parent);
  }

  /** Silence is legal while subagents work, while nothing was delivered, and for a watcher. */
  #excuse(path: string): void {
    this.#agents.get(path)?.excuse(this.#isWaiting(path));
  }

  #isWaiting(path: string): boolean {
    const { start } = this.#payloads.get(path)!;
    const idle = start.kind === "watch" || (start.kind === "warm" && this.#deliveries.size === 0);
    return idle || this.#fleet.nodes.get(path)!.children > 0;
  }

  #hear(
    path: string,
    frame: Extract<FromAgent, { type: "request" | "connected" | "updated" | "delivered" }>,
  ): void {
    const { listener } = this.#deps;
    if (frame.type === "request") void this.#answer(path, frame);
    // Only the root of a daemon's run talks to the daemon.
    else if (path !== "0") return;
    else if (frame.type === "connected") listener?.connected?.(frame.servers);
    else if (frame.type === "updated") listener?.updated?.(frame.server, frame.uri, frame.possibly);
    else {
      this.#deliveries.delete(frame.id);
      this.#excuse(path);
      listener?.delivered?.(frame.id, frame.result);
    }
  }

  async #answer(path: string, frame: RequestFrame): Promise<void> {
    const answer = await this.#serve(path, frame);
    this.#agents.get(path)?.send({ v: 1, type: "reply", id: frame.id, ...answer });
  }

  async #serve(path: string, frame: RequestFrame): Promise<{ ok: boolean; value: Json }> {
    switch (frame.op) {
      case "spawn":
        return this.#spawn(path, frame);
      case "child_status":
        return {
          ok: true,
          value: listChildren(this.#fleet, path, frame.arguments.ids, this.#facts),
        };
      case "child_cancel":
        return this.#cancelChild(path, frame.arguments.id);
      default:
        return await serveSubscription(
          path === "0" ? this.#deps.listener : undefined,
          frame.op,
          frame.arguments,
        );
    }
  }

  #spawn(parentPath: string, frame: RequestFrame): { ok: boolean; value: Json } {
    const { ports, settings, telemetry } = this.#deps;
    const refuse = (why: string, cap: Refusal["cap"] | OrderRefusal["cap"]) => {
      telemetry.emit("subagent.refused", { parent_path: parentPath, cap, why }, "warn");
      return { ok: false, value: { why, cap } };
    };
    const parent = this.#payloads.get(parentPath)!;
    const judged = judgeOrder(
      { path: parentPath, payload: parent },
      frame.arguments,
      settings.allowTrifecta,
      telemetry,
    );
    if (!judged.ok) return refuse(judged.failure.why, judged.failure.cap);
    const { order: wanted, grant } = judged.value;
    const nowMs = ports.clock.monotonicMs();
    const node = this.#admit(parentPath, {
      maxTokens: Math.min(wanted.maxTokens ?? Infinity, parent.limits.maxTokens),
      deadlineMs: nowMs + (wanted.deadlineMs ?? Infinity),
      grant,
      disposition: wanted.disposition,
    }, nowMs);
    if (!node.ok) return refuse(node.failure.why, node.failure.cap);
    const payload = childPayload(parent, wanted, node.value, {
      runDirectory: this.#deps.payload.identity.directory,
      deadlineWallMs: ports.clock.wallMs() + node.value.deadlineMs - nowMs,
      leftMs: node.value.deadlineMs - nowMs,
    });
    const made = ports.files.makeDirectory(payload.identity.directory);
    if (!made.ok) {
      endNode(this.#fleet, node.value.path);
      return refuse(`its directory cannot be made: ${made.failure.message}`, "parent");
    }
    this.#launch(node.value, payload);
    const { id, path, depth, maxTokens, deadlineMs } = node.value;
    return {
      ok: true,
      value: {
        child_id: id,
        path,
        depth,
        max_tokens: maxTokens,
        deadline_ms: Math.round(deadlineMs - nowMs),
      },
    };
  }

  #admit(
    parentPath: string,
    wanted: Pick<Node, "maxTokens" | "deadlineMs" | "grant" | "disposition">,
    nowMs: number,
  ): Outcome<Node, Refusal> {
    const admitted = admit(this.#fleet, parentPath, wanted, nowMs, this.#deps.taken);
    if (!admitted.ok) return admitted;
    const { grant, disposition } = wanted;
    const id = this.#deps.mintId();
    const child = { ...admitted.value, id, grant, disposition };
    return { ok: true, value: addChild(this.#fleet, parentPath, child, nowMs) };
  }

  readonly #facts = (node: Node): ChildFacts => ({
    end: this.#ends.get(node.path) ?? null,
    progress: this.#agents.get(node.path)?.progress ?? null,
  });

  #cancelChild(path: string, id: Json | undefined): { ok: boolean; value: Json } {
    const node = [...this.#fleet.nodes.values()].find((candidate) =>
      (candidate.id === id || candidate.path === id) && isBelow(candidate.path, path)
    );
    if (!node) return { ok: false, value: { why: `no subagent ${JSON.stringify(id ?? null)}` } };
    if (node.over) return { ok: true, value: `subagent ${node.path} is over already` };
    this.#descend([...aliveBelow(this.#fleet, node.path), node], "parent", this.#drainMs());
    return { ok: true, value: `subagent ${node.path} is being stopped` };
  }

  /** The ladder over some nodes: deepest first, each level at its turn. */
  #descend(nodes: Node[], reason: CancelReason, drainMs: number): void {
    const levels = planLadder(nodes.map((node) => node.depth), drainMs).map((turn) => ({
      ...turn,
      agents: nodes.filter((node) => node.depth === turn.depth)
        .map((node) => this.#agents.get(node.path)!),
    }));
    for (const node of nodes) node.winding = true;
    this.#timers.push(...descend(this.#deps.ports.clock, levels, reason));
  }

  #account(path: string, { tokens, cost = null }: { tokens: number; cost?: number | null }): void {
    const call = largestCall(this.#payloads.get(path)!.model);
    const ceiling = account(this.#fleet, path, { tokens, cost }, call);
    if (ceiling === null) return;
    const { tokens: spent, cost: usd, caps } = this.#fleet;
    this.#deps.telemetry.emit("limit.exceeded", {
      limit: ceiling,
      ...(ceiling === "tree_tokens"
        ? { tokens: spent, bound: caps.treeTokensMax }
        : { cost: usd, bound: caps.maxCost }),
    }, "error");
    this.stop(ceiling);
  }

  #over(node: Node, result: AgentResult): void {
    const { telemetry } = this.#deps;
    const { path } = node;
    const agent = this.#agents.get(path)!;
    this.#ends.set(path, result);
    const { tokens_in, tokens_out, cost } = result.usage;
    this.#account(path, { tokens: tokens_in + tokens_out, cost });
    endNode(this.#fleet, path);
    telemetry.emit("subagent.exit", {
      child_path: path,
      child_id: node.id,
      child_pid: agent.pid,
      status: result.status,
      abort: result.abort,
      tokens: node.tokens,
    });
    const above = node.parent === null ? null : this.#fleet.nodes.get(node.parent)!;
    // Who is to be stopped next is not told: it would begin another turn on it.
    if (above !== null && !above.over && !above.winding) {
      const parent = this.#agents.get(above.path)!;
      tellEnd((end) => parent.send({ v: 1, type: "child_ended", end }), node, result);
      this.#excuse(above.path);
    }
    // Nobody reads what orphans do; a detached one goes on as long as the root does.
    const orphans = aliveBelow(this.#fleet, path).filter((below) =>
      path === "0" || !isDetached(this.#fleet, below, path)
    );
    if (path === "0") {
      closeFleet(this.#fleet);
      this.#cut = orphans.map((below) => below.path);
    }
    if (orphans.length > 0) this.#descend(orphans, "parent", this.#drainMs());
    if (path !== "0") this.#forget(path, result);
    if (this.#fleet.alive === 0) this.#finish();
  }

  /** Who is over is only counted any more: a session may have thousands of subagents. */
  #forget(path: string, { usage, status, abort }: AgentResult): void {
    this.#ends.set(path, { ...failedResult("completed", ""), usage, status, abort });
    this.#agents.delete(path);
    this.#payloads.delete(path);
  }

  /** What is stopped because its parent is over has less time: its result has no reader. */
  #drainMs(): number {
    return Math.min(this.#deps.settings.drainTimeoutMs, 2 * (TERM_RUNG_MS + KILL_RUNG_MS));
  }

  #finish(): void {
    for (const cancel of this.#timers) cancel();
    const root = this.#ends.get("0")!;
    const cut = this.#cut.filter((path) => this.#ends.get(path)?.status === "cancelled");
    const result = this.#stopping !== null || cut.length === 0
      ? root
      : { ...root, reason: `${root.reason}; cancelled subagents: ${cut.join(", ")}` };
    this.#settled.resolve((this.#watch?.stop() ?? Promise.resolve()).then(() => result));
  }

  /** Shows a process table to every agent alive. */
  #observe(rows: readonly ProcessRow[]): Sight {
    const sight = { share: 0, busy: false };
    for (const [path, agent] of this.#agents) {
      if (this.#fleet.nodes.get(path)!.over) continue;
      const bytesMax = this.#payloads.get(path)!.limits.memoryBytesMax;
      sight.share = Math.max(sight.share, agent.observe(rows, bytesMax) / bytesMax);
      sight.busy ||= runsPrograms(agent.progress) && !this.#isWaiting(path);
    }
    return sight;
  }
}
