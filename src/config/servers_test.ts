import assert from "node:assert/strict";
import { load } from "../../tests/fakes/configuration.ts";
import { BARE } from "./texts.ts";

const NONE = {
  read: false,
  write: false,
  net: false,
  run: false,
  env: false,
  sys: false,
  ffi: false,
  import: false,
};

/** A path with the working directory as CWD. */
const shown = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value).replaceAll(/"[^"]*agentd-config-\w+/g, '"CWD'));

Deno.test("loadSettings: what is allowed turns on exactly those servers, with exactly that", async () => {
  const rows: [flags: Record<string, string[]>, servers: [string, object][]][] = [
    [{}, []],
    [{ allow_read: ["docs"] }, [["fs", { read: ["CWD/docs"] }]]],
    [{ allow_write: ["./out/", "../up"] }, [["fs", { write: ["CWD/out", "UP"] }]]],
    [{ allow_read: [BARE], allow_write: ["out"] }, [["fs", { read: true, write: ["CWD/out"] }]]],
    [{ allow_net: ["h.example", "[::1]:80"] }, [["http", { net: ["h.example", "[::1]:80"] }]]],
    [{ allow_run: ["sh"] }, [["exec", { run: ["SH"] }]]],
    [{ allow_run: [BARE], allow_env: ["A,B"] }, [["exec", { run: true, env: ["A", "B"] }]]],
    [{ allow_read: ["a"], allow_net: [BARE], allow_run: [BARE] }, [
      ["fs", { read: ["CWD/a"] }],
      ["http", { net: true }],
      ["exec", { run: true }],
    ]],
  ];
  for (const [flags, servers] of rows) {
    const { settings } = await load({ flags: { instruction: ["x"], ...flags } });
    const found = settings.servers.map((server) => {
      assert.ok(server.kind === "builtin");
      assert.ok(server.required);
      const text = JSON.stringify(shown(server.permissions))
        .replace(/"[^"]*\/up"/, '"UP"').replace(/"[^"]*bin\/sh"/, '"SH"');
      return [server.name, JSON.parse(text)];
    });
    assert.deepEqual(found, servers.map(([name, some]) => [name, { ...NONE, ...some }]));
  }
});

Deno.test("loadSettings: variables that no program gets are mentioned", async () => {
  const { notices } = await load({ flags: { instruction: ["x"], allow_env: ["A"] } });
  assert.match(notices[0]!, /^--allow-env has no effect/);
});

Deno.test("loadSettings: a declared server has its defaults, its paths are absolute", async () => {
  const { settings } = await load({
    flags: { instruction: ["x"], mcp: ["a=node 'my server.js' --x", "b=https://b.example/mcp/"] },
    files: {
      "agentd.yaml": JSON.stringify({
        mcp_servers: {
          c: { command: "x", cwd: "sub", required: false, start_timeout: "3s", env: { A: "b" } },
        },
      }),
    },
  });
  assert.deepEqual(shown(settings.servers), [
    {
      kind: "stdio",
      name: "c",
      command: "x",
      args: [],
      env: { A: ["b"] },
      cwd: "CWD/sub",
      required: false,
      startTimeoutMs: 3000,
      sandbox: "none",
    },
    {
      kind: "stdio",
      name: "a",
      command: "node",
      args: ["my server.js", "--x"],
      env: {},
      cwd: "CWD",
      required: true,
      startTimeoutMs: 20_000,
      sandbox: "none",
    },
    {
      kind: "http",
      name: "b",
      url: "https://b.example/mcp",
      headers: {},
      era: "auto",
      required: true,
      startTimeoutMs: 20_000,
    },
  ]);
});

Deno.test("loadSettings: a server whose command does not exist is no mistake of the configuration", async () => {
  const { problems } = await load({ flags: { instruction: ["x"], mcp: ["a=no-such-program"] } });
  assert.deepEqual(problems, []);
});

Deno.test("loadSettings: removals alone take away from everything", async () => {
  const rows: [tools: string[], grant: string[]][] = [
    [[], ["*"]],
    [["docs/*"], ["docs/*"]],
    [["!admin/*"], ["*", "!admin/*"]],
    [["docs/*,!docs/drop"], ["docs/*", "!docs/drop"]],
  ];
  for (const [tools, grant] of rows) {
    const { settings } = await load({ flags: { instruction: ["x"], tools } });
    assert.deepEqual(settings.tools.grant, grant);
  }
});

Deno.test("loadSettings: a grant that names no server is mentioned", async () => {
  const flags = {
    instruction: ["x"],
    mcp: ["docs=true"],
    tools: ["dosc/*", "docs/*", "*", "!x/y"],
  };
  const { notices } = await load({ flags });
  assert.deepEqual(notices, [
    '--tools: "dosc/*" names no server; did you mean docs?',
    '--tools: "!x/y" names no server; there are: docs',
  ]);
});
