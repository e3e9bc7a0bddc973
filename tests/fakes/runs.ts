/** Runs without processes, for daemons under test; held to the contract of ports/runs.ts. */

import type {
  Attachment,
  RunEnd,
  RunHandle,
  RunRequest,
  RunsPort,
  SessionListener,
  WatcherHandle,
  WatcherListener,
} from "../../src/ports/runs.ts";
import type { CancelReason, Delivery } from "../../src/wire/control.ts";
import { type AgentResult, failedResult, NO_USAGE } from "../../src/wire/result.ts";

/** A completed result, with what differs. */
export function completed(over: Partial<AgentResult> = {}): AgentResult {
  return {
    ...failedResult("completed", "done"),
    resumable: false,
    usage: { ...NO_USAGE, steps: 1, model_calls: 1, tokens_in: 10, tokens_out: 2 },
    evidence: 1,
    ...over,
  };
}

/** A run or session in progress, as the test sees it. */
export interface FakeRun {
  request: RunRequest;
  /** Deliveries that were not answered yet. */
  deliveries: { delivery: Delivery; attachments: readonly Attachment[] }[];
  cancels: CancelReason[];
  killed: boolean;
  over: boolean;
  /** Tokens so far. */
  tokens: number;
  end(result: AgentResult): void;
  /** Answers the oldest delivery. */
  answer(result: AgentResult): void;
  listener: SessionListener | undefined;
}

export interface FakeWatcher {
  subscribe: readonly string[];
  possibly: boolean;
  listener: WatcherListener;
  changes: { add: readonly string[]; remove: readonly string[] }[];
  over: boolean;
  die(end: { message: string; abort: "mcp" | null }): void;
}

/** The fake: `onStart` and `onDeliver` decide at once, or the test does later. */
export class FakeRuns implements RunsPort {
  readonly runs: FakeRun[] = [];
  readonly watchers: FakeWatcher[] = [];
  onStart: (run: FakeRun) => void = () => {};
  onDeliver: (run: FakeRun) => void = () => {};
  onWatch: (watcher: FakeWatcher) => void = () => {};

  /** Those that are not over. */
  get alive(): FakeRun[] {
    return this.runs.filter((run) => !run.over);
  }

  start(request: RunRequest, listener?: SessionListener): RunHandle {
    const { promise, resolve } = Promise.withResolvers<RunEnd>();
    const run: FakeRun = {
      request,
      listener,
      deliveries: [],
      cancels: [],
      killed: false,
      over: false,
      tokens: 0,
      end: (result) => {
        if (run.over) return;
        run.over = true;
        resolve({ runId: request.runId, result });
      },
      answer: (result) => {
        const next = run.deliveries.shift();
        if (next !== undefined) listener?.delivered(next.delivery.id, result);
      },
    };
    this.runs.push(run);
    queueMicrotask(() => this.onStart(run));
    return {
      runId: request.runId,
      ended: promise,
      tokens: () => run.tokens,
      cancel: (reason) => {
        run.cancels.push(reason);
        queueMicrotask(() => run.end(failedResult("cancelled", `${reason}: stopped`)));
      },
      kill: () => {
        run.killed = true;
        queueMicrotask(() => run.end(failedResult("crashed", "killed")));
      },
      deliver: (delivery, attachments) => {
        run.deliveries.push({ delivery, attachments });
        queueMicrotask(() => this.onDeliver(run));
      },
    };
  }

  watch(
    subscribe: readonly string[],
    possibly: boolean,
    listener: WatcherListener,
  ): WatcherHandle {
    const { promise, resolve } = Promise.withResolvers<
      { message: string; abort: "mcp" | null } | null
    >();
    const watcher: FakeWatcher = {
      subscribe,
      possibly,
      listener,
      changes: [],
      over: false,
      die: (end) => {
        watcher.over = true;
        resolve(end);
      },
    };
    const stop = () => {
      watcher.over = true;
      resolve(null);
    };
    this.watchers.push(watcher);
    queueMicrotask(() => this.onWatch(watcher));
    return {
      ended: promise,
      watch: (add, remove) => watcher.changes.push({ add, remove }),
      stop,
      kill: stop,
    };
  }
}
