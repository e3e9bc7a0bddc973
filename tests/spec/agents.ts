/** Runs of several agents against one scripted endpoint, seen from outside: streams, records, requests. */

import {
  type LoggedRequest,
  type Script,
  startModelServer,
} from "../fakes/model_server_process.ts";
import type { Program } from "../program.ts";
import { type Ran, runProgram, type RunSpec, withDirectory } from "./harness.ts";

// deno-lint-ignore no-explicit-any
type Loose = any;

/** One run to make. */
export interface AgentsSpec {
  /** Routes tell agents apart by a word of their first message. */
  script: Script;
  args?: readonly string[];
  env?: Record<string, string>;
  /** Files of the project, by name. */
  files?: Record<string, string>;
  /** Left out: the run's instruction is `The root.` */
  instruction?: string;
  on?: RunSpec["on"];
}

/** What came of it. */
export interface AgentsRan {
  ran: Ran;
  project: string;
  /** The directory of the only run. */
  directory: string;
  /** Completions asked for by the agent whose first message holds a word. */
  asked(word: string): Loose[];
  /** Telemetry lines of one event. */
  of(event: string): Loose[];
  /** Lines of an agent's record. */
  record(path: string): Loose[];
  /** Runs another command on the same runs and endpoint; what is asked there is seen by `asked`. */
  again(args: readonly string[]): Promise<Ran>;
}

/** A call of `subagent_spawn` with a word that routes tell its agent by. */
export function spawn(objective: string, more: Record<string, Loose> = {}): {
  name: string;
  arguments: Loose;
} {
  return { name: "subagent_spawn", arguments: { objective, ...more } };
}

/** Everything after the system prompt, as text. */
export function conversation(body: Loose): string {
  return JSON.stringify(body.messages.filter((message: Loose) => message.role !== "system"));
}

/** The text of one tool result: of the last message, or of the `back`th before it. */
export function resultText(body: Loose, back = 0): string {
  const { content } = body.messages.at(-1 - back);
  return typeof content === "string" ? content : JSON.stringify(content);
}

/** The JSON lines of a tool result, its class left out. */
export function resultLines(text: string): Loose[] {
  return text.split("\n").filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));
}

/** Runs agentd once over the scripted endpoint; `check` sees everything before it is gone. */
export async function runAgents(
  program: Program,
  spec: AgentsSpec,
  check: (facts: AgentsRan) => void | Promise<void>,
): Promise<void> {
  await using endpoint = await startModelServer({ by: "turn", ...spec.script });
  await withDirectory(async ({ project, runs }) => {
    for (const [name, content] of Object.entries(spec.files ?? {})) {
      await Deno.writeTextFile(`${project}/${name}`, content, { mode: 0o600 });
    }
    const run = (args: readonly string[], on?: RunSpec["on"]) =>
      runProgram(program, { cwd: project, env: spec.env ?? {}, args, on });
    const base = [
      ...["--intelligence", endpoint.url, "--model", "m"],
      ...["--run-dir", runs, "--log-format", "json", "--output", "json"],
    ];
    const ran = await run([
      "run",
      ...base,
      "--run-id",
      "tree",
      ...spec.args ?? [],
      spec.instruction ?? "The root.",
    ], spec.on);
    let requests = await endpoint.completions();
    const directory = `${runs}/tree`;
    await check({
      ran,
      project,
      directory,
      asked: (word) =>
        requests.filter((request) => isAskedBy(request, word)).map(({ body }) => body),
      of: (event) => ran.lines.filter((line) => line.event === event),
      again: async (args) => {
        const more = await run([...args, ...base]);
        requests = await endpoint.completions();
        return more;
      },
      record: (path) => {
        const place = path === "0" ? directory : `${directory}/agents/${path}`;
        return Deno.readTextFileSync(`${place}/record.jsonl`).trimEnd().split("\n")
          .map((line) => JSON.parse(line));
      },
    });
  });
}

function isAskedBy({ body }: LoggedRequest, word: string): boolean {
  const first = body.messages.find((message: Loose) => message.role === "user");
  return JSON.stringify(first).includes(word);
}
