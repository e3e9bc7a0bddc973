/** `agentd mcp fs`, driven as any MCP client would: what it reads, writes, and cannot be made to. */

import assert from "node:assert/strict";
import { toolServerFlags, toolServerRole } from "../../src/toolserver/permissions.ts";
import { DIRECTORIES_MADE_MAX } from "../../src/core/tool_limits.ts";
import type { BuiltinServer } from "../../src/wire/payload.ts";
import { NO_PERMISSIONS } from "../../src/wire/permissions.ts";
import { inProcess, type Serving, textOf, ToolClient } from "../fakes/tool_client.ts";
import { programs } from "../program.ts";

const posix = Deno.build.os !== "windows";

/** A directory that is granted, one beside it that is not, and a server between them. */
interface Place {
  root: string;
  inside: string;
  outside: string;
  client: ToolClient;
}

async function withServer(
  program: Serving,
  flags: (place: { inside: string; outside: string }) => string[],
  act: (place: Place) => Promise<void>,
): Promise<void> {
  const root = await Deno.realPath(await Deno.makeTempDir({ prefix: "agentd-fs-" }));
  const inside = `${root}/inside`;
  const outside = `${root}/outside`;
  await Deno.mkdir(inside);
  await Deno.mkdir(outside);
  await Deno.writeTextFile(`${outside}/secret.txt`, "SECRET\n");
  const client = await ToolClient.start(program, ["fs", ...flags({ inside, outside })], {
    cwd: inside,
  });
  try {
    await act({ root, inside, outside, client });
  } finally {
    const { code, stderr } = await client.close();
    await Deno.remove(root, { recursive: true });
    assert.equal(code, 0, stderr);
  }
}

const reading = ({ inside }: { inside: string }) => [`--allow-read=${inside}`];
const writing = (
  { inside }: { inside: string },
) => [`--allow-read=${inside}`, `--allow-write=${inside}`];

async function makeFifo(path: string): Promise<void> {
  const { success } = await new Deno.Command("mkfifo", { args: [path] }).output();
  assert.ok(success);
}

/** A socket that nobody listens on any more. */
async function makeSocket(path: string): Promise<void> {
  const code = `Deno.listen({ transport: "unix", path: ${JSON.stringify(path)} }); Deno.exit(0)`;
  const { success } = await new Deno.Command(Deno.execPath(), { args: ["eval", code] }).output();
  assert.ok(success);
}

for (const program of [inProcess, ...programs()]) {
  const name = (text: string) => `mcp fs (${program.name}): ${text}`;

  Deno.test(
    name("reads lines, says the total and the next offset"),
    () =>
      withServer(program, reading, async ({ inside, client }) => {
        await Deno.writeTextFile(`${inside}/a.txt`, "one\ntwo\r\nthree");
        const whole = await client.call("read", { path: "a.txt" });
        assert.equal(whole.content[0]?.text, "one\ntwo\r\nthree");
        assert.match(
          whole.content[1]?.text ?? "",
          /^Lines 1 to 3 of 3 \(14 bytes\) of .*a\.txt\.$/,
        );
        const part = await client.call("read", { path: "a.txt", offset: 2, limit: 1 });
        assert.equal(part.content[0]?.text, "two\r\n");
        assert.match(part.content[1]?.text ?? "", /Lines 2 to 2 of 3 .*next offset: 3\.$/);
        assert.match(await client.ok("read", { path: "a.txt", offset: 9 }), /none at offset 9/);
        await Deno.writeTextFile(`${inside}/empty`, "");
        assert.match(await client.ok("read", { path: "empty" }), /is empty/);
        await Deno.writeTextFile(`${inside}/blank`, "\n\n");
        assert.match(await client.ok("read", { path: "blank" }), /Lines 1 to 2 of 2/);
      }),
  );

  Deno.test(
    name("bounds what it reads, and goes on where it stopped"),
    () =>
      withServer(program, reading, async ({ inside, client }) => {
        await Deno.writeTextFile(
          `${inside}/long`,
          Array.from({ length: 5_000 }, (_, at) => `line ${at + 1} ${"x".repeat(100)}\n`).join(""),
        );
        let offset = 1;
        let text = "";
        for (let calls = 0; calls < 10; calls++) {
          const { content } = await client.call("read", { path: "long", offset });
          text += content[0]?.text;
          const next = /next offset: (\d+)/.exec(content[1]?.text ?? "");
          if (!next) break;
          offset = Number(next[1]);
        }
        assert.equal(text, await Deno.readTextFile(`${inside}/long`));
        await Deno.writeTextFile(`${inside}/wide`, "é".repeat(1_000_000) + "\nend\n");
        const wide = await client.call("read", { path: "wide" });
        assert.ok((wide.content[0]?.text?.length ?? 0) < 20_000);
        assert.match(wide.content[0]?.text ?? "", /é… \[line of 2000001 bytes cut\]\nend\n$/);
      }),
  );

  Deno.test(
    name("describes binary files and marks what is no UTF-8"),
    () =>
      withServer(program, reading, async ({ inside, client }) => {
        await Deno.writeFile(`${inside}/b.png`, new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0, 1, 2]));
        assert.match(await client.ok("read", { path: "b.png" }), /binary.*PNG image, 7 bytes/);
        await Deno.writeFile(`${inside}/latin`, new Uint8Array([0x63, 0xe9, 0x0a]));
        assert.match(await client.ok("read", { path: "latin" }), /not valid UTF-8/);
      }),
  );

  Deno.test(
    name("reads nothing outside of its grant, whatever the path"),
    () =>
      withServer(program, reading, async ({ inside, outside, client }) => {
        const attempts: [string, RegExp][] = [
          ["/etc/passwd", /outside of what is granted/],
          ["../outside/secret.txt", /outside of what is granted/],
          [`${inside}/../outside/secret.txt`, /outside of what is granted/],
          [`${inside}-twin/secret.txt`, /outside of what is granted/],
          ["/proc/self/environ", /outside of what is granted/],
          ["a\0/etc/passwd", /NUL/],
          ["", /empty/],
          ["x".repeat(5_000), /characters/],
          ["x".repeat(300), /too long|no such/],
          ["missing", /no such file/],
          [".", /a directory.*Use list/],
        ];
        if (posix) {
          await Deno.symlink(`${outside}/secret.txt`, `${inside}/link`);
          await Deno.symlink(outside, `${inside}/way`);
          await Deno.symlink("way/../outside/secret.txt", `${inside}/twice`);
          await Deno.symlink("/etc/passwd", `${inside}/passwd`);
          await Deno.symlink("loop", `${inside}/loop`);
          await Deno.symlink("nowhere", `${inside}/dangling`);
          attempts.push(
            ["link", /leads out/],
            ["way/secret.txt", /leads out/],
            ["./way/./secret.txt", /leads out/],
            ["twice", /leads out/],
            ["passwd", /leads out/],
            ["loop", /link to itself/],
            ["dangling", /missing/],
          );
        }
        for (const [path, reason] of attempts) {
          const text = await client.refused("read", { path });
          assert.match(text, reason, JSON.stringify(path).slice(0, 60));
          assert.doesNotMatch(text, /SECRET|root:/);
          await client.refused("stat", { path: path === "." ? "/" : path });
          assert.doesNotMatch(
            textOf(await client.call("search", { path, pattern: "SECRET|root:" })),
            /:1:/,
          );
        }
        for (const path of ["..", "/", ...(posix ? ["way"] : [])]) {
          await client.refused("list", { path });
          await client.refused("glob", { path, pattern: "**" });
        }
        const found = await client.ok("search", { pattern: "SECRET|root:" });
        assert.doesNotMatch(found, /:1:/);
        assert.doesNotMatch(await client.ok("glob", { pattern: "**" }), /secret/);
      }),
  );

  Deno.test(
    name("follows links that stay inside"),
    { ignore: !posix },
    () =>
      withServer(program, writing, async ({ inside, client }) => {
        await Deno.mkdir(`${inside}/d`);
        await Deno.writeTextFile(`${inside}/d/real`, "x\n");
        await Deno.symlink("d", `${inside}/l`);
        assert.match(await client.ok("read", { path: "l/real" }), /^x\n/);
        await client.ok("write", { path: "l/new", content: "y" });
        assert.equal(await Deno.readTextFile(`${inside}/d/new`), "y");
        await Deno.symlink("d/real", `${inside}/f`);
        await client.ok("write", { path: "f", content: "z" });
        assert.equal(await Deno.readTextFile(`${inside}/d/real`), "z");
        assert.ok((await Deno.lstat(`${inside}/f`)).isSymlink, "the link is still one");
      }),
  );

  Deno.test(name("never opens fifos, sockets and devices"), { ignore: !posix }, () =>
    withServer(
      program,
      ({ inside }) => [`--allow-read=${inside},/dev/zero`, `--allow-write=${inside},/dev/zero`],
      async ({ inside, client }) => {
        await makeFifo(`${inside}/fifo`);
        await makeSocket(`${inside}/socket`);
        for (const tool of ["read", "write", "edit"]) {
          const rest = tool === "write" ? { content: "x" } : { old_text: "a", new_text: "b" };
          const args = tool === "read" ? {} : rest;
          assert.match(await client.refused(tool, { path: "fifo", ...args }), /fifo/);
          assert.match(await client.refused(tool, { path: "socket", ...args }), /socket/);
          assert.match(await client.refused(tool, { path: "/dev/zero", ...args }), /device/);
        }
        assert.match(await client.ok("list", {}), /fifo \(a fifo \(named pipe\)\)/);
        assert.match(await client.ok("search", { pattern: "x" }), /0 matches/);
        assert.match(await client.ok("stat", { path: "fifo" }), /kind: fifo/);
      },
    ));

  Deno.test(
    name("writes whole files, makes directories, keeps modes"),
    () =>
      withServer(program, writing, async ({ inside, client }) => {
        assert.match(
          await client.ok("write", { path: "a/b/c.txt", content: "é\n" }),
          /3 bytes.*new/,
        );
        assert.equal(await Deno.readTextFile(`${inside}/a/b/c.txt`), "é\n");
        if (posix) await Deno.chmod(`${inside}/a/b/c.txt`, 0o755);
        assert.match(await client.ok("write", { path: "a/b/c.txt", content: "" }), /replaced/);
        const info = await Deno.stat(`${inside}/a/b/c.txt`);
        assert.equal(info.size, 0);
        if (posix) assert.equal(info.mode! & 0o777, 0o755);
        const names = [...Deno.readDirSync(`${inside}/a/b`)].map((entry) => entry.name);
        assert.deepEqual(names, ["c.txt"], "nothing temporary is left");
        assert.match(await client.refused("write", { path: "a", content: "" }), /a directory/);
        assert.match(
          await client.refused("write", { path: "n/", content: "" }),
          /names a directory/,
        );
        assert.match(
          await client.refused("write", { path: "a/b/c.txt/d", content: "" }),
          /kind|not a directory|no directory/,
        );
      }),
  );

  Deno.test(
    name("does not get around a file that is marked read-only"),
    { ignore: !posix },
    () =>
      withServer(program, writing, async ({ inside, client }) => {
        await Deno.writeTextFile(`${inside}/kept`, "x", { mode: 0o444 });
        assert.match(await client.refused("write", { path: "kept", content: "y" }), /read-only/);
        const edit = { path: "kept", old_text: "x", new_text: "y" };
        assert.match(await client.refused("edit", edit), /read-only/);
        assert.equal(await Deno.readTextFile(`${inside}/kept`), "x");
      }),
  );

  Deno.test(
    name("leaves agentd's own configuration alone, whatever leads to it"),
    () =>
      withServer(program, writing, async ({ inside, client }) => {
        await Deno.mkdir(`${inside}/below`);
        await Deno.writeTextFile(`${inside}/agentd.yaml`, "notes: false\n");
        if (posix) await Deno.symlink("agentd.yaml", `${inside}/innocent.txt`);
        const paths = ["agentd.yaml", "below/agentd.yaml", "new/AGENTD.YML", "agentd.json"];
        if (posix) paths.push("innocent.txt");
        for (const path of paths) {
          assert.match(
            await client.refused("write", { path, content: "hooks: {}\n" }),
            /^Cannot write .*agentd's own configuration, which a later run would trust/i,
          );
        }
        const edit = { path: "agentd.yaml", old_text: "false", new_text: "true" };
        assert.match(await client.refused("edit", edit), /own configuration/);
        assert.equal(await Deno.readTextFile(`${inside}/agentd.yaml`), "notes: false\n");
        await assert.rejects(Deno.lstat(`${inside}/new`), Deno.errors.NotFound);
        assert.match(await client.ok("read", { path: "agentd.yaml" }), /notes: false/);
        await client.ok("write", { path: "my-agentd.yaml", content: "x" });
      }),
  );

  Deno.test(
    name("edits of one file side by side all count"),
    () =>
      withServer(program, writing, async ({ inside, client }) => {
        const words = Array.from({ length: 12 }, (_, at) => `<a${at}>`);
        await Deno.writeTextFile(`${inside}/a`, words.join("\n"));
        await Promise.all(
          words.map((word) =>
            client.ok("edit", { path: "a", old_text: word, new_text: word.toUpperCase() })
          ),
        );
        assert.equal(await Deno.readTextFile(`${inside}/a`), words.join("\n").toUpperCase());
      }),
  );

  Deno.test(
    name("a grant that is itself reached by a link works"),
    { ignore: !posix },
    async () => {
      const root = await Deno.realPath(await Deno.makeTempDir({ prefix: "agentd-fs-" }));
      await Deno.mkdir(`${root}/real`);
      await Deno.writeTextFile(`${root}/real/a`, "x");
      await Deno.writeTextFile(`${root}/secret`, "SECRET");
      await Deno.symlink("real", `${root}/named`);
      await Deno.symlink("../secret", `${root}/real/link`);
      const flags = [`--allow-read=${root}/named`, `--allow-write=${root}/named`];
      const client = await ToolClient.start(program, ["fs", ...flags], { cwd: root });
      assert.match(await client.ok("read", { path: "named/a" }), /^x/);
      assert.match(await client.ok("read", { path: "real/a" }), /^x/, "by its real path, too");
      await client.ok("write", { path: "named/sub/b", content: "y" });
      assert.equal(await Deno.readTextFile(`${root}/real/sub/b`), "y");
      await client.refused("read", { path: "named/link" });
      await client.refused("read", { path: "secret" });
      await Deno.remove(`${root}/named`);
      await Deno.symlink(".", `${root}/named`);
      assert.doesNotMatch(await client.refused("read", { path: "named/secret" }), /SECRET/);
      await client.close();
      await Deno.remove(root, { recursive: true });
    },
  );

  Deno.test(
    name("links swapped under its hands lead nowhere"),
    { ignore: !posix },
    () =>
      withServer(program, writing, async ({ inside, outside, client }) => {
        await Deno.mkdir(`${inside}/d`);
        await Deno.writeTextFile(`${inside}/d/secret.txt`, "fine\n");
        const flipper = new Deno.Command(Deno.execPath(), {
          args: [
            "run",
            "--allow-read",
            "--allow-write",
            new URL("../hostile/flip_link.ts", import.meta.url).href,
            `${inside}/d`,
            outside,
          ],
          stdin: "null",
          stdout: "piped",
        }).spawn();
        const up = flipper.stdout.getReader();
        await up.read();
        try {
          for (let count = 0; count < 300; count++) {
            const [got, put] = await Promise.all([
              client.call("read", { path: "d/secret.txt" }),
              client.call("write", { path: "d/new.txt", content: "content" }),
            ]);
            assert.doesNotMatch(textOf(got), /SECRET/);
            assert.ok(put.isError || textOf(put).includes("Wrote"));
          }
        } finally {
          flipper.kill("SIGKILL");
          await up.cancel();
          await flipper.status;
        }
        // What the race may leave outside is an empty file with a random name, and nothing else.
        for (const entry of Deno.readDirSync(outside)) {
          if (entry.name === "secret.txt") continue;
          assert.match(entry.name, /^\.agentd-[0-9a-f]+\.tmp$/);
          assert.equal((await Deno.stat(`${outside}/${entry.name}`)).size, 0);
        }
        await Deno.remove(`${inside}/d`, { recursive: true }).catch(() => {});
        await client.ok("write", { path: "d/new.txt", content: "content" });
      }),
  );

  Deno.test(
    name("writes nothing outside of its grant"),
    () =>
      withServer(program, writing, async ({ inside, outside, client }) => {
        const attempts = ["../outside/new", `${outside}/new`, "/tmp/agentd-escape", "../new"];
        if (posix) {
          await Deno.symlink(outside, `${inside}/way`);
          await Deno.symlink(`${outside}/secret.txt`, `${inside}/link`);
          await Deno.symlink(`${outside}/made`, `${inside}/dangling`);
          attempts.push("way/new", "way/sub/new", "link", "dangling");
        }
        for (const path of attempts) {
          await client.refused("write", { path, content: "x" });
          await client.refused("edit", { path, old_text: "SECRET", new_text: "x" });
        }
        const left = [...Deno.readDirSync(outside)].map((entry) => entry.name);
        assert.deepEqual(left, ["secret.txt"]);
        assert.equal(await Deno.readTextFile(`${outside}/secret.txt`), "SECRET\n");
      }),
  );

  Deno.test(
    name("does not write where only reading is granted"),
    () =>
      withServer(program, reading, async ({ inside, client }) => {
        await Deno.writeTextFile(`${inside}/a`, "x");
        assert.match(await client.refused("write", { path: "a", content: "y" }), /--allow-write/);
        assert.match(
          await client.refused("edit", { path: "a", old_text: "x", new_text: "y" }),
          /--allow-write/,
        );
        assert.equal(await Deno.readTextFile(`${inside}/a`), "x");
        const { result } = await client.request("tools/list");
        const tools = (result?.tools as { name: string }[]).map((tool) => tool.name);
        assert.deepEqual(tools, ["list", "glob", "search", "read", "stat"]);
      }),
  );

  Deno.test(name("does not read where only writing is granted"), () =>
    withServer(
      program,
      ({ inside }) => [`--allow-write=${inside}/out`],
      async ({ inside, client }) => {
        await client.ok("write", { path: "out/deep/a", content: "x" });
        assert.equal(await Deno.readTextFile(`${inside}/out/deep/a`), "x");
        assert.match(await client.refused("read", { path: "out/deep/a" }), /--allow-read/);
        await client.refused("write", { path: "b", content: "x" });
      },
    ));

  Deno.test(name("writes the one file that is granted"), () =>
    withServer(
      program,
      ({ inside }) => [`--allow-read=${inside}`, `--allow-write=${inside}/one.txt`],
      async ({ inside, client }) => {
        await client.ok("write", { path: "one.txt", content: "first, long" });
        await client.ok("write", { path: "one.txt", content: "second" });
        await client.ok("edit", { path: "one.txt", old_text: "second", new_text: "third" });
        assert.equal(await Deno.readTextFile(`${inside}/one.txt`), "third");
        await client.refused("write", { path: "one.txt.bak", content: "x" });
        await client.refused("write", { path: "two.txt", content: "x" });
      },
    ));

  Deno.test(
    name("edits an exact text, the count checked"),
    () =>
      withServer(program, writing, async ({ inside, client }) => {
        await Deno.writeTextFile(`${inside}/a`, "x = 1\ny = 1\n\ttab  two\r\n");
        const edit = (old_text: string, new_text: string, count?: number) => ({
          path: "a",
          old_text,
          new_text,
          ...(count === undefined ? {} : { count }),
        });
        assert.match(
          await client.refused("edit", edit("= 1", "= 2")),
          /2 places, not 1 \(lines 1, 2\)/,
        );
        assert.match(await client.refused("edit", edit("= 9", "= 2")), /not in it/);
        assert.match(await client.refused("edit", edit("tab two", "t")), /white space/);
        assert.match(await client.refused("edit", edit("", "t")), /empty/);
        assert.match(await client.refused("edit", edit("x", "x")), /the same/);
        assert.match(await client.ok("edit", edit("= 1", "= $&", 2)), /Replaced 2 places/);
        assert.equal(await Deno.readTextFile(`${inside}/a`), "x = $&\ny = $&\n\ttab  two\r\n");
        await Deno.writeFile(`${inside}/latin`, new Uint8Array([0x63, 0xe9, 0x0a]));
        assert.match(
          await client.refused("edit", { path: "latin", old_text: "c", new_text: "d" }),
          /not valid UTF-8/,
        );
      }),
  );

  Deno.test(
    name("does not choose between places that overlap"),
    () =>
      withServer(program, writing, async ({ inside, client }) => {
        await Deno.writeTextFile(`${inside}/a`, "-+-+-\n-+-|\n");
        const call = { path: "a", old_text: "-+-", new_text: "x" };
        for (const count of [1, 2, 3]) {
          await client.refused("edit", { ...call, count });
          assert.equal(await Deno.readTextFile(`${inside}/a`), "-+-+-\n-+-|\n");
        }
        assert.match(await client.refused("edit", { ...call, count: 2 }), /overlap/);
        await client.ok("edit", { ...call, old_text: "-+-|" });
        await Deno.writeTextFile(`${inside}/rule`, "----");
        await client.ok("edit", { path: "rule", old_text: "----", new_text: "--" });
        assert.equal(await Deno.readTextFile(`${inside}/rule`), "--");
      }),
  );

  Deno.test(
    name("makes so many missing directories and no more, and stays awake"),
    () =>
      withServer(program, writing, async ({ inside, client }) => {
        const deep = (count: number) => `${"d/".repeat(count)}file`;
        await client.ok("write", { path: deep(DIRECTORIES_MADE_MAX), content: "x" });
        await Deno.remove(`${inside}/d`, { recursive: true });
        for (const count of [DIRECTORIES_MADE_MAX + 1, 1_900]) {
          const why = await client.refused("write", { path: deep(count), content: "x" });
          assert.match(why, /over 64 directories above it are missing/);
        }
        assert.deepEqual([...Deno.readDirSync(inside)], []);
      }),
  );

  Deno.test(
    name("a glob for directories finds these, one that leads out is told"),
    () =>
      withServer(program, reading, async ({ inside, client }) => {
        await Deno.mkdir(`${inside}/src/deep`, { recursive: true });
        await Deno.writeTextFile(`${inside}/src/file`, "");
        await Deno.writeTextFile(`${inside}/top`, "");
        const found = async (pattern: string) =>
          (await client.call("glob", { pattern })).content[0]?.text;
        assert.equal(await found("*/"), "src/");
        assert.equal(await found("**/"), "src/\nsrc/deep/");
        assert.equal(await found("src/"), "src/");
        assert.equal(await found(`${inside}/src/`), "src/");
        assert.equal(await found("./"), "src/\nsrc/deep/\nsrc/file\ntop");
        for (const pattern of ["../*", "src/../../*", "/etc/*", `${inside}-twin/*`]) {
          assert.match(await client.refused("glob", { pattern }), /leads out of .* as path/);
        }
        assert.match(await client.ok("glob", { pattern: "..*" }), /^0 matches/);
      }),
  );

  Deno.test(
    name("a match of a CRLF file is not its neighbour's context too"),
    () =>
      withServer(program, reading, async ({ inside, client }) => {
        await Deno.writeTextFile(`${inside}/a`, "one b\r\ntwo b\r\nthree\r\n");
        const { content } = await client.call("search", { pattern: "b$", context: 1, path: "a" });
        assert.equal(
          content[0]?.text?.replaceAll(`${inside}/`, ""),
          "a:1:one b\na:2:two b\na-3-three",
        );
      }),
  );

  Deno.test(
    name("lists, finds and searches in order, in parts, with what was left out"),
    () =>
      withServer(program, reading, async ({ inside, client }) => {
        await Deno.mkdir(`${inside}/src/deep`, { recursive: true });
        await Deno.mkdir(`${inside}/node_modules/x`, { recursive: true });
        await Deno.mkdir(`${inside}/.git`);
        await Deno.writeTextFile(`${inside}/src/a.ts`, "alpha\nbeta\nALPHA\n");
        await Deno.writeTextFile(`${inside}/src/deep/b.ts`, "x\nalpha\r\n");
        await Deno.writeTextFile(`${inside}/node_modules/x/c.ts`, "alpha\n");
        await Deno.writeTextFile(`${inside}/.git/HEAD`, "alpha\n");
        await Deno.writeFile(`${inside}/bin`, new TextEncoder().encode("alpha\0"));
        assert.equal(
          (await client.call("list", {})).content[0]?.text,
          ".git/\nbin 6B\nnode_modules/\nsrc/",
        );
        assert.match(
          await client.ok("list", { limit: 2 }),
          /^\.git\/\nbin 6B\n.*next offset: 2\.$/,
        );
        assert.match(await client.ok("list", { offset: 3 }), /^src\/\n/);
        const glob = await client.call("glob", { pattern: "**/*.ts" });
        assert.equal(glob.content[0]?.text, "src/a.ts\nsrc/deep/b.ts");
        assert.match(glob.content[1]?.text ?? "", /node_modules/);
        assert.match(await client.ok("glob", { pattern: "node_modules/**" }), /c\.ts/);
        assert.match(await client.ok("glob", { pattern: "**/*.ts", limit: 1 }), /next offset: 1/);
        assert.match(
          await client.ok("glob", { pattern: "**/*.ts", offset: 1, limit: 1 }),
          /^src\/deep\/b\.ts\n/,
        );
        assert.match(await client.ok("glob", { pattern: `${inside}/src/*` }), /^src\/a\.ts/);
        const search = await client.call("search", { pattern: "^alpha$" });
        assert.equal(search.content[0]?.text, "src/a.ts:1:alpha\nsrc/deep/b.ts:2:alpha");
        assert.match(search.content[1]?.text ?? "", /2 matches.*1 binary files/);
        assert.match(
          await client.ok("search", { pattern: "alpha", ignore_case: true }),
          /^3 |3 matches/m,
        );
        assert.match(
          await client.ok("search", { pattern: "alpha", all: true }),
          /\.git\/HEAD:1:alpha/,
        );
        assert.match(
          await client.ok("search", { pattern: "beta", context: 1, path: "src/a.ts" }),
          /a\.ts-1-alpha\n.*a\.ts:2:beta\n.*a\.ts-3-ALPHA/,
        );
        assert.match(
          await client.ok("search", { pattern: "alpha", include: "b.*" }),
          /^src\/deep\/b\.ts:2:alpha\n1 matches in 1 files/,
        );
        assert.match(
          await client.ok("search", { pattern: "alpha", limit: 1 }),
          /^src\/a\.ts:1:alpha\n.*next offset: 1/,
        );
        assert.match(await client.refused("search", { pattern: "(?=x)" }), /look-around.*literal/);
        assert.match(await client.refused("glob", { pattern: "[" }), /not closed/);
      }),
  );

  Deno.test(
    name("a pattern and a text made to explode are searched all the same"),
    () =>
      withServer(program, reading, async ({ inside, client }) => {
        await Deno.writeTextFile(
          `${inside}/a`,
          "bx" + "a".repeat(2_000_000) + "\n" + "a".repeat(60_000),
        );
        for (const pattern of ["(a+)+b", "(a|a)*$b", "(.*.*)*x$"]) {
          assert.match(await client.ok("search", { pattern }), /0 matches.*searched only up to/);
        }
        await Deno.writeTextFile(`${inside}/b`, "needle" + "b".repeat(50_000));
        assert.ok((await client.ok("search", { pattern: "needle", path: "b" })).length < 1_000);
      }),
  );

  Deno.test(
    name("wrong arguments and unknown tools are told, nothing breaks"),
    () =>
      withServer(program, reading, async ({ client }) => {
        assert.match(await client.refused("read", {}), /"path" is missing/);
        assert.match(await client.refused("read", { path: 7 }), /a string, not 7/);
        assert.match(await client.refused("read", { path: "a", offset: 0 }), /not from 1/);
        assert.match(await client.refused("read", { path: "a", limit: 1.5 }), /whole number/);
        assert.match(await client.refused("read", { file: "a" }), /no argument "file".*path/);
        assert.match(await client.refused("rm", { path: "a" }), /no such tool.*list/);
        await client.send("garbage\n\n[1]\n{}\n\xff\xfe\n");
        for (let count = 0; count < 4; count++) {
          const { error } = await client.unasked();
          assert.ok(
            error !== undefined && [-32700, -32600].includes(error.code),
            JSON.stringify(error),
          );
        }
        await client.send(new Uint8Array([0xff, 0x0a]));
        assert.match((await client.unasked()).error?.message ?? "", /UTF-8/);
        assert.ok((await client.request("ping")).result);
        assert.equal((await client.request("no/such")).error?.code, -32601);
      }),
  );

  Deno.test(
    name("annotations tell the truth"),
    () =>
      withServer(program, writing, async ({ client }) => {
        const { result } = await client.request("tools/list");
        const tools = result?.tools as { name: string; annotations: Record<string, boolean> }[];
        assert.equal(tools.length, 7);
        for (const tool of tools) {
          const writes = ["write", "edit"].includes(tool.name);
          assert.equal(tool.annotations.readOnlyHint, !writes, tool.name);
          assert.equal(tool.annotations.destructiveHint, writes, tool.name);
          assert.equal(tool.annotations.idempotentHint, tool.name !== "edit", tool.name);
        }
      }),
  );

  Deno.test(name("answers what was asked before stdin ended"), async () => {
    const client = ToolClient.spawn(program, ["fs", "--allow-read=."]);
    const first = client.begin("initialize", {
      protocolVersion: "2025-06-18",
      capabilities: {},
      clientInfo: { name: "test", version: "1" },
    });
    const second = client.begin("tools/call", { name: "list", arguments: {} });
    const { code } = await client.close();
    assert.ok((await first.reply).result);
    assert.ok((await second.reply).result);
    assert.equal(code, 0);
  });

  Deno.test(name("misuse exits 2 with every problem and no stack"), async () => {
    const rows: [string[], RegExp][] = [
      [[], /name a server/],
      [["nfs"], /"nfs".*fs, http, exec/],
      [["fs", "--allow-read=", "--allow-all"], /empty[^]*--allow-all/],
      [["fs", "--deny-read=x"], /grant less/],
      [["fs", "--allow-read", "docs"], /a list needs =/],
      [["fs", "--wat"], /no such option/],
      [["http", "--allow-net=https://a.example/x"], /is a URL.*"a\.example"/],
      [["fs", "--sandbox=bwrap"], /exec only/],
      [["exec", "--sandbox=jail"], /none or bwrap/],
    ];
    for (const [args, reason] of rows) {
      const client = ToolClient.spawn(program, args);
      const { code, stderr } = await client.close();
      assert.equal(code, 2, stderr);
      assert.match(stderr, reason);
      assert.doesNotMatch(stderr, /\n\s+at /);
    }
  });
}

Deno.test("mcp fs (source): works with the flags that an agent starts it with", async () => {
  const root = await Deno.realPath(await Deno.makeTempDir({ prefix: "agentd-fs-" }));
  const server: BuiltinServer = {
    kind: "builtin",
    name: "fs",
    permissions: { ...NO_PERMISSIONS, read: [`${root}/in`], write: [`${root}/out`] },
    sandbox: "none",
    required: true,
    startTimeoutMs: 20_000,
  };
  await Deno.mkdir(`${root}/in`);
  await Deno.writeTextFile(`${root}/in/a`, "x");
  const source = new URL("../../", import.meta.url).pathname.replace(/\/$/, "");
  const flags = toolServerFlags(server, [`${source}/main.ts`, `${source}/src`]);
  const client = await ToolClient.start(
    {
      name: "agent",
      command: Deno.execPath(),
      args: ["run", "--quiet", "--no-prompt", ...flags, `${source}/main.ts`],
    },
    toolServerRole(server).slice(1),
    { cwd: root },
  );
  assert.match(await client.ok("read", { path: "in/a" }), /^x/);
  await client.ok("write", { path: "out/b", content: "y" });
  await client.refused("read", { path: "out/b" });
  await client.refused("read", { path: "/etc/passwd" });
  assert.equal((await client.close()).code, 0);
  await Deno.remove(root, { recursive: true });
});
