/** Black-box cases of one run against a scripted endpoint of either dialect, with the library at hand. */

import assert from "node:assert/strict";
import { programs } from "../program.ts";
import { type Script, type ScriptCall, startModelServer } from "../fakes/model_server_process.ts";
import { type Ran, runProgram, withDirectory } from "./harness.ts";

// deno-lint-ignore no-explicit-any
export type Loose = any;
export type WireDialect = "openai" | "anthropic";

const LIBRARY = decodeURIComponent(new URL("../fakes/library.mjs", import.meta.url).pathname);
const DIALECTS = ["openai", "anthropic"] as const;

/** One case. In a script, a reply whose `finish` is `FINISH` was cut at the output limit. */
export interface Case {
  name: string;
  script: Script | ((dialect: WireDialect) => Script);
  args?: string[];
  files?: Record<string, string>;
  code?: number;
  check: (facts: Facts) => void | Promise<void>;
}

export interface Facts {
  ran: Ran;
  dialect: WireDialect;
  /** Bodies of the completions that were asked for. */
  bodies: Loose[];
  /** The run's directory. */
  directory: string;
}

/** A call of a script. */
export const call = (name: string, args: Record<string, number | string> = {}): ScriptCall => ({
  name,
  arguments: args,
});

/** Everything after the system prompt, as text. */
export const conversation = (body: Loose): string =>
  JSON.stringify(body.messages.filter((message: Loose) => message.role !== "system"));

/** The system prompt, wherever the dialect has it, as JSON. */
export const systemOf = (body: Loose): string =>
  JSON.stringify(body.system ?? body.messages.find((message: Loose) => message.role === "system"));

/** Names of the tools that are offered. */
export const toolNames = (body: Loose): string[] =>
  (body.tools ?? []).map((tool: Loose) => tool.name ?? tool.function.name);

/** Runs each case in both dialects, on the source and on the binary. */
export function runCases(area: string, cases: readonly Case[]): void {
  for (const program of programs()) {
    for (const each of cases) {
      for (const dialect of DIALECTS) {
        Deno.test(`${area} (${program.name}, ${dialect}): ${each.name}`, async () => {
          const finish = dialect === "openai" ? "length" : "max_tokens";
          const script = typeof each.script === "function" ? each.script(dialect) : each.script;
          await using server = await startModelServer(
            JSON.parse(JSON.stringify(script).replaceAll('"FINISH"', `"${finish}"`)),
          );
          await withDirectory(async ({ project, runs }) => {
            for (const [name, content] of Object.entries(each.files ?? {})) {
              await Deno.writeTextFile(`${project}/${name}`, content);
            }
            const ran = await runProgram(program, {
              args: [
                "run",
                "do it",
                ...["--intelligence", server.url, "--dialect", dialect],
                ...["--run-dir", runs, "--run-id", "run", "--output", "json"],
                ...["--mcp", `lib=node ${LIBRARY}`],
                ...(each.args ?? []),
              ],
              cwd: project,
            });
            assert.equal(ran.code, each.code ?? 0, ran.stderr.slice(-2_000) + ran.stdout);
            const bodies = (await server.completions()).map((request) => request.body);
            await each.check({ ran, dialect, bodies, directory: `${runs}/run` });
          });
        });
      }
    }
  }
}
