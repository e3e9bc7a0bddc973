import assert from "node:assert/strict";
import { TOOLS_MAX } from "../core/limits.ts";
import type { ToolSettings } from "../wire/payload.ts";
import { Catalogue } from "./catalogue.ts";
import { type ListedTool, readTool } from "./metadata.ts";

const SETTINGS: ToolSettings = { grant: ["*"], rules: [], timeoutMs: 1_000, pin: true };

function listed(name: string, description = ""): ListedTool {
  const tool = readTool({ name, description, inputSchema: { type: "object" } });
  assert.ok(!("why" in tool));
  return tool;
}

function bench(settings: Partial<ToolSettings> = {}) {
  const told: [string, unknown][] = [];
  const telemetry = { emit: (event: string, fields?: unknown) => void told.push([event, fields]) };
  return { told, catalogue: new Catalogue({ ...SETTINGS, ...settings }, telemetry) };
}

Deno.test("Catalogue: a tool that does not change keeps its object", () => {
  const { catalogue } = bench();
  catalogue.update([{ name: "s", tools: [listed("b"), listed("a")] }]);
  const before = catalogue.tools;
  assert.deepEqual(before.map((tool) => tool.name), ["s/a", "s/b"]);
  catalogue.update([{ name: "s", tools: [listed("a"), listed("b"), listed("c")] }]);
  assert.ok(catalogue.tools[0] === before[0] && catalogue.tools[1] === before[1]);
});

Deno.test("Catalogue: a change is told once and refused until it is taken back", () => {
  const { catalogue, told } = bench();
  const update = (description: string) =>
    catalogue.update([{ name: "s", tools: [listed("a", description)] }]);
  update("one");
  update("two");
  update("two");
  assert.deepEqual(catalogue.tools, []);
  assert.equal(catalogue.isRefused("s/a"), true);
  assert.equal(told.length, 1);
  update("three");
  assert.equal(told.length, 2);
  update("one");
  assert.equal(catalogue.tools.length, 1);
  assert.equal(catalogue.isRefused("s/a"), false);
});

Deno.test("Catalogue: tools of all servers together are bounded, and so is what is remembered", () => {
  const { catalogue, told } = bench();
  const many = (count: number, prefix: string) =>
    Array.from({ length: count }, (_, i) => listed(`${prefix}${i}`));
  catalogue.update([{ name: "s", tools: many(TOOLS_MAX, "t") }]);
  assert.equal(catalogue.tools.length, TOOLS_MAX);
  assert.equal(told.length, 0);
  catalogue.update([{ name: "s", tools: many(TOOLS_MAX, "t") }, {
    name: "r",
    tools: many(1, "t"),
  }]);
  assert.equal(catalogue.tools.length, TOOLS_MAX);
  assert.deepEqual(told[0], ["limit.exceeded", { limit: "tools", kept: 512, total: 513 }]);
  for (let round = 0; round < 20; round++) {
    catalogue.update([{ name: "s", tools: many(TOOLS_MAX, `round${round}-`) }]);
  }
  assert.deepEqual(catalogue.tools, []);
  assert.deepEqual(told.slice(1), [["limit.exceeded", { limit: "known_tools", bound: 8_192 }]]);
});
