/** An agent's subagents as it sees them: spawned by the supervisor, awaited here. */

import { isObject, type Json, type JsonObject } from "../core/json.ts";
import { INLINE_RESULT_BYTES_MAX } from "../core/limits.ts";
import { success } from "../core/outcome.ts";
import { byteLength, clip } from "../core/text.ts";
import type { Artifacts } from "../record/artifacts.ts";
import type { BrokerPort } from "../ports/broker.ts";
import type { ClockPort } from "../ports/clock.ts";
import type { ChildEnd } from "../wire/control.ts";
import { fitLines } from "./paging.ts";
import { domainError, refuse, type SelfToolAnswer, text, wordsOf } from "./answer.ts";

/** What {@link Children} needs. */
export interface ChildrenDeps {
  broker: BrokerPort;
  artifacts: Artifacts;
  clock: ClockPort;
}

interface Child {
  id: string;
  path: string;
  detached: boolean;
  end: ChildEnd | null;
  /** Its parent has read how it ended: it is not told again unless it is named. */
  told: boolean;
}

/** Spawns, awaits and cancels. */
export class Children {
  readonly #deps: ChildrenDeps;
  readonly #children = new Map<string, Child>();
  /** Ends that came before the reply to their spawn was handled. */
  readonly #early = new Map<string, ChildEnd>();
  #waiting: (() => void)[] = [];

  constructor(deps: ChildrenDeps) {
    this.#deps = deps;
  }

  async spawn(args: JsonObject, signal: AbortSignal): Promise<SelfToolAnswer> {
    const disposition = args.disposition ?? "sync";
    const reply = await this.#deps.broker.request("spawn", args);
    if (!reply.ok) return refuse(wordsOf(reply.value));
    if (!isObject(reply.value)) return domainError("the supervisor gave no child");
    const id = String(reply.value.child_id);
    const path = String(reply.value.path);
    const child: Child = {
      id,
      path,
      detached: disposition === "detach",
      end: this.#early.get(id) ?? null,
      told: false,
    };
    this.#early.delete(id);
    this.#children.set(id, child);
    if (disposition !== "sync") {
      const answer = text(JSON.stringify({ child_id: id, path, disposition }));
      return disposition === "detach" || "observation" in answer
        ? answer
        : { ...answer, child: { id, path } };
    }
    await this.#until(() => child.end !== null, signal, null);
    if (child.end === null) {
      await this.#deps.broker.request("child_cancel", { id });
      return {
        result: {
          ok: false,
          failure: {
            class: "cancelled",
            message: `subagent ${path} was withdrawn`,
            retryable: false,
          },
        },
      };
    }
    const { status, abort, reason, result } = child.end.result;
    const evidence = JSON.stringify([status, abort, reason, result]);
    return { ...this.#distil([child]), evidence };
  }

  async status(args: JsonObject): Promise<SelfToolAnswer> {
    const reply = await this.#deps.broker.request("child_status", { ids: args.ids ?? [] });
    return reply.ok ? text(JSON.stringify(reply.value)) : refuse(wordsOf(reply.value));
  }

  /** Waits for all that are named; where not all are over in time, shows as much as there is room for. */
  async await(
    args: JsonObject,
    signal: AbortSignal,
    timeoutMs: number | null,
    showBytesMax: number,
  ): Promise<SelfToolAnswer> {
    const wanted = this.#named(args);
    if (typeof wanted === "string") return domainError(wanted);
    await this.#until(() => wanted.every((child) => child.end !== null), signal, timeoutMs);
    const over = wanted.filter((child) => child.end !== null);
    const missing = wanted.filter((child) => child.end === null);
    if (missing.length === 0) return this.#distil(over);
    const kept = fitLines(over.map((child) => this.#line(child)), showBytesMax);
    const shown = over.slice(0, kept.length);
    const left = over.slice(kept.length);
    for (const child of left) child.told = false;
    const names = (children: readonly Child[]) => children.map((child) => child.id).join(", ");
    return {
      observation: {
        class: "partial",
        done: names(shown) || "none",
        missing: [
          `still running: ${names(missing)}`,
          ...(left.length > 0 ? [`over, but no room here: ${names(left)}`] : []),
        ].join("; "),
        parts: kept.map((text) => ({ type: "text" as const, text })),
        excerpt: null,
      },
    };
  }

  async cancel(args: JsonObject): Promise<SelfToolAnswer> {
    const reply = await this.#deps.broker.request("child_cancel", { id: args.id ?? "" });
    return reply.ok ? text(wordsOf(reply.value)) : refuse(wordsOf(reply.value));
  }

  /** A subagent ended. */
  ended(end: ChildEnd): void {
    const child = this.#children.get(end.childId);
    if (child === undefined) this.#early.set(end.childId, end);
    else child.end = end;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
  }

  #named(args: JsonObject): Child[] | string {
    const ids = Array.isArray(args.ids) ? args.ids.map(String) : [];
    if (ids.length === 0) {
      return [...this.#children.values()].filter((child) => !child.detached && !child.told);
    }
    const children: Child[] = [];
    for (const id of ids) {
      const child = this.#children.get(id) ??
        [...this.#children.values()].find((candidate) => candidate.path === id);
      if (child === undefined) return `no subagent ${id}`;
      children.push(child);
    }
    return children;
  }

  /** Waits on ends; returns when the condition holds, time is up, or the call is withdrawn. */
  async #until(holds: () => boolean, signal: AbortSignal, timeoutMs: number | null): Promise<void> {
    let late = false;
    const wakeAll = () => {
      const waiting = this.#waiting;
      this.#waiting = [];
      for (const wake of waiting) wake();
    };
    const stopTimer = timeoutMs === null ? () => {} : this.#deps.clock.after(timeoutMs, () => {
      late = true;
      wakeAll();
    });
    signal.addEventListener("abort", wakeAll);
    while (!holds() && !late && !signal.aborted) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    stopTimer();
    signal.removeEventListener("abort", wakeAll);
  }

  #distil(children: readonly Child[]): SelfToolAnswer {
    const failedOnes = children.filter((child) => child.end!.result.status !== "completed");
    const lines = children.map((child) => this.#line(child));
    if (children.length === 1 && failedOnes.length === 1) {
      return {
        observation: {
          class: "error",
          error: "subagent",
          message: lines[0]!,
          retryable: failedOnes[0]!.end!.result.retryable,
          excerpt: null,
        },
      };
    }
    return {
      result: success({
        parts: [{ type: "text", text: lines.join("\n") || "(no subagents to wait for)" }],
        structured: null,
        isError: false,
      }),
    };
  }

  /** Result, status and usage of a child; a result over the bound stays an artifact. */
  #line(child: Child): string {
    const { result, path } = child.end!;
    child.told = true;
    const value: Json = result.result;
    const whole = typeof value === "string" ? value : JSON.stringify(value);
    const fits = byteLength(whole) <= INLINE_RESULT_BYTES_MAX;
    let shown: JsonObject = { result: value };
    if (!fits) {
      const id = `child-${child.id.replace(/[^A-Za-z0-9_-]/g, "-")}`.slice(0, 64);
      const kept = this.#deps.artifacts.write(id, whole);
      const readable = kept.ok || this.#deps.artifacts.read(id, 0, 1).ok;
      shown = {
        summary: clip(whole, 1_000),
        bytes: byteLength(whole),
        ...(readable ? { artifact: id } : {}),
      };
    }
    return JSON.stringify({
      child_id: child.id,
      path,
      status: result.status ?? `abort ${result.abort}`,
      ...(result.status === "completed" ? {} : { reason: result.reason, partial: result.partial }),
      ...shown,
      usage: {
        steps: result.usage.steps,
        tokens: result.usage.tokens_in + result.usage.tokens_out,
      },
    });
  }
}
