/** `agentd mcp exec`, driven as any MCP client would: what it runs, and what is left afterwards. */

import assert from "node:assert/strict";
import { toolServerFlags, toolServerRole } from "../../src/toolserver/permissions.ts";
import type { BuiltinServer } from "../../src/wire/payload.ts";
import { NO_PERMISSIONS } from "../../src/wire/permissions.ts";
import { inProcess, type Serving, textOf, ToolClient } from "../fakes/tool_client.ts";
import { programs } from "../program.ts";

const posix = Deno.build.os !== "windows";
const hostile = new URL("../hostile/", import.meta.url).pathname;
const GONE_MS_MAX = 10_000;

/** A word that no other process has in its arguments. */
function marker(): string {
  return `mark-${crypto.randomUUID()}`;
}

/** Process ids with a word in their arguments. */
async function processesWith(word: string): Promise<number[]> {
  const { stdout } = await new Deno.Command("ps", { args: ["-eo", "pid=,args="] }).output();
  return new TextDecoder().decode(stdout).split("\n").filter((line) => line.includes(word))
    .map((line) => Number.parseInt(line, 10));
}

/** Waits until as many processes have the word; fails after a generous bound. */
async function untilProcesses(word: string, count: (pids: number[]) => boolean): Promise<void> {
  const deadline = performance.now() + GONE_MS_MAX;
  for (;;) {
    const pids = await processesWith(word);
    if (count(pids)) return;
    assert.ok(performance.now() < deadline, `still there: ${pids}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const none = (pids: number[]) => pids.length === 0;
const some = (pids: number[]) => pids.length > 0;

async function withServer(
  program: Serving,
  flags: string[],
  act: (client: ToolClient, directory: string) => Promise<void>,
  env: Record<string, string> = {},
): Promise<void> {
  const directory = await Deno.realPath(await Deno.makeTempDir({ prefix: "agentd-exec-" }));
  const client = await ToolClient.start(program, ["exec", ...flags], { cwd: directory, env });
  try {
    await act(client, directory);
  } finally {
    const { code, stderr } = await client.close();
    await Deno.remove(directory, { recursive: true });
    assert.equal(code, 0, stderr);
  }
}

for (const program of posix ? [inProcess, ...programs()] : []) {
  const name = (text: string) => `mcp exec (${program.name}): ${text}`;
  const sh = (script: string, ...args: string[]) => ({ argv: ["sh", "-c", script, ...args] });
  const file = (script: string, mark: string) => ({ argv: ["sh", hostile + script, mark] });

  Deno.test(
    name("runs a program and tells stdout, stderr and the exit status"),
    () =>
      withServer(program, ["--allow-run=sh,cat,printf"], async (client, directory) => {
        const result = await client.call("run", sh("echo out; echo err >&2; exit 3"));
        assert.deepEqual(result.content.map((block) => block.text), [
          "out\n",
          "stderr:\nerr\n",
          "Exit status 3.",
        ]);
        assert.equal(result.isError, false);
        assert.equal(
          await client.ok("run", { argv: ["printf", "%s|", "$HOME", "*", "a b; ls"] }),
          "$HOME|*|a b; ls|\nExit status 0.",
        );
        assert.equal(
          await client.ok("run", { argv: ["cat"], stdin: "é\n" }),
          "é\n\nExit status 0.",
        );
        assert.equal(await client.ok("run", { argv: ["cat"] }), "Exit status 0.", "stdin is empty");
        await Deno.mkdir(`${directory}/sub`);
        assert.match(await client.ok("run", { ...sh("pwd"), cwd: "sub" }), /\/sub\n/);
        assert.match(
          await client.refused("run", { ...sh("pwd"), cwd: "nowhere" }),
          /does not exist/,
        );
        assert.match(await client.refused("run", sh("kill -9 $$")), /Ended by SIGKILL/);
      }),
  );

  // Deno's permissions hold in a Worker only.
  if (program !== inProcess) {
    Deno.test(
      name("what is not granted is refused by Deno itself"),
      () =>
        withServer(program, ["--allow-run=printf"], async (client) => {
          for (
            const argv of [["sh", "-c", "true"], ["/bin/sh"], ["/usr/bin/env"], [
              "cat",
              "/etc/passwd",
            ]]
          ) {
            const text = await client.refused("run", { argv });
            assert.match(text, /not granted\. This server may run printf \(Requires run access to/);
          }
          assert.match(
            await client.refused("run", { argv: ["no-such-program-here"] }),
            /no such program/,
          );
          assert.match(await client.refused("run", { argv: ["./printf"] }), /absolute path/);
          assert.match(await client.refused("run", { argv: ["../bin/sh"] }), /absolute path/);
          assert.match(await client.refused("run", { argv: [] }), /argv is empty/);
          assert.match(await client.refused("run", { argv: "printf x" }), /a list of strings/);
          assert.match(await client.refused("run", { argv: ["printf", "a\0b"] }), /NUL/);
          for (const variable of ["LD_PRELOAD", "DYLD_INSERT_LIBRARIES", "PATH"]) {
            assert.match(
              await client.refused("run", { argv: ["printf", "x"], env: { [variable]: "/tmp" } }),
              /another one/,
            );
          }
          assert.match(
            await client.refused("run", { argv: ["printf"], timeout: 601 }),
            /at most 600/,
          );
        }),
    );
  }

  // Deno's permissions hold in a Worker only.
  if (program !== inProcess) {
    Deno.test(
      name("nothing granted runs nothing"),
      () =>
        withServer(program, [], async (client) => {
          assert.match(await client.refused("run", { argv: ["sh"] }), /may run nothing/);
        }),
    );
  }

  Deno.test(name("commands get a clean environment"), () =>
    withServer(
      program,
      ["--allow-run=env", "--allow-env=AGENTD_TEST_GIVEN"],
      async (client) => {
        const text = await client.ok("run", { argv: ["env"], env: { EXTRA: "more" } });
        const names = [...text.matchAll(/^(\w+)=/gm)].map((match) => match[1]!);
        const clean = ["PATH", "HOME", "LANG", "TMPDIR", "AGENTD_AGENT_ID"];
        const allowed = [...clean, "AGENTD_TEST_GIVEN", "EXTRA"];
        assert.deepEqual(names.filter((variable) => !allowed.includes(variable)), []);
        assert.match(text, /^AGENTD_AGENT_ID=an-agent$/m);
        assert.match(text, /^AGENTD_TEST_GIVEN=given$/m);
        assert.match(text, /^EXTRA=more$/m);
        assert.doesNotMatch(text, /hidden/);
      },
      { AGENTD_AGENT_ID: "an-agent", AGENTD_TEST_GIVEN: "given", AGENTD_TEST_SECRET: "hidden" },
    ));

  Deno.test(
    name("a program that ignores SIGTERM is killed with its group at its time limit"),
    () =>
      withServer(program, ["--allow-run=sh"], async (client) => {
        const mark = marker();
        const script =
          `(trap '' TERM; while :; do sleep 1; done) & trap '' TERM; while :; do sleep 1; done`;
        const text = await client.refused("run", { ...sh(script, mark), timeout: 0.3 });
        assert.match(text, /Timed out after 0\.3 s.*Ended by SIGKILL/);
        assert.deepEqual(await processesWith(mark), []);
        const again = marker();
        await client.refused("run", { ...file("ignore_term.sh", again), timeout: 0.2 });
        assert.deepEqual(await processesWith(again), []);
      }),
  );

  Deno.test(
    name("what a program leaves behind dies with it"),
    () =>
      withServer(program, ["--allow-run=sh"], async (client) => {
        const mark = marker();
        assert.match(await client.ok("run", file("fork_and_exit.sh", mark)), /^Exit status 0\.$/);
        assert.deepEqual(await processesWith(mark), []);
      }),
  );

  Deno.test(
    name("a flood is bounded to its head and tail"),
    () =>
      withServer(program, ["--allow-run=sh"], async (client) => {
        const flood = sh("i=0; echo first; yes 'é flood' | head -c 3000000; echo; echo last");
        const text = await client.ok("run", flood);
        assert.match(text, /^first\n(?:é flood\n)+/);
        assert.match(text, /\n\[… \d+ of 30000\d+ bytes left out …\]\n/);
        assert.match(text, /\nlast\n\nExit status 0\.$/);
        assert.doesNotMatch(text, /\uFFFD/);
        assert.ok(text.length < 70_000);
      }),
  );

  Deno.test(
    name("a cancelled call is stopped with its group"),
    () =>
      withServer(program, ["--allow-run=sh"], async (client) => {
        const mark = marker();
        const script = "sh -c 'while :; do sleep 1; done' \"$0\" & while :; do sleep 1; done";
        const { id } = client.begin("tools/call", {
          name: "run",
          arguments: sh(script, mark),
        });
        await untilProcesses(mark, (pids) => pids.length >= 2);
        client.notify("notifications/cancelled", { requestId: id });
        await untilProcesses(mark, none);
        assert.match(await client.ok("run", sh("echo still here")), /still here/);
      }),
  );

  Deno.test(name("what left the group of a stopped command dies with it"), async () => {
    const client = await ToolClient.start(program, ["exec", "--allow-run=sh"]);
    const start = async () => {
      const mark = marker();
      const { id } = client.begin("tools/call", {
        name: "run",
        arguments: file("leave_group.sh", mark),
      });
      await untilProcesses(`stray-of-${mark}`, some);
      return { id, mark };
    };
    const cancelled = await start();
    client.notify("notifications/cancelled", { requestId: cancelled.id });
    await untilProcesses(cancelled.mark, none);
    const running = await start();
    await client.close();
    assert.deepEqual(await processesWith(running.mark), []);
  });

  Deno.test(name("the end of stdin ends what still runs"), async () => {
    const mark = marker();
    const client = await ToolClient.start(program, ["exec", "--allow-run=sh"]);
    client.begin("tools/call", { name: "run", arguments: file("ignore_term.sh", mark) });
    await untilProcesses(mark, some);
    await client.close();
    assert.deepEqual(await processesWith(mark), []);
  });

  Deno.test(name("commands die with a server that is killed"), async () => {
    const mark = marker();
    const client = await ToolClient.start(program, ["exec", "--allow-run=sh"]);
    client.begin("tools/call", { name: "run", arguments: file("ignore_term.sh", mark) });
    client.begin("tools/call", { name: "run", arguments: file("ignore_term.sh", mark) });
    await untilProcesses(mark, (pids) => pids.length >= 2);
    await client.kill();
    await untilProcesses(mark, none);
  });

  Deno.test(
    name("several commands run side by side"),
    () =>
      withServer(program, ["--allow-run=sh"], async (client, directory) => {
        await Deno.mkdir(`${directory}/gate`);
        // Each waits for the other: one after the other they would never end.
        const wait = (mine: string, other: string) =>
          sh(`: > gate/${mine}; while [ ! -e gate/${other} ]; do sleep 0.02; done; echo ${mine}`);
        const [one, two] = await Promise.all([
          client.ok("run", wait("a", "b")),
          client.ok("run", wait("b", "a")),
        ]);
        assert.match(one, /^a\n/);
        assert.match(two, /^b\n/);
      }),
  );
}

Deno.test("mcp exec (source): works with the flags that an agent starts it with", {
  ignore: !posix,
}, async () => {
  const server: BuiltinServer = {
    kind: "builtin",
    name: "exec",
    permissions: { ...NO_PERMISSIONS, run: ["printf"] },
    sandbox: "none",
    required: true,
    startTimeoutMs: 20_000,
  };
  const source = new URL("../../", import.meta.url).pathname.replace(/\/$/, "");
  const flags = toolServerFlags(server, [`${source}/main.ts`, `${source}/src`]);
  const args = ["run", "--quiet", "--no-prompt", ...flags, `${source}/main.ts`];
  await withServer(
    { name: "agent", command: Deno.execPath(), args },
    toolServerRole(server).slice(2),
    async (client) => {
      assert.match(await client.ok("run", { argv: ["printf", "hi"] }), /^hi\n/);
      assert.match(await client.refused("run", { argv: ["sh"] }), /Requires run access/);
    },
  );
});

const bwrap = await new Deno.Command("bwrap", {
  args: ["--ro-bind", "/", "/", "--unshare-pid", "true"],
  stderr: "null",
}).output().then(({ success }) => success, () => false);

for (const program of posix ? [inProcess, ...programs()] : []) {
  Deno.test(
    `mcp exec (${program.name}): bwrap confines each command`,
    { ignore: !bwrap },
    async () => {
      await withServer(
        program,
        ["--allow-run=sh", "--sandbox=bwrap"],
        async (client, directory) => {
          const sh = (script: string) => ({ argv: ["sh", "-c", script] });
          assert.match(await client.ok("run", sh("pwd")), new RegExp(`^${directory}\\n`));
          const writes = await client.call(
            "run",
            sh(`echo x > ${directory}/new; echo x > /etc/new`),
          );
          assert.match(textOf(writes), /Read-only file system/);
          await assert.rejects(Deno.stat(`${directory}/new`));
          assert.match(await client.ok("run", sh("echo x > /tmp/private && ls /tmp")), /private/);
          await assert.rejects(Deno.stat("/tmp/private"));
          assert.match(await client.ok("run", sh("ls /proc | grep -c '^[0-9]'")), /^[1-9]\n/);
          const interfaces = await client.ok(
            "run",
            sh("tail -n +3 /proc/net/dev | grep -vc lo: ; true"),
          );
          assert.match(interfaces, /^0\n/, "no network but an empty loopback");
          assert.match(
            await client.refused("run", { argv: ["cat", "/etc/passwd"] }),
            /not granted/,
          );
          assert.match(await client.refused("run", { argv: ["bwrap", "true"] }), /not granted/);
          const mark = marker();
          await client.refused("run", {
            argv: ["sh", "-c", "setsid sh -c 'while :; do sleep 1; done' $0 & sleep 60", mark],
            timeout: 0.5,
          });
          await untilProcesses(mark, none);
        },
      );
      const directory = await Deno.realPath(await Deno.makeTempDir({ prefix: "agentd-bwrap-" }));
      const flags = ["--allow-run=sh", `--allow-write=${directory}`, "--sandbox", "bwrap"];
      await withServer(program, flags, async (client) => {
        await client.ok("run", { argv: ["sh", "-c", "echo x > new"], cwd: directory });
        assert.equal(await Deno.readTextFile(`${directory}/new`), "x\n");
      });
      await Deno.remove(directory, { recursive: true });
    },
  );
}
