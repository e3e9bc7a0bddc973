import assert from "node:assert/strict";
import type { RunsPort, SessionListener } from "../../src/ports/runs.ts";
import { success } from "../../src/core/outcome.ts";
import { createRuns } from "../../src/supervisor/runs.ts";
import { systemClock } from "../../src/sys/clock.ts";
import { systemFiles } from "../../src/sys/files.ts";
import { systemLock } from "../../src/sys/lock.ts";
import { systemRandom } from "../../src/sys/random.ts";
import { systemProgram } from "../../src/sys/self.ts";
import { systemSignals } from "../../src/sys/signals.ts";
import type { AgentResult } from "../../src/wire/result.ts";
import { SettlingProcess } from "../fakes/settling_process.ts";
import { assertGone, posixTest, withDirectory } from "./harness.ts";
import { makeSettings } from "./settings.ts";

const root = decodeURIComponent(new URL("../..", import.meta.url).pathname).replace(/\/$/, "");
const main = new URL("./main.ts", import.meta.url).href;

/** Runs over the supervised program, with how many processes were started. */
function openRuns(
  directory: string,
  script: Record<string, unknown>,
): { runs: RunsPort; started(): number } & AsyncDisposable {
  let started = 0;
  const process = new SettlingProcess();
  const runs = createRuns(makeSettings({ script, directory }), {
    pid: Deno.pid,
    clock: systemClock,
    random: systemRandom,
    process: {
      ...process,
      spawn: (spec) => {
        started++;
        return process.spawn({ ...spec, stderr: "null" });
      },
    },
    signals: systemSignals,
    files: systemFiles,
    lock: systemLock,
    program: systemProgram(main, root),
    env: (name) => Deno.env.get(name),
    openTelemetry: () => ({ emit: () => {} }),
  });
  return {
    runs,
    started: () => started,
    [Symbol.asyncDispose]: () => process[Symbol.asyncDispose](),
  };
}

function listen(): { listener: SessionListener; delivered(id: string): Promise<AgentResult> } {
  const waiting = new Map<string, PromiseWithResolvers<AgentResult>>();
  const of = (id: string) => {
    if (!waiting.has(id)) waiting.set(id, Promise.withResolvers());
    return waiting.get(id)!;
  };
  return {
    listener: {
      delivered: (id, result) => of(id).resolve(result),
      subscribe: () => Promise.resolve(success("subscribed")),
    },
    delivered: (id) => of(id).promise,
  };
}

posixTest(
  "createRuns: a fresh run ends once; what came with its trigger is an artifact",
  () =>
    withDirectory(async (directory) => {
      await using opened = openRuns(directory, {});
      const { runs } = opened;
      const bytes = new TextEncoder().encode("a body");
      const handle = runs.start({
        runId: "one",
        instruction: JSON.stringify({ do: "complete" }),
        attachments: [{ name: "push!", mimeType: "text/plain", bytes }],
        session: null,
      });
      const { result } = await handle.ended;
      assert.equal(result.status, "completed");
      const [file] = [...Deno.readDirSync(`${directory}/runs/one/artifacts`)];
      assert.match(file!.name, /^trigger-push--[0-9a-f]{12}$/);
      assert.equal(
        Deno.readTextFileSync(`${directory}/runs/one/artifacts/${file!.name}`),
        "a body",
      );

      const again = runs.start({ runId: "one", instruction: null, attachments: [], session: null });
      assert.match((await again.ended).result.reason, /exists already/);
      await assertGone(directory);
    }),
);

posixTest(
  "createRuns: a warm session takes deliveries until it is cancelled",
  () =>
    withDirectory(async (directory) => {
      await using opened = openRuns(directory, { do: "wait" });
      const { runs } = opened;
      const { listener, delivered } = listen();
      const handle = runs.start(
        {
          runId: "warm",
          instruction: null,
          attachments: [],
          session: { name: "s", resume: false },
        },
        listener,
      );
      handle.deliver({ id: "a", instruction: "first", uris: [] }, []);
      assert.equal((await delivered("a")).result, "first");
      const bytes = new Uint8Array([1]);
      handle.deliver({ id: "b", instruction: "second", uris: [] }, [{
        name: "x",
        mimeType: "a/b",
        bytes,
      }]);
      assert.match(
        String((await delivered("b")).result),
        /^second\n\ntrigger x: 1 bytes of a\/b, kept as the artifact trigger-x-/,
      );
      handle.cancel("drain");
      assert.equal((await handle.ended).result.status, "cancelled");
      handle.deliver({ id: "c", instruction: "late", uris: [] }, []);
      assert.match((await delivered("c")).reason, /does not take deliveries/);
      await assertGone(directory);
    }),
);

posixTest(
  "createRuns: a session that crashes as it starts is not started again for a while",
  () =>
    withDirectory(async (directory) => {
      await using opened = openRuns(directory, { do: "throw" });
      const { runs, started } = opened;
      const open = async () => {
        const session = { name: "s", resume: true };
        const handle = runs.start({ runId: "warm", instruction: null, attachments: [], session });
        return (await handle.ended).result.reason;
      };
      for (let i = 0; i < 3; i++) assert.match(await open(), /the loop broke/);
      assert.match(await open(), /^the circuit is open: it crashed 3 times in a row as it started/);
      assert.equal(started(), 3);
      await assertGone(directory);
    }),
);

posixTest(
  "createRuns: a watcher reports what changed, takes up more, is stopped, leaves nothing",
  () =>
    withDirectory(async (directory) => {
      await using opened = openRuns(directory, { do: "throw" });
      const { runs } = opened;
      const connected = Promise.withResolvers<readonly string[]>();
      const updates: string[] = [];
      let more = Promise.withResolvers<void>();
      const watcher = runs.watch(["docs:mem://a"], false, {
        connected: connected.resolve,
        updated: (server, uri) => {
          updates.push(`${server} ${uri}`);
          more.resolve();
        },
      });
      assert.deepEqual(await connected.promise, ["docs"]);
      await more.promise;
      more = Promise.withResolvers();
      watcher.watch(["docs:mem://b"], []);
      await more.promise;
      assert.deepEqual(updates, ["docs mem://a", "docs mem://b"]);
      watcher.stop();
      assert.equal(await watcher.ended, null);
      await assertGone(directory);
      assert.deepEqual([...Deno.readDirSync(`${directory}/state/watchers`)], []);
    }),
);

posixTest(
  "createRuns: a run's subagents are spawned, listed, cancelled, refused; tokens are the tree's",
  () =>
    withDirectory(async (directory) => {
      await using opened = openRuns(directory, {});
      const { runs, started } = opened;
      const spawn = (script: unknown, more = {}) => ({
        type: "request",
        op: "spawn",
        arguments: { objective: JSON.stringify(script), disposition: "async", ...more },
      });
      const progress = {
        v: 1,
        type: "progress",
        progress: { step: 1, tokens: 40, doing: "model" },
      };
      const tell = { type: "tell", message: { type: "forward", frame: progress } };
      const handle = runs.start({
        runId: "tree",
        instruction: JSON.stringify({
          do: "ask",
          steps: [
            spawn({ do: "ask", steps: [tell, { type: "wait" }] }),
            spawn({ do: "ask", steps: [spawn({ do: "wait" }), { type: "wait" }] }),
            spawn({}, { disposition: "never" }),
            { type: "request", op: "child_status", arguments: { ids: ["0.1"] } },
            { type: "request", op: "child_cancel", arguments: { id: "0.1" } },
            { type: "request", op: "child_cancel", arguments: { id: "0.9" } },
            { type: "request", op: "subscribe", arguments: { uri: "mem://x" } },
            { type: "await_children", count: 1 },
          ],
        }),
        attachments: [],
        session: null,
      });
      const { result } = await handle.ended;
      assert.equal(result.status, "completed", result.reason);
      type Reply = { ok: boolean; value: { path?: string; why?: string } };
      const [one, two, never, status, cancelled, unknown, subscribed, ends] = result
        .result as unknown as [
          Reply,
          Reply,
          Reply,
          { value: { path: string }[] },
          Reply,
          Reply,
          Reply,
          { path: string }[],
        ];
      assert.deepEqual([one.value.path, two.value.path, never.ok], ["0.1", "0.2", false]);
      assert.deepEqual(status.value.map(({ path }) => path), ["0.1"]);
      assert.deepEqual([cancelled.ok, unknown.ok, subscribed.ok], [true, false, false]);
      assert.deepEqual(ends.map(({ path }) => path), ["0.1"]);
      assert.match(result.reason, /cancelled subagents: 0.2/);
      assert.ok(started() >= 3);
      assert.equal(handle.tokens() % 40, 0);
      await assertGone(directory);
    }),
);
