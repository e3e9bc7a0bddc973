import assert from "node:assert/strict";
import fc from "fast-check";
import { grantsTool, matchesTool } from "../core/glob.ts";
import type {
  BuiltinServer,
  HttpServer,
  Leg,
  ServerSettings,
  StdioServer,
  ToolRule,
  ToolSettings,
} from "../wire/payload.ts";
import { Rules } from "../mcp/rules.ts";
import { NO_PERMISSIONS } from "../wire/permissions.ts";
import {
  explainTrifecta,
  grantedServers,
  judgeGrant,
  narrowGrant,
  withheldResources,
} from "./rule_of_two.ts";

const stdio = (name: string, env: StdioServer["env"] = {}): StdioServer => ({
  kind: "stdio",
  name,
  command: name,
  args: [],
  env,
  cwd: "/",
  required: true,
  startTimeoutMs: 1,
  sandbox: "none",
});
const http = (name: string, headers: HttpServer["headers"] = {}): HttpServer => ({
  kind: "http",
  name,
  url: "https://x.example/mcp",
  headers,
  era: "auto",
  required: true,
  startTimeoutMs: 1,
});
const builtin = (
  name: BuiltinServer["name"],
  permissions: Partial<BuiltinServer["permissions"]>,
): BuiltinServer => ({
  kind: "builtin",
  name,
  permissions: { ...NO_PERMISSIONS, ...permissions },
  sandbox: "none",
  required: true,
  startTimeoutMs: 1,
});
const rule = (glob: string, legs: Leg[] | null, grant: boolean | null = null): ToolRule => ({
  glob,
  legs,
  grant,
  idempotent: null,
  readOnly: null,
  poll: null,
  timeoutMs: null,
  rate: null,
});
const tools = (grant: string[], ...rules: ToolRule[]): ToolSettings => ({
  grant,
  rules,
  timeoutMs: 1,
  pin: true,
});

/** Legs by initial: u, s, e. */
const rows: [string, ServerSettings[], ToolSettings, string][] = [
  ["nothing", [], tools(["*"]), ""],
  ["an undeclared server", [stdio("a")], tools(["*"]), "ue"],
  ["one with a variable named like a key", [stdio("a", { API_KEY: ["x"] })], tools(["*"]), "use"],
  [
    "one with a secret under any name",
    [stdio("a", { X: [{ secret: "env:X" }] })],
    tools(["*"]),
    "use",
  ],
  ["one with a plain variable", [stdio("a", { MODE: ["x"] })], tools(["*"]), "ue"],
  ["one with an authorization header", [http("a", { authorization: ["x"] })], tools(["*"]), "use"],
  [
    "a declaration replaces what is assumed",
    [stdio("a", { API_KEY: ["x"] })],
    tools(["*"], rule("a/*", ["sensitive"])),
    "s",
  ],
  [
    "a server without a slash in the glob",
    [stdio("a")],
    tools(["*"], rule("a", ["sensitive"])),
    "s",
  ],
  [
    "the longest match wins",
    [stdio("a")],
    tools(["*"], rule("a/*", ["sensitive"]), rule("a/publish", ["egress"])),
    "se",
  ],
  [
    "one declared tool leaves the others undeclared",
    [stdio("a")],
    tools(["*"], rule("a/read", ["sensitive"])),
    "use",
  ],
  [
    "only the declared tool is granted",
    [stdio("a")],
    tools(["a/read"], rule("a/read", ["sensitive"])),
    "s",
  ],
  [
    "a tool that is removed brings nothing",
    [stdio("a")],
    tools(["*", "!a/publish"], rule("a/*", ["sensitive"]), rule("a/publish", ["egress"])),
    "s",
  ],
  [
    "a tool that is not granted by its rule brings nothing",
    [stdio("a")],
    tools(["*"], rule("a/*", ["sensitive"]), rule("a/publish", ["egress"], false)),
    "s",
  ],
  [
    "a rule for short names says nothing of others",
    [stdio("a")],
    tools(["*"], rule("a/?", [])),
    "ue",
  ],
  [
    "a rule for a whole server is for names with a slash, too",
    [stdio("a")],
    tools(["a/get/*"], rule("a/*", ["sensitive"])),
    "s",
  ],
  [
    "what a grant and a rule have in common counts",
    [stdio("a")],
    tools(["a/*_public"], rule("a/*", ["untrusted_input"]), rule("a/send_*", ["egress"])),
    "ue",
  ],
  [
    "fs by a glob that a writer matches",
    [builtin("fs", { read: ["/x"], write: ["/y"] })],
    tools(["fs/?rite"]),
    "se",
  ],
  ["legs: none is a declaration", [stdio("a")], tools(["*"], rule("a/*", [])), ""],
  ["fs that reads", [builtin("fs", { read: ["/x"] })], tools(["*"]), "s"],
  [
    "fs that reads and writes",
    [builtin("fs", { read: ["/x"], write: ["/y"] })],
    tools(["*"]),
    "se",
  ],
  [
    "fs that may write, its writers not granted",
    [builtin("fs", { read: ["/x"], write: ["/y"] })],
    tools(["fs/read", "fs/list"]),
    "s",
  ],
  ["http", [builtin("http", { net: ["x.example"] })], tools(["*"]), "ue"],
  ["exec", [builtin("exec", { run: ["/bin/true"] })], tools(["*"]), "e"],
  [
    "exec with a key",
    [builtin("exec", { run: ["/bin/true"], env: ["API_TOKEN"] })],
    tools(["*"]),
    "se",
  ],
  [
    "fs that reads beside http",
    [builtin("fs", { read: true }), builtin("http", { net: true })],
    tools(["*"]),
    "use",
  ],
  [
    "two servers that complete each other",
    [stdio("a"), stdio("b")],
    tools(["*"], rule("a/*", ["untrusted_input"]), rule("b/*", ["sensitive", "egress"])),
    "use",
  ],
  [
    "a part of a rule that no glob names",
    [stdio("a")],
    tools(["a/g?*"], rule("a/*et", ["sensitive"]), rule("a/?e*", ["untrusted_input", "egress"])),
    "use",
  ],
  [
    "a rule that shares no name with the grant",
    [stdio("a")],
    tools(["a/g?"], rule("a/*", ["sensitive"]), rule("a/?", ["egress"]), rule("a/h?", ["egress"])),
    "s",
  ],
  [
    "what is left of a grant and a rule when what stands between them is removed",
    [stdio("a")],
    tools(["a/send_*", "!a/send_*_all"], rule("a/*_all", ["sensitive"]), rule("a/*", [])),
    "s",
  ],
  [
    "an exception to a rule that refuses, of a server that is granted, and of one that is not",
    [stdio("a"), stdio("b")],
    tools(
      ["a"],
      rule("a/*", ["sensitive"], false),
      rule("a/st?tus", null, true),
      rule("b/*", ["untrusted_input"], false),
      rule("b/status", null, true),
    ),
    "s",
  ],
  [
    "an exception with legs of its own",
    [stdio("a")],
    tools(["a"], rule("a/*", ["untrusted_input"], false), rule("a/status", ["egress"], true)),
    "e",
  ],
  [
    "of two globs of one length the later one grants, as where tools are called",
    [stdio("a")],
    tools(["*"], rule("a/x*", [], false), rule("a/*x", ["sensitive"], true), rule("a/*", [])),
    "s",
  ],
  [
    "and the earlier one does not",
    [stdio("a")],
    tools(["a/xx"], rule("a/*x", ["sensitive"], true), rule("a/x*", [], false)),
    "",
  ],
  [
    "the split: the reader",
    [stdio("web"), stdio("mail")],
    tools(["web/*"], rule("web/*", ["untrusted_input"]), rule("mail/*", ["sensitive", "egress"])),
    "u",
  ],
  [
    "the split: the actor",
    [stdio("web"), stdio("mail")],
    tools(["mail/*"], rule("web/*", ["untrusted_input"]), rule("mail/*", ["sensitive", "egress"])),
    "se",
  ],
];

for (const [name, servers, settings, legs] of rows) {
  Deno.test(`judgeGrant: ${name}`, () => {
    const { by, trifecta } = judgeGrant(servers, settings);
    const found = (by.untrusted_input.length ? "u" : "") + (by.sensitive.length ? "s" : "") +
      (by.egress.length ? "e" : "");
    assert.equal(found, legs);
    assert.equal(trifecta, legs === "use");
  });
}

Deno.test("explainTrifecta: names who brings each leg, and three ways out", () => {
  const verdict = judgeGrant(
    [stdio("a", { API_KEY: ["x"] }), builtin("fs", { read: true })],
    tools(["*"]),
  );
  const text = explainTrifecta(verdict);
  assert.match(text, /untrusted_input by a\/\*; sensitive by a\/\*, fs\/\*; egress by a\/\*/);
  for (const way of ["--tools", "subagents", "--allow-trifecta"]) {
    assert.ok(text.includes(way), way);
  }
});

const narrowings: [string[], string[], string[] | string][] = [
  [["*"], ["docs/*"], ["docs/*"]],
  [["docs/*"], ["docs/read"], ["docs/read"]],
  [["docs/*"], ["docs/r*"], ["docs/r*"]],
  [["docs/*"], ["docs"], ["docs"]],
  [["docs"], ["docs/*"], ["docs/*"]],
  [["docs/*", "!docs/publish"], ["docs/*"], ["docs/*", "!docs/publish"]],
  [["docs/*"], ["*"], "*"],
  [["docs/r*"], ["docs/*"], "docs/*"],
  [["docs/read"], ["docs/r*"], "docs/r*"],
  [["docs/*"], ["docs/read", "web/get"], "web/get"],
  [["docs/*"], ["docs/**"], ["docs/**"]],
  [["docs/?"], ["docs"], "docs"],
  [["docs/?"], ["docs/*"], "docs/*"],
  [["docs/?*"], ["docs/*?"], ["docs/*?"]],
  [["d?cs/*"], ["d*/*"], "d*/*"],
  [["*", "!docs/publish"], ["!docs/erase"], ["*", "!docs/publish", "!docs/erase"]],
  [["docs/*"], [], []],
];

for (const [parent, wanted, outcome] of narrowings) {
  Deno.test(`narrowGrant: ${wanted} within ${parent}`, () => {
    const narrowed = narrowGrant(parent, wanted);
    assert.deepEqual(narrowed.ok ? narrowed.value : narrowed.failure, outcome);
  });
}

Deno.test("grantedServers: a child starts only the servers whose tools it has", () => {
  const servers = [stdio("a"), stdio("b"), http("c")];
  const names = (grant: string[]) =>
    grantedServers(servers, tools(grant)).map((server) => server.name);
  assert.deepEqual(names(["a/x", "c"]), ["a", "c"]);
  assert.deepEqual(names(["*", "!b"]), ["a", "c"]);
  assert.deepEqual(names([]), []);
});

Deno.test("withheldResources: those that are declared to be more than the tools granted", () => {
  const all = rule("a/*", ["sensitive"]);
  const rows: [string, ToolSettings, string[]][] = [
    ["no declaration", tools(["a/ping"]), []],
    ["all tools", tools(["*"], all), []],
    ["a tool that is not sensitive", tools(["a/ping"], all, rule("a/ping", [])), ["a"]],
    ["one of each", tools(["a/ping", "a/read"], all, rule("a/ping", [])), []],
    ["none of its tools", tools(["b/*"], all), []],
    ["a declaration for some tools", tools(["a/ping"], rule("a/r*", ["sensitive"])), []],
  ];
  for (const [name, settings, withheld] of rows) {
    assert.deepEqual([...withheldResources([stdio("a"), stdio("b")], settings)], withheld, name);
  }
  const fs = [builtin("fs", { read: true })];
  assert.equal(withheldResources(fs, tools(["*"], rule("fs/*", ["egress"]))).size, 0);
});

const part = fc.array(fc.constantFrom("a", "b", "*", "?", "a*"), { minLength: 1, maxLength: 4 })
  .map((pieces) => pieces.join(""));
const glob = fc.tuple(part, fc.constantFrom("", "/", "/"), part)
  .map(([server, slash, tool]) => server + slash + (slash && tool));
const text = fc.array(fc.constantFrom("a", "b", "c", "/"), { minLength: 1, maxLength: 5 })
  .map((pieces) => pieces.join(""));

Deno.test("narrowGrant: no name is granted to a child that its parent does not have", () => {
  const grant = fc.array(
    fc.tuple(fc.constantFrom("", "", "!"), glob).map((pair) => pair.join("")),
    {
      maxLength: 4,
    },
  );
  let narrowed = 0;
  fc.assert(
    fc.property(grant, grant, fc.array(text, { maxLength: 20 }), (parent, wanted, names) => {
      const child = narrowGrant(parent, wanted);
      if (!child.ok) return;
      narrowed++;
      for (const name of names.flatMap((name) => [`a/${name}`, `ab/${name}`])) {
        if (grantsTool(child.value, name)) assert.ok(grantsTool(parent, name), name);
      }
    }),
    { numRuns: 3_000 },
  );
  assert.ok(narrowed > 300);
});

Deno.test("judgeGrant: whatever a server calls its tools, their legs are among those judged", () => {
  // Globs as people write them, with an end, a beginning, or both; and any others.
  const simple = fc.oneof(
    fc.tuple(fc.constantFrom("", "a", "ab", "b"), fc.constantFrom("", "a", "bc", "c"))
      .map(([start, end]) => `a/${start}*${end}`),
    part.map((tool) => `a/${tool}`),
  );
  const legs = fc.option(fc.subarray<Leg>(["untrusted_input", "sensitive", "egress"]));
  const granted = fc.constantFrom(null, null, true, false);
  const rules = fc.array(fc.tuple(simple, legs, granted), { maxLength: 3 });
  fc.assert(
    fc.property(fc.array(simple, { maxLength: 2 }), rules, text, (grant, declared, name) => {
      const settings = tools(grant, ...declared.map((parts) => rule(...parts)));
      if (!new Rules(settings).resolve(`a/${name}`).granted) return;
      const { by } = judgeGrant([stdio("a")], settings);
      const matching = settings.rules.filter(({ glob }) => matchesTool(glob, `a/${name}`))
        .reverse().sort((x, y) => y.glob.length - x.glob.length);
      const own = matching.find((each) => each.legs !== null)?.legs ??
        ["untrusted_input", "egress"];
      for (const leg of own) assert.ok(by[leg].length > 0, `${leg} of ${name}`);
    }),
    { numRuns: 5_000 },
  );
});
