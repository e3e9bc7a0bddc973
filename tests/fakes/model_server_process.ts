/** Starts the scripted model endpoint as a process of its own and talks to it. */

import type { LoggedRequest } from "./model_server.ts";
import type { Script } from "./model_script.ts";

export type { LoggedRequest } from "./model_server.ts";
export type { Script, ScriptCall, ScriptReply } from "./model_script.ts";

/** A running endpoint. `close` ends its process and waits for it. */
export interface ModelServerProcess {
  /** Base URL as far as `/v1`. */
  url: string;
  port: number;
  pid: number;
  /** Sets what it answers from now on, and forgets what it was asked. */
  script(script: Script): Promise<void>;
  /** Every request so far, completions and others. */
  requests(): Promise<LoggedRequest[]>;
  /** Requests for a completion so far. */
  completions(): Promise<LoggedRequest[]>;
  stats(): Promise<{ completions: number; requests: number; connections: number }>;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Starts it; `script` is what it answers at first. Needs run permission, and net to 127.0.0.1. */
export async function startModelServer(script: Script = {}): Promise<ModelServerProcess> {
  const child = new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "--no-prompt",
      "--allow-net=127.0.0.1",
      new URL("./model_server.ts", import.meta.url).href,
    ],
    stdin: "piped",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const reader = child.stdout.getReader();
  let text = "";
  while (!text.includes("\n")) {
    const { done, value } = await reader.read();
    if (done) throw new Error("the model server ended before it was up");
    text += new TextDecoder().decode(value);
  }
  const { port } = JSON.parse(text) as { port: number };
  const origin = `http://127.0.0.1:${port}`;
  const get = async (path: string) => await (await fetch(origin + path)).json();
  const requests = async () => await get("/__requests") as LoggedRequest[];
  const close = async () => {
    await child.stdin.close().catch(() => {});
    await reader.cancel().catch(() => {});
    await child.status;
  };
  const server: ModelServerProcess = {
    url: `${origin}/v1`,
    port,
    pid: child.pid,
    async script(next) {
      const reply = await fetch(`${origin}/__script`, {
        method: "POST",
        body: JSON.stringify(next),
      });
      await reply.body?.cancel();
    },
    requests,
    completions: async () =>
      (await requests()).filter((request) => /\/(chat\/completions|messages)/.test(request.path)),
    stats: async () => await get("/__stats"),
    close,
    [Symbol.asyncDispose]: close,
  };
  await server.script(script);
  return server;
}
