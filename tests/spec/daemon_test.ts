/** Modes loop and schedule, locks, bounds, signals, probes and requests, from outside. */

import assert from "node:assert/strict";
import { DaemonProcess, type Line } from "../fakes/daemon_process.ts";
import { type ModelServerProcess, startModelServer } from "../fakes/model_server_process.ts";
import { type Program, programs } from "../program.ts";
import { survivors, withDirectory } from "./harness.ts";

const FIRED = (line: Line) => line.event === "trigger.fired";
const FINAL = (line: Line) => line.event === "loop.final";
const LISTENING = (line: Line) => line.event === "proc.start" && typeof line.listen === "number";
const READY = (line: Line) =>
  line.event === "proc.ready" && line.comp === "supervisor" && line.run_id === null;
const CALLS = (line: Line) => line.event === "loop.start";

interface Scene {
  program: Program;
  model: ModelServerProcess;
  project: string;
  start(args: string[], env?: Record<string, string>): DaemonProcess;
}

async function scene(program: Program, act: (scene: Scene) => Promise<void>): Promise<void> {
  await withDirectory(async ({ project, runs }) => {
    await using model = await startModelServer({ replies: [{ text: "done {{n}}" }], loop: true });
    const running: DaemonProcess[] = [];
    try {
      await act({
        program,
        model,
        project,
        start: (args, env = {}) => {
          const daemon = new DaemonProcess(program, [
            "run",
            ...["--run-dir", runs, "--state-dir", `${project}/state`],
            ...["--intelligence", model.url, "--model", "scripted", "--log-format", "json"],
            ...args,
          ], { cwd: project, env });
          running.push(daemon);
          return daemon;
        },
      });
    } finally {
      for (const daemon of running) await daemon[Symbol.asyncDispose]();
    }
  });
}

/** A token for POST /trigger, in a file. */
function tokenFile(project: string): string[] {
  Deno.writeTextFileSync(`${project}/token`, "let-me-in\n");
  return ["--trigger-token-file", `${project}/token`];
}

async function get(port: number, path: string): Promise<[number, string]> {
  const reply = await fetch(`http://127.0.0.1:${port}${path}`);
  return [reply.status, await reply.text()];
}

async function post(
  port: number,
  name: string,
  body: string | Uint8Array,
  token = "let-me-in",
): Promise<[number, string]> {
  const reply = await fetch(`http://127.0.0.1:${port}/trigger/${name}`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: body as BodyInit,
  });
  return [reply.status, await reply.text()];
}

const CASES: { name: string; act: (scene: Scene) => Promise<void> }[] = [
  {
    name: "loop: runs up to its bound, each its own result, exit 0",
    act: async ({ start }) => {
      const daemon = start(["--mode", "loop", "--interval", "1ms", "--max-iterations", "3", "Go"]);
      const end = await daemon.ended;
      assert.equal(end.code, 0, end.stderr);
      assert.equal(end.stdout, "done 1\ndone 2\ndone 3\n");
      assert.equal(new Set(daemon.lines.filter(FINAL).map((line) => line.run_id)).size, 3);
    },
  },
  {
    name: "loop: without an interval warm, one session, --output json a line each",
    act: async ({ start, model }) => {
      const daemon = start([
        ...["--mode", "loop", "--max-iterations", "2", "--output", "json", "Go"],
      ]);
      const end = await daemon.ended;
      assert.equal(end.code, 0, end.stderr);
      const results = end.stdout.trimEnd().split("\n").map((line) => JSON.parse(line));
      assert.deepEqual(results.map((result) => [result.status, result.exit_code]), [
        ["completed", 0],
        ["completed", 0],
      ]);
      assert.equal(results[0].run_id, results[1].run_id);
      // deno-lint-ignore no-explicit-any
      const last = (await model.completions()).at(-1)!.body as any;
      assert.equal(
        last.messages.filter((message: { role: string }) => message.role === "user").length,
        2,
      );
    },
  },
  {
    name: "loop: no failed run ends it, a spent lifetime does with 124, spent tokens with 7",
    act: async ({ start, model }) => {
      await model.script({ replies: [{ status: 400, body: { error: "no" } }], loop: true });
      const base = ["--mode", "loop", "--interval", "10ms"];
      const failing = start([...base, "--lifetime", "6s", "Go"]);
      const late = await failing.ended;
      assert.equal(late.code, 124, late.stderr);
      assert(failing.lines.filter((line) => line.event === "trigger.fired").length > 1);

      await model.script({ replies: [{ text: "done" }], loop: true });
      const spent = await start([...base, "--lifetime-tokens", "10", "Go"]).ended;
      assert.equal(spent.code, 7, spent.stderr);
      assert.equal(spent.stdout, "done\n");
    },
  },
  {
    name: "credentials are refused: exit 4; a required server cannot start: exit 6",
    act: async ({ start, model }) => {
      await model.script({ replies: [{ status: 401 }], loop: true });
      const refused = await start(["--mode", "loop", "--interval", "1h", "Go"]).ended;
      assert.equal(refused.code, 4, refused.stderr);
      await model.script({ replies: [{ text: "done" }], loop: true });
      const missing = await start([
        ...["--mode", "loop", "--interval", "1h", "--mcp", "x=sh -c 'exit 9'", "Go"],
      ]).ended;
      assert.equal(missing.code, 6, missing.stderr);
    },
  },
  {
    name: "SIGTERM in the middle of a run drains, exit 0; a second signal kills, exit 143",
    act: async ({ start, model }) => {
      await model.script({ replies: [{ hang: true }], loop: true });
      const options = ["--mode", "loop", "--interval", "1h", "Go"];
      const drained = start(options);
      const spawned = await drained.seen((line) => line.event === "subagent.spawn");
      await drained.seen(CALLS);
      const end = await drained.stop();
      assert.equal(end.code, 0, end.stderr);
      assert.deepEqual(await survivors([spawned.child_pid]), []);

      const killed = start(options);
      const other = await killed.seen((line) => line.event === "subagent.spawn");
      await killed.seen(CALLS);
      // Its agent is stopped, and so does not wind down by itself.
      Deno.kill(other.child_pid, "SIGSTOP");
      killed.signal("SIGTERM");
      await killed.seen((line) => line.event === "proc.shutdown");
      killed.signal("SIGTERM");
      const dead = await killed.ended;
      assert.equal(dead.code, 143, dead.stderr);
      assert.deepEqual(await survivors([other.child_pid]), []);
    },
  },
  {
    name: "schedule: fires at its slots; a restart between two slots neither repeats nor loses one",
    act: async ({ start }) => {
      const options = ["--mode", "schedule", "--interval", "1s", "--overlap", "queue", "Go"];
      const daemon = start([...options, "--max-iterations", "2"]);
      const first = await daemon.ended;
      assert.equal(first.code, 0, first.stderr);
      const slots = daemon.lines.filter(FIRED).map((line) => Date.parse(line.slot));
      assert.equal(slots[1]! - slots[0]!, 1000);

      const again = start([...options, "--max-iterations", "1"]);
      const second = await again.ended;
      assert.equal(second.code, 0, second.stderr);
      const fired = Date.parse(again.lines.find(FIRED)!.slot);
      const skipped = again.lines.filter((line) => line.event === "trigger.skipped")
        .map((line) => Date.parse(line.slot));
      // Every slot since the last one either fired or was named as skipped, in order, once.
      const dealt = [...skipped, fired];
      dealt.forEach((slot, i) => assert.equal(slot, slots[1]! + (i + 1) * 1000));
    },
  },
  {
    name: "schedule: a run that is longer than its slot skips, replaces",
    act: async ({ start, model }) => {
      await model.script({ replies: [{ hang: true }], loop: true });
      const daemon = start(["--mode", "schedule", "--interval", "300ms", "Go"]);
      const skipped = await daemon.seen((line) => line.event === "trigger.skipped");
      assert.deepEqual([skipped.reason, skipped.policy], ["overlap", "overlap skip"]);
      assert.equal((await daemon.stop()).code, 0);

      const replacing = start([
        ...["--mode", "schedule", "--interval", "1s", "--overlap", "replace", "Go"],
      ]);
      const replaced = await replacing.seen(
        (line) => line.event === "loop.final" && line.status === "cancelled",
      );
      assert.match(replaced.reason, /^replaced/);
      await replacing.seen((line) => line.event === "trigger.fired" && line.reason === "replaced");
      assert.equal((await replacing.stop()).code, 0);
    },
  },
  {
    name: "two daemons on one state, two runs under one lock: the second ends 0 and says so",
    act: async ({ start, model }) => {
      await model.script({ replies: [{ hang: true }], loop: true });
      const pairs: [string[], string[]][] = [
        [["--mode", "schedule", "--interval", "1h", "Go"], [
          "--mode",
          "schedule",
          "--interval",
          "1h",
          "Go",
        ]],
        [["--lock", "nightly", "Go"], ["--lock", "nightly", "Something else"]],
      ];
      for (const [one, other] of pairs) {
        const first = start(one);
        await first.seen((line) => READY(line) || line.event === "loop.start");
        const second = start(other);
        const end = await second.ended;
        assert.equal(end.code, 0, end.stderr);
        assert(
          second.lines.some((line) => line.event === "trigger.skipped" && line.kind === "lock"),
        );
        // The lock dies with its process, however that ends.
        first.signal("SIGKILL");
        await first.ended;
        const third = start(one);
        await third.seen((line) => READY(line) || line.event === "loop.start");
        await third.stop();
      }
    },
  },
  {
    name: "a corrupt state file is set aside, one of a newer version is not touched",
    act: async ({ start, project }) => {
      const options = ["--mode", "schedule", "--interval", "1h", "--lock", "mine", "Go"];
      const path = `${project}/state/mine.json`;
      Deno.mkdirSync(`${project}/state`);
      Deno.writeTextFileSync(path, '{"v":1,"sched');
      const daemon = start(options);
      await daemon.seen(READY);
      assert(daemon.lines.some((line) => line.reason === "corrupt"));
      assert.equal((await daemon.stop()).code, 0);
      assert.equal(Deno.readTextFileSync(`${path}.corrupt`), '{"v":1,"sched');
      assert.equal(JSON.parse(Deno.readTextFileSync(path)).v, 1);

      Deno.writeTextFileSync(path, '{"v":99}');
      const newer = await start(options).ended;
      assert.equal(newer.code, 2, newer.stderr);
      assert.match(newer.stderr, /agentd: Cannot read the state: .*version 99/);
      assert.equal(Deno.readTextFileSync(path), '{"v":99}');
    },
  },
  {
    name: "an address in use: exit 2, and nothing was started",
    act: async ({ start, model }) => {
      using taken = Deno.listen({ hostname: "127.0.0.1", port: 0 });
      const address = `127.0.0.1:${taken.addr.port}`;
      const daemon = start(["--mode", "loop", "--listen", address, "Go"]);
      const end = await daemon.ended;
      assert.equal(end.code, 2, end.stderr);
      assert.match(end.stderr, /agentd: Cannot listen on .*in use/);
      assert(!daemon.lines.some((line) => line.event === "subagent.spawn"));
      assert.equal((await model.completions()).length, 0);
    },
  },
  {
    name: "probes and figures: healthy, ready, draining; the health file; Prometheus text",
    act: async ({ start, model, project }) => {
      const daemon = start([
        ...["--mode", "loop", "--interval", "1ms", "--listen", "127.0.0.1:0"],
        ...["--health-file", `${project}/health`, "Go"],
      ]);
      const { listen: port } = await daemon.seen(LISTENING);
      await daemon.seen(FINAL, 2);
      assert.match((await get(port, "/healthz")).join(" "), /^200 ok lag_ms=\d+\n$/);
      assert.deepEqual(await get(port, "/readyz"), [200, "ready\n"]);
      assert.deepEqual(await get(port, "/nothing"), [404, "not found\n"]);
      const health = JSON.parse(Deno.readTextFileSync(`${project}/health`));
      assert.deepEqual([health.healthy, health.ready, health.pid], [true, true, daemon.pid]);
      // Verdicts are read from the record once its run is over.
      let text = "";
      while (!text.includes('agentd_verdicts_total{verdict="answered"}')) {
        const [status, body] = await get(port, "/metrics");
        assert.equal(status, 200);
        text = body;
      }
      for (
        const expected of [
          /^agentd_runs_total\{status="completed"\} [1-9]/m,
          /^agentd_runs_total\{status="crashed"\} 0$/m,
          /^agentd_turns_total [1-9]/m,
          /^agentd_tokens_total\{direction="in"\} [1-9]/m,
          /^agentd_verdicts_total\{verdict="answered"\} [1-9]/m,
          /^agentd_run_duration_seconds_bucket\{le="\+Inf"\} [1-9]/m,
          /^agentd_ready 1$/m,
          /^# TYPE agentd_runs_total counter$/m,
        ]
      ) assert.match(text, expected);

      // While a run hangs in its drain, probes say so.
      await model.script({ replies: [{ hang: true }], loop: true });
      const spawned = await daemon.seen(
        (line) => line.event === "subagent.spawn" && line.ts > health.ts,
        3,
      );
      Deno.kill(spawned.child_pid, "SIGSTOP");
      daemon.signal("SIGTERM");
      await daemon.seen((line) => line.event === "proc.shutdown");
      assert.deepEqual(await get(port, "/readyz"), [503, "not ready: draining\n"]);
      assert.equal((await get(port, "/healthz"))[0], 200);
      daemon.signal("SIGTERM");
      await daemon.ended;
      assert.throws(() => Deno.statSync(`${project}/health`));
    },
  },
  {
    name:
      "a request starts a run that reads its body as an artifact; strangers and floods are told",
    act: async ({ start, model, project }) => {
      await model.script({
        replies: [
          { calls: [{ name: "artifact_read", arguments: { id: "{{artifact}}" } }] },
          { text: "{{last}}" },
        ],
        by: "turn",
      });
      const daemon = start([
        ...["--mode", "reactive", "--listen", "127.0.0.1:0", ...tokenFile(project)],
        ...["--route", "trigger:deploy=>spawn,max_inflight=1,cap=2", "Handle it"],
      ]);
      const { listen: port } = await daemon.seen(LISTENING);
      await daemon.seen(READY);
      assert.equal((await post(port, "deploy", "{}", "wrong"))[0], 401);
      assert.equal((await post(port, "deploy", "{}", ""))[0], 401);
      assert.equal((await post(port, "other", "{}"))[0], 404);
      assert.equal((await post(port, "deploy", new Uint8Array(1024 * 1024 + 1)))[0], 413);
      const bad = await fetch(`http://127.0.0.1:${port}/trigger/deploy`, {
        headers: { authorization: "Bearer let-me-in" },
      });
      await bad.body?.cancel();
      assert.equal(bad.status, 405);

      const [status, text] = await post(port, "deploy", '{"commit":"abc123"}');
      assert.equal(status, 202, text);
      const { run_id } = JSON.parse(text);
      const started = await daemon.seen(CALLS);
      assert.equal(started.run_id, run_id);
      await daemon.seen(FINAL);
      // deno-lint-ignore no-explicit-any
      const first = (await model.completions())[0]!.body as any;
      const told = JSON.stringify(first.messages);
      assert(!told.includes("abc123"), "the body is not in the prompt");
      assert.match(told, /deploy/);

      // One runs, two wait, the next is told to come back.
      await model.script({ replies: [{ hang: true }], loop: true });
      assert.equal((await post(port, "deploy", '{"n":0}'))[0], 202);
      await daemon.seen(CALLS, 2);
      const answers: number[] = [];
      for (let n = 1; n < 4; n++) answers.push((await post(port, "deploy", `{"n":${n}}`))[0]);
      assert.deepEqual(answers, [202, 202, 503]);
      const first2 = await daemon.stop();
      assert.equal(first2.code, 0, first2.stderr);

      // What was accepted is served by the next start.
      await model.script({ replies: [{ text: "served" }], loop: true });
      const again = start([
        ...["--mode", "reactive", "--listen", "127.0.0.1:0", ...tokenFile(project)],
        ...["--route", "trigger:deploy=>spawn,max_inflight=1,cap=2", "Handle it"],
      ]);
      await again.seen(FINAL, 3);
      assert.equal((await again.stop()).code, 0);
      const bodies = [...Deno.readDirSync(`${project}/state`)].find((entry) =>
        entry.name.endsWith(".bodies")
      );
      assert.deepEqual([...Deno.readDirSync(`${project}/state/${bodies!.name}`)], []);
    },
  },
  {
    name: "a service manager is told: READY, WATCHDOG, STOPPING",
    act: async ({ start, project }) => {
      if (Deno.build.os !== "linux") return;
      const path = `${project}/notify.sock`;
      const manager = Deno.listenDatagram({ transport: "unixpacket", path });
      try {
        const daemon = start(["--mode", "schedule", "--interval", "1h", "Go"], {
          NOTIFY_SOCKET: path,
          WATCHDOG_USEC: "400000",
        });
        const heard = new Set<string>();
        while (!heard.has("READY=1") || !heard.has("WATCHDOG=1")) {
          const [bytes] = await manager.receive();
          heard.add(new TextDecoder().decode(bytes));
        }
        daemon.signal("SIGTERM");
        while (!heard.has("STOPPING=1")) {
          const [bytes] = await manager.receive();
          heard.add(new TextDecoder().decode(bytes));
        }
        assert.equal((await daemon.ended).code, 0);
      } finally {
        manager.close();
      }
    },
  },
];

for (const program of programs()) {
  for (const { name, act } of CASES) {
    Deno.test(`daemon (${program.name}): ${name}`, () => scene(program, act));
  }
}
