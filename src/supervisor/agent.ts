/** One supervised agent: the machine of table.ts with a process, a timer and a record behind it. */

import {
  AGENT_START_TIMEOUT_MS,
  DEADLINE_GRACE_MS,
  FROZEN_TABLE_WAIT_MS,
  FROZEN_TABLES_MAX,
  HOOK_TIMEOUT_MS,
  PROCESS_TABLE_WAIT_MS,
  PROGRESS_EXTENSIONS_MAX,
  RETRY_AFTER_MS_MAX,
  TRANSPORT_BACKOFF,
} from "../core/limits.ts";
import type { Vault } from "../core/secret.ts";
import { isAlive, treeOfGroup } from "../core/process_tree.ts";
import { type Cancel, type ClockPort, withinTurns } from "../ports/clock.ts";
import type { FilesPort } from "../ports/files.ts";
import type { ProcessRow } from "../ports/process.ts";
import type { TelemetryPort } from "../ports/telemetry.ts";
import { appendTerminal } from "../record/terminal.ts";
import type { CancelReason, FromAgent, Progress, ToAgent } from "../wire/control.ts";
import type { AgentPayload, PermissionSet } from "../wire/payload.ts";
import { agentMark } from "../wire/environment.ts";
import type { AgentResult } from "../wire/result.ts";
import { describeWhy, resultOf } from "./ending.ts";
import { type AgentProcess, spawnAgent, type SpawnPorts } from "./spawn.ts";
import { Strays } from "./strays.ts";
import type { ChildAction, ChildEvent, ChildPlan, ChildState, Why } from "./state.ts";
import { nextMs, stepChild } from "./table.ts";

/** What supervising one agent needs. */
export interface AgentDeps extends SpawnPorts {
  clock: ClockPort;
  files: FilesPort;
  telemetry: TelemetryPort;
  /** What this agent is told of secrets. */
  vault: Vault;
  /** What its record must not hold. */
  mask: Vault;
}

/** What a tree wants to know of an agent. */
export interface AgentEvents {
  ready(): void;
  progress(progress: Progress): void;
  /** Everything else it says: requests, updates, deliveries. */
  frame(
    frame: Extract<FromAgent, { type: "request" | "connected" | "updated" | "delivered" }>,
  ): void;
}

/** An agent from spawn to reaping. Its end comes once, through `ended`, which never rejects. */
export class Agent {
  readonly ended: Promise<AgentResult>;
  progress: Progress | null = null;
  readonly #deps: AgentDeps;
  readonly #events: AgentEvents;
  readonly #strays: Strays;
  readonly #settled = Promise.withResolvers<AgentResult>();
  #state: ChildState = { tag: "down" };
  #process: AgentProcess | null = null;
  #payload: AgentPayload | null = null;
  #timer: Cancel = () => {};
  #mailbox: WithoutTime<ChildEvent>[] = [];
  #stepping = false;
  #settling = false;

  constructor(deps: AgentDeps, events: AgentEvents) {
    this.#deps = deps;
    this.#events = events;
    this.#strays = new Strays(deps.process, deps.telemetry);
    this.ended = this.#settled.promise;
  }

  get state(): ChildState {
    return this.#state;
  }

  get pid(): number | null {
    return this.#process?.pid ?? null;
  }

  /** Starts the process; its payload is the first frame on its stdin. */
  start(payload: AgentPayload, grant: PermissionSet, plan: ChildPlan): void {
    this.#payload = payload;
    const spawned = spawnAgent(this.#deps, grant, payload.identity.agentId, {
      frame: (frame) => this.#hear(frame),
      broken: (message) => this.#step({ type: "frameBroken", message }),
      outputEnded: () => this.#step({ type: "outputEnded" }),
      exited: (exit) => this.#step({ type: "exited", exit }),
    });
    if (!spawned.ok) {
      this.#step({
        type: "spawnFailed",
        message: `Cannot start an agent: ${spawned.failure.message}`,
      });
      return;
    }
    this.#process = spawned.value;
    this.#step({ type: "spawned", plan });
  }

  /** Winds it down: cancel frame, then the ladder. `rungMs` shortens the first rung. */
  stop(reason: CancelReason, rungMs: number | null = null): void {
    this.#step({ type: "stopRequested", reason, rungMs });
  }

  /** SIGKILL, now. */
  kill(reason: CancelReason): void {
    this.#step({ type: "killRequested", reason });
  }

  /** Says whether its silence is legal: subagents at work, nothing delivered, nothing to watch. */
  excuse(yes: boolean): void {
    this.#step({ type: "excused", yes });
  }

  send(frame: ToAgent): boolean {
    return this.#process?.send(frame) ?? false;
  }

  /** What the process table shows of it; over its bound, it is killed. */
  observe(rows: readonly ProcessRow[], bytesMax: number): number {
    if (this.pid === null || this.#state.tag === "reaped") return 0;
    this.#strays.see(rows, this.pid);
    let bytes = 0;
    for (const row of treeOfGroup(rows, this.pid)) bytes += row.residentBytes;
    if (bytes > bytesMax) this.#step({ type: "memoryExceeded", bytes, bytesMax });
    return bytes;
  }

  #hear(frame: FromAgent): void {
    switch (frame.type) {
      case "ready":
        this.#step({ type: "readied" });
        if (this.#state.tag === "up") this.#events.ready();
        break;
      case "pong":
        this.#step({ type: "ponged", n: frame.n });
        break;
      case "progress":
        this.progress = frame.progress;
        this.#step({ type: "progressed", progress: frame.progress });
        this.#events.progress(frame.progress);
        break;
      case "result":
        this.#step({ type: "resulted", result: frame.result });
        break;
      default:
        this.#step({ type: "heard" });
        this.#events.frame(frame);
    }
  }

  /** One event at a time, run to completion: what an action brings about waits its turn. */
  #step(event: WithoutTime<ChildEvent>): void {
    this.#mailbox.push(event);
    if (this.#stepping) return;
    this.#stepping = true;
    for (let next = this.#mailbox.shift(); next; next = this.#mailbox.shift()) {
      const at = this.#deps.clock.monotonicMs();
      const [state, actions] = stepChild(this.#state, { ...next, at } as ChildEvent);
      this.#state = state;
      for (const action of actions) this.#act(action);
    }
    this.#stepping = false;
    this.#timer();
    const dueMs = this.#settling ? null : nextMs(this.#state);
    this.#timer = dueMs === null ? () => {} : this.#deps.clock.after(
      dueMs - this.#deps.clock.monotonicMs(),
      () => this.#step({ type: "timePassed" }),
    );
  }

  #act(action: ChildAction): void {
    const { telemetry, vault } = this.#deps;
    switch (action.type) {
      case "sendStart": {
        const frame = {
          v: 1,
          type: "start",
          payload: this.#payload!,
          secrets: vault.revealAll(),
        } as const;
        if (!this.send(frame)) {
          this.#step({ type: "frameBroken", message: "the payload is over the size of a frame" });
        }
        break;
      }
      case "sendPing":
        this.send({ v: 1, type: "ping", n: action.n });
        break;
      case "sendCancel":
        this.send({ v: 1, type: "cancel", reason: action.reason });
        break;
      case "signalGroup":
        void this.#signal(action.signal, action.why);
        break;
      case "reportStuck":
        telemetry.emit("subagent.stuck", { ...this.#who(), why: describeWhy(action.why) }, "error");
        break;
      case "reportLimit":
        telemetry.emit("limit.exceeded", {
          ...this.#who(),
          limit: action.why.kind,
          why: describeWhy(action.why),
        }, "error");
        break;
      case "settle":
        void this.#settle();
        break;
    }
  }

  async #signal(signal: "SIGTERM" | "SIGKILL", why: Why | null): Promise<void> {
    const pid = this.pid!;
    // What is below the group but not in it is only found while its parents live.
    await (signal === "SIGKILL" ? this.#lookFrozen(pid) : this.#look(PROCESS_TABLE_WAIT_MS));
    const answer = this.#deps.process.signalGroup(pid, signal);
    this.#step({ type: "signalled", signal });
    this.#deps.telemetry.emit("subagent.signal", {
      ...this.#who(),
      signal,
      answer,
      why: why ? describeWhy(why) : "it did not exit",
    }, "warn");
    if (signal === "SIGKILL") this.#strays.kill();
  }

  async #settle(): Promise<void> {
    if (this.#settling) return;
    this.#settling = true;
    this.#timer();
    this.#process?.closeInput();
    const clean = this.#state.tag === "reaped" && this.#state.exit.code === 0;
    if (this.pid !== null) {
      // A clean exit swept its own group; any other may have left whatever it had started.
      if (!clean) await this.#lookFrozen(this.pid);
      this.#deps.process.signalGroup(this.pid, "SIGKILL");
      this.#strays.kill();
    }
    const result = resultOf(this.#state, this.progress);
    this.#settled.resolve(this.#recordEnd(result));
  }

  /** Sees to the record's last line; the result as it stands there. */
  #recordEnd(result: AgentResult): AgentResult {
    const { files, clock, telemetry } = this.#deps;
    const own = this.#state.tag === "reaped" && this.#state.result && this.#state.exit.code === 0;
    if (own || !this.#payload) return result;
    const { directory } = this.#payload.identity;
    const mask = (text: string) => this.#deps.mask.mask(text);
    const written = appendTerminal({ files, clock, directory, mask }, result);
    if (!written.ok) {
      telemetry.emit("loop.error", {
        err: { type: "record", message: written.failure.message },
      }, "error");
    }
    return written.ok && written.value === "begun" ? { ...result, resumable: false } : result;
  }

  #who(): { child_path: string; child_pid: number | null } {
    return { child_path: this.#payload?.identity.path ?? "0", child_pid: this.pid };
  }

  /** Who is to be killed starts nobody else while it is read who has left the group. */
  async #lookFrozen(pid: number): Promise<void> {
    this.#deps.process.signalGroup(pid, "SIGSTOP");
    // Who has left starts others as well, until he is stopped too.
    for (let look = 0; look < FROZEN_TABLES_MAX; look++) {
      if (!await this.#look(FROZEN_TABLE_WAIT_MS) || !this.#strays.freeze()) return;
    }
  }

  /** Whether the process table came in time. */
  async #look(waitMs: number): Promise<boolean> {
    const { process, clock } = this.#deps;
    const mark = agentMark(this.#payload!.identity.agentId);
    let rows: ProcessRow[] = [];
    const inTime = await withinTurns(
      clock,
      waitMs,
      process.table(mark).then((table) => rows = table),
    );
    this.#strays.see(rows.filter(isAlive), this.pid!);
    return inTime;
  }
}

type WithoutTime<Event> = Event extends { at: number } ? Omit<Event, "at"> : never;

/** The plan of an agent. Detector B waits longer than any legal call takes, retries included. */
export function planFor(
  payload: AgentPayload,
  deadlineMs: number,
  cancelRungMs: number,
): ChildPlan {
  const { limits, model, tools, task } = payload;
  const attempts = 1 + TRANSPORT_BACKOFF.attemptsMax;
  const toolTimesMax = 1 + PROGRESS_EXTENSIONS_MAX;
  const legalMs = [
    limits.progressTimeoutMs,
    attempts * model.requestTimeoutMs + TRANSPORT_BACKOFF.attemptsMax * RETRY_AFTER_MS_MAX,
    toolTimesMax * Math.max(tools.timeoutMs, ...tools.rules.map((rule) => rule.timeoutMs ?? 0)),
    ...task.checks.map((check) => check.timeoutMs),
    ...payload.servers.map((server) => server.startTimeoutMs),
  ];
  return {
    startTimeoutMs: AGENT_START_TIMEOUT_MS,
    // Hooks that are told of the end, the deadline's too, have their time.
    deadlineMs: deadlineMs + DEADLINE_GRACE_MS + payload.hooks.on_stop.length * HOOK_TIMEOUT_MS,
    progressTimeoutMs: Math.max(...legalMs) + DEADLINE_GRACE_MS,
    cancelRungMs,
  };
}
