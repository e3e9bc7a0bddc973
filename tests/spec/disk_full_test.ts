/** The record from outside: a disk that takes no more while a run is recorded, a real one. */

import assert from "node:assert/strict";
import { programs } from "../program.ts";
import { type Script, startModelServer } from "../fakes/model_server_process.ts";
import { runProgram, withDirectory } from "./harness.ts";

const FILES = 30;
const FILE_BYTES = 15_000;

const SCRIPT: Script = {
  by: "turn",
  replies: [
    ...Array.from({ length: FILES }, (_, i) => ({
      calls: [{ name: "fs__read", arguments: { path: `${i}.txt` } }],
    })),
    { text: "All is read." },
  ],
};

async function run(command: string, ...args: string[]): Promise<boolean> {
  const output = await new Deno.Command(command, { args, stdout: "null", stderr: "null" }).output()
    .catch(() => null);
  return output?.success ?? false;
}

/** A small disk of its own; needs a user who may mount. */
async function mount(path: string, size: string): Promise<boolean> {
  await Deno.mkdir(path, { recursive: true });
  return await run("mount", "-t", "tmpfs", "-o", `size=${size}`, "tmpfs", path);
}

async function canMount(): Promise<boolean> {
  if (Deno.build.os !== "linux") return false;
  const path = await Deno.makeTempDir({ prefix: "agentd-mount-" });
  const mounted = await mount(path, "64k");
  if (mounted) await run("umount", path);
  await Deno.remove(path);
  return mounted;
}

const ignore = !await canMount();

for (const program of programs()) {
  Deno.test({
    name:
      `disk full (${program.name}): crashed, a clear message, a readable record, resumed with room`,
    ignore,
    fn: () =>
      withDirectory(async ({ project, runs }) => {
        await using server = await startModelServer(SCRIPT);
        for (let i = 0; i < FILES; i++) {
          const line = `${i} `.repeat(40) + "\n";
          await Deno.writeTextFile(
            `${project}/${i}.txt`,
            line.repeat(Math.ceil(FILE_BYTES / line.length)),
          );
        }
        assert.ok(await mount(runs, "200k"));
        try {
          const start = (...args: string[]) =>
            runProgram(program, {
              args: [...args, "--run-dir", runs, "--output", "json"],
              cwd: project,
            });
          const url = ["--intelligence", server.url];
          const full = await start("run", "Read", ...url, "--allow-read=.", "--run-id", "full");
          assert.equal(full.code, 1, full.stderr.slice(-2_000));
          assert.equal(full.json.status, "crashed");
          assert.match(full.json.reason, /^Cannot write the record: no space left \(/);
          assert.ok(full.json.usage.steps > 5 && full.json.usage.steps < FILES);
          assert.match(full.stderr, /"event":"loop.final".*no space left/);

          const replayed = await start("replay", "full");
          assert.equal(replayed.code, 0, replayed.stdout);
          const trace = (await start("inspect", "full")).json;
          assert.equal(trace.agents[0].end.status, "crashed");
          assert.equal(Deno.statSync(`${runs}/full/record.jsonl`).mode! & 0o777, 0o600);

          // Not even a first line has room: it says so, and leaves nothing that cannot be read.
          await Deno.writeFile(`${runs}/filler`, new Uint8Array(512 * 1024)).catch(() => {});
          const none = await start("run", "Read", ...url, "--allow-read=.", "--run-id", "none");
          assert.equal(none.code, 1, none.stderr.slice(-2_000));
          assert.match(none.json.reason, /no space left/);
          await Deno.remove(`${runs}/filler`);

          assert.ok(await run("mount", "-o", "remount,size=8m", runs));
          const resumed = await start("resume", "full");
          assert.equal(resumed.code, 0, resumed.stderr.slice(-2_000));
          assert.equal(resumed.json.result, "All is read.");
          assert.equal(resumed.json.usage.steps, FILES + 1);
          assert.equal((await start("replay", "full")).code, 0);
        } finally {
          await run("umount", runs);
        }
      }),
  });

  Deno.test({
    name: `disk full (${program.name}): init leaves no half file, a recording lost is told`,
    ignore,
    fn: () =>
      withDirectory(async ({ project, runs }) => {
        await using server = await startModelServer({ replies: [{ text: "done" }], loop: true });
        const disk = `${project}/disk`;
        assert.ok(await mount(disk, "64k"));
        try {
          await Deno.writeFile(`${disk}/filler`, new Uint8Array(128 * 1024)).catch(() => {});
          const start = (...args: string[]) => runProgram(program, { args, cwd: disk });
          const init = await start("init");
          assert.equal(init.code, 1);
          assert.match(init.stderr, /Cannot write agentd\.yaml: .*No space left/);
          assert.deepEqual([...Deno.readDirSync(disk)].map(({ name }) => name), ["filler"]);

          const ran = await start(
            ...["run", "Go", "--intelligence", server.url, "--run-dir", runs],
            ...["--record-model", "replies.jsonl", "--log-format", "text"],
          );
          assert.equal(ran.stdout, "done\n");
          assert.match(ran.stderr, /^error: Cannot hand over the recording, .*No space left/m);
          assert.deepEqual([...Deno.readDirSync(disk)].map(({ name }) => name), ["filler"]);
        } finally {
          await run("umount", disk);
        }
      }),
  });
}
