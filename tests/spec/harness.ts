/** Runs agentd as its users do: arguments, environment, files, signals; exit code and two streams. */

import assert from "node:assert/strict";
import type { Program } from "../program.ts";

export interface Ran {
  code: number;
  signal: string | null;
  stdout: string;
  stderr: string;
  /** Telemetry lines on stderr. */
  lines: Record<string, unknown>[];
  /** The one object of `--output json`, where it was asked for. */
  // deno-lint-ignore no-explicit-any
  json: any;
}

export interface RunSpec {
  args: readonly string[];
  cwd: string;
  env?: Record<string, string>;
  stdin?: string;
  /** Called once, when a telemetry line of this event, of this agent if one is named, was seen. */
  on?: { event: string; path?: string; act: (started: Started) => void | Promise<void> };
}

export interface Started {
  pid: number;
  signal(name: Deno.Signal): void;
  /** Process ids of the agents that were spawned so far. */
  agents: number[];
}

/** How long one program may take before the test gives up on it. */
const PATIENCE_MS = 60_000;

/** Runs the program to its end in a clean environment. */
export async function runProgram(program: Program, spec: RunSpec): Promise<Ran> {
  const child = new Deno.Command(program.command, {
    args: [...program.args, ...spec.args],
    cwd: spec.cwd,
    clearEnv: true,
    env: cleanEnvironment(spec.env ?? {}),
    stdin: spec.stdin === undefined ? "null" : "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  if (spec.stdin !== undefined) {
    const writer = child.stdin.getWriter();
    await writer.write(new TextEncoder().encode(spec.stdin)).catch(() => {});
    await writer.close().catch(() => {});
  }
  const started: Started = {
    pid: child.pid,
    signal: (name) => {
      try {
        Deno.kill(child.pid, name);
      } catch { /* it is gone already */ }
    },
    agents: [],
  };
  const timer = setTimeout(() => started.signal("SIGKILL"), PATIENCE_MS);
  const lines: Record<string, unknown>[] = [];
  let acted = false;
  const acting: Promise<void>[] = [];
  const [stdout, stderr, status] = await Promise.all([
    readAll(child.stdout, () => {}),
    readAll(child.stderr, (line) => {
      const parsed = parse(line);
      if (parsed === undefined) return;
      lines.push(parsed);
      if (parsed.event === "subagent.spawn") started.agents.push(Number(parsed.child_pid));
      if (spec.on !== undefined && !acted && fits(spec.on, parsed)) {
        acted = true;
        acting.push(Promise.resolve(spec.on.act(started)));
      }
    }),
    child.status,
  ]);
  clearTimeout(timer);
  await Promise.all(acting);
  return {
    code: status.code,
    signal: status.signal,
    stdout,
    stderr,
    lines,
    json: stdout.startsWith("{") ? JSON.parse(stdout) : undefined,
  };
}

function fits(on: { event: string; path?: string }, line: Record<string, unknown>): boolean {
  return line.event === on.event && (on.path === undefined || line.agent_path === on.path);
}

function cleanEnvironment(more: Record<string, string>): Record<string, string> {
  const env: Record<string, string> = { NO_COLOR: "1" };
  for (const name of ["PATH", "HOME", "TMPDIR", "DENO_DIR", "LANG"]) {
    const value = Deno.env.get(name);
    if (value !== undefined) env[name] = value;
  }
  return { ...env, ...more };
}

async function readAll(
  stream: ReadableStream<Uint8Array>,
  onLine: (line: string) => void,
): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let seen = 0;
  for await (const chunk of stream) {
    text += decoder.decode(chunk, { stream: true });
    for (let end = text.indexOf("\n", seen); end !== -1; end = text.indexOf("\n", seen)) {
      onLine(text.slice(seen, end));
      seen = end + 1;
    }
  }
  return text + decoder.decode();
}

function parse(line: string): Record<string, unknown> | undefined {
  if (!line.startsWith("{")) return undefined;
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

/** A directory of its own for a test: a project, a place for runs, gone at the end. */
export async function withDirectory(
  use: (directory: { project: string; runs: string }) => Promise<void>,
): Promise<void> {
  const root = await Deno.realPath(await Deno.makeTempDir({ prefix: "agentd-spec-" }));
  const project = `${root}/project`;
  await Deno.mkdir(project);
  try {
    await use({ project, runs: `${root}/runs` });
  } finally {
    await Deno.remove(root, { recursive: true });
  }
}

/** The lines of the only record below a directory of runs. */
// deno-lint-ignore no-explicit-any
export async function readOnlyRecord(runs: string): Promise<any[]> {
  const names: string[] = [];
  for await (const entry of Deno.readDir(runs)) if (entry.isDirectory) names.push(entry.name);
  assert.equal(names.length, 1, `runs: ${names.join(", ")}`);
  const text = await Deno.readTextFile(`${runs}/${names[0]}/record.jsonl`);
  return text.trimEnd().split("\n").map((line) => JSON.parse(line));
}

/** Processes of any of these groups that are still alive (zombies are not). */
export async function aliveInGroups(groups: readonly number[]): Promise<string[]> {
  const { stdout } = await new Deno.Command("ps", { args: ["-eo", "pgid=,stat=,args="] }).output();
  return new TextDecoder().decode(stdout).split("\n").filter((line) => {
    const [group, stat] = line.trim().split(/\s+/);
    return groups.includes(Number(group)) && !stat?.startsWith("Z");
  });
}

/** Waits until nothing of these groups is alive; what still is after two seconds. */
export async function survivors(groups: readonly number[]): Promise<string[]> {
  const until = performance.now() + 2_000;
  for (;;) {
    const alive = await aliveInGroups(groups);
    if (alive.length === 0 || performance.now() > until) return alive;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
