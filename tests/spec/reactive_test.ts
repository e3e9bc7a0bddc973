/** Mode reactive from outside: a real daemon, real agents, a real MCP server, a real endpoint. */

import assert from "node:assert/strict";
import { DaemonProcess, type Line } from "../fakes/daemon_process.ts";
import { realServer } from "../fakes/mcp_packages.ts";
import { type Script, startModelServer } from "../fakes/model_server_process.ts";
import { UpdatingServers } from "../fakes/updating_servers.ts";
import { type Program, programs } from "../program.ts";
import { withDirectory } from "./harness.ts";

const READY = (line: Line) =>
  line.event === "proc.ready" && line.comp === "supervisor" && line.run_id === null;
const FINAL = (line: Line) => line.event === "loop.final";

interface Scene {
  url: string;
  project: string;
  servers: UpdatingServers;
  /** Starts the daemon with these options and this task. */
  start(...args: string[]): DaemonProcess;
  /** What the model answers from now on. */
  script(script: Script): Promise<void>;
  /** The messages of every request for a completion, in order. */
  requests(): Promise<{ role: string; content: unknown }[][]>;
  /** The last user text of each request, in order. */
  told(): Promise<string[]>;
  /** Waits until the newest server process has a subscription. */
  settle(): Promise<void>;
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
    const requests = async () =>
      (await model.completions()).map((request) =>
        (request.body as { messages: { role: string; content: unknown }[] }).messages
      );
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
        script: (script) => model.script(script),
        requests,
        told: async () =>
          (await requests()).map((messages) => {
            const { content } = messages.findLast((message) => message.role === "user")!;
            return typeof content === "string" ? content : (content as { text: string }[])[0]!.text;
          }),
        settle: async () => {
          while (!(await servers.subscribed()).some((uris) => uris.length > 0)) {
            await new Promise((resolve) => setTimeout(resolve, 20));
          }
        },
      });
    } finally {
      for (const daemon of running) await daemon[Symbol.asyncDispose]();
    }
  });
}

const WATCHING = (line: Line) => line.event === "mcp.connect" && line.comp === "watcher";
const CHANGED = (uri: string) => (line: Line) =>
  line.event === "resource.updated" && line.uri === uri && line.comp === "supervisor";

interface Case {
  name: string;
  uris: string[];
  act: (scene: Scene) => Promise<void>;
}

const CASES: Case[] = [
  {
    name: "an update starts a run that is told the URI, and SIGTERM ends with 0",
    uris: ["mem://inbox/1", "mem://inbox/2", "mem://else"],
    act: async (at) => {
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
    },
  },
  {
    name:
      "a warm session gets a set at once, keeps its transcript, and is taken up after a restart",
    uris: ["mem://a", "mem://b"],
    act: async (at) => {
      const options = [
        ...["--subscribe", "docs:mem://*", "--route", "mem://*=>continue:main,debounce=500ms"],
        "Keep an eye on it",
      ];
      const daemon = at.start(...options);
      await daemon.seen(READY);
      await at.servers.update("mem://a", "mem://b");
      await daemon.seen(FINAL);
      await at.servers.update("mem://a");
      await daemon.seen(FINAL, 2);
      assert.equal(daemon.lines.filter((line) => line.event === "loop.start").length, 1);
      const first = await daemon.stop();
      assert.equal(first.code, 0, first.stderr);

      // While nobody watches, something changes: after the restart each URI possibly changed.
      at.servers.updateSilently("mem://b");
      const again = at.start(...options);
      await again.seen(FINAL);
      const second = await again.stop();
      assert.equal(second.code, 0, second.stderr);
      const told = await at.told();
      assert.equal(told[0], "Keep an eye on it\nChanged:\n- mem://a\n- mem://b");
      assert.equal(told[1], "Keep an eye on it\nChanged:\n- mem://a");
      assert.match(told[2]!, /possibly changed[^]*mem:\/\/a[^]*mem:\/\/b/);
      const runs = (lines: Line[]) =>
        new Set(lines.filter((line) => line.event === "loop.final").map((line) => line.run_id));
      assert.deepEqual([...runs(again.lines)], [...runs(daemon.lines)], "one run over the restart");
      const last = (await at.requests()).at(-1)!;
      assert(
        last.filter((message) => message.role === "user").length >= 3,
        "the transcript is kept",
      );
    },
  },
  {
    name: "the watcher's server dies: it is restarted, and what changed meanwhile is not lost",
    uris: ["mem://a"],
    act: async (at) => {
      const daemon = at.start("--subscribe", "docs:mem://a", "Look");
      await daemon.seen(READY);
      await at.servers.exit();
      at.servers.updateSilently("mem://a");
      await daemon.seen(CHANGED("mem://a"));
      await daemon.seen(FINAL);
      // The watcher itself dies: it is started again, and each watched URI possibly changed.
      const watcher = daemon.lines.find((line) => line.event === "subagent.spawn")!;
      const watching = daemon.lines.filter(WATCHING).length;
      Deno.kill(watcher.child_pid, "SIGKILL");
      await daemon.seen((line) => line.event === "subagent.restart");
      await daemon.seen(WATCHING, watching + 1);
      await daemon.seen((line) => CHANGED("mem://a")(line) && line.possibly);
      await daemon.seen(FINAL, 2);
      const before = daemon.lines.filter(FINAL).length;
      await at.settle();
      await at.servers.update("mem://a");
      await daemon.seen(FINAL, before + 1);
      const end = await daemon.stop();
      assert.equal(end.code, 0, end.stderr);
    },
  },
  {
    name: "the model is out: the change waits, and is told when the model is back",
    uris: ["mem://a"],
    act: async (at) => {
      await at.script({ replies: [{ status: 503 }], loop: true });
      const daemon = at.start("--subscribe", "docs:mem://a", "Look");
      await daemon.seen(READY);
      await at.servers.update("mem://a");
      await daemon.seen((line) => line.event === "loop.final" && line.abort === "intelligence");
      await at.script({ replies: [{ text: "seen" }], loop: true });
      await daemon.seen((line) => line.event === "loop.final" && line.status === "completed");
      const end = await daemon.stop();
      assert.equal(end.code, 0, end.stderr);
      assert.equal(end.stdout, "seen\n");
    },
  },
  {
    name: "an agent is killed: its change is told again",
    uris: ["mem://a"],
    act: async (at) => {
      await at.script({ replies: [{ hang: true }], loop: true });
      const daemon = at.start("--subscribe", "docs:mem://a", "Look");
      await daemon.seen(READY);
      await at.servers.update("mem://a");
      const spawned = await daemon.seen(
        (line) => line.event === "subagent.spawn" && line.deadline_ms < 1e9,
      );
      while ((await at.requests()).length === 0) await new Promise((done) => setTimeout(done, 20));
      await at.script({ replies: [{ text: "seen" }], loop: true });
      Deno.kill(spawned.child_pid, "SIGKILL");
      await daemon.seen((line) => line.event === "loop.final" && line.status === "completed");
      const end = await daemon.stop();
      assert.equal(end.code, 0, end.stderr);
      assert.equal(end.stdout, "seen\n");
    },
  },
  {
    name: "SIGTERM keeps what was queued and in flight for the next start",
    uris: ["mem://a", "mem://b", "mem://c"],
    act: async (at) => {
      await at.script({ replies: [{ hang: true }], loop: true });
      const options = [
        ...["--subscribe", "docs:mem://*", "--route", "mem://*=>spawn,max_inflight=1,debounce=1ms"],
        "Look",
      ];
      const daemon = at.start(...options);
      await daemon.seen(READY);
      await at.servers.update("mem://a");
      await daemon.seen((line) => line.event === "mcp.connect" && line.comp === "loop");
      await at.servers.update("mem://b", "mem://c");
      await daemon.seen(CHANGED("mem://c"));
      const first = await daemon.stop();
      assert.equal(first.code, 0, first.stderr);
      await at.script({ replies: [{ text: "seen" }], loop: true });
      const again = at.start(...options);
      const armed = await again.seen((line) => line.event === "trigger.armed");
      assert.equal(armed.kept, 3);
      await again.seen(FINAL, 3);
      const told = (await at.told()).map((text) => text.split("- ")[1]);
      assert.deepEqual(told.sort(), ["mem://a", "mem://b", "mem://c"]);
      assert.equal((await again.stop()).code, 0);
    },
  },
  {
    name: "an agent subscribes, and so schedules its own wake",
    uris: ["mem://a", "mem://mine"],
    act: async (at) => {
      await at.script({
        replies: [
          { calls: [{ name: "subscribe", arguments: { uri: "mem://mine" } }] },
          { text: "subscribed" },
          { text: "woken" },
        ],
      });
      const daemon = at.start(
        ...["--subscribe", "docs:mem://a", "--route", "mem://a=>continue:main,debounce=10ms"],
        "Look",
      );
      await daemon.seen(READY);
      await at.servers.update("mem://a");
      await daemon.seen(FINAL);
      await daemon.seen((line) => line.event === "subscribe" && line.uri === "mem://mine");
      await daemon.seen(CHANGED("mem://mine"));
      await daemon.seen(FINAL, 2);
      const end = await daemon.stop();
      assert.equal(end.code, 0, end.stderr);
      assert.equal(end.stdout, "subscribed\nwoken\n");
      assert.match((await at.told()).at(-1)!, /- mem:\/\/mine/);
    },
  },
  {
    name: "a server that cannot watch: exit 6, and why",
    uris: ["mem://a"],
    act: async (at) => {
      const command = at.servers.command("no-subscribe").join(" ");
      const daemon = at.start("--mcp", `dumb=${command}`, "--subscribe", "dumb:mem://a", "Look");
      const end = await daemon.ended;
      assert.equal(end.code, 6, end.stderr);
      assert.match(end.stderr, /agentd: .*dumb.*cannot watch/);
    },
  },
  {
    name: "a file that is written starts a run",
    uris: [],
    act: async (at) => {
      await Deno.mkdir(`${at.project}/in`);
      const daemon = at.start("--subscribe", "file:./in/*.txt", "Look");
      await daemon.seen(READY);
      await Deno.writeTextFile(`${at.project}/in/ignored.log`, "x");
      await Deno.writeTextFile(`${at.project}/in/a.txt`, "x");
      await daemon.seen(FINAL);
      const end = await daemon.stop();
      assert.equal(end.code, 0, end.stderr);
      assert.deepEqual(await at.told(), [`Look\nChanged:\n- ${at.project}/in/a.txt`]);
    },
  },
];

CASES.push(
  {
    name: "over HTTP, in the protocol's second era: an agent's own change wakes the next one",
    uris: [],
    act: async (at) => {
      await using server = await startModern();
      await at.script({
        replies: [
          { calls: [{ name: "modern__change", arguments: {} }] },
          { text: "changed" },
          { text: "seen" },
        ],
      });
      const daemon = at.start(
        ...["--mcp", `modern=${server.url}`, "--allow-insecure"],
        ...["--subscribe", "modern:mem://*", "--subscribe", "file:./go", "Look"],
      );
      await daemon.seen(READY);
      await Deno.writeTextFile(`${at.project}/go`, "x");
      await daemon.seen(CHANGED("mem://a"));
      await daemon.seen(FINAL, 2);
      const end = await daemon.stop();
      assert.equal(end.code, 0, end.stderr);
      assert.equal(end.stdout, "changed\nseen\n");
    },
  },
  {
    name: "a real server that others wrote is subscribed to",
    uris: [],
    act: async (at) => {
      const script = await realServer("everything");
      const daemon = at.start(
        ...[
          "--mcp",
          `real=node ${script}`,
          "--subscribe",
          "real:demo://resource/static/**",
          "Look",
        ],
      );
      await daemon.seen(READY);
      await daemon.seen((line) => WATCHING(line) && line.server === "real");
      assert.equal((await daemon.stop()).code, 0);
    },
  },
);

/** A server of the second era over HTTP. */
async function startModern(): Promise<{ url: string; [Symbol.asyncDispose](): Promise<void> }> {
  const child = new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "--quiet",
      "--no-prompt",
      "--allow-all",
      decodeURIComponent(new URL("../fakes/modern_server.ts", import.meta.url).pathname),
      "http",
    ],
    stdin: "null",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const reader = child.stdout.getReader();
  const { value } = await reader.read();
  const port = Number(new TextDecoder().decode(value).trim());
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await reader.cancel();
      await child.status;
    },
  };
}

for (const program of programs()) {
  for (const { name, uris, act } of CASES) {
    Deno.test(`reactive (${program.name}): ${name}`, () => scene(program, uris, act));
  }
}
