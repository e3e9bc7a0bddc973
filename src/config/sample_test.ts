import assert from "node:assert/strict";
import { load, type Surroundings } from "../../tests/fakes/configuration.ts";
import { isObject, type Json, type JsonObject } from "../core/json.ts";
import { parseDocument } from "./document.ts";
import { INVOCATION } from "./option.ts";
import { OPTIONS } from "./options.ts";

const sample = await Deno.readTextFile(
  new URL("../../tests/fixtures/sample.yaml", import.meta.url),
);
const parsed = await parseDocument(sample, false);
assert.ok(parsed.ok && isObject(parsed.value.value));
const content: JsonObject = parsed.value.value;

/** The sample with what it refers to. Its secret file lies where a test may write. */
const surroundings: Surroundings = {
  env: { DOCS_TOKEN: "docs-5ecret", SEARCH_TOKEN: "search-5ecret" },
  files: {
    "agentd.yaml": sample.replace("/run/secrets/llm", "llm"),
    "llm": "llm-5ecret\n",
    "house-rules.md": "Be brief.",
    "result.schema.json": '{"type":"object"}',
  },
};

/** The paths of everything that is no mapping. */
function leaves(value: Json, path: string[] = []): string[] {
  if (!isObject(value) || Object.keys(value).length === 0) return [path.join(" ")];
  return Object.entries(value).flatMap(([key, member]) => leaves(member, [...path, key]));
}

Deno.test("loadSettings: the sample is the file's whole grammar and comes back as it was written", async () => {
  const { settings, problems, notices } = await load(surroundings);
  assert.deepEqual(problems, []);
  assert.deepEqual(notices, []);
  const { [INVOCATION]: invocation, trigger, ...effective } = settings.configuration;
  const { trigger: written, ...rest } = structuredClone(content);
  (rest.model as JsonObject).token = "${file:llm}";
  assert.deepEqual(effective, rest);
  // The one key that the sample leaves to its default.
  assert.deepEqual(trigger, { ...written as JsonObject, sessions: [] });
  assert.deepEqual(invocation, { tool_timeout: "60s" });
});

Deno.test("loadSettings: what came back loads again, to the same settings", async () => {
  const { settings } = await load(surroundings);
  const { [INVOCATION]: _none, ...configuration } = settings.configuration;
  const again = await load({
    ...surroundings,
    files: { ...surroundings.files, "agentd.yaml": JSON.stringify(configuration) },
  });
  const comparable = (text: string): string => text.replace(/agentd-config-\w+/g, "D");
  assert.equal(
    comparable(JSON.stringify(again.settings)),
    comparable(JSON.stringify(settings)),
  );
});

Deno.test("OPTIONS: every key of a file is in the sample, and every key of the sample is known", () => {
  const known = OPTIONS.filter((option) => option.inFile).map((option) => option.key.join(" "));
  const written = leaves(content);
  const unknown = written.filter((path) => !known.some((key) => `${path} `.startsWith(`${key} `)));
  assert.deepEqual(unknown, []);
  const unwritten = known.filter((key) =>
    !written.some((path) => `${path} `.startsWith(`${key} `))
  );
  assert.deepEqual(unwritten, ["trigger sessions"]);
});

Deno.test("loadSettings: the sample means what it says", async () => {
  const { settings } = await load(surroundings);
  assert.equal(settings.task.system, "Be brief.");
  assert.deepEqual(settings.task.checks, [
    { command: ["deno", "task", "test"], when: "final", timeoutMs: 300_000 },
  ]);
  assert.deepEqual(settings.task.outputSchema, { type: "object" });
  assert.deepEqual(
    settings.task.require.map((item) => item.replace(/^.*agentd-config-\w+/, "CWD")),
    [
      "CWD/out/summary.md",
      "docs:mem://index",
    ],
  );
  assert.deepEqual(settings.model.prices, { input: 3, cachedInput: 0.3, output: 15 });
  assert.equal(settings.limits.maxCost, 2.5);
  assert.deepEqual(
    settings.model.endpoints.map((each) => [each.url, each.dialect, each.token?.length]),
    [
      ["https://gateway.example/v1", "openai", 1],
      ["http://127.0.0.1:11434/v1", "openai", 1],
    ],
  );
  assert.deepEqual(settings.servers.map((server) => server.name), ["docs", "search", "fs"]);
  assert.deepEqual(settings.tools.rules.find((rule) => rule.glob === "search/*"), {
    glob: "search/*",
    legs: ["untrusted_input"],
    grant: null,
    idempotent: null,
    readOnly: null,
    poll: null,
    timeoutMs: 10_000,
    rate: { calls: 30, perMs: 60_000 },
  });
  assert.deepEqual(settings.trigger.routes, [
    {
      match: "mem://inbox/*",
      target: { kind: "spawn", maxInflight: 4 },
      debounceMs: 250,
      cap: 16,
      overflow: "coalesce",
      instruction: null,
    },
    {
      match: "mem://state",
      target: { kind: "continue", session: "main" },
      debounceMs: 250,
      cap: 16,
      overflow: "coalesce",
      instruction: null,
    },
  ]);
  assert.deepEqual(settings.hooks.before_action, [["./hooks/guard.sh"]]);
});

Deno.test("loadSettings: secrets are in the vault and nowhere else", async () => {
  const { settings } = await load(surroundings);
  const { vault, ...rest } = settings;
  assert.doesNotMatch(JSON.stringify(rest), /5ecret/);
  assert.doesNotMatch(Deno.inspect(settings, { depth: 20 }), /5ecret/);
  const revealed = Object.values(vault.revealAll()).sort();
  assert.deepEqual(revealed, ["docs-5ecret", "llm-5ecret", "search-5ecret"]);
  const search = settings.servers.find((server) => server.name === "search");
  assert.ok(search?.kind === "http");
  assert.equal(vault.fill(search.headers.authorization!).reveal(), "Bearer search-5ecret");
});
