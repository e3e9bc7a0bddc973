import assert from "node:assert/strict";
import fc from "fast-check";
import { RESOURCES_MAX, STATE_BYTES_MAX } from "../core/limits.ts";
import { systemFiles } from "../sys/files.ts";
import { makeSettings } from "../../tests/supervised/settings.ts";
import {
  daemonName,
  type DaemonState,
  emptyState,
  loadState,
  saveState,
  setAside,
} from "./state.ts";

async function withFile(act: (path: string) => void): Promise<void> {
  const directory = await Deno.makeTempDir();
  try {
    act(`${directory}/x.json`);
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}

const FULL: DaemonState = {
  schedule: { plan: "interval 5ms", anchorMs: 1, lastSlotMs: 2, queuedSlotMs: 3 },
  watched: true,
  sessions: [{
    name: "main",
    runId: "r",
    startedWallMs: 5,
    begun: true,
    subscriptions: ["docs:mem://x"],
  }],
  pending: [
    { server: "docs", uri: "mem://a", kind: "possibly", runId: null, body: null, tries: 0 },
    {
      server: "trigger",
      uri: "deploy",
      kind: "changed",
      runId: "r2",
      body: { path: "/x", mimeType: "text/plain", name: "deploy" },
      tries: 2,
    },
  ],
};

Deno.test("loadState: what was saved, nothing for no file, private to its user", () =>
  withFile((path) => {
    assert.deepEqual(loadState(systemFiles, path), { ok: true, value: emptyState() });
    for (const state of [emptyState(), FULL]) {
      assert(saveState(systemFiles, path, state).ok);
      assert.deepEqual(loadState(systemFiles, path), { ok: true, value: { ...state } });
    }
    if (Deno.build.os !== "windows") assert.equal(Deno.statSync(path).mode! & 0o777, 0o600);
  }));

Deno.test("loadState: whatever is in the file, a value and never a throw; corrupt is set aside", () =>
  withFile((path) => {
    const text = JSON.stringify({ v: 1, ...FULL });
    const rows: [string, string][] = [
      ["", "corrupt"],
      ["null", "corrupt"],
      ["[]", "corrupt"],
      ["{}", "corrupt"],
      [text.slice(0, -5), "corrupt"],
      [text.replace('"v":1', '"v":2'), "newer"],
      [text.replace('"v":1', '"v":0'), "corrupt"],
      [text.replace('"anchorMs":1', '"anchorMs":"1"'), "corrupt"],
      [text.replace('"tries":2', '"tries":1e99'), "corrupt"],
      [text.replace('"kind":"changed"', '"kind":"other"'), "corrupt"],
      [text.replace('"begun":true', '"begun":1'), "corrupt"],
    ];
    for (const [content, expected] of rows) {
      Deno.writeTextFileSync(path, content);
      const loaded = loadState(systemFiles, path);
      assert.equal(loaded.ok ? "ok" : loaded.failure.class, expected, content);
    }
    setAside(systemFiles, path);
    assert.equal(Deno.readTextFileSync(`${path}.corrupt`), rows.at(-1)![0]);
    assert.throws(() => Deno.statSync(path));
    fc.assert(
      fc.property(fc.json(), (content) => {
        Deno.writeTextFileSync(path, content);
        loadState(systemFiles, path);
      }),
      { numRuns: 50 },
    );
  }));

Deno.test("saveState, loadState: whatever queues can hold is kept; one too large is neither written nor removed", () =>
  withFile((path) => {
    const [change] = FULL.pending;
    const pending = (count: number) =>
      Array.from({ length: count }, (_, i) => ({ ...change!, uri: `mem://${i}`, body: null }));
    const full = { ...FULL, pending: pending(8 * RESOURCES_MAX) };
    assert(saveState(systemFiles, path, full).ok);
    const loaded = loadState(systemFiles, path);
    assert(loaded.ok);
    assert.equal(loaded.value.pending.length, 8 * RESOURCES_MAX);
    const kept = Deno.statSync(path).size;
    const over = { ...FULL, pending: pending(STATE_BYTES_MAX / 64) };
    const saved = saveState(systemFiles, path, over);
    assert(!saved.ok);
    assert.match(saved.failure, /^Cannot write the state: \d+ bytes, over 33554432$/);
    assert.equal(Deno.statSync(path).size, kept);
    Deno.truncateSync(path, STATE_BYTES_MAX + 1);
    const large = loadState(systemFiles, path);
    assert.equal(large.ok ? "ok" : large.failure.class, "unreadable");
  }));

Deno.test("daemonName: the lock's, else one per configuration", () => {
  const base = makeSettings({ script: {}, directory: "/w", settings: { mode: "schedule" } });
  const name = daemonName(base);
  assert.match(name, /^schedule-[0-9a-f]{16}$/);
  assert.equal(daemonName({ ...base, listen: ":1", log: { ...base.log, level: "debug" } }), name);
  assert.equal(daemonName({ ...base, lock: "nightly" }), "nightly");
  const others = [
    { ...base, workingDirectory: "/other" },
    { ...base, mode: "reactive" as const },
    { ...base, trigger: { ...base.trigger, cron: "* * * * *" } },
    { ...base, task: { ...base.task, instruction: "else" } },
  ];
  assert.equal(new Set([name, ...others.map(daemonName)]).size, 5);
});
