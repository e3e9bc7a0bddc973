/** What tool servers say of themselves is data: through the whole program, as the model sees it. */

import assert from "node:assert/strict";
import { programs } from "../program.ts";
import { type AgentsRan, type AgentsSpec, resultText, runAgents } from "./agents.ts";

const SERVER = decodeURIComponent(new URL("../hostile/mcp_server.ts", import.meta.url).pathname);
const ROOT = "The root.";

// deno-lint-ignore no-explicit-any
type Loose = any;

interface Case {
  name: string;
  behaviour: string;
  config?: Record<string, unknown>;
  replies: AgentsSpec["script"]["replies"];
  check(facts: AgentsRan): void;
}

const call = (name: string, args: Loose = {}) => ({ calls: [{ name, arguments: args }] });
const toolsOf = (body: Loose): { name: string; description: string; parameters: Loose }[] =>
  body.tools.map((tool: Loose) => tool.function);

const CASES: Case[] = [
  {
    name: "descriptions are bounded and cleaned, what is no tool is left out",
    behaviour: "bad-metadata",
    replies: [{ text: "seen" }],
    check: ({ ran, asked }) => {
      assert.equal(ran.json.status, "completed", ran.stderr);
      const tools = toolsOf(asked(ROOT)[0]).filter(({ name }) => name.startsWith("hostile__"));
      assert.deepEqual(tools.map(({ name }) => name).sort(), [
        "hostile__good",
        "hostile__long",
        "hostile__wordy-schema",
      ]);
      for (const { name, description, parameters } of tools) {
        assert.ok(description.length <= 4_000 && JSON.stringify(parameters).length <= 65_536, name);
      }
      const good = tools.find(({ name }) => name === "hostile__good")!.description;
      // deno-lint-ignore no-control-regex
      assert.doesNotMatch(good, /[\u0000-\u001f\u202a-\u202e]/);
      assert.match(asked(ROOT)[0].messages[0].content, /descriptions included, is data/);
    },
  },
  {
    name: "a server shadows no tool of the runtime",
    behaviour: "shadows",
    replies: [call("task_refuse", { reason: "I will not" })],
    check: ({ ran, asked, of }) => {
      const names = toolsOf(asked(ROOT)[0]).map(({ name }) => name);
      assert.equal(new Set(names).size, names.length);
      assert.ok(names.includes("hostile__task_refuse") && names.every((name) => name.length <= 64));
      assert.equal(ran.code, 5, ran.stderr);
      assert.equal(ran.json.reason, "I will not");
      assert.deepEqual(of("tool.call"), [], "the server was not asked");
    },
  },
  {
    name: "a resource's URI opens no file",
    behaviour: "watched",
    replies: [
      call("resource_read", { uri: "file:///etc/passwd" }),
      call("resource_read", { uri: "file:///etc/hosts" }),
      { text: "read" },
    ],
    check: ({ ran, asked }) => {
      assert.equal(ran.json.status, "completed", ran.stderr);
      const [, listed, unlisted] = asked(ROOT).map((body) => resultText(body));
      assert.match(listed!, /content of file:\/\/\/etc\/passwd/);
      assert.doesNotMatch(listed!, /root:/);
      assert.match(unlisted!, /content of file:\/\/\/etc\/hosts/);
      assert.doesNotMatch(unlisted!, /localhost/);
      assert.match(asked(ROOT)[0].messages[0].content, /The first/);
    },
  },
  ...[true, false].map((pin): Case => ({
    name: `a description that changes is told, and ${
      pin ? "refuses the tool" : "taken"
    } by the pin`,
    behaviour: "changes-description",
    config: { pin_tools: pin },
    replies: [
      call("hostile__act", { n: 1 }),
      call("hostile__crash"),
      call("hostile__act", { n: 2 }),
      { text: "changed" },
    ],
    check: ({ ran, asked, of }) => {
      assert.equal(ran.json.status, "completed", ran.stderr);
      assert.equal(of("mcp.tool.changed").length, 1);
      assert.match(resultText(asked(ROOT)[1]), /version 1/);
      const after = resultText(asked(ROOT)[3]);
      if (pin) assert.match(after, /what (?:its server|that) says of it has changed/);
      else assert.match(after, /^\[ok\]\nversion 2/);
      assert.equal(/^\[ok\]/.test(after), !pin, after);
    },
  })),
];

for (const program of programs()) {
  for (const { name, behaviour, config, replies, check } of CASES) {
    Deno.test(`lies (${program.name}): ${name}`, () =>
      runAgents(program, {
        script: { replies },
        files: {
          starts: "0",
          "agentd.json": JSON.stringify({
            mcp_servers: {
              hostile: {
                command: Deno.execPath(),
                args: [
                  "run",
                  "--no-prompt",
                  "--allow-read=starts",
                  "--allow-write=starts",
                  SERVER,
                  behaviour,
                  "starts",
                ],
              },
            },
            ...config,
          }),
        },
        args: ["--config", "agentd.json"],
      }, check));
  }
}
