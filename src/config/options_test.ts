import assert from "node:assert/strict";
import { load } from "../../tests/fakes/configuration.ts";
import { isObject, type Json, type JsonObject } from "../core/json.ts";
import { INVOCATION, type Option } from "./option.ts";
import { optionNamed, OPTIONS } from "./options.ts";
import { valueAt } from "./layers.ts";
import { BARE } from "./texts.ts";

/** For every option that has a flag or a variable: texts, and the value in the file's form. */
const VALUES: Record<string, [texts: string[], value: Json]> = {
  instruction: [["do it"], "do it"],
  system: [["s.md"], "s.md"],
  output_schema: [["s.json"], "s.json"],
  require: [["a", "b"], ["a", "b"]],
  check: [["true", "false x"], [{ command: "true" }, { command: "false x" }]],
  intelligence: [["https://a.example/v1,auto"], ["https://a.example/v1", "auto"]],
  model: [["m"], "m"],
  dialect: [["anthropic"], "anthropic"],
  tool_mode: [["json"], "json"],
  token: [["secret-value"], "${env:AGENT_INTELLIGENCE_TOKEN}"],
  token_file: [["token"], "${file:token}"],
  max_output_tokens: [["100"], 100],
  temperature: [["0.5"], 0.5],
  reasoning_effort: [["high"], "high"],
  context_window: [["64000"], 64000],
  request_timeout: [["5s"], "5s"],
  idle_timeout: [["6s"], "6s"],
  allow_insecure: [["true"], true],
  record_model: [["r.jsonl"], "r.jsonl"],
  mcp_config: [["servers.json"], { a: { command: "x" } }],
  mcp: [["a=node x.js", "b=https://b.example/mcp"], {
    a: { command: "node", args: ["x.js"] },
    b: { url: "https://b.example/mcp" },
  }],
  tools: [["a/*", "!a/b"], ["a/*", "!a/b"]],
  tool_timeout: [["7s"], "7s"],
  pin_tools: [["false"], false],
  allow_read: [["a,b", "c,,d"], ["a", "b", "c,d"]],
  allow_write: [["out"], ["out"]],
  allow_net: [["a.example:443"], ["a.example:443"]],
  allow_run: [["sh"], ["sh"]],
  allow_env: [["A"], ["A"]],
  exec_sandbox: [["none"], "none"],
  max_steps: [["7"], 7],
  max_tokens: [["70"], 70],
  max_cost: [["1.5"], 1.5],
  max_calls: [["8"], 8],
  max_calls_per_turn: [["9"], 9],
  deadline: [["1h30m"], "1h30m"],
  lifetime: [["2h"], "2h"],
  lifetime_tokens: [["11"], 11],
  idle_limit: [["2"], 2],
  fail_limit: [["4"], 4],
  repeat_cap: [["5"], 5],
  keep_verbatim: [["6"], 6],
  compact_at: [["0.5"], 0.5],
  observation_bytes: [["8KiB"], "8KiB"],
  max_depth: [["1"], 1],
  max_children: [["2"], 2],
  max_subagents: [["3"], 3],
  tree_tokens: [["4000"], 4000],
  max_memory: [["512MiB"], "512MiB"],
  progress_timeout: [["90s"], "90s"],
  mode: [["loop"], "loop"],
  interval: [["5m"], "5m"],
  cron: [["*/5 * * * *"], "*/5 * * * *"],
  timezone: [["Europe/Berlin"], "Europe/Berlin"],
  overlap: [["queue"], "queue"],
  jitter: [["3s"], "3s"],
  catch_up: [["true"], true],
  subscribe: [["file:*.md"], ["file:*.md"]],
  route: [[
    "mem://a/*=>spawn,max_inflight=2,cap=3,debounce=1s,overflow=drop_oldest",
    "b=>continue:main",
  ], [
    {
      match: "mem://a/*",
      spawn: { max_inflight: 2 },
      cap: 3,
      debounce: "1s",
      overflow: "drop_oldest",
    },
    { match: "b", continue: "main" },
  ]],
  sessions: [["x,y"], ["x", "y"]],
  max_iterations: [["5"], 5],
  session: [["warm"], "warm"],
  trigger_token_file: [["token"], "token"],
  lock: [["nightly"], "nightly"],
  state_dir: [["state"], "state"],
  allow_trifecta: [["true"], true],
  output: [["json"], "json"],
  output_file: [["out.txt"], "out.txt"],
  run_id: [["my-run_1"], "my-run_1"],
  run_dir: [["runs"], "runs"],
  durability: [["all"], "all"],
  notes: [["true"], true],
  log_level: [["debug"], "debug"],
  log_format: [["text"], "text"],
  log_content: [["true"], true],
  quiet: [["true"], true],
  otlp_endpoint: [["http://127.0.0.1:4318"], "http://127.0.0.1:4318"],
  health_file: [["health"], "health"],
  listen: [["127.0.0.1:0"], "127.0.0.1:0"],
  drain_timeout: [["5s"], "5s"],
  hook: [["before_action=a b", "before_action=c", "on_stop=d"], {
    before_action: ["a b", "c"],
    on_stop: ["d"],
  }],
};

/** What has neither flag nor variable, and so only a value in the file. */
const FILE_ONLY: Record<string, Json> = {
  model_options: { top_p: 0.5, nested: { a: [1] } },
  prices: { input: 3, cached_input: 0.3, output: 15 },
  tool_rules: { "docs/*": { legs: ["sensitive"], poll: true, rate: "30/m" } },
};

const FILES: Record<string, string> = {
  "s.md": "rules",
  "s.json": '{"type":"object"}',
  "token": "secret-value\n",
  "servers.json": '{"mcpServers": {"a": {"command": "x"}}}',
};

/** What each of them needs beside itself to be valid, in the file. */
const NEEDS: Record<string, JsonObject> = {
  max_cost: { model: { prices: { input: 1, output: 1 } } },
  interval: { mode: "loop" },
  cron: { mode: "schedule" },
  subscribe: { mode: "reactive" },
  route: { mode: "reactive", trigger: { subscribe: ["file:x"] } },
};

const configured = OPTIONS.filter((option) => option.name !== "config");

/** A file that holds a value at an option's key, and what the option needs. */
function fileWith(option: Option, value: Json | undefined): string {
  const content: JsonObject = { instruction: "x", ...structuredClone(NEEDS[option.name] ?? {}) };
  if (value !== undefined) {
    let node = content;
    for (const key of option.key.slice(0, -1)) {
      const next = node[key];
      node = isObject(next) ? next : (node[key] = {});
    }
    node[option.key.at(-1)!] = value;
  }
  return JSON.stringify(content);
}

Deno.test("OPTIONS: names, flags, variables and shorts are unique; every row has a sample here", () => {
  for (const field of ["name", "flag", "env", "short"] as const) {
    const all = OPTIONS.map((option) => option[field]).filter((each) => each);
    assert.equal(new Set(all).size, all.length, field);
  }
  assert.deepEqual(
    configured.map((option) => option.name).sort(),
    [...Object.keys(VALUES), ...Object.keys(FILE_ONLY)].sort(),
  );
});

Deno.test("OPTIONS: names of flag, variable and key follow from each other", () => {
  for (const option of OPTIONS) {
    if (option.flag !== null) {
      assert.equal(option.flag, `--${option.name.replaceAll("_", "-")}`);
    }
    if (option.env !== null && option.name !== "token") {
      assert.equal(option.env, `AGENT_${option.name.toUpperCase()}`);
    }
    for (const key of option.key) assert.match(key, /^[a-z_]+$/);
    assert.ok(option.help.length > 0 && option.help.length <= 100, option.name);
    assert.equal(
      option.inFile,
      option.key[0] !== INVOCATION && !/^(token_file|mcp_config)$/.test(option.name),
    );
  }
});

Deno.test("optionNamed: an unknown name is a bug", () => {
  assert.throws(() => optionNamed("nothing"), /no option nothing/);
});

Deno.test("loadSettings: every flag and every variable lead to the same effective value", async () => {
  for (const option of configured) {
    const sample = VALUES[option.name];
    if (!sample) continue;
    const [texts, value] = sample;
    const config = fileWith(option, undefined);
    const files = { ...FILES, "agentd.yaml": config };
    const env = { AGENT_INTELLIGENCE_TOKEN: option.name === "token" ? "secret-value" : "" };
    if (option.flag !== null) {
      const { settings } = await load({ flags: { [option.name]: texts }, files, env });
      assert.deepEqual(valueAt(settings.configuration, option.key), value, `${option.flag}`);
    }
    if (option.env !== null) {
      const variable = { ...env, [option.env]: texts.join("\n") };
      const { settings } = await load({ env: variable, files });
      assert.deepEqual(valueAt(settings.configuration, option.key), value, option.env);
    }
  }
});

Deno.test("loadSettings: every file key holds the same value as its flag", async () => {
  for (const option of configured) {
    if (!option.inFile) continue;
    const value = VALUES[option.name]?.[1] ?? FILE_ONLY[option.name]!;
    const env = { AGENT_INTELLIGENCE_TOKEN: "secret-value" };
    const files = { ...FILES, "agentd.yaml": fileWith(option, value) };
    const { settings, problems } = await load({
      files,
      env: option.name === "token" ? env : {},
    });
    assert.deepEqual(problems, [], option.name);
    assert.deepEqual(valueAt(settings.configuration, option.key), value, option.key.join("."));
    assert.equal(settings.configurationFile?.endsWith("/agentd.yaml"), true);
  }
});

Deno.test("loadSettings: a flag beats a variable, a variable the file, the file the default", async () => {
  const limits = JSON.stringify({ instruction: "x", limits: { max_steps: 3 } });
  const files = { "agentd.yaml": limits };
  const rows: [flag: string[], env: string, files: Record<string, string>, steps: number][] = [
    [["5"], "4", files, 5],
    [[], "4", files, 4],
    [[], "", files, 3],
    [[], "", {}, 40],
    [["5", "6"], "4", files, 6],
  ];
  for (const [flag, env, given, steps] of rows) {
    const { settings } = await load({
      flags: { instruction: ["x"], max_steps: flag },
      env: { AGENT_MAX_STEPS: env },
      files: given,
    });
    assert.equal(settings.limits.maxSteps, steps);
  }
});

Deno.test("loadSettings: servers and hooks of a higher level join those below, lists replace", async () => {
  const { settings } = await load({
    flags: {
      mcp: ["b=two", "c=three"],
      hook: ["on_stop=h2"],
      require: ["r2"],
    },
    files: {
      "agentd.yaml": JSON.stringify({
        instruction: "x",
        mcp_servers: { a: { command: "one" }, b: { command: "old" } },
        hooks: { on_stop: ["h1"], before_action: ["h0"] },
        verify: { require: ["r1"] },
      }),
    },
  });
  assert.deepEqual(
    settings.servers.map((server) => [server.name, server.kind === "stdio" && server.command]),
    [
      ["a", "one"],
      ["b", "two"],
      ["c", "three"],
    ],
  );
  assert.deepEqual(settings.hooks.on_stop, [["h2"]]);
  assert.deepEqual(settings.hooks.before_action, [["h0"]]);
  assert.equal(settings.task.require.length, 1);
  assert.match(settings.task.require[0]!, /\/r2$/);
});

Deno.test("loadSettings: a bare switch is on, =false is off", async () => {
  for (const [texts, on] of [[[BARE], true], [["false"], false], [["no"], false]] as const) {
    const { settings } = await load({ flags: { instruction: ["x"], notes: [...texts] } });
    assert.equal(settings.notes, on);
  }
  const all = await load({ flags: { instruction: ["x"], allow_read: [BARE] } });
  assert.equal(all.settings.allow.read, true);
});
