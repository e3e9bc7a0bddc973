/** The example hooks, each in a real run of the program that they are written for. */

import assert from "node:assert/strict";
import { programs } from "../../tests/program.ts";
import { runProgram, withDirectory } from "../../tests/spec/harness.ts";
import { type ScriptReply, startModelServer } from "../../tests/fakes/model_server_process.ts";

const HERE = decodeURIComponent(new URL(".", import.meta.url).pathname);

const write = (path: string, content: string): ScriptReply => ({
  calls: [{ name: "fs__write", arguments: { path, content } }],
});

interface Scene {
  project: string;
  /** Runs the program there with these replies of the model and these arguments. */
  // deno-lint-ignore no-explicit-any
  agentd(replies: ScriptReply[], ...args: string[]): Promise<{ json: any; sent: string }>;
}

/** Every program with every example: their number is that of a test's runs. */
function example(name: string, test: (scene: Scene) => Promise<void>): void {
  for (const program of programs()) {
    Deno.test(`${name} (${program.name})`, () =>
      withDirectory(async ({ project, runs }) => {
        await using server = await startModelServer();
        await test({
          project,
          async agentd(replies, ...args) {
            await server.script({ replies });
            const ran = await runProgram(program, {
              args: [
                ...["run", "Do it", "--intelligence", server.url, "--run-dir", runs],
                ...["--output", "json", ...args],
              ],
              cwd: project,
            });
            assert.ok(ran.json, ran.stderr.slice(-2_000));
            return { json: ran.json, sent: JSON.stringify((await server.completions()).at(-1)) };
          },
        });
      }));
  }
}

example("block_writes.mjs: files below its folders only, whatever the way there", async (scene) => {
  const { project, agentd } = scene;
  await Deno.mkdir(`${project}/out`);
  await Deno.symlink(project, `${project}/out/up`);
  const { json, sent } = await agentd(
    [
      {
        calls: [
          "out/a.txt",
          "out/new/b.txt",
          "c.txt",
          "out/../d.txt",
          "out/up/e.txt",
          "outer/f.txt",
        ]
          .map((path) => ({ name: "fs__write", arguments: { path, content: path } })),
      },
      { text: "Done." },
    ],
    "--allow-write=.",
    "--hook",
    `before_action=node ${HERE}block_writes.mjs out`,
  );
  assert.equal(json.status, "completed");
  const made = [...Deno.readDirSync(project)].map((entry) => entry.name).sort();
  assert.deepEqual(made, ["out"]);
  assert.equal(Deno.readTextFileSync(`${project}/out/a.txt`), "out/a.txt");
  assert.equal(Deno.readTextFileSync(`${project}/out/new/b.txt`), "out/new/b.txt");
  for (const path of ["c.txt", "out/../d.txt", "out/up/e.txt", "outer/f.txt"]) {
    assert.ok(sent.includes(`blocked by a hook: ${path} is outside out; write there`), path);
  }
});

example("redact.mjs: what its patterns match reaches neither model nor record", async (scene) => {
  const { project, agentd } = scene;
  await Deno.writeTextFile(`${project}/a.txt`, "Ask jo.do+x@mail.example.org about ACME-77.\n");
  const read: ScriptReply = { calls: [{ name: "fs__read", arguments: { path: "a.txt" } }] };
  for (
    const [patterns, expected] of [
      ["", "Ask [redacted] about ACME-77."],
      [" 'ACME-[0-9]+' 'jo[.]'", "Ask [redacted]do+x@mail.example.org about [redacted]."],
    ] as const
  ) {
    const { json, sent } = await agentd(
      [read, { text: "Done." }],
      "--allow-read=.",
      "--hook",
      `after_observation=node ${HERE}redact.mjs${patterns}`,
    );
    assert.equal(json.status, "completed");
    assert.ok(sent.includes(expected), sent);
    assert.ok(Deno.readTextFileSync(json.record).includes(expected));
  }
});

example("notify.mjs: posts every end; an endpoint that fails holds up nothing", async (scene) => {
  const posted: string[] = [];
  let status = 200;
  const hook = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    async (request) => {
      posted.push((await request.json()).text);
      return new Response(null, { status });
    },
  );
  try {
    const notify = [
      "--hook",
      `on_stop=node ${HERE}notify.mjs http://127.0.0.1:${hook.addr.port}/x`,
    ];
    const done = await scene.agentd([{ text: "Done." }], ...notify);
    assert.equal(done.json.exit_code, 0);
    const denied = await scene.agentd(
      [{ status: 401, body: { error: { message: "no" } } }],
      ...notify,
    );
    assert.equal(denied.json.exit_code, 4);
    status = 500;
    const deaf = await scene.agentd([{ text: "Done." }], ...notify);
    assert.equal(deaf.json.exit_code, 0);
    assert.equal(posted[0], `agentd ${done.json.run_id}: completed`);
    assert.ok(posted[1]!.startsWith(`agentd ${denied.json.run_id}: abort intelligence (auth`));
    assert.equal(posted.length, 3);
  } finally {
    await hook.shutdown();
  }
});

example(
  "commit_on_stop.mjs: commits once done; what git refuses goes to the model",
  async (scene) => {
    const { project, agentd } = scene;
    const git = async (...args: string[]): Promise<string> => {
      const { success, stdout, stderr } = await new Deno.Command("git", { args, cwd: project })
        .output();
      assert.ok(success, new TextDecoder().decode(stderr));
      return new TextDecoder().decode(stdout).trim();
    };
    await git("init", "--quiet");
    await git("config", "user.name", "Test");
    await git("config", "user.email", "test@example.org");
    await Deno.writeTextFile(
      `${project}/.git/hooks/pre-commit`,
      "#!/bin/sh\ntest ! -e bad.txt || { echo bad.txt is not allowed >&2; exit 1; }\n",
      { mode: 0o755 },
    );
    const commit = [
      "--allow-write=.",
      "--hook",
      `on_stop=node ${HERE}commit_on_stop.mjs`,
    ];
    const first = await agentd([write("a.txt", "a\n"), { text: "a.txt is there." }], ...commit);
    assert.equal(first.json.status, "completed");
    assert.equal(await git("log", "--format=%B"), `agentd ${first.json.run_id}\n\na.txt is there.`);
    assert.equal(await git("status", "--porcelain"), "");

    const refused = await agentd(
      [write("bad.txt", "b\n"), { text: "Done." }, {
        calls: [{ name: "task_refuse", arguments: { reason: "git will not" } }],
      }],
      ...commit,
    );
    assert.equal(refused.json.status, "refused");
    assert.match(refused.sent, /git refused: bad\.txt is not allowed/);
    assert.equal(await git("rev-list", "--count", "HEAD"), "1");

    await Deno.remove(`${project}/bad.txt`);
    await git("reset", "--quiet");
    const nothing = await agentd([{ text: "Nothing to do." }], ...commit);
    assert.equal(nothing.json.status, "completed");
    assert.equal(await git("rev-list", "--count", "HEAD"), "1");
  },
);
