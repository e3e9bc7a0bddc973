/**
 * The thin shell around the machine: one event at a time, run to completion. Each event is appended
 * to the record, then stepped; decisions are appended; what they announce is on disk before it is
 * done; the answer of an effect is the next event.
 */

import { toHex, traceparent } from "../core/ids.ts";
import type { Outcome } from "../core/outcome.ts";
import type { BrokerPort } from "../ports/broker.ts";
import type { Cancel, ClockPort } from "../ports/clock.ts";
import type { ModelFailure, ModelPort, ModelReply } from "../ports/model.ts";
import type { RandomPort } from "../ports/random.ts";
import type { TelemetryPort } from "../ports/telemetry.ts";
import type { ToolsChange, ToolsPort } from "../ports/tools.ts";
import type { Artifacts } from "../record/artifacts.ts";
import type { RecordFailure, RecordWriter } from "../record/append.ts";
import type { CancelReason, ChildEnd, Delivery, Progress } from "../wire/control.ts";
import type { AgentPayload } from "../wire/payload.ts";
import { type AgentResult, failedResult } from "../wire/result.ts";
import { usageTotals } from "./ending.ts";
import { type EffectDeps, executeCall, runDeclared } from "./effects.ts";
import type { AgentEvent, CheckPhase, Decision, EventBody } from "./event.ts";
import { maskTime } from "./mask.ts";
import { narrateDecision, narrateEvent } from "./narrate.ts";
import { type AgentState, deadlineAt } from "./state.ts";
import type { Action, PlannedCall, PlannedRequest } from "./plan.ts";
import { ProgressFrames } from "./progress_frames.ts";
import { step } from "./step.ts";

/** What {@link Driver} drives. */
export interface DriverDeps {
  payload: AgentPayload;
  state: AgentState;
  model: ModelPort;
  tools: ToolsPort;
  broker: BrokerPort;
  record: RecordWriter;
  artifacts: Artifacts;
  effects: EffectDeps;
  clock: ClockPort;
  random: RandomPort;
  telemetry: TelemetryPort;
  mask: (text: string) => string;
  /** A stretch is over: the run's one end, or one delivery of a warm session. */
  ended: (result: AgentResult) => void;
}

/** Drives one machine: the only place where its actions become effects. */
export class Driver {
  readonly #deps: DriverDeps;
  readonly #state: AgentState;
  /** Monotonic milliseconds at which `at` was 0. */
  readonly #originMs: number;
  readonly #queue: EventBody[] = [];
  readonly #intents = new Map<string, number>();
  #stepping = false;
  #over = false;
  /** Effects under way answer only in the epoch they were begun in. */
  #epoch = new AbortController();
  #timer: { at: number; cancel: Cancel } | null = null;
  readonly #progress: ProgressFrames;
  #relisting = false;
  /** What the checks of this turn took. */
  #checksMs = 0;
  /** Tools or resources changed while they were listed. */
  #changed = false;

  constructor(deps: DriverDeps) {
    this.#deps = deps;
    this.#state = deps.state;
    this.#originMs = deps.clock.monotonicMs() - deps.state.at;
    this.#progress = new ProgressFrames(deps.clock, (doing) => this.#sendProgress(doing));
    deps.tools.onChange((change) => this.#toolsChanged(change));
  }

  /** Takes an event; it is run to completion before the next. */
  post(event: EventBody): void {
    if (this.#over) return;
    this.#queue.push(event);
    if (this.#stepping) return;
    this.#stepping = true;
    try {
      for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
        this.#take(next);
        if (this.#over) return;
      }
    } finally {
      this.#stepping = false;
    }
    this.#armDeadline();
  }

  cancel(reason: CancelReason): void {
    if (reason === "deadline") this.post({ type: "deadline.passed" });
    else this.post({ type: "cancel.requested", reason });
  }

  childEnded(end: ChildEnd): void {
    this.#deps.effects.selfTools.childEnded(end);
    this.post({ type: "child.ended", end });
  }

  /** Hands a delivery to a warm session; `reconnect` if its servers are not connected yet. */
  deliver(delivery: Delivery, reconnect: boolean): void {
    this.post({ type: "delivered", delivery, reconnect });
  }

  /** Whether a stretch is over and another may begin. */
  get stopped(): boolean {
    return this.#state.phase.tag === "stopped";
  }

  #take(body: EventBody): void {
    // The monotonic clock never goes back, and a resumed run goes on from its record's last moment.
    const at = Math.max(
      this.#state.at,
      Math.round(this.#deps.clock.monotonicMs() - this.#originMs),
    );
    // Stepped as the record shows it, secrets masked, so that a replay sees the very same event.
    const event = this.#deps.record.admit({ ...body, at } as AgentEvent);
    narrateEvent(this.#deps.telemetry, event);
    const actions = step(this.#state, event);
    if (event.type === "model.answered" || event.type === "summary.made") this.#progress.spent();
    for (const action of actions) {
      if (this.#over) return;
      this.#perform(action);
    }
    const flushed = this.#over ? null : this.#deps.record.flush();
    if (flushed !== null && !flushed.ok) this.#recordFailed(flushed.failure);
  }

  #perform(action: Action): void {
    switch (action.do) {
      case "append":
        return this.#append(action.decision);
      case "connect":
        return this.#begin("connecting", (signal) => this.#connect(signal));
      case "callModel":
        return this.#begin("model", (signal) => this.#callModel(action.request, signal));
      case "summarise":
        return this.#begin("compacting", (signal) => this.#summarise(action.request, signal));
      case "callTool":
        return this.#callTool(action.call);
      case "runChecks":
        return this.#begin("verifying", (signal) => this.#runChecks(action.phase, signal));
      case "abandon":
        this.#epoch.abort();
        this.#epoch = new AbortController();
        return;
      case "stop":
        return this.#stop(action.result);
    }
  }

  #append(decision: Decision): void {
    const { record, telemetry } = this.#deps;
    if (decision.type === "call.intended") {
      const seq = record.nextSeq;
      this.#intents.set(decision.call, seq);
      record.append(decision.type, { ...decision, key: this.#key(seq) }, this.#state.at);
    } else record.append(decision.type, decision, this.#state.at);
    narrateDecision(telemetry, decision, this.#checksMs);
    if (decision.type === "turn.judged") {
      this.#progress.tell("model");
      this.#checksMs = 0;
    }
    if (decision.type === "run.ended" && decision.artifact !== null) {
      const { result } = decision;
      this.#deps.artifacts.write(
        decision.artifact,
        this.#deps.mask(typeof result === "string" ? result : JSON.stringify(result)),
      );
    }
  }

  /** Run id, the agent's path below the root, and the number of the intent's line. */
  #key(seq: number): string {
    const { runId, path, depth } = this.#deps.payload.identity;
    return depth === 0 ? `${runId}:${seq}` : `${runId}/${path}:${seq}`;
  }

  /** Starts an effect: what announces it is on disk first. */
  #begin(doing: Progress["doing"], run: (signal: AbortSignal) => Promise<EventBody | null>): void {
    const flushed = this.#deps.record.flush();
    if (!flushed.ok) return this.#recordFailed(flushed.failure);
    this.#progress.tell(doing);
    this.#answer(run);
  }

  #callTool(call: PlannedCall): void {
    const { record } = this.#deps;
    const written = call.effect === "side_effect" ? record.sync() : record.flush();
    if (!written.ok) return this.#recordFailed(written.failure);
    this.#progress.tell("tools");
    const key = this.#key(this.#intents.get(call.call) ?? 0);
    this.#intents.delete(call.call);
    this.#answer(async (signal) => {
      const { observation, digest, bytes, ms, child } = await executeCall(
        this.#deps.effects,
        call,
        key,
        signal,
      );
      return { type: "call.observed", call: call.call, observation, digest, bytes, ms, child };
    });
  }

  #answer(run: (signal: AbortSignal) => Promise<EventBody | null>): void {
    const { signal } = this.#epoch;
    run(signal).then((event) => {
      if (event !== null && !signal.aborted) this.post(event);
    }).catch((error: unknown) => {
      // Ports never throw for the world: this is a bug of ours, and it ends the run by its name.
      this.#crash(error instanceof Error ? `${error.name}: ${error.message}` : String(error));
    });
  }

  async #connect(signal: AbortSignal): Promise<EventBody> {
    const connected = await this.#deps.tools.connect(signal);
    return connected.ok ? { type: "tools.listed", ...connected.value } : {
      type: "server.down",
      failure: { ...connected.failure, stderr: this.#deps.mask(connected.failure.stderr) },
    };
  }

  async #complete(
    request: PlannedRequest,
    signal: AbortSignal,
  ): Promise<{ reply: Outcome<ModelReply, ModelFailure>; ms: number }> {
    const { clock, model, random } = this.#deps;
    const startedMs = clock.monotonicMs();
    const reply = await model.complete({
      purpose: request.purpose,
      system: request.system,
      messages: request.messages,
      tools: request.tools,
      toolChoice: request.toolChoice,
      outputSchema: request.outputSchema,
      traceparent: traceparent(this.#deps.payload.identity.traceId, toHex(random.bytes(8))),
    }, signal);
    return { reply, ms: Math.round(clock.monotonicMs() - startedMs) };
  }

  async #callModel(request: PlannedRequest, signal: AbortSignal): Promise<EventBody> {
    const { reply, ms } = await this.#complete(request, signal);
    if (!reply.ok) return { type: "model.failed", failure: this.#masked(reply.failure), ms };
    const { value } = reply;
    const text = this.#deps.mask(value.text);
    return {
      type: "model.answered",
      text,
      calls: value.calls.map((call) => ({ ...call, arguments: this.#deps.mask(call.arguments) })),
      finish: value.finish,
      refusal: value.refusal,
      opaque: value.opaque,
      usage: value.usage,
      model: value.model,
      endpoint: value.endpoint,
      attempts: value.attempts,
      ms,
      digest: await this.#deps.effects.digest.sha256(maskTime(text)),
    };
  }

  async #summarise(request: PlannedRequest, signal: AbortSignal): Promise<EventBody> {
    const { effects, record } = this.#deps;
    const blocked = await effects.hooks.beforeCompaction(record.path);
    if (blocked !== null) {
      // Nothing is sent to be summarised; the ledger and the last results alone must do.
      const message = `the summary is blocked by a hook: ${this.#deps.mask(blocked)}`;
      const failure = { class: "cancelled", retryable: false, endpoint: "", attempts: 0 } as const;
      return { type: "summary.failed", failure: { ...failure, message }, ms: 0 };
    }
    const { reply, ms } = await this.#complete(request, signal);
    return reply.ok
      ? {
        type: "summary.made",
        text: this.#deps.mask(reply.value.text),
        usage: reply.value.usage,
        ms,
      }
      : { type: "summary.failed", failure: this.#masked(reply.failure), ms };
  }

  #masked(failure: ModelFailure): ModelFailure {
    return { ...failure, message: this.#deps.mask(failure.message) };
  }

  async #runChecks(phase: CheckPhase, signal: AbortSignal): Promise<EventBody> {
    const startedMs = this.#deps.clock.monotonicMs();
    const claimed = this.#state.turn?.claim?.value ?? null;
    const outcomes = await runDeclared(this.#deps.effects, phase, signal, claimed);
    if (phase !== "before") {
      this.#checksMs = Math.round(this.#deps.clock.monotonicMs() - startedMs);
    }
    return { type: "checks.ran", phase, outcomes };
  }

  #toolsChanged(change: ToolsChange): void {
    if (change.kind === "server_down") {
      this.post({ type: "server.down", failure: change.failure });
      return;
    }
    if (change.kind === "resource_updated" || change.kind === "heard" || this.#over) return;
    // Several changes in a row cost one listing.
    if (this.#relisting) {
      this.#changed = true;
      return;
    }
    if (this.#state.phase.tag === "starting" || this.#state.phase.tag === "new") return;
    void this.#relist();
  }

  /** Lists anew until nothing has changed meanwhile; what is the same as before is no event. */
  async #relist(): Promise<void> {
    this.#relisting = true;
    do {
      this.#changed = false;
      const { tools, resources } = await this.#deps.tools.list(this.#epoch.signal);
      if (this.#over) return;
      const known = JSON.stringify([this.#state.listed, this.#state.resources]);
      if (JSON.stringify([tools, resources]) !== known) {
        this.post({ type: "tools.listed", tools, resources });
      }
    } while (this.#changed && !this.#over);
    this.#relisting = false;
  }

  #stop(result: AgentResult): void {
    const synced = this.#deps.record.sync();
    if (!synced.ok) return this.#recordFailed(synced.failure);
    this.#timer?.cancel();
    this.#timer = null;
    this.#progress.stop();
    if (!this.#deps.payload.start.kind.startsWith("warm")) this.#over = true;
    if (this.#over) this.#deps.record.close();
    void this.#tellHooks(result);
  }

  /** The disk is full or gone: the run cannot be recorded any more, so it ends. */
  #recordFailed(failure: RecordFailure): void {
    this.#crash(failure.message);
  }

  #crash(reason: string): void {
    if (this.#over) return;
    this.#over = true;
    this.#epoch.abort();
    this.#timer?.cancel();
    this.#progress.stop();
    const result: AgentResult = {
      ...failedResult("crashed", this.#deps.mask(reason)),
      usage: usageTotals(this.#state),
    };
    this.#deps.record.append("run.ended", result, this.#state.at);
    this.#deps.record.sync();
    this.#deps.record.close();
    this.#deps.telemetry.emit("loop.final", { status: "crashed", reason: result.reason }, "error");
    void this.#tellHooks(result);
  }

  /** A final is accepted only after `on_stop` hooks were asked; of every other end they are told. */
  async #tellHooks(result: AgentResult): Promise<void> {
    try {
      if (result.status !== "completed") await this.#deps.effects.hooks.onStop(result);
    } finally {
      this.#deps.ended(result);
    }
  }

  #sendProgress(doing: Progress["doing"]): void {
    const { counters } = this.#state;
    this.#deps.broker.progress({
      step: counters.steps,
      tokens: counters.tokensIn + counters.tokensOut,
      cost: counters.cost,
      doing,
    });
  }

  /** One timer, armed from the state. */
  #armDeadline(): void {
    if (this.#state.phase.tag === "stopped" || this.#state.phase.tag === "new") return;
    const at = deadlineAt(this.#state);
    if (this.#timer?.at === at) return;
    this.#timer?.cancel();
    const nowAt = this.#deps.clock.monotonicMs() - this.#originMs;
    const cancel = this.#deps.clock.after(Math.max(0, at - nowAt), () => {
      this.#timer = null;
      if (deadlineAt(this.#state) > this.#deps.clock.monotonicMs() - this.#originMs) {
        this.#armDeadline();
      } else this.post({ type: "deadline.passed" });
    });
    this.#timer = { at, cancel };
  }
}
