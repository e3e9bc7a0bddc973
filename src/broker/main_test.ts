import assert from "node:assert/strict";
import type { SelfPort } from "../ports/self.ts";
import { systemClock } from "../sys/clock.ts";
import { systemProcess } from "../sys/process.ts";
import { systemWorkers } from "../sys/worker.ts";
import type { FromAgent, ToAgent } from "../wire/control.ts";
import type { AgentPayload, StdioServer } from "../wire/payload.ts";
import { rootPayload } from "../supervisor/payload.ts";
import { posixTest, withDirectory } from "../../tests/supervised/harness.ts";
import { makeSettings } from "../../tests/supervised/settings.ts";
import { runBroker } from "./main.ts";

const HOSTILE = decodeURIComponent(new URL("../../tests/hostile/", import.meta.url).pathname);
const encoder = new TextEncoder();

/** A broker in this process, over pipes; its group is that of a process that stands for the agent. */
class Rig {
  readonly frames: FromAgent[] = [];
  readonly events: { event: string; fields: Record<string, unknown> }[] = [];
  readonly exited = Promise.withResolvers<number>();
  revoked = 0;
  readonly #agent = new Deno.Command("sleep", { args: ["600"], detached: true, stdin: "null" })
    .spawn();
  readonly #input = new TransformStream<Uint8Array, Uint8Array>();
  readonly #writer = this.#input.writable.getWriter();
  #pending = "";
  readonly #decoder = new TextDecoder();
  readonly #output = new WritableStream<Uint8Array>({ write: (chunk) => this.#take(chunk) });
  readonly #waiters: { type: string; resolve: () => void }[] = [];
  readonly ran: Promise<void>;

  constructor(standalone = false) {
    const self: SelfPort = {
      pid: this.#agent.pid,
      standalone,
      stdin: this.#input.readable,
      stdout: this.#output,
      env: (name) => Deno.env.get(name),
      revokeAllButRun: () => {
        this.revoked++;
        return Promise.resolve();
      },
      exit: (code) => this.exited.resolve(code),
    };
    this.ran = runBroker({
      clock: systemClock,
      process: systemProcess,
      self,
      program: {
        standalone,
        command: "false",
        code: [],
        environment: {},
        args: (role) => [...role],
      },
      worker: systemWorkers(new URL("../../tests/supervised/worker.ts", import.meta.url)),
      openTelemetry: () => ({
        emit: (event, fields = {}) => void this.events.push({ event, fields }),
      }),
    });
  }

  get pid(): number {
    return this.#agent.pid;
  }

  get agentEnded(): Promise<Deno.CommandStatus> {
    return this.#agent.status;
  }

  send(frame: ToAgent | Record<string, unknown>): Promise<void> {
    return this.#writer.write(encoder.encode(JSON.stringify(frame) + "\n"));
  }

  async seen(type: FromAgent["type"]): Promise<FromAgent> {
    for (;;) {
      const frame = this.frames.find((candidate) => candidate.type === type);
      if (frame) return frame;
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#waiters.push({ type, resolve });
      await promise;
    }
  }

  /** The end of stdin; what is left of the rig is taken down. */
  async close(): Promise<void> {
    await this.#writer.close().catch(() => {});
    await this.ran;
    try {
      this.#agent.kill("SIGKILL");
    } catch { /* the broker took it along */ }
    await this.#agent.status;
  }

  #take(chunk: Uint8Array): void {
    const lines = (this.#pending + this.#decoder.decode(chunk, { stream: true })).split("\n");
    this.#pending = lines.pop()!;
    this.frames.push(...lines.map((line) => JSON.parse(line)));
    for (const waiter of this.#waiters.splice(0)) waiter.resolve();
  }
}

function payloadFor(
  directory: string,
  script: Record<string, unknown>,
  more: Partial<AgentPayload> = {},
): AgentPayload {
  const settings = makeSettings({ script, directory });
  const identity = {
    runId: "run",
    agentId: "agent",
    path: "0",
    depth: 0,
    directory,
    traceId: "0".repeat(32),
    parentSpanId: null,
  };
  return { ...rootPayload(settings, identity, { kind: "fresh" }, Date.now() + 60_000), ...more };
}

const start = (payload: AgentPayload, secrets: Record<string, string> = {}): ToAgent => ({
  v: 1,
  type: "start",
  payload,
  secrets,
});

const server = (args: string[]): StdioServer => ({
  kind: "stdio",
  name: "s",
  command: "sh",
  args,
  env: {},
  cwd: "/",
  required: true,
  startTimeoutMs: 1000,
  sandbox: "none",
});

/** One rig, one directory. */
function check(
  name: string,
  act: (rig: Rig, directory: string) => Promise<void>,
  standalone = false,
): void {
  posixTest(`runBroker: ${name}`, () =>
    withDirectory(async (directory) => {
      const rig = new Rig(standalone);
      try {
        await act(rig, directory);
      } finally {
        await rig.close();
      }
    }));
}

check("answers pings before and while the loop spins", async (rig, directory) => {
  await rig.send({ v: 1, type: "ping", n: 1 });
  await rig.seen("pong");
  await rig.send(start(payloadFor(directory, { do: "spin" })));
  await rig.seen("ready");
  rig.frames.length = 0;
  await rig.send({ v: 1, type: "ping", n: 2 });
  assert.deepEqual(await rig.seen("pong"), { v: 1, type: "pong", n: 2 });
});

check("carries cancel; hands over the result; exits with 0", async (rig, directory) => {
  await rig.send(start(payloadFor(directory, { do: "wait" })));
  await rig.seen("ready");
  await rig.send({ v: 1, type: "cancel", reason: "sigint" });
  const frame = await rig.seen("result");
  assert.equal(frame.type === "result" && frame.result.status, "cancelled");
  assert.equal(await rig.exited.promise, 0);
});

check("compiled, gives up its permissions before it says ready", async (rig, directory) => {
  await rig.send(start(payloadFor(directory, { do: "wait" })));
  await rig.seen("ready");
  assert.equal(rig.revoked, 1);
}, true);

check(
  "tells a Worker that died from one that ended, masked, with exit 1",
  async (rig, directory) => {
    const payload = payloadFor(directory, { do: "throw" });
    await rig.send(start(payload, { "env:TOKEN": "s3cret-value" }));
    const frame = await rig.seen("result");
    assert.match(
      frame.type === "result" ? frame.result.reason : "",
      /the loop died: .*over \*\*\*/,
    );
    assert.equal(await rig.exited.promise, 1);
    assert.ok(rig.events.some(({ event }) => event === "loop.error"));
  },
);

check(
  "carries requests up, replies, deliveries and ends of children down",
  async (rig, directory) => {
    const steps = [
      { type: "request", op: "spawn", arguments: { objective: "x" } },
      { type: "await_children", count: 1 },
    ];
    await rig.send(start(payloadFor(directory, { do: "ask", steps })));
    const request = await rig.seen("request");
    assert.deepEqual(request, {
      v: 1,
      type: "request",
      id: 1,
      op: "spawn",
      arguments: { objective: "x" },
    });
    await rig.send({
      v: 1,
      type: "deliver",
      delivery: { id: "d", instruction: "hello", uris: [] },
    });
    const delivered = await rig.seen("delivered");
    assert.equal(delivered.type === "delivered" && delivered.result.result, "hello");
    await rig.send({ v: 1, type: "watch", add: ["docs:mem://x"], remove: [] });
    assert.deepEqual(await rig.seen("updated"), {
      v: 1,
      type: "updated",
      server: "docs",
      uri: "mem://x",
      possibly: false,
    });
    await rig.send({ v: 1, type: "reply", id: 1, ok: true, value: { child_id: "c" } });
    await rig.send({
      v: 1,
      type: "child_ended",
      end: { childId: "c", path: "0.1", status: null, result: null },
    });
    const result = await rig.seen("result");
    assert.equal(result.type === "result" && result.result.status, "completed");
  },
);

check(
  "opens servers by name, anew after a death, and closes them at the end",
  async (rig, directory) => {
    const steps = [
      { type: "open_server", server: "s", lines: ["hello"], until: 6 },
      { type: "open_server", server: "s", lines: ["again"], until: 6 },
      { type: "open_server", server: "nowhere" },
    ];
    const payload = payloadFor(directory, { do: "ask", steps }, {
      servers: [server(["-c", "exec cat"])],
    });
    await rig.send(start(payload));
    const frame = await rig.seen("result");
    const answers = (frame.type === "result" ? frame.result.result : []) as {
      said?: { text: string };
      message?: string;
    }[];
    assert.deepEqual(answers.map((answer) => answer.said?.text ?? answer.message), [
      "hello\n",
      "again\n",
      "Cannot start nowhere: no such stdio server",
    ]);
    assert.equal(await rig.exited.promise, 0);
  },
);

check(
  "kills a server that ignores every word, and reports its last ones",
  async (rig, directory) => {
    const steps = [{ type: "open_server", server: "s", until: 3 }];
    const mute = server(["-c", `echo up; echo last words >&2; . ${HOSTILE}ignore_term.sh`]);
    await rig.send(start(payloadFor(directory, { do: "ask", steps }, { servers: [mute] })));
    await rig.seen("result");
    assert.equal(await rig.exited.promise, 0);
    assert.ok(rig.events.some(({ fields }) => fields.stderr === "last words"));
  },
);

check("runs declared checks, required paths and hooks by their place", async (rig, directory) => {
  const steps = [
    { type: "run_check", index: 0 },
    { type: "run_require", index: 0 },
    { type: "run_require", index: 1 },
    { type: "run_hook", event: "before_action", index: 0, input: { tool: "x" } },
    { type: "run_hook", event: "before_action", index: 1, input: {} },
    { type: "run_hook", event: "before_action", index: 2, input: {} },
    { type: "run_hook", event: "on_stop", index: 0, input: {} },
  ];
  const base = payloadFor(directory, { do: "ask", steps });
  const payload: AgentPayload = {
    ...base,
    task: {
      ...base.task,
      require: [directory, `${directory}/missing`],
      checks: [{ command: ["sh", "-c", "echo no; exit 4"], when: "final", timeoutMs: 5_000 }],
    },
    hooks: {
      ...base.hooks,
      before_action: [["cat"], ["sh", "-c", "echo because >&2; exit 2"], ["no-such-command"]],
    },
  };
  await rig.send(start(payload));
  const frame = await rig.seen("result");
  type Answer = {
    outcome: {
      exitCode?: number;
      output?: string;
      verdict?: string;
      reason?: string;
      replacement?: unknown;
    };
  };
  const [ran, there, missing, passed, blocked, failed, none] =
    (frame.type === "result" ? frame.result.result : []) as Answer[];
  assert.deepEqual([ran!.outcome.exitCode, ran!.outcome.output], [4, "no\n"]);
  assert.deepEqual([there!.outcome.exitCode, missing!.outcome.exitCode], [0, 1]);
  assert.deepEqual([passed!.outcome.verdict, passed!.outcome.replacement], ["continue", {
    tool: "x",
  }]);
  assert.deepEqual([blocked!.outcome.verdict, blocked!.outcome.reason], ["block", "because"]);
  assert.equal(failed!.outcome.verdict, "failed");
  assert.match(failed!.outcome.reason!, /no-such-command does not exist/);
  assert.match(none!.outcome.reason!, /no hook on_stop 0/);
  assert.equal(await rig.exited.promise, 0);
});

for (
  const [name, frame] of [["no JSON", "{"], ["another version", { v: 2, type: "ping", n: 1 }], [
    "an unknown type",
    { v: 1, type: "obey" },
  ]] as const
) {
  check(`a supervisor that sends ${name} is none: the group dies`, async (rig) => {
    await rig.send(frame as Record<string, unknown>);
    assert.equal((await rig.agentEnded).signal, "SIGKILL");
  });
}

check("the end of stdin takes the group along", async (rig, directory) => {
  await rig.send(start(payloadFor(directory, { do: "spin" })));
  await rig.seen("ready");
  const ended = rig.agentEnded;
  await rig.close();
  assert.equal((await ended).signal, "SIGKILL");
  assert.equal(await rig.exited.promise, 1);
});
