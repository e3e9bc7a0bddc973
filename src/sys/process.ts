import { failed, success } from "../core/outcome.ts";
import type { ProcessPort, ProcessRow } from "../ports/process.ts";

/** Processes by `Deno.Command`; the process table by `ps`, since /proc needs every permission. */
export const systemProcess: ProcessPort = {
  spawn(spec) {
    try {
      const child = new Deno.Command(spec.command, {
        args: [...spec.args],
        env: { ...spec.env },
        clearEnv: spec.clearEnv,
        cwd: spec.cwd,
        detached: spec.detached,
        stdin: spec.stdin,
        stdout: spec.stdout,
        stderr: spec.stderr,
      }).spawn();
      return success({
        pid: child.pid,
        stdin: spec.stdin === "piped" ? child.stdin : null,
        stdout: spec.stdout === "piped" ? child.stdout : null,
        stderr: spec.stderr === "piped" ? child.stderr : null,
        exited: child.status.then(
          (status) => ({ code: status.code, signal: status.signal }),
          () => ({ code: 1, signal: null }),
        ),
      });
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      if (error instanceof Deno.errors.NotFound) return failed({ class: "not_found", message });
      if (
        error instanceof Deno.errors.NotCapable || error instanceof Deno.errors.PermissionDenied
      ) {
        return failed({ class: "denied", message });
      }
      return failed({ class: "other", message });
    }
  },
  signal: (pid, signal) => send(pid, signal),
  // Windows has no process groups: the leader alone is reached there.
  signalGroup: (groupId, signal) => send(Deno.build.os === "windows" ? groupId : -groupId, signal),
  async table(mark) {
    // An environment cannot be told from the arguments before it: its rows are only searched.
    const [rows, environments] = await Promise.all([
      printed(["-eww", "-o", "pid=,ppid=,pgid=,sess=,stat=,rss=,args="]),
      mark === undefined ? [] : printed(["eww", "-e", "-o", "pid=,args="]),
    ]);
    const marked = new Set(
      environments.filter((line) => line.includes(` ${mark}`)).map((line) => parseInt(line, 10)),
    );
    return rows.map((line) => parseRow(line, marked)).filter((row) => row !== null);
  },
};

/** The lines that `ps` prints; none where it cannot be run. */
async function printed(args: string[]): Promise<string[]> {
  try {
    const { stdout } = await new Deno.Command("ps", {
      args,
      stdin: "null",
      stdout: "piped",
      stderr: "null",
    }).output();
    return new TextDecoder().decode(stdout).split("\n");
  } catch {
    return [];
  }
}

function send(pid: number, signal: Deno.Signal): "sent" | "gone" | "denied" {
  try {
    Deno.kill(pid, signal);
    return "sent";
  } catch (error) {
    return error instanceof Deno.errors.NotFound ||
        (error instanceof TypeError && /ESRCH|not found/i.test(error.message))
      ? "gone"
      : "denied";
  }
}

function parseRow(line: string, marked: ReadonlySet<number>): ProcessRow | null {
  // Some systems print a session as an address.
  const match = /^\s*(\d+)\s+(\d+)\s+(\d+)\s+([0-9a-f]+)\s+(\S+)\s+(\d+)\s(.*)$/.exec(line);
  if (!match) return null;
  return {
    pid: Number(match[1]),
    parentPid: Number(match[2]),
    groupId: Number(match[3]),
    sessionId: parseInt(match[4]!, /[a-f]/.test(match[4]!) ? 16 : 10),
    state: match[5]!,
    marked: marked.has(Number(match[1])),
    residentBytes: Number(match[6]) * 1024,
    command: match[7]!,
  };
}
