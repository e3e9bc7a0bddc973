/** The loop Worker's side of its channel to the broker: requests by number, each answered once. */

import type { Json, JsonObject } from "../core/json.ts";
import { failed, type Outcome, success } from "../core/outcome.ts";
import type { BrokerPort } from "../ports/broker.ts";
import type { ServerFailure } from "../ports/tools.ts";
import type { Progress, RequestOp } from "../wire/control.ts";
import type { HookEvent } from "../wire/payload.ts";
import type { CommandOutcome, FromWorker, HookOutcome, ToWorker } from "../wire/worker.ts";

type Answer = Extract<
  ToWorker,
  { type: "reply" | "server_opened" | "server_failed" | "command_ended" | "hook_ended" }
>;

/** A link over a function that posts messages. */
export class BrokerLink implements BrokerPort {
  readonly #post: (message: FromWorker) => void;
  readonly #waiting = new Map<number, (answer: Answer) => void>();
  #lastId = 0;

  constructor(post: (message: FromWorker) => void) {
    this.#post = post;
  }

  /** Hands an answer to whoever asked; whether the message was one. */
  receive(message: ToWorker): boolean {
    switch (message.type) {
      case "reply":
      case "server_opened":
      case "server_failed":
      case "command_ended":
      case "hook_ended": {
        const take = this.#waiting.get(message.id);
        this.#waiting.delete(message.id);
        take?.(message);
        return true;
      }
      default:
        return false;
    }
  }

  runCheck(index: number, signal: AbortSignal): Promise<CommandOutcome> {
    return this.#runCommand({ type: "run_check", id: 0, index }, signal);
  }

  runRequire(index: number, signal: AbortSignal): Promise<CommandOutcome> {
    return this.#runCommand({ type: "run_require", id: 0, index }, signal);
  }

  async runHook(event: HookEvent, index: number, input: JsonObject): Promise<HookOutcome> {
    const answer = await this.#ask({ type: "run_hook", id: 0, event, index, input });
    return (answer as Extract<Answer, { type: "hook_ended" }>).outcome;
  }

  async request(op: RequestOp, args: JsonObject): Promise<{ ok: boolean; value: Json }> {
    const answer = await this.#ask({ type: "request", id: 0, op, arguments: args });
    const { ok, value } = answer as Extract<Answer, { type: "reply" }>;
    return { ok, value };
  }

  progress(progress: Progress): void {
    this.#post({ type: "forward", frame: { v: 1, type: "progress", progress } });
  }

  /** Asks for a stdio server's process and the port that carries its bytes. */
  async openServer(
    name: string,
    signal: AbortSignal,
  ): Promise<Outcome<{ port: MessagePort; pid: number }, ServerFailure>> {
    const answer = await this.#ask({ type: "open_server", id: 0, server: name });
    if (answer.type === "server_opened") {
      if (signal.aborted) answer.port.postMessage({ type: "close" });
      return success({ port: answer.port, pid: answer.pid });
    }
    const { message, stderr } = answer as Extract<Answer, { type: "server_failed" }>;
    return failed({ server: name, message, stderr });
  }

  async #runCommand(
    message: Extract<FromWorker, { id: number }>,
    signal: AbortSignal,
  ): Promise<CommandOutcome> {
    let id = 0;
    const withdraw = () => this.#post({ type: "cancel_command", id });
    const asked = this.#ask(message, (given) => id = given);
    signal.addEventListener("abort", withdraw);
    const answer = await asked;
    signal.removeEventListener("abort", withdraw);
    return (answer as Extract<Answer, { type: "command_ended" }>).outcome;
  }

  #ask(
    message: Extract<FromWorker, { id: number }>,
    tellId?: (id: number) => void,
  ): Promise<Answer> {
    const id = ++this.#lastId;
    tellId?.(id);
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve);
      this.#post({ ...message, id });
    });
  }
}
