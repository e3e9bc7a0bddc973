/** A loop Worker that does what its script says, good or bad. */

import { escape, type EscapeOrder } from "./escapes.ts";
import type { ChildEnd } from "../../src/wire/control.ts";
import type { FromWorker, ServerPortMessage, ToWorker } from "../../src/wire/worker.ts";
import { guardWorker } from "../../src/sys/worker_guard.ts";
import { failedResult } from "../../src/wire/result.ts";

const scope = self as unknown as {
  postMessage(message: FromWorker): void;
  onmessage: ((event: MessageEvent<ToWorker>) => void) | null;
};
guardWorker((message) => scope.postMessage({ type: "failed", message }));

let script: { do?: string; steps?: Record<string, unknown>[] } = {};
const waiting = new Map<number, (message: ToWorker) => void>();
let directory = "";
let ids = 0;
const ends: ChildEnd[] = [];
const endWaiters: (() => void)[] = [];

scope.onmessage = ({ data }) => {
  if (data.type === "start") {
    script = JSON.parse(data.payload.task.instruction || "{}");
    if (data.payload.start.kind === "watch") watch(data.payload.start.subscribe);
    directory = data.payload.identity.directory;
    scope.postMessage({ type: "up" });
    void act();
  } else if (data.type === "cancel") {
    if (script.do === "ignore_cancel") return;
    const status = data.reason === "tree_tokens" ? "exhausted_tokens" : "cancelled";
    scope.postMessage({ type: "result", result: failedResult(status, data.reason) });
  } else if (data.type === "deliver") {
    const { id, instruction } = data.delivery;
    const result = { ...failedResult("completed", "delivered"), result: instruction };
    scope.postMessage({ type: "forward", frame: { v: 1, type: "delivered", id, result } });
  } else if (data.type === "watch") {
    for (const source of data.add) report(source);
  } else if (data.type === "child_ended") {
    ends.push(data.end);
    for (const wake of endWaiters.splice(0)) wake();
  } else if ("id" in data) {
    waiting.get(data.id)?.(data);
    waiting.delete(data.id);
  }
};

async function act(): Promise<void> {
  switch (script.do) {
    case "complete":
      return complete("done");
    case "complete_at_length":
      return complete("x".repeat((script as { chars: number }).chars));
    case "spin":
      for (;;);
    case "throw":
      throw new Error("the loop broke over s3cret-value");
    case "ask": {
      const answers: unknown[] = [];
      for (const step of script.steps ?? []) answers.push(await ask(step));
      return complete(answers);
    }
    case "grants":
      for (const server of (script as { open: string[] }).open) {
        void ask({ type: "open_server", server });
      }
      return await tellGrants();
    case "escape":
      return await escape(script as unknown as EscapeOrder).then((got) => complete({ got }));
    case "write":
      return write(script as unknown as Written);
    case "raw":
      for (const step of script.steps ?? []) scope.postMessage(step as FromWorker);
      return;
  }
}

interface Written {
  text: string;
  times?: number;
  /** Bytes before the text, as they are. */
  bytes?: number[];
}

/** Bytes on the agent's own stdout, past its broker: what a subverted loop could write there. */
function write({ text, times = 1, bytes = [] }: Written): void {
  const all = [...bytes, ...new TextEncoder().encode(text)];
  const piece = Uint8Array.from(all);
  for (let i = 0; i < times; i++) {
    for (let at = 0; at < piece.length;) at += Deno.stdout.writeSync(piece.subarray(at));
  }
}

function complete(result: unknown): void {
  scope.postMessage({
    type: "result",
    result: { ...failedResult("completed", "said so"), result: result as never },
  });
}

/** One request of the broker and its answer; `open_server` also talks a line with the server. */
async function ask(step: Record<string, unknown>): Promise<unknown> {
  if (step.type === "await_children") {
    while (ends.length < (step.count as number)) {
      await new Promise<void>((resolve) => endWaiters.push(resolve));
    }
    return ends;
  }
  if (step.type === "tell") {
    scope.postMessage(step.message as FromWorker);
    return null;
  }
  if (step.type === "wait") return await new Promise(() => {});
  const id = ++ids;
  const { promise, resolve } = Promise.withResolvers<ToWorker>();
  waiting.set(id, resolve);
  scope.postMessage({ ...step, id } as FromWorker);
  const answer = await promise;
  if (answer.type === "reply") return { ok: answer.ok, value: answer.value };
  if (answer.type !== "server_opened") return { ...answer, port: undefined };
  return { type: "server_opened", said: await converse(answer.port, step) };
}

/** Sends lines, reads until `until` bytes or the server's exit. */
function converse(port: MessagePort, step: Record<string, unknown>): Promise<unknown> {
  const { promise, resolve } = Promise.withResolvers<unknown>();
  let text = "";
  let bytes = 0;
  const decoder = new TextDecoder();
  port.onmessage = ({ data }: MessageEvent<ServerPortMessage>) => {
    if (data instanceof Uint8Array) {
      bytes += data.length;
      if (text.length < 1000) text += decoder.decode(data, { stream: true });
      port.postMessage({ type: "taken", bytes: data.length } satisfies ServerPortMessage);
      if (typeof step.until === "number" && bytes >= step.until) resolve({ text, bytes });
    } else if (data.type === "exited") {
      port.close();
      resolve({ text, bytes, exited: data });
    }
  };
  for (const line of (step.lines as string[] | undefined) ?? []) {
    port.postMessage(new TextEncoder().encode(line + "\n"));
  }
  return promise;
}

/** A watcher: connected at once, and every source has changed. */
function watch(subscribe: string[]): void {
  scope.postMessage({ type: "forward", frame: { v: 1, type: "connected", servers: ["docs"] } });
  for (const source of subscribe) report(source);
}

function report(source: string): void {
  const [server, ...uri] = source.split(":");
  const frame = {
    v: 1,
    type: "updated",
    server: server!,
    uri: uri.join(":"),
    possibly: false,
  } as const;
  scope.postMessage({ type: "forward", frame });
}

/** Says what this Worker may do, by asking for what it should and what it should not have. */
async function tellGrants(): Promise<void> {
  const asked: Record<string, (string | undefined)[]> = {
    read: [undefined, directory, `${directory}/..`, "/etc"],
    write: [undefined, directory, `${directory}/..`, "/tmp"],
    net: [undefined, "tools.example:443", "tools.example:80", "docs.example:443"],
    run: [undefined, "sh"],
    env: [undefined, "HOME"],
    sys: [undefined, "hostname"],
    ffi: [undefined, "/lib"],
    import: [undefined, "deno.land"],
  };
  const granted: Record<string, Record<string, string>> = {};
  for (const [name, values] of Object.entries(asked)) {
    granted[name] = {};
    for (const value of values) {
      const more = value === undefined
        ? {}
        : { path: value, host: value, command: value, variable: value, kind: value };
      const { state } = await Deno.permissions.query(
        { name, ...more } as Deno.PermissionDescriptor,
      );
      granted[name][value ?? "*"] = state;
    }
  }
  // The servers' processes are there once all of them talk; the broker answers in order.
  console.error(JSON.stringify({ event: "proc.ready", comp: "probe", granted }));
}
