import assert from "node:assert/strict";
import plugin from "./plugin.ts";

/** Lints a text as if it stood in a file; the rules that found something, in order. */
function found(file: string, source: string): string[] {
  return Deno.lint.runPlugin(plugin, file, source).map((diagnostic) =>
    diagnostic.id.replace("house/", "")
  );
}

function check(name: string, rows: [file: string, source: string, rules: string[]][]): void {
  Deno.test(name, () => {
    for (const [file, source, rules] of rows) {
      assert.deepEqual(found(file, source), rules, `${file}: ${source}`);
    }
  });
}

check("imports: each folder imports what the house allows", [
  ["src/core/a.ts", `import { b } from "./b.ts";`, []],
  ["src/core/a.ts", `import type { B } from "../ports/b.ts";`, ["imports"]],
  ["/home/me/agentd/src/core/a.ts", `export { b } from "../wire/b.ts";`, ["imports"]],
  ["src/wire/a.ts", `import { b } from "../core/b.ts";`, []],
  ["src/wire/a.ts", `import { b } from "../agent/b.ts";`, ["imports"]],
  ["src/agent/a.ts", `import type { B } from "../ports/b.ts";`, []],
  ["src/agent/a.ts", `import { b } from "../record/b.ts";`, []],
  ["src/agent/a.ts", `import { b } from "../sys/b.ts";`, ["imports"]],
  ["src/agent/a.ts", `const b = await import("../cli/b.ts");`, ["imports"]],
  ["src/agent/worker.ts", `import { b } from "../sys/b.ts";`, []],
  ["src/broker/worker.ts", `import { b } from "../sys/b.ts";`, ["imports"]],
  ["src/sys/a.ts", `import type { B } from "../ports/b.ts";`, []],
  ["src/sys/a.ts", `import { b } from "../wire/b.ts";`, []],
  ["src/sys/a.ts", `import { b } from "../agent/b.ts";`, ["imports"]],
  ["src/cli/a.ts", `export * from "../sys/b.ts";`, ["imports"]],
  ["src/cli/a.ts", `import { b } from "../config/b.ts";`, []],
  ["src/cli/a.ts", `import { b } from "../../main.ts";`, ["imports"]],
  ["src/cli/a.ts", `import { b } from "../../tests/fakes/b.ts";`, ["imports"]],
  ["src/cli/a.ts", `import { b } from "./b_test.ts";`, ["imports"]],
  ["main.ts", `import { b } from "./src/sys/b.ts"; import { c } from "./src/cli/c.ts";`, []],
  ["src/core/a_test.ts", `import { b } from "../sys/b.ts";`, []],
  ["tests/a_test.ts", `import { b } from "../src/sys/b.ts";`, []],
]);

check("imports: what must never meet", [
  ["src/supervisor/a.ts", `import type { ModelPort } from "../ports/model.ts";`, ["imports"]],
  ["src/supervisor/a.ts", `import { createModel } from "../model/client.ts";`, ["imports"]],
  ["src/supervisor/a.ts", `import type { ProcessPort } from "../ports/process.ts";`, []],
  ["src/agent/a.ts", `import type { ProcessPort } from "../ports/process.ts";`, ["imports"]],
  ["src/broker/a.ts", `import type { ProcessPort } from "../ports/process.ts";`, []],
]);

check("imports: packages only where they are used", [
  ["src/config/a.ts", `import { parse } from "yaml";`, []],
  ["src/agent/a.ts", `import { parse } from "yaml";`, ["imports"]],
  ["src/mcp/a.ts", `import { Client } from "@modelcontextprotocol/client";`, []],
  ["src/mcp/a.ts", `import { x } from "@modelcontextprotocol/client/validators";`, []],
  ["src/cli/a.ts", `const c = await import("@modelcontextprotocol/client");`, ["imports"]],
  ["src/cli/a.ts", `import x from "left-pad";`, ["imports"]],
  ["src/agent/a.ts", `import fs from "node:fs";`, ["imports"]],
  ["src/sys/a.ts", `import fs from "node:fs";`, []],
  ["tests/a_test.ts", `import x from "npm:left-pad@1";`, ["imports"]],
  ["tests/a_test.ts", `import assert from "jsr:@std/assert";`, ["imports"]],
]);

check("effects: only sys and main name what does something", [
  ["src/agent/a.ts", `export const f = () => Date.now();`, ["effects"]],
  ["src/agent/a.ts", `export const f = () => new Date();`, ["effects"]],
  ["src/agent/a.ts", `export const f = () => fetch("x");`, ["effects"]],
  ["src/agent/a.ts", `export const f = () => globalThis.fetch("x");`, ["effects"]],
  ["src/agent/a.ts", `export const f = () => Math.random();`, ["effects"]],
  ["src/agent/a.ts", `export const f = () => ({ fetch });`, ["effects"]],
  ["src/agent/a.ts", `export const f = () => ({ [fetch]: 1 });`, ["effects"]],
  ["src/agent/a.ts", `export const f = (x = Deno.pid) => x;`, ["effects"]],
  ["src/agent/worker.ts", `console.log(1);`, ["effects"]],
  ["src/sys/a.ts", `export const f = () => fetch("x");`, []],
  ["main.ts", `Deno.exit(0);`, []],
  ["src/agent/a_test.ts", `Deno.test("a", () => {});`, []],
]);

check("effects: names of one's own, members and types are no effects", [
  ["src/agent/a.ts", `export const f = (fetch: () => void) => fetch();`, []],
  ["src/agent/a.ts", `export const f = ({ fetch }: { fetch: () => void }) => fetch();`, []],
  ["src/agent/a.ts", `export const f = (deps: Deps) => deps.fetch("x");`, []],
  ["src/agent/a.ts", `export interface A { fetch: typeof fetch; at: Date; s: Deno.Signal }`, []],
  ["src/agent/a.ts", `export const f = () => ({ fetch: 1, Date: 2 });`, []],
  ["src/agent/a.ts", `export class A { fetch(): void {} crypto = 1; }`, []],
  ["src/agent/a.ts", `export const f = () => new TextEncoder();`, []],
]);

check("synchronous: decisions never wait", [
  ["src/core/a.ts", `export async function f() {}`, ["synchronous"]],
  ["src/core/deep/a.ts", `export const f = async () => {};`, ["synchronous"]],
  ["src/agent/step.ts", `export const f = () => new Promise(() => {});`, ["synchronous"]],
  ["src/supervisor/table.ts", `export class A { async f() {} }`, ["synchronous"]],
  ["src/agent/stops.ts", `export const f = (x: Promise<void>) => x;`, []],
  ["src/agent/driver.ts", `export async function f() {}`, []],
  ["src/agent/step_test.ts", `export async function f() {}`, []],
]);

check("names: files are snake_case nouns that say what they hold", [
  ["src/core/hash.ts", ``, []],
  ["src/core/tool_host.ts", ``, []],
  ["src/core/ToolHost.ts", ``, ["names"]],
  ["src/core/tool-host.ts", ``, ["names"]],
  ["src/core/utils.ts", ``, ["names"]],
  ["src/core/string_helpers.ts", ``, ["names"]],
  ["src/core/types_test.ts", ``, ["names"]],
  ["src/core/helpful.ts", ``, []],
]);

check("importing: nothing happens at import time", [
  ["src/agent/a.ts", `const a = 1; export type B = 2; export function f() {}`, []],
  ["src/agent/a.ts", `start();`, ["importing"]],
  ["src/agent/a.ts", `for (const x of []) x();`, ["importing"]],
  ["src/agent/worker.ts", `start();`, []],
  ["main.ts", `start();`, []],
]);
