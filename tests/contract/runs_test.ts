/** The contract of ports/runs.ts, held by the fake and by real agent processes alike. */

import assert from "node:assert/strict";
import { Vault } from "../../src/core/secret.ts";
import type { RunsPort } from "../../src/ports/runs.ts";
import { createRuns } from "../../src/supervisor/runs.ts";
import { systemLock } from "../../src/sys/lock.ts";
import { systemPorts } from "../../src/sys/system.ts";
import { startModelServer } from "../fakes/model_server_process.ts";
import { completed, FakeRuns } from "../fakes/runs.ts";
import { SettlingProcess } from "../fakes/settling_process.ts";
import { UpdatingServers } from "../fakes/updating_servers.ts";
import { makeSettings } from "../supervised/settings.ts";

interface Stage {
  runs: RunsPort;
  /** From now on agents answer `done`, or hang. */
  answers(how: "done" | "hang"): Promise<void>;
  /** A watched resource changes. */
  update(uri: string): Promise<void>;
}

async function onFake(act: (stage: Stage) => Promise<void>): Promise<void> {
  const runs = new FakeRuns();
  let how = "done";
  runs.onStart = (run) => {
    if (run.request.session === null && how === "done") run.end(completed({ result: "done" }));
  };
  runs.onDeliver = (run) => {
    if (how === "done") run.answer(completed({ result: "done" }));
  };
  runs.onWatch = (watcher) => watcher.listener.connected(["docs"]);
  await act({
    runs,
    answers: (next) => {
      how = next;
      return Promise.resolve();
    },
    update: (uri) => {
      runs.watchers.at(-1)!.listener.updated("docs", uri, false);
      return Promise.resolve();
    },
  });
}

async function onProcesses(act: (stage: Stage) => Promise<void>): Promise<void> {
  const directory = await Deno.realPath(await Deno.makeTempDir());
  try {
    await using model = await startModelServer({ replies: [{ text: "done" }], loop: true });
    const servers = new UpdatingServers(`${directory}/server`, ["mem://a"]);
    const [command, ...args] = servers.command();
    const settings = makeSettings({ script: {}, directory });
    settings.task.instruction = "Go";
    settings.model.name = "scripted";
    settings.model.endpoints = [{
      url: model.url,
      kind: "http",
      dialect: "openai",
      token: null,
      headers: {},
      probe: false,
      recording: null,
    }];
    settings.servers = [{
      kind: "stdio",
      name: "docs",
      command: command!,
      args,
      env: {},
      cwd: directory,
      required: true,
      startTimeoutMs: 20_000,
      sandbox: "none",
    }];
    settings.vault = new Vault();
    await using process = new SettlingProcess();
    const ports = systemPorts(new URL("../../main.ts", import.meta.url).href);
    await act({
      runs: createRuns(settings, {
        ...ports,
        process,
        lock: systemLock,
        openTelemetry: () => ({ emit() {} }),
      }),
      answers: (how) =>
        model.script({ replies: [how === "done" ? { text: "done" } : { hang: true }], loop: true }),
      update: (uri) => servers.update(uri),
    });
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}

const FRESH = { instruction: null, attachments: [], session: null };

const CASES: { name: string; act: (stage: Stage) => Promise<void> }[] = [
  {
    name: "a run ends once, under its id",
    act: async ({ runs }) => {
      const handle = runs.start({ ...FRESH, runId: "one" });
      assert.equal(handle.runId, "one");
      const end = await handle.ended;
      assert.deepEqual([end.runId, end.result.status, end.result.result], [
        "one",
        "completed",
        "done",
      ]);
      handle.cancel("drain");
      handle.kill();
    },
  },
  {
    name: "a cancelled run ends, also when it is cancelled twice or at once",
    act: async ({ runs, answers }) => {
      await answers("hang");
      for (const runId of ["two", "three"]) {
        const handle = runs.start({ ...FRESH, runId });
        handle.cancel("drain");
        handle.cancel("drain");
        assert.equal((await handle.ended).result.status, "cancelled");
      }
    },
  },
  {
    name: "a killed run ends",
    act: async ({ runs, answers }) => {
      await answers("hang");
      const handle = runs.start({ ...FRESH, runId: "four" });
      handle.kill();
      const { status } = (await handle.ended).result;
      assert(status === "crashed" || status === "cancelled", String(status));
    },
  },
  {
    name: "a session answers its deliveries in order, by their ids, and ends when it is told",
    act: async ({ runs }) => {
      const delivered: string[] = [];
      let news = Promise.withResolvers<void>();
      const handle = runs.start(
        { ...FRESH, runId: "five", session: { name: "main", resume: false } },
        {
          delivered: (id, result) => {
            delivered.push(`${id} ${result.status} ${result.result}`);
            news.resolve();
          },
          subscribe: () => Promise.resolve({ ok: true, value: null }),
        },
      );
      for (const id of ["d1", "d2"]) {
        news = Promise.withResolvers<void>();
        handle.deliver({ id, instruction: `Go ${id}`, uris: ["mem://a"] }, []);
        await news.promise;
      }
      assert.deepEqual(delivered, ["d1 completed done", "d2 completed done"]);
      handle.cancel("drain");
      assert.equal((await handle.ended).runId, "five");
    },
  },
  {
    name: "a watcher connects, reports what changed, and ends with null when it is stopped",
    act: async ({ runs, update }) => {
      const connected = Promise.withResolvers<void>();
      const updated = Promise.withResolvers<string>();
      const handle = runs.watch(["docs:mem://*"], false, {
        connected: () => connected.resolve(),
        updated: (server, uri, possibly) => updated.resolve(`${server} ${uri} ${possibly}`),
      });
      await connected.promise;
      await update("mem://a");
      assert.equal(await updated.promise, "docs mem://a false");
      handle.stop();
      assert.equal(await handle.ended, null);
      handle.kill();
    },
  },
];

for (const { name, act } of CASES) {
  Deno.test(`RunsPort, fake: ${name}`, () => onFake(act));
  Deno.test(`RunsPort, processes: ${name}`, () => onProcesses(act));
}
