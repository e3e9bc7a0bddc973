import assert from "node:assert/strict";
import { Vault } from "../core/secret.ts";
import type { BuiltinServer, StdioServer } from "../wire/payload.ts";
import { NO_PERMISSIONS } from "../wire/permissions.ts";
import { makeSettings } from "../../tests/supervised/settings.ts";
import { childPayload } from "./child_payload.ts";
import type { Node } from "./fleet.ts";
import { parseOrder } from "./order.ts";
import { rootPayload, secretsFor, withEnvironment } from "./payload.ts";

const stdio = (name: string, env: StdioServer["env"]): StdioServer => ({
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

const identity = {
  runId: "run",
  agentId: "root",
  path: "0",
  depth: 0,
  directory: "/runs/run",
  traceId: "0".repeat(32),
  parentSpanId: null,
};

function root() {
  const settings = makeSettings({
    script: {},
    directory: "/w",
    secrets: {
      "env:A": "secret-a",
      "env:B": "secret-b",
      "env:MODEL": "secret-m",
      "env:UNUSED": "secret-u",
    },
    settings: {
      servers: [
        stdio("a", { KEY: [{ secret: "env:A" }] }),
        stdio("b", { KEY: ["x-", { secret: "env:B" }] }),
        {
          kind: "http",
          name: "web",
          url: "https://tools.example/mcp",
          headers: {},
          era: "auto",
          required: true,
          startTimeoutMs: 1,
        },
      ],
    },
  });
  settings.model.endpoints = [{
    url: "https://model.example/v1",
    kind: "http",
    dialect: "openai",
    token: [{ secret: "env:MODEL" }],
    headers: {},
    probe: false,
    recording: null,
  }];
  return { settings, payload: rootPayload(settings, identity, { kind: "fresh" }, 1_000_000) };
}

Deno.test("rootPayload: the Worker reaches the model, the HTTP servers, its own directory", () => {
  const { payload } = root();
  assert.deepEqual(payload.worker, {
    ...NO_PERMISSIONS,
    net: ["model.example:443", "tools.example:443"],
    read: ["/runs/run"],
    write: ["/runs/run"],
  });
});

Deno.test("secretsFor: an agent is told the secrets that its model and its servers refer to", () => {
  const { payload, settings } = root();
  assert.deepEqual(Object.keys(secretsFor(payload, settings.vault).revealAll()).sort(), [
    "env:A",
    "env:B",
    "env:MODEL",
  ]);
});

Deno.test("childPayload: tools, servers, hosts, secrets, bounds and time are the parent's or less", () => {
  const { payload, settings } = root();
  const order = parseOrder({ objective: "look", tools: ["a/*"], limits: { max_steps: 3 } });
  assert.ok(order.ok);
  const node: Node = {
    id: "child",
    path: "0.1",
    parent: "0",
    depth: 1,
    disposition: "sync",
    grant: ["a/*"],
    deadlineMs: 500,
    maxTokens: 77,
    maxCost: 0.5,
    cost: 0,
    tokens: 0,
    children: 0,
    lastChild: 0,
    winding: false,
    over: false,
  };
  const child = childPayload(payload, order.value, node, {
    runDirectory: "/runs/run",
    deadlineWallMs: 900_000,
    leftMs: 499.5,
  });
  assert.deepEqual(child.servers.map((server) => server.name), ["a"]);
  assert.deepEqual(child.worker.net, ["model.example:443"]);
  assert.deepEqual(child.worker.write, ["/runs/run/agents/0.1"]);
  assert.deepEqual(Object.keys(secretsFor(child, settings.vault).revealAll()).sort(), [
    "env:A",
    "env:MODEL",
  ]);
  assert.deepEqual([child.limits.maxSteps, child.limits.maxTokens], [3, 77]);
  assert.equal(child.deadlineWallMs, 900_000);
  assert.deepEqual([child.limits.deadlineMs, child.limits.maxCost], [499, 0.5]);
  assert.deepEqual([child.identity.agentId, child.identity.path, child.identity.depth], [
    "child",
    "0.1",
    1,
  ]);
  assert.equal(child.identity.traceId, identity.traceId);
  assert.deepEqual([child.task.instruction, child.task.checks, child.task.require], [
    "look",
    [],
    [],
  ]);
});

Deno.test("withEnvironment: variables granted to exec travel by value; those like keys as secrets", () => {
  const exec = (env: BuiltinServer["permissions"]["env"]): BuiltinServer => ({
    kind: "builtin",
    name: "exec",
    permissions: { ...NO_PERMISSIONS, run: true, env },
    sandbox: "none",
    required: true,
    startTimeoutMs: 1,
  });
  const variables = { EDITOR: "vi", API_TOKEN: "tok-12345", OTHER: "x" };
  const vault = new Vault();
  const [listed, whole, none] = withEnvironment(
    [exec(["EDITOR", "API_TOKEN", "MISSING"]), exec(true), exec(false)],
    variables,
    vault,
  ) as BuiltinServer[];
  assert.deepEqual(listed!.environment, {
    EDITOR: ["vi"],
    API_TOKEN: [{ secret: "env:API_TOKEN" }],
  });
  assert.deepEqual(Object.keys(whole!.environment!).sort(), ["API_TOKEN", "EDITOR", "OTHER"]);
  assert.equal(none!.environment, undefined);
  assert.equal(vault.mask("tok-12345"), "***");
});
