/** Runs supervised programs as real processes and looks at what is left of them with `ps`. */

import assert from "node:assert/strict";
import type { OnceEnd } from "../../src/supervisor/run.ts";
import type { Scenario } from "./settings.ts";

export const SUPERVISED = decodeURIComponent(new URL("./main.ts", import.meta.url).pathname);
const ROOT = decodeURIComponent(new URL("../..", import.meta.url).pathname);

/**
 * A test that looks at process groups, shells and `ps`: on Windows there is none of them, and
 * permissions.md says what that means.
 */
export function posixTest(name: string, fn: () => Promise<void>, ignore = false): void {
  Deno.test({ name, ignore: ignore || Deno.build.os === "windows", fn });
}

/** A telemetry line as the test program writes it. */
export type Line = Record<string, unknown> & { event: string };

export interface Supervised {
  pid: number;
  /** Resolves at the first telemetry line that fits. Rejects when the program ends without one. */
  seen(fits: (line: Line) => boolean): Promise<Line>;
  signal(signal: Deno.Signal): void;
  /** The program's end, with everything that it said. */
  end: Promise<{ end: OnceEnd | null; lines: Line[]; code: number; stderr: string }>;
  /** When its stderr has ended, and so nobody holds it any more. */
  drained: Promise<void>;
}

/** Starts the supervised program with a scenario. `command` replaces the one from source. */
export async function supervise(scenario: Scenario, command?: string[]): Promise<Supervised> {
  const file = `${scenario.directory}/scenario.json`;
  await Deno.writeTextFile(file, JSON.stringify(scenario));
  const [program, ...args] = command ??
    [
      Deno.execPath(),
      "run",
      "--quiet",
      "--no-prompt",
      "-A",
      "--config",
      `${ROOT}deno.json`,
      SUPERVISED,
    ];
  const child = new Deno.Command(program!, {
    args: [...args, "once", file],
    env: { CANARY: "not-for-agents" },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const lines: Line[] = [];
  const waiters: {
    fits: (line: Line) => boolean;
    resolve: (line: Line) => void;
    reject: (error: Error) => void;
  }[] = [];
  let stderr = "";
  const read = (async () => {
    let pending = "";
    for await (const chunk of child.stderr.pipeThrough(new TextDecoderStream())) {
      stderr += chunk;
      pending += chunk;
      const parts = pending.split("\n");
      pending = parts.pop()!;
      for (const part of parts) {
        if (!part.startsWith("{")) continue;
        const line = JSON.parse(part) as Line;
        lines.push(line);
        for (const waiter of waiters) if (waiter.fits(line)) waiter.resolve(line);
      }
    }
    for (const waiter of waiters) waiter.reject(new Error(`never seen; stderr:\n${stderr}`));
  })();
  const out = new Response(child.stdout).text();
  const end = (async () => {
    const status = await child.status;
    const text = await out;
    // Whoever is left may hold stderr open: that is for the test to find, not to wait for.
    const late = Promise.withResolvers<void>();
    const timer = setTimeout(late.resolve, 200);
    await Promise.race([read, late.promise]);
    clearTimeout(timer);
    const parsed = text.trim() ? JSON.parse(text) as { ok: boolean; value: OnceEnd } : null;
    return { end: parsed?.ok ? parsed.value : null, lines, code: status.code, stderr };
  })();
  return {
    pid: child.pid,
    signal: (signal) => child.kill(signal),
    end,
    drained: read,
    seen(fits) {
      const before = lines.find(fits);
      if (before) return Promise.resolve(before);
      const { promise, resolve, reject } = Promise.withResolvers<Line>();
      waiters.push({ fits, resolve, reject });
      return promise;
    },
  };
}

/** Command lines of living processes that hold a text, `ps` itself aside. */
export async function living(text: string): Promise<string[]> {
  const { stdout } = await new Deno.Command("ps", { args: ["-eo", "pid=,stat=,args="] }).output();
  return new TextDecoder().decode(stdout).split("\n").filter((line) =>
    line.includes(text) && !/^\s*\d+\s+Z/.test(line) && !line.includes("ps -eo")
  );
}

/** Asserts that within two seconds nothing with this text in its command line is alive. */
export async function assertGone(text: string): Promise<void> {
  const untilMs = performance.now() + 2000;
  let left = await living(text);
  while (left.length > 0 && performance.now() < untilMs) left = await living(text);
  assert.deepEqual(left, []);
}

/** A scratch directory for one test, removed at its end. */
export async function withDirectory(act: (directory: string) => Promise<void>): Promise<void> {
  const directory = await Deno.realPath(await Deno.makeTempDir({ prefix: "agentd-test-" }));
  try {
    await act(directory);
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}
