/** An agent's life in its Worker: one run, a warm session of many deliveries, or a watch. */

import type { BrokerPort } from "../ports/broker.ts";
import type { CancelReason, ChildEnd, Delivery } from "../wire/control.ts";
import type { Start } from "../wire/payload.ts";
import { type AgentResult, failedResult } from "../wire/result.ts";
import type { FromWorker } from "../wire/worker.ts";
import { deliveryText } from "./opening.ts";
import type { Driver } from "./driver.ts";
import { beginLoop, foldSession, type LoopPorts } from "./loop.ts";
import { startWatch, type Watch, watchResult } from "../trigger/watch.ts";

/** What a session is made from. */
export interface SessionDeps extends Omit<LoopPorts, "ended"> {
  broker: BrokerPort;
  post: (message: FromWorker) => void;
}

/** What may wait for a warm session that is busy. */
const DELIVERIES_MAX = 256;

/** One agent's life, from its start to its result. */
export class Session {
  readonly #deps: SessionDeps;
  #driver: Driver | undefined;
  #watch: Watch | undefined;
  readonly #deliveries: Delivery[] = [];
  #current: Delivery | null = null;
  readonly #watching = new AbortController();
  #winding: CancelReason | null = null;

  constructor(deps: SessionDeps) {
    this.#deps = deps;
    const { start } = deps.payload;
    if (start.kind === "watch") this.#watch = this.#startWatch(start);
    else if (start.kind !== "warm") {
      this.#driver = beginLoop({
        ...deps,
        ended: (result) => this.#finish(result),
      });
    }
  }

  cancel(reason: CancelReason): void {
    this.#winding = reason;
    if (this.#watch !== undefined) return this.#watching.abort();
    if (this.#driver !== undefined && !this.#driver.stopped) this.#driver.cancel(reason);
    else if (this.#deps.payload.start.kind === "warm") this.#leave();
  }

  childEnded(end: ChildEnd): void {
    this.#driver?.childEnded(end);
  }

  watch(add: readonly string[], remove: readonly string[]): void {
    this.#watch?.change(add, remove);
  }

  /** Warm sessions take deliveries one after the other. */
  deliver(delivery: Delivery): void {
    if (this.#deliveries.length < DELIVERIES_MAX) this.#deliveries.push(delivery);
    this.#next();
  }

  #next(): void {
    if (this.#current !== null || this.#winding !== null) return;
    const delivery = this.#deliveries.shift();
    if (delivery === undefined) return;
    this.#current = delivery;
    if (this.#driver !== undefined) return this.#driver.deliver(delivery, false);
    const ended = (result: AgentResult) => this.#delivered(result);
    const { start, task } = this.#deps.payload;
    if (start.kind === "warm" && start.resume) {
      this.#driver = foldSession({ ...this.#deps, ended }, delivery);
      return;
    }
    const payload = {
      ...this.#deps.payload,
      task: { ...task, instruction: deliveryText(delivery.instruction, delivery.uris) },
    };
    this.#driver = beginLoop({ ...this.#deps, payload, ended });
  }

  #delivered(result: AgentResult): void {
    const delivery = this.#current;
    this.#current = null;
    if (delivery !== null) {
      this.#deps.post({
        type: "forward",
        frame: { v: 1, type: "delivered", id: delivery.id, result },
      });
    }
    if (this.#winding !== null || result.status === "crashed") return this.#finish(result);
    this.#next();
  }

  /** A warm session that is idle is told to go. */
  #leave(): void {
    this.#finish(failedResult("cancelled", "drain: the session was idle"));
  }

  #finish(result: AgentResult): void {
    void this.#deps.tools.close();
    this.#deps.post({ type: "result", result });
  }

  #startWatch(start: Extract<Start, { kind: "watch" }>): Watch {
    const watch = startWatch({
      start,
      tools: this.#deps.tools,
      clock: this.#deps.clock,
      tell: (frame) => this.#deps.post({ type: "forward", frame }),
      signal: this.#watching.signal,
    });
    watch.ended.then((failure) => this.#finish(watchResult(failure)));
    return watch;
  }
}
