import assert from "node:assert/strict";
import { load, type Surroundings } from "../../tests/fakes/configuration.ts";
import { RECORDING_HEADER } from "../model/recording.ts";
import { dialectOf, LOCAL_BASES } from "./model.ts";

const flags = (more: Record<string, string[]>): Record<string, string[]> => ({
  instruction: ["x"],
  ...more,
});
const KEYS = { OPENAI_API_KEY: "openai-key", ANTHROPIC_API_KEY: "anthropic-key" };

/** Endpoints as `URL dialect token`, the token in the clear. */
async function endpoints(given: Surroundings): Promise<string[]> {
  const { settings } = await load(given);
  return settings.model.endpoints.map((endpoint) =>
    [
      endpoint.url.replace(/recorded:.*\//, "recorded:"),
      endpoint.dialect,
      endpoint.token === null ? "-" : settings.vault.fill(endpoint.token).reveal(),
      ...(endpoint.probe ? ["probe"] : []),
    ].join(" ")
  );
}

const LOCAL = LOCAL_BASES.map((base) => `${base} openai - probe`);
const OPENAI = "https://api.openai.com/v1 openai openai-key";
const ANTHROPIC = "https://api.anthropic.com/v1 anthropic anthropic-key";
const recording = { "r.jsonl": RECORDING_HEADER + "\n" };

const rows: [given: Surroundings, endpoints: string[]][] = [
  // auto: a key, else what may listen here.
  [{ flags: flags({}) }, LOCAL],
  [{ flags: flags({ intelligence: ["auto"] }) }, LOCAL],
  [{ flags: flags({}), env: { OPENAI_API_KEY: "openai-key" } }, [OPENAI]],
  [{ flags: flags({}), env: { ANTHROPIC_API_KEY: "anthropic-key" } }, [ANTHROPIC]],
  [{ flags: flags({}), env: KEYS }, [OPENAI]],
  [{ flags: flags({ dialect: ["anthropic"] }), env: KEYS }, [ANTHROPIC]],
  [{ flags: flags({ model: ["claude-x"] }), env: KEYS }, [ANTHROPIC]],
  [{ flags: flags({ dialect: ["anthropic"] }), env: { OPENAI_API_KEY: "k" } }, LOCAL],
  [{ flags: flags({}), env: { OPENAI_API_KEY: "" } }, LOCAL],
  [
    { flags: flags({}), env: { ...KEYS, OPENAI_BASE_URL: "https://gw.example/v1/" } },
    ["https://gw.example/v1 openai openai-key"],
  ],
  [
    {
      flags: flags({ dialect: ["anthropic"] }),
      env: { ...KEYS, ANTHROPIC_BASE_URL: "https://gw.example" },
    },
    ["https://gw.example/v1 anthropic anthropic-key"],
  ],
  // A token without a URL goes to nobody.
  [{ flags: flags({}), env: { AGENT_INTELLIGENCE_TOKEN: "t" } }, LOCAL],
  // URLs: the dialect by host or path; tokens by precedence.
  [
    { flags: flags({ intelligence: ["https://a.example/v1"] }) },
    ["https://a.example/v1 openai -"],
  ],
  [
    {
      flags: flags({ intelligence: ["https://api.anthropic.com/v1,https://b.example/v1"] }),
      env: KEYS,
    },
    [ANTHROPIC, "https://b.example/v1 openai openai-key"],
  ],
  [
    { flags: flags({ intelligence: ["https://gw.example/anthropic/v1"] }), env: KEYS },
    ["https://gw.example/anthropic/v1 anthropic anthropic-key"],
  ],
  [
    { flags: flags({ intelligence: ["https://a.example/v1"], dialect: ["anthropic"] }), env: KEYS },
    ["https://a.example/v1 anthropic anthropic-key"],
  ],
  [
    {
      flags: flags({ intelligence: ["https://a.example/v1"], token_file: ["token"] }),
      env: { ...KEYS, AGENT_INTELLIGENCE_TOKEN: "from-env" },
      files: { token: "from-file\n" },
    },
    ["https://a.example/v1 openai from-file"],
  ],
  [
    {
      flags: flags({ intelligence: ["https://a.example/v1"] }),
      env: { ...KEYS, AGENT_INTELLIGENCE_TOKEN: "from-env" },
      files: { "agentd.yaml": "model: { token: '${env:OPENAI_API_KEY}' }\n" },
    },
    ["https://a.example/v1 openai from-env"],
  ],
  [
    {
      flags: flags({ intelligence: ["https://a.example/v1"] }),
      env: { MINE: "mine" },
      files: { "agentd.yaml": "model: { token: 'pre-${env:MINE}' }\n" },
    },
    ["https://a.example/v1 openai pre-mine"],
  ],
  // Recordings, alone and behind others.
  [
    { flags: flags({ intelligence: ["recorded:r.jsonl"] }), files: recording },
    ["recorded:r.jsonl openai -"],
  ],
  [
    { flags: flags({ intelligence: ["auto,recorded:r.jsonl"] }), files: recording },
    [...LOCAL, "recorded:r.jsonl openai -"],
  ],
  [
    { flags: flags({ intelligence: ["auto", "recorded:r.jsonl"] }), files: recording, env: KEYS },
    [OPENAI, "recorded:r.jsonl openai -"],
  ],
  [
    { flags: flags({ intelligence: ["http://h.example/v1"], allow_insecure: ["true"] }) },
    ["http://h.example/v1 openai -"],
  ],
];

Deno.test("loadSettings: which endpoints there are, in which dialect, with which token", async () => {
  for (const [given, expected] of rows) {
    assert.deepEqual(await endpoints(given), expected, JSON.stringify(given));
  }
});

Deno.test("loadSettings: a recording travels as its text", async () => {
  const { settings } = await load({
    flags: flags({ intelligence: ["recorded:r.jsonl"] }),
    files: recording,
  });
  assert.equal(settings.model.endpoints[0]!.kind, "recorded");
  assert.equal(settings.model.endpoints[0]!.recording, RECORDING_HEADER + "\n");
});

Deno.test("dialectOf: the messages wire only for what names its maker", () => {
  const anthropic = [
    "https://api.anthropic.com/v1",
    "https://anthropic.com",
    "https://gw.example/anthropic",
    "https://gw.example/proxy/anthropic/v1",
  ];
  const openai = [
    "https://notanthropic.com/v1",
    "https://anthropic.com.evil.example/v1",
    "https://gw.example/anthropically/v1",
    "https://gw.example/v1?x=/anthropic/",
  ];
  for (const url of anthropic) assert.equal(dialectOf(url), "anthropic", url);
  for (const url of openai) assert.equal(dialectOf(url), "openai", url);
});

Deno.test("loadSettings: the window leaves room for a conversation, at the bound and one below", async () => {
  const rows: [window: string, output: string, compactAt: string, fits: boolean][] = [
    ["13526", "8192", "0.75", true],
    ["13525", "8192", "0.75", false],
    ["4100", "100", "1", true],
    ["4099", "100", "1", false],
    ["8192", "8192", "0.75", false],
  ];
  for (const [window, output, compactAt, fits] of rows) {
    const { problems } = await load({
      flags: flags({
        context_window: [window],
        max_output_tokens: [output],
        compact_at: [compactAt],
      }),
    });
    assert.equal(problems.length, fits ? 0 : 1, `${window} ${output} ${compactAt}`);
  }
});

Deno.test("loadSettings: a price of cached input is that of input where it is not given", async () => {
  const { settings } = await load({
    flags: flags({ max_cost: ["1"] }),
    files: { "agentd.yaml": "model: { prices: { input: 3, output: 15 } }\n" },
  });
  assert.deepEqual(settings.model.prices, { input: 3, cachedInput: 3, output: 15 });
});

Deno.test("loadSettings: what no header can carry is told at once, and not shown", async () => {
  const url = { intelligence: ["https://a.example/v1"] };
  const server = (header: string) => ({
    "agentd.yaml":
      `mcp_servers: { s: { url: "https://s.example", headers: { x-id: ${header} } } }\n`,
  });
  const rows: [given: Surroundings, where: RegExp][] = [
    [
      { flags: flags({ ...url, token_file: ["t"] }), files: { t: "pa55\x01word" } },
      /^--token-file:/,
    ],
    [{ flags: flags(url), env: { AGENT_INTELLIGENCE_TOKEN: "pa55word\r" } }, /TOKEN/],
    [{ flags: flags(url), env: { OPENAI_API_KEY: "pa55word\n" } }, /^OPENAI_API_KEY:/],
    [{ flags: flags(url), env: { OPENAI_API_KEY: "pa55word\u65e5" } }, /^OPENAI_API_KEY:/],
    [
      { flags: flags(url), files: server('"${env:ID}"'), env: { ID: "pa55\nword" } },
      /^agentd.yaml:1: mcp_servers.s.headers.x-id:/,
    ],
    [{ flags: flags(url), files: server('"pa55\\nword"') }, /headers.x-id:/],
  ];
  for (const [given, where] of rows) {
    const { problems } = await load(given);
    assert.equal(problems.length, 1, String(where));
    assert.match(problems[0]!, where);
    assert.match(problems[0]!, /no header can carry/);
    assert.doesNotMatch(problems[0]!, /pa55/);
  }
  const { problems } = await load({ flags: flags(url), env: { OPENAI_API_KEY: "a b\u00e9~" } });
  assert.deepEqual(problems, []);
});
