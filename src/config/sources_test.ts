import assert from "node:assert/strict";
import { load } from "../../tests/fakes/configuration.ts";

const FOUND = "limits:\n  max_steps: 3\n";
const flags = { instruction: ["x"] };

Deno.test("loadSettings: a found file is used only if the user alone can write it", async () => {
  const rows: [prepare: (directory: string) => void, notice: string | null][] = [
    [(at) => Deno.chmodSync(`${at}/agentd.yaml`, 0o600), null],
    [(at) => Deno.chmodSync(`${at}/agentd.yaml`, 0o644), null],
    [
      (at) => Deno.chmodSync(`${at}/agentd.yaml`, 0o664),
      "agentd.yaml is not used: its group can write it (mode 0664); chmod go-w, or name it with " +
      "--config agentd.yaml",
    ],
    [
      (at) => Deno.chmodSync(`${at}/agentd.yaml`, 0o646),
      "agentd.yaml is not used: everyone can write it (mode 0646); chmod go-w, or name it with " +
      "--config agentd.yaml",
    ],
    [
      (at) => Deno.chmodSync(at, 0o777),
      "agentd.yaml is not used: everyone can write its directory (mode 0777); chmod go-w, or name " +
      "it with --config agentd.yaml",
    ],
    [(at) => Deno.chmodSync(at, 0o1777), null],
  ];
  for (const [prepare, notice] of rows) {
    const { settings, notices } = await load({ flags, files: { "agentd.yaml": FOUND }, prepare });
    assert.deepEqual(notices, notice === null ? [] : [notice]);
    assert.equal(settings.limits.maxSteps, notice === null ? 3 : 40);
    assert.equal(settings.configurationFile === null, notice !== null);
  }
});

Deno.test("loadSettings: a found file of another user is not used", async () => {
  const { settings, notices } = await load({
    flags,
    files: { "agentd.yaml": FOUND },
    // Only a superuser can give a file away; anyone else keeps it, and it is used.
    prepare: (at) => Deno.uid() === 0 && Deno.chownSync(`${at}/agentd.yaml`, 12_345, 12_345),
  });
  if (Deno.uid() === 0) {
    assert.match(notices[0]!, /it belongs to another user \(uid 12345\)/);
    assert.equal(settings.limits.maxSteps, 40);
  } else assert.equal(settings.limits.maxSteps, 3);
});

Deno.test("loadSettings: a found file that the run may write is not used, and it is said why", async () => {
  const why = (grant: string): string =>
    `agentd.yaml is not used: this run may write ${grant}, so a run before may have written the ` +
    "file; name it with --config to use it anyway";
  const rows: [given: Parameters<typeof load>[0], notice: string | null][] = [
    [{ flags: { ...flags, allow_write: ["."] } }, why(".")],
    [{ flags: { ...flags, allow_write: ["out", "./agentd.yaml"] } }, why("./agentd.yaml")],
    [{ flags: { ...flags, allow_write: ["/"] } }, why("/")],
    [
      { flags: { ...flags, allow_write: ["true"] } },
      "agentd.yaml is not used: this run may write everything, so a run before may have written " +
      "it; name it with --config to use it anyway",
    ],
    [{ flags, env: { AGENT_ALLOW_WRITE: "." } }, why(".")],
    [{ flags: { ...flags, allow_write: ["link"] } }, why("link")],
    [{ flags: { ...flags, allow_write: ["out"] } }, null],
    [{ flags: { ...flags, allow_read: ["."] } }, null],
  ];
  for (const [given, notice] of rows) {
    const { settings, notices } = await load({
      ...given,
      files: { "agentd.yaml": `${FOUND}hooks: { before_action: [./evil.sh] }\n` },
      prepare: (at) => Deno.symlinkSync(at, `${at}/link`),
    });
    assert.deepEqual(notices, notice === null ? [] : [notice]);
    assert.equal(settings.hooks.before_action.length, notice === null ? 1 : 0);
  }
});

Deno.test("loadSettings: a found file that grants itself to the run does not count", async () => {
  const { settings, notices } = await load({
    flags,
    files: { "agentd.yaml": `${FOUND}allow: { write: [.] }\n` },
  });
  assert.equal(notices.length, 1);
  assert.equal(settings.allow.write, false);
});

Deno.test("loadSettings: a file that is named is used, whoever can write it", async () => {
  for (
    const given of [{ flags: { ...flags, config: ["agentd.yaml"] } }, {
      flags,
      env: { AGENT_CONFIG: "agentd.yaml" },
    }]
  ) {
    const { settings, notices } = await load({
      ...given,
      files: { "agentd.yaml": `${FOUND}allow: { write: [.] }\n` },
      prepare: (at) => Deno.chmodSync(`${at}/agentd.yaml`, 0o666),
    });
    assert.deepEqual(notices, []);
    assert.equal(settings.limits.maxSteps, 3);
  }
});

Deno.test("loadSettings: no file, an empty file and a file of comments are all fine", async () => {
  const given: Record<string, string>[] = [{}, { "agentd.yaml": "" }, { "agentd.yaml": "# x\n" }];
  for (const files of given) {
    assert.deepEqual((await load({ flags, files })).problems, []);
  }
});

Deno.test("loadSettings: the ecosystem's lists of servers are read, other programs' keys left alone", async () => {
  const { settings } = await load({
    flags: { ...flags, mcp_config: ["m.json"], mcp: ["last=z"] },
    env: { GH: "gh-5ecret" },
    files: {
      "m.json": JSON.stringify({
        other: 1,
        mcpServers: {
          git: {
            type: "stdio",
            command: "npx",
            args: ["-y", "git-server"],
            env: { GITHUB_TOKEN: "${GH}", API_KEY: "lit-5ecret", PORT: 80, PLAIN: "a" },
            alwaysAllow: ["x"],
          },
          web: { url: "https://h.example/mcp", headers: { Authorization: "Bearer ${env:GH}" } },
          off: { command: "x", disabled: true },
        },
      }),
    },
  });
  assert.deepEqual(settings.servers.map((server) => server.name), ["git", "web", "last"]);
  const [git, web] = settings.servers;
  assert.ok(git?.kind === "stdio" && web?.kind === "http");
  const fill = (text: typeof git.env[string]): string => settings.vault.fill(text).reveal();
  assert.deepEqual(Object.fromEntries(Object.entries(git.env).map(([k, v]) => [k, fill(v)])), {
    GITHUB_TOKEN: "gh-5ecret",
    API_KEY: "lit-5ecret",
    PORT: "80",
    PLAIN: "a",
  });
  assert.equal(fill(web.headers.Authorization!), "Bearer gh-5ecret");
  const { vault: _vault, ...rest } = settings;
  assert.doesNotMatch(JSON.stringify(rest), /5ecret/);
  const servers = settings.configuration.mcp_servers as Record<string, { env: unknown }>;
  assert.deepEqual(servers.git!.env, {
    GITHUB_TOKEN: "${env:GH}",
    API_KEY: "***",
    PORT: "80",
    PLAIN: "a",
  });
});

Deno.test("loadSettings: a variable that is nearly ours is mentioned, others are not", async () => {
  const { notices } = await load({
    flags,
    env: { AGENT_MAX_STEP: "3", AGENT_NAME: "ci", AGENT_OS: "Linux", AGENT_TOOLSDIRECTORY: "/t" },
  });
  assert.deepEqual(notices, ["AGENT_MAX_STEP is not used; did you mean AGENT_MAX_STEPS?"]);
});
