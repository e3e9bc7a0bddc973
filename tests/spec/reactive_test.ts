/** Mode reactive from outside: a real daemon, real agents, a real MCP server, a real endpoint. */

import assert from "node:assert/strict";
import { DaemonProcess, type Line } from "../fakes/daemon_process.ts";
import { startModelServer } from "../fakes/model_server_process.ts";
import { UpdatingServers } from "../fakes/updating_servers.ts";
import { type Program, programs } from "../program.ts";
import { withDirectory } from "./harness.ts";

const READY = (line: Line) =>
  line.event === "proc.ready" && line.comp === "supervisor" && line.run_id === null;
const FIRED = (line: Line) => line.event === "trigger.fired";
const FINAL = (line: Line) => line.event === "loop.final";

interface Scene {
  url: string;
  project: string;
  servers: UpdatingServers;
  /** Starts the daemon with these options and this task. */
  start(...args: string[]): DaemonProcess;
  /** User texts that the model was sent, in order. */
  told(): Promise<string[]>;
}

async function scene(
  program: Program,
  uris: string[],
  act: (scene: Scene) => Promise<void>,
): Promise<void> {
  await withDirectory(async ({ project, runs }) => {
    await using model = await startModelServer({ replies: [{ text: "seen" }], loop: true });
    const servers = new UpdatingServers(`${project}/server`, uris);
    const running: DaemonProcess[] = [];
    try {
      await act({
        url: model.url,
        project,
        servers,
        start: (...args) => {
          const daemon = new DaemonProcess(program, [
            "run",
            "--mode",
            "reactive",
            "--run-dir",
            runs,
            "--state-dir",
            `${project}/state`,
            "--intelligence",
            model.url,
            "--model",
            "scripted",
            "--log-format",
            "json",
            "--mcp",
            `docs=${servers.command().join(" ")}`,
            ...args,
          ], { cwd: project });
          running.push(daemon);
          return daemon;
        },
        told: async () =>
          (await model.completions()).map((request) => {
            // deno-lint-ignore no-explicit-any
            const { messages } = request.body as any;
            const last = messages.findLast((message: { role: string }) => message.role === "user");
            return typeof last.content === "string" ? last.content : last.content[0].text;
          }),
      });
    } finally {
      for (const daemon of running) await daemon[Symbol.asyncDispose]();
    }
  });
}

for (const program of programs()) {
  Deno.test(`reactive (${program.name}): an update starts a run that is told the URI, and SIGTERM ends with 0`, async () => {
    await scene(program, ["mem://inbox/1", "mem://inbox/2", "mem://else"], async (at) => {
      const daemon = at.start("--subscribe", "docs:mem://inbox/*", "Look at the inbox");
      await daemon.seen(READY);
      await at.servers.update("mem://inbox/1", "mem://inbox/1", "mem://else");
      await daemon.seen(FINAL);
      // A new resource that the glob matches is a change too.
      await at.servers.add("mem://inbox/3");
      await daemon.seen(FINAL, 2);
      const end = await daemon.stop();
      assert.equal(end.code, 0, end.stderr);
      assert.equal(end.stdout, "seen\nseen\n");
      assert.deepEqual(await at.told(), [
        "Look at the inbox\nChanged:\n- mem://inbox/1",
        "Look at the inbox\nChanged:\n- mem://inbox/3",
      ]);
    });
  });
}
