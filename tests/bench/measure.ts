/** Measuring processes on Linux: wall time, CPU time and memory of a whole tree, from /proc. */

/** One process of a tree at one moment. */
export interface Reading {
  pid: number;
  command: string;
  /** CPU time of its living threads since they started, in milliseconds. */
  cpuMs: number;
  /** The most that was ever resident, in MiB. */
  peakMiB: number;
  /** Resident now, in MiB. */
  residentMiB: number;
  /** Its share of resident memory now, in MiB: pages that processes share count once in a sum. */
  shareMiB: number;
}

/** How a program ended and how long it took. */
export interface Ending {
  code: number;
  wallMs: number;
  stdout: string;
  stderr: string;
}

/**
 * Reads a process and all its descendants. /proc is read by a shell: Deno would need every
 * permission for it.
 */
export async function readTree(root: number): Promise<Reading[]> {
  const table = (await shell("ps -eo pid=,ppid=")).trim().split("\n")
    .map((line) => line.trim().split(/\s+/).map(Number));
  const pids = [root];
  for (const pid of pids) {
    for (const [child, parent] of table) if (parent === pid) pids.push(child!);
  }
  const script = `for p in ${pids.join(" ")}; do
    [ -r /proc/$p/status ] || continue
    echo "pid $p"
    echo "cmd $(tr '\\0' ' ' < /proc/$p/cmdline)"
    cat /proc/$p/task/*/schedstat 2>/dev/null | sed 's/^/cpu /'
    grep -E '^(VmHWM|VmRSS):' /proc/$p/status
    grep '^Pss:' /proc/$p/smaps_rollup
  done`;
  const readings: Reading[] = [];
  for (const line of (await shell(script)).split("\n")) {
    const [key, value] = line.split(/\s+/);
    const last = readings.at(-1);
    if (key === "pid") {
      readings.push({
        pid: Number(value),
        command: "",
        cpuMs: 0,
        peakMiB: 0,
        residentMiB: 0,
        shareMiB: 0,
      });
    } else if (last === undefined) continue;
    else if (key === "cmd") last.command = line.slice(4);
    else if (key === "cpu") last.cpuMs += Number(value) / 1e6;
    else if (key === "VmHWM:") last.peakMiB = Number(value) / 1024;
    else if (key === "VmRSS:") last.residentMiB = Number(value) / 1024;
    else if (key === "Pss:") last.shareMiB = Number(value) / 1024;
  }
  return readings;
}

async function shell(script: string): Promise<string> {
  const { stdout } = await new Deno.Command("sh", { args: ["-c", script], stdin: "null" }).output();
  return new TextDecoder().decode(stdout);
}

/** A program that runs: its pid, and its end. */
export interface Running {
  pid: number;
  ended: Promise<Ending>;
}

/** Starts a program with a clean environment. */
export function start(
  command: string,
  args: string[],
  options: { env?: Record<string, string>; cwd?: string } = {},
): Running {
  const startedMs = performance.now();
  const child = new Deno.Command(command, {
    args,
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
    clearEnv: true,
    env: { PATH: Deno.env.get("PATH") ?? "", HOME: Deno.env.get("HOME") ?? "", ...options.env },
    cwd: options.cwd,
  }).spawn();
  const decoder = new TextDecoder();
  const ended = child.output().then(({ code, stdout, stderr }) => ({
    code,
    wallMs: performance.now() - startedMs,
    stdout: decoder.decode(stdout),
    stderr: decoder.decode(stderr),
  }));
  return { pid: child.pid, ended };
}

/** Runs a program to its end; throws unless it ends with 0. */
export async function finish(running: Running): Promise<Ending> {
  const ending = await running.ended;
  if (ending.code !== 0) {
    throw new Error(`exit ${ending.code}\n${ending.stdout}\n${ending.stderr.slice(-4000)}`);
  }
  return ending;
}

/** The middle of some numbers. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** Adds up one figure of the processes that a test picks. */
export function sum(
  readings: readonly Reading[],
  figure: "cpuMs" | "peakMiB" | "residentMiB" | "shareMiB",
  pick: (reading: Reading) => boolean = () => true,
): number {
  return readings.filter(pick).reduce((total, reading) => total + reading[figure], 0);
}
