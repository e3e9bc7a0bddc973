import assert from "node:assert/strict";
import { load, type Surroundings } from "../../tests/fakes/configuration.ts";
import { INSTRUCTION_BYTES_MAX } from "../core/limits.ts";

const flags = (more: Record<string, string[]>): Surroundings => ({
  flags: { instruction: ["x"], ...more },
});
const file = (yaml: string, more: Record<string, string> = {}): Surroundings => ({
  flags: { instruction: ["x"] },
  files: { "agentd.yaml": yaml, ...more },
});

/** Each mistake alone, with the whole line that is said of it. */
type Row = [given: Surroundings, line: string];

const rows: Row[] = [
  // Numbers, durations, sizes, choices.
  [flags({ max_steps: ["x"] }), '--max-steps: "x" is not a whole number, 1 or more'],
  [flags({ max_steps: ["0"] }), "--max-steps: 0 is not a whole number, 1 or more"],
  [flags({ max_steps: ["1.5"] }), '--max-steps: "1.5" is not a whole number, 1 or more'],
  [flags({ max_steps: ["+5"] }), '--max-steps: "+5" is not a whole number, 1 or more'],
  [flags({ temperature: ["2.1"] }), "--temperature: 2.1 is not a number from 0 to 2"],
  [flags({ compact_at: ["0"] }), "--compact-at: 0 is not a number above 0 and at most 1"],
  [
    flags({ deadline: ["10"] }),
    '--deadline: "10" is not a duration such as 500ms, 30s, 10m or 2h; add the unit, as in 10s',
  ],
  [flags({ deadline: ["0s"] }), '--deadline: "0s" is too short; at least 1ms'],
  [flags({ deadline: ["400d"] }), '--deadline: "400d" is too long; at most 366d'],
  [
    flags({ max_memory: ["1GG"] }),
    '--max-memory: "1GG" is not a size such as 16KiB, 512MiB or 1GiB',
  ],
  [flags({ max_memory: ["1KiB"] }), '--max-memory: "1KiB" is below 67108864 bytes'],
  [
    flags({ dialect: ["opena"] }),
    '--dialect: "opena" is not openai or anthropic; did you mean openai?',
  ],
  [flags({ mode: ["never"] }), '--mode: "never" is not one of once, loop, reactive, schedule'],
  [flags({ notes: ["maybe"] }), '--notes: "maybe" is not true or false'],
  [
    { ...flags({}), env: { AGENT_MAX_CALLS: "many" } },
    'AGENT_MAX_CALLS: "many" is not a whole number, 1 or more',
  ],
  [flags({ max_stepz: ["3"] }), "--max-stepz: unknown option; did you mean max_steps?"],
  // The file: keys and types, with line.
  [
    file("limits:\n  max_stepz: 3\n"),
    'agentd.yaml:2: limits.max_stepz: unknown key "max_stepz"; did you mean limits.max_steps?',
  ],
  [
    file("max_steps: 3\n"),
    'agentd.yaml:1: max_steps: unknown key "max_steps"; did you mean limits.max_steps?',
  ],
  [
    file("limits:\n  max_steps: lots\n"),
    'agentd.yaml:2: limits.max_steps: "lots" is not a whole number, 1 or more',
  ],
  [
    file("limits: 3\n"),
    "agentd.yaml:1: limits: 3 is not a mapping of keys to values; known here: max_steps, " +
    "max_tokens, max_cost, max_calls, max_calls_per_turn, deadline, idle_limit, fail_limit, " +
    "repeat_cap, keep_verbatim, compact_at, observation_bytes, max_depth, max_children, " +
    "max_subagents, tree_tokens, max_memory, progress_timeout",
  ],
  [
    file("limits:\n  deadline: 600\n"),
    "agentd.yaml:2: limits.deadline: 600 is not a duration such as 500ms, 30s, 10m or 2h; add the " +
    "unit, as in 600s",
  ],
  [
    file("tools:\n  docs/*:\n    legz: [egress]\n"),
    'agentd.yaml:3: tools.docs/*.legz: unknown key "legz"; did you mean legs?',
  ],
  [
    file("tools:\n  docs/*: { legs: [egres] }\n"),
    'agentd.yaml:2: tools.docs/*.legs.0: "egres" is not one of untrusted_input, sensitive, egress; ' +
    "did you mean egress?",
  ],
  [
    file("tools:\n  docs/*: { rate: 30 }\n"),
    "agentd.yaml:2: tools.docs/*.rate: 30 is not a rate such as 30/m or 5/s",
  ],
  [
    file('tools:\n  "a b": { poll: true }\n'),
    'agentd.yaml:2: tools.a b: "a b" is no glob over tools; write SERVER/TOOL, as in "docs/*"',
  ],
  [file("- a\n"), "agentd.yaml:1: the file is not a mapping of keys to values"],
  [
    file("notes: false\nnotes: true\n"),
    "agentd.yaml:2:1: Cannot read it as YAML: Map keys must be unique",
  ],
  [
    { flags: { instruction: ["x"], config: ["c.json"] }, files: { "c.json": '{"notes": tru}' } },
    "c.json:1:14: Cannot read it as JSON: Unexpected token '}' (found \"}\")",
  ],
  [
    { flags: { instruction: ["x"], config: ["none.yaml"] } },
    "--config: Cannot read it: there is no file none.yaml",
  ],
  [
    { flags: { instruction: ["x"] }, env: { AGENT_CONFIG: "none.yaml" } },
    "AGENT_CONFIG: Cannot read it: there is no file none.yaml",
  ],
  [
    { flags: { config: ["none.yaml"] } },
    "--config: Cannot read it: there is no file none.yaml",
  ],
  [
    { flags: {}, files: { "agentd.yaml": "instruction: 5\n" } },
    "agentd.yaml:1: instruction: 5 is not a text; put it in quotes",
  ],
  // The task.
  [
    { flags: {} },
    'INSTRUCTION: no instruction was given; write it as in agentd "do this"; - reads it from ' +
    "stdin, @FILE from a file",
  ],
  [
    { flags: { instruction: [" \n"] } },
    "--instruction: the instruction is empty; say what is to be done",
  ],
  [
    { flags: { instruction: ["-"] }, stdin: "\n" },
    "--instruction: the instruction is empty; say what is to be done",
  ],
  [
    { flags: { instruction: ["@task.md"] } },
    "--instruction: Cannot read the instruction: there is no file task.md",
  ],
  [
    { flags: { instruction: ["x".repeat(INSTRUCTION_BYTES_MAX + 1)] } },
    `--instruction: the instruction has ${INSTRUCTION_BYTES_MAX + 1} bytes; at most ` +
    `${INSTRUCTION_BYTES_MAX}; put the bulk into a file that a tool can read`,
  ],
  [flags({ system: ["s.md"] }), "--system: Cannot read the system text: there is no file s.md"],
  [
    { ...flags({ system: ["s.md"] }), files: { "s.md/x": "" } },
    "--system: Cannot read the system text: s.md is a directory",
  ],
  [
    { ...flags({ output_schema: ["s.json"] }), files: { "s.json": '{"type": "object",\n}' } },
    "--output-schema: Cannot read the output schema: s.json:2:1: Expected double-quoted property " +
    'name (found "}")',
  ],
  [
    { ...flags({ output_schema: ["s.json"] }), files: { "s.json": '{"type": "objet"}' } },
    '--output-schema: s.json is no JSON Schema: at #/type: "objet" is no type (null, boolean, ' +
    "object, array, number, string, integer)",
  ],
  [
    { ...flags({ output_schema: ["s.json"] }), files: { "s.json": "[]" } },
    "--output-schema: s.json is no JSON Schema: at #: a schema must be an object",
  ],
  [
    flags({ check: ["deno 'test"] }),
    '--check: Cannot split "deno \'test" into words: the single quote at character 6 is not ' +
    "closed; close the quote, or escape it with a backslash",
  ],
  [
    file("verify:\n  checks:\n    - when: final\n"),
    'agentd.yaml:3: verify.checks.0: the key "command" is missing',
  ],
  [
    flags({ mcp: ["docs=node"], require: ["dosc:mem://index"] }),
    '--require: "dosc:mem://index" names no declared server; did you mean docs?',
  ],
  [
    flags({ require: ["mem://index"] }),
    '--require: "mem://index" does not say which server has it; write SERVER:mem://index; ' +
    "declared: none",
  ],
  // The model.
  [
    flags({ intelligence: ["https://u:p@h.example/v1"] }),
    '--intelligence: "https://***@h.example/v1" has credentials in it; take them out and use a ' +
    "token or a header with ${env:NAME}",
  ],
  [
    flags({ intelligence: ["http://h.example/v1"] }),
    '--intelligence: "http://h.example/v1" is not encrypted and not on this machine; use https://, ' +
    "or --allow-insecure",
  ],
  [
    flags({ intelligence: ["https://h.example/v1/chat/completions?v=2"] }),
    '--intelligence: "https://h.example/v1/chat/completions?v=2" is not a base URL; write ' +
    "https://h.example/v1?v=2",
  ],
  [
    flags({ intelligence: ["https://h.example/v1/messages/"] }),
    '--intelligence: "https://h.example/v1/messages" is not a base URL; write https://h.example/v1',
  ],
  [
    flags({ intelligence: ["auot"] }),
    '--intelligence: "auot" is no URL; did you mean auto?',
  ],
  [
    flags({ intelligence: [""] }),
    "--intelligence: no endpoint is given; write a URL as far as /v1, auto, or recorded:FILE",
  ],
  [
    flags({ intelligence: ["recorded:r.jsonl"] }),
    "--intelligence: Cannot read the recording: there is no file r.jsonl",
  ],
  [
    {
      ...flags({ intelligence: ["recorded:r.jsonl"] }),
      files: { "r.jsonl": '{"v":1,"kind":"agentd-recording"}\n{"a"\n' },
    },
    "--intelligence: Cannot read the recording: r.jsonl:2: not JSON: Expected ':' after property " +
    "name in JSON at position 4",
  ],
  [
    file("model:\n  token: sk-secret\n"),
    "agentd.yaml:2: model.token: a token may not stand in the file itself; write ${env:NAME} or " +
    "${file:PATH}",
  ],
  [
    file("model:\n  token: ${env:NOT_SET}\n"),
    "agentd.yaml:2: model.token: the environment variable NOT_SET is not set; set NOT_SET",
  ],
  [
    flags({ token_file: ["none"] }),
    "--token-file: Cannot read the secret file: there is no file none",
  ],
  [
    flags({ max_cost: ["2"] }),
    "--max-cost: a cost limit needs the model's prices, which are not known; set model.prices " +
    "{input, cached_input, output} in the configuration file, in USD per million tokens",
  ],
  [
    flags({ context_window: ["9000"] }),
    "--context-window: a window of 9,000 less 8,192 for output leaves 808, of which 0.75 are 606 " +
    "tokens for the conversation; it needs 4,000; raise context_window to 13,526 or lower " +
    "max_output_tokens to 3,666",
  ],
  // Tools.
  [
    flags({ mcp: ["node server.js"] }),
    '--mcp: Cannot read "node server.js": it has no =; write NAME=COMMAND ARGS… or NAME=URL',
  ],
  [
    flags({ mcp: ["a b=node"] }),
    '--mcp: Cannot read "a b=node": "a b" is not a server name: 1 to 32 of A-Z, a-z, 0-9, _, . and ' +
    "-, a letter or digit first; write NAME=COMMAND ARGS… or NAME=URL",
  ],
  [
    flags({ mcp: ["a=x", "a=y"] }),
    '--mcp: Cannot read "a=y": the server "a" is declared twice; write NAME=COMMAND ARGS… or ' +
    "NAME=URL",
  ],
  [
    flags({ mcp: ["a=ws://h/mcp"] }),
    '--mcp: Cannot read "a=ws://h/mcp": ws:// is neither http:// nor https://',
  ],
  [
    flags({ mcp: ["a="] }),
    '--mcp: Cannot read "a=": the command cannot be split into words: it is empty',
  ],
  [
    flags({ mcp: ["a=http://h.example/mcp"] }),
    '--mcp a.url: "http://h.example/mcp" is not encrypted and not on this machine; use https://, ' +
    "or --allow-insecure",
  ],
  [
    file("mcp_servers:\n  a:\n    args: [x]\n"),
    "agentd.yaml:2: mcp_servers.a: it has neither a command nor a url; a server is either " +
    "{command, args, env, cwd} or {url, headers}",
  ],
  [
    file("mcp_servers:\n  a:\n    url: https://h.example\n    cwd: x\n"),
    "agentd.yaml:4: mcp_servers.a.cwd: cwd is not a key of a server with a url; leave it out",
  ],
  [
    file('mcp_servers:\n  a:\n    command: x\n    args: ["${env:HOME}"]\n'),
    'agentd.yaml:4: mcp_servers.a.args.0: "${env:HOME}" would show a secret in the list of ' +
    "processes; hand it over in env",
  ],
  [
    file("mcp_servers:\n  a:\n    command: x\n    env: { PORT: 80 }\n"),
    "agentd.yaml:4: mcp_servers.a.env.PORT: the value has the wrong type; put it in quotes",
  ],
  [
    file('mcp_servers:\n  a:\n    command: x\n    env: { "a-b": c }\n'),
    'agentd.yaml:4: mcp_servers.a.env.a-b: "a-b" is no name of a variable',
  ],
  [
    file("mcp_servers:\n  a:\n    url: https://h.example\n    era: new\n"),
    'agentd.yaml:4: mcp_servers.a.era: "new" is not auto, legacy or a protocol revision such as ' +
    "2025-11-25",
  ],
  [
    { ...flags({ mcp_config: ["m.json"] }), files: { "m.json": "{}" } },
    '--mcp-config: m.json has no object "mcpServers"',
  ],
  [
    {
      ...flags({ mcp_config: ["m.json"], mcp: ["a=y"] }),
      files: { "m.json": '{"mcpServers":{"a":{"command":"x"}}}' },
    },
    '--mcp: the server "a" is declared twice, also in m.json:1: mcpServers.a',
  ],
  [
    {
      ...flags({ mcp_config: ["m.json"] }),
      files: { "m.json": '{"mcpServers":{\n"a":{"type":"sse","url":"https://h.example"}}}' },
    },
    "m.json:2: mcpServers.a: the SSE transport is not supported; use streamable HTTP",
  ],
  [
    flags({ allow_read: ["a"], mcp: ["fs=x"] }),
    '--mcp fs: the server name "fs" is that of the built-in server, which is on; give yours ' +
    "another name",
  ],
  [
    flags({ mcp: ["self=x"] }),
    '--mcp self: the server name "self" is taken: it is that of the agent\'s own tools; give it ' +
    "another name",
  ],
  [
    flags({ allow_read: [""] }),
    "--allow-read: an empty list; leave =LIST out to allow everything",
  ],
  [
    flags({ allow_net: ["https://h.example/x"] }),
    '--allow-net: Cannot allow net: "https://h.example/x" is a URL; write the host, as in ' +
    '"h.example"',
  ],
  [
    flags({ allow_run: ["no-such-program-here"] }),
    '--allow-run: Cannot allow "no-such-program-here" to run: no such program; it is on no ' +
    "directory of PATH",
  ],
  [
    { ...file("exec: { sandbox: bwrap }\n"), env: { PATH: "/nowhere" } },
    "agentd.yaml:1: exec.sandbox: Cannot wrap it in bwrap: the program is on no directory of PATH; " +
    "install bubblewrap, or write none",
  ],
  // Output.
  [
    flags({ run_id: ["a b"] }),
    '--run-id: "a b" is not a run id: 1 to 64 of A-Z, a-z, 0-9, _ and -',
  ],
  [
    { ...flags({ run_id: ["r1"], run_dir: ["runs"] }), files: { "runs/r1/record.jsonl": "" } },
    "--run-id: the run r1 exists already in CWD/runs; choose another id, or go on with it: agentd " +
    "resume r1",
  ],
  [
    flags({ run_id: ["last"] }),
    '--run-id: "last" stands for the newest run; choose another id',
  ],
  // Names of files that are none.
  [flags({ instruction: ["@"] }), "--instruction: no file is named; write @FILE"],
  [flags({ config: [""] }), '--config: "" is not a path'],
  [flags({ mcp_config: [""] }), '--mcp-config: "" is not a path'],
  [flags({ token_file: [""] }), '--token-file: "" is not a path'],
  [flags({ token_file: ["a}b"] }), '--token-file: "a}b" is not a path without }'],
  ...["file:///%zz", "file://[x", "file://host/x"].map((url): Row => [
    flags({ require: [url] }),
    `--require: "${url}" is no URL of a file on this machine; write the path, or file:///PATH`,
  ]),
  // Texts that are no UTF-8.
  ...([
    [flags({ instruction: ["@f"] }), "--instruction: Cannot read the instruction: f"],
    [flags({ system: ["f"] }), "--system: Cannot read the system text: f"],
    [flags({ output_schema: ["f"] }), "--output-schema: Cannot read the output schema: f"],
    [flags({ token_file: ["f"] }), "--token-file: Cannot read the secret file: f"],
    [flags({ config: ["f"] }), "--config: Cannot read it: f"],
    [flags({ mcp_config: ["f"] }), "--mcp-config: Cannot read it: f"],
    [flags({ intelligence: ["recorded:f"] }), "--intelligence: Cannot read the recording: f"],
  ] as Row[]).flatMap(([given, begin]): Row[] =>
    ([
      [[0x63, 0x61, 0x66, 0xe9], "it is not UTF-8"],
      [[0xff, 0xfe, 0x68, 0x00], "it is UTF-16"],
      [[0xfe, 0xff, 0x00, 0x68], "it is UTF-16"],
    ] as const).map(([bytes, what]): Row => [
      {
        ...given,
        prepare: (directory) => Deno.writeFileSync(`${directory}/f`, new Uint8Array(bytes)),
      },
      `${begin}: ${what}; save it as UTF-8`,
    ])
  ),
  [
    flags({ output_file: ["none/out.txt"] }),
    "--output-file: Cannot write CWD/none/out.txt: there is no directory CWD/none; make it first",
  ],
  [flags({ output_file: ["."] }), "--output-file: Cannot write CWD: it is a directory"],
  [
    flags({ hook: ["before=x"] }),
    '--hook: Cannot read "before=x": "before" is no event; write EVENT=COMMAND, EVENT one of ' +
    "before_action, after_observation, before_compaction, on_stop",
  ],
  [
    flags({ hook: ["on_stop='x"] }),
    '--hook: Cannot split "\'x" into words: the single quote at character 1 is not closed; close ' +
    "the quote, or escape it with a backslash",
  ],
];

Deno.test("loadSettings: every mistake is one line that names key, value and what would be right", async () => {
  for (const [given, line] of rows) {
    const { problems } = await load(given);
    assert.deepEqual(problems, [line]);
  }
});

Deno.test("loadSettings: every problem is told at once, whatever its source", async () => {
  const { problems } = await load({
    flags: { max_steps: ["x"], mcp: ["nothing"], system: ["none.md"] },
    env: { AGENT_MODE: "onec" },
    files: { "agentd.yaml": "limits:\n  deadline: soon\nmodel:\n  token: literal\ncolour: red\n" },
  });
  assert.deepEqual(problems.map((line) => line.split(": ").slice(0, 2).join(": ")).sort(), [
    '--max-steps: "x" is not a whole number, 1 or more',
    '--mcp: Cannot read "nothing"',
    "--system: Cannot read the system text",
    'AGENT_MODE: "onec" is not one of once, loop, reactive, schedule; did you mean once?',
    'INSTRUCTION: no instruction was given; write it as in agentd "do this"; - reads it from stdin, @FILE from a file',
    "agentd.yaml:2: limits.deadline",
    "agentd.yaml:4: model.token",
    "agentd.yaml:5: colour",
  ]);
});

Deno.test("loadSettings: no problem shows a secret", async () => {
  const secret = "canary-5ecret";
  const { problems } = await load({
    flags: { instruction: ["x"], intelligence: [`https://u:${secret}@h.example/v1`] },
    env: { T: secret },
    files: {
      "agentd.yaml": JSON.stringify({
        model: { token: secret },
        mcp_servers: {
          a: { url: `https://${secret}@h.example` },
          b: { command: "x", env: { TOKEN: [secret] } },
          c: { url: "https://h.example", headers: { authorization: `${secret}\n` } },
        },
      }),
    },
  });
  assert.equal(problems.length, 5);
  assert.doesNotMatch(problems.join("\n"), new RegExp(secret));
});

Deno.test("loadSettings: a refused grant is a problem among the others, unless it is allowed", async () => {
  const judge = (): string => "Cannot grant all three";
  const refused = await load({ flags: {}, judge });
  assert.equal(refused.problems.length, 2);
  assert.equal(refused.problems[1], "allow_trifecta: Cannot grant all three");
  const allowed = await load({ ...flags({ allow_trifecta: ["true"] }), judge });
  assert.deepEqual(allowed.problems, []);
  assert.equal(allowed.settings.allowTrifecta, true);
});

Deno.test("loadSettings: what holds where nothing is said", async () => {
  const { settings } = await load({ ...flags({}), terminal: true });
  assert.deepEqual(settings.limits, {
    maxSteps: 40,
    maxTokens: 1_000_000,
    maxCost: null,
    maxCalls: 400,
    maxCallsPerTurn: 16,
    deadlineMs: 600_000,
    idleLimit: 3,
    failLimit: 8,
    repeatCap: 3,
    keepVerbatim: 5,
    compactAt: 0.75,
    observationBytesMax: 16_384,
    maxDepth: 4,
    maxChildren: 8,
    maxSubagents: 64,
    treeTokensMax: 4_000_000,
    memoryBytesMax: 1_073_741_824,
    progressTimeoutMs: 180_000,
  });
  assert.equal(settings.mode, "once");
  assert.equal(settings.model.maxOutputTokens, 8192);
  assert.equal(settings.model.contextWindow, 128_000);
  assert.equal(settings.model.requestTimeoutMs, 120_000);
  assert.equal(settings.tools.timeoutMs, 60_000);
  assert.deepEqual(settings.tools.grant, ["*"]);
  assert.equal(settings.drainTimeoutMs, 25_000);
  assert.equal(settings.log.format, "text");
  assert.equal((await load(flags({}))).settings.log.format, "json");
  assert.match(settings.runDirectory, /\/\.local\/state\/agentd\/runs$/);
});

Deno.test("loadSettings: state is kept where XDG says", async () => {
  const rows: [env: Record<string, string>, runs: RegExp][] = [
    [{ XDG_STATE_HOME: "/var/state" }, /^\/var\/state\/agentd\/runs$/],
    [{ XDG_STATE_HOME: "relative" }, /\/\.local\/state\/agentd\/runs$/],
  ];
  for (const [env, runs] of rows) {
    const { settings } = await load({ ...flags({}), env });
    assert.match(settings.runDirectory, runs);
  }
  const { settings } = await load(flags({ run_dir: ["~/r"] }));
  assert.match(settings.runDirectory, /agentd-config-\w+\/r$/);
});

Deno.test("loadSettings: the instruction is text, stdin or a file", async () => {
  const rows: [Surroundings, string][] = [
    [{ flags: { instruction: ["do this"] } }, "do this"],
    [{ flags: { instruction: ["-"] }, stdin: "from stdin\n" }, "from stdin\n"],
    [{ flags: { instruction: ["@t.md"] }, files: { "t.md": "from file" } }, "from file"],
    [{ files: { "agentd.yaml": "instruction: '@t.md'\n", "t.md": "from file" } }, "from file"],
  ];
  for (const [given, instruction] of rows) {
    assert.equal((await load(given)).settings.task.instruction, instruction);
  }
});

Deno.test("loadSettings: only where it must be there is an instruction missed", async () => {
  for (const purpose of ["permissions", "replay", "inspect"] as const) {
    assert.deepEqual((await load({ flags: {}, purpose })).problems, []);
  }
  for (const purpose of ["run", "validate"] as const) {
    assert.equal((await load({ flags: {}, purpose })).problems.length, 1);
  }
});

Deno.test("loadSettings: a secret that is known is shown by no problem, wherever it stands", async () => {
  const yaml = "model: { token: '${env:LLM}' }\nmcp_servers: { a: { command: s3cret-value, " +
    "args: s3cret-value } }\nlimits: { max_steps: s3cret-value }\ns3cret-value: 1\n";
  const { problems } = await load({ ...file(yaml), env: { LLM: "s3cret-value" } });
  assert.equal(problems.length, 3);
  assert.doesNotMatch(problems.join("\n"), /s3cret/);
  assert.match(problems.join("\n"), /limits\.max_steps: "\*\*\*" is not a whole number/);
});
