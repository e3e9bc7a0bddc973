/** The model as the loop sees it: one port over all configured endpoints. */

import { toHex } from "../core/ids.ts";
import { failed, type Outcome, success } from "../core/outcome.ts";
import type { Vault } from "../core/secret.ts";
import type { ClockPort } from "../ports/clock.ts";
import type { HttpPort } from "../ports/http.ts";
import type {
  Message,
  ModelFailure,
  ModelPort,
  ModelReply,
  ModelRequest,
  ToolCall,
} from "../ports/model.ts";
import type { RandomPort } from "../ports/random.ts";
import type { TelemetryPort } from "../ports/telemetry.ts";
import type { ModelSettings } from "../wire/payload.ts";
import { HttpEndpoint } from "./endpoint.ts";
import { goesToNext, HealthMemory, joinFailures, type Member } from "./failover.ts";
import { RecordedEndpoint } from "./recorded.ts";
import { printRequest, RECORDING_HEADER, writeEntry } from "./recording.ts";

/** What {@link createModel} is made from. */
export interface ModelDeps {
  settings: ModelSettings;
  vault: Vault;
  http: HttpPort;
  clock: ClockPort;
  random: RandomPort;
  telemetry: TelemetryPort;
  /** Takes each line of a recording of what is answered, without its line feed. */
  record?: (line: string) => void;
}

/**
 * The model behind `settings.endpoints`, tried in order. Retries, failover and every bound of a
 * reply are below this port. An endpoint with `probe` is asked once whether it is there, and never
 * again if it is not.
 */
export function createModel(deps: ModelDeps): ModelPort {
  const members = deps.settings.endpoints.map((endpoint): Member =>
    endpoint.kind === "recorded"
      ? new RecordedEndpoint(endpoint.recording ?? "")
      : new HttpEndpoint(deps, endpoint)
  );
  return new FailoverModel(deps, members);
}

class FailoverModel implements ModelPort {
  readonly #deps: ModelDeps;
  readonly #members: Member[];
  readonly #health: HealthMemory;
  readonly #absent = new Set<Member>();
  readonly #present = new Set<Member>();
  readonly #ids: CallIds;
  #hasRecorded = false;

  constructor(deps: ModelDeps, members: Member[]) {
    this.#deps = deps;
    this.#members = members;
    this.#health = new HealthMemory(members.length);
    this.#ids = new CallIds(deps.random);
  }

  async complete(
    request: ModelRequest,
    signal: AbortSignal,
  ): Promise<Outcome<ModelReply, ModelFailure>> {
    const startedMs = this.#deps.clock.monotonicMs();
    const outcome = await this.#ask(request, signal);
    const durMs = Math.round(this.#deps.clock.monotonicMs() - startedMs);
    if (!outcome.ok) {
      this.#tellFailure(outcome.failure, durMs);
      return outcome;
    }
    const reply = {
      ...outcome.value,
      calls: this.#ids.makeUnique(outcome.value.calls, request.messages),
    };
    this.#record(request, reply);
    this.#tellReply(reply, durMs);
    return success(reply);
  }

  async #ask(
    request: ModelRequest,
    signal: AbortSignal,
  ): Promise<Outcome<ModelReply, ModelFailure>> {
    const { clock } = this.#deps;
    const failures: ModelFailure[] = [];
    const order = this.#health.order(clock.monotonicMs());
    for (let i = 0; i < order.length; i++) {
      const place = order[i]!;
      const member = this.#members[place]!;
      if (!await this.#isThere(member, signal)) continue;
      const outcome = await member.complete(request, signal, i < order.length - 1);
      if (outcome.ok) {
        this.#health.succeeded(place);
        const attempts = failures.reduce((sum, failure) => sum + failure.attempts, 0);
        return success({ ...outcome.value, attempts: outcome.value.attempts + attempts });
      }
      failures.push(outcome.failure);
      if (!goesToNext(outcome.failure.class)) return failed(outcome.failure);
      this.#health.failed(place, outcome.failure.class, clock.monotonicMs());
      const next = this.#members[order[i + 1] ?? -1];
      if (next !== undefined) this.#tellNext(member, outcome.failure.class, next);
    }
    return failed(failures.length === 0 ? this.#noneThere(signal) : joinFailures(failures));
  }

  async #isThere(member: Member, signal: AbortSignal): Promise<boolean> {
    if (!member.mustProbe || this.#present.has(member)) return true;
    if (this.#absent.has(member)) return false;
    if (await member.probe(signal)) {
      this.#present.add(member);
      return true;
    }
    if (signal.aborted) return false;
    this.#absent.add(member);
    const next = this.#members[this.#members.indexOf(member) + 1];
    if (next !== undefined) this.#tellNext(member, "no_answer", next);
    return false;
  }

  #noneThere(signal: AbortSignal): ModelFailure {
    const labels = this.#members.map((member) => member.label);
    return {
      class: signal.aborted ? "cancelled" : "unreachable",
      message: labels.length === 0
        ? "Cannot reach a model: no endpoint is configured"
        : `Cannot reach a model: nothing answers at ${labels.join(", ")}`,
      retryable: labels.length > 0,
      endpoint: labels[0] ?? "",
      attempts: 0,
    };
  }

  #record(request: ModelRequest, reply: ModelReply): void {
    const { record, vault } = this.#deps;
    if (record === undefined) return;
    if (!this.#hasRecorded) record(RECORDING_HEADER);
    this.#hasRecorded = true;
    record(vault.mask(writeEntry(printRequest(request), reply)));
  }

  #tellNext(member: Member, reason: string, next: Member): void {
    this.#deps.telemetry.emit("intel.retry", {
      endpoint: member.label,
      reason,
      wait_ms: 0,
      next: next.label,
    });
  }

  #tellReply(reply: ModelReply, durMs: number): void {
    this.#deps.telemetry.emit("intel.result", {
      endpoint: reply.endpoint,
      model: reply.model,
      dur_ms: durMs,
      finish: reply.finish,
      calls: reply.calls.length,
      tokens_in: reply.usage.tokensIn,
      tokens_out: reply.usage.tokensOut,
      tokens_cached: reply.usage.tokensCached,
      tokens_estimated: reply.usage.estimated,
      attempts: reply.attempts,
    });
  }

  /** Without the endpoint's own words, which may quote the conversation. */
  #tellFailure(failure: ModelFailure, durMs: number): void {
    this.#deps.telemetry.emit("intel.result", {
      endpoint: failure.endpoint,
      dur_ms: durMs,
      attempts: failure.attempts,
      retryable: failure.retryable,
      err: { type: failure.class, message: `no reply: ${failure.class}` },
    });
  }
}

/** Ids that are remembered before those of the conversation are read anew. */
const IDS_MAX = 10_000;

/**
 * Gives every call an id of its own in the whole conversation: some models leave ids out or give the
 * same one again, and every wire wants each id answered exactly once.
 */
export class CallIds {
  readonly #random: RandomPort;
  #taken = new Set<string>();
  /** Replies whose ids are taken already: a conversation grows at its end. */
  #read = new WeakSet<Message>();

  constructor(random: RandomPort) {
    this.#random = random;
  }

  /** The calls of a new reply to these messages; the same array if nothing had to change. */
  makeUnique(calls: readonly ToolCall[], messages: readonly Message[]): readonly ToolCall[] {
    if (calls.length === 0) return calls;
    this.#readIds(messages);
    let changed = false;
    const out = calls.map((call) => {
      if (call.id !== "" && !this.#taken.has(call.id)) {
        this.#taken.add(call.id);
        return call;
      }
      changed = true;
      const id = `call_${toHex(this.#random.bytes(8))}`;
      this.#taken.add(id);
      return { ...call, id };
    });
    return changed ? out : calls;
  }

  #readIds(messages: readonly Message[]): void {
    if (this.#taken.size > IDS_MAX) {
      this.#taken = new Set();
      this.#read = new WeakSet();
    }
    for (let i = messages.length - 1; i >= 0; i--) {
      const message = messages[i]!;
      if (message.role !== "assistant") continue;
      if (this.#read.has(message)) return;
      this.#read.add(message);
      for (const call of message.calls) this.#taken.add(call.id);
    }
  }
}
