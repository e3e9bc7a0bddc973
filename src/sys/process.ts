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
    if (mark === undefined) return await readTable(["-eww"]);
    const rows = await readTable(WITH_ENVIRONMENTS, mark);
    return rows.length > 0 ? rows : await readTable(["-eww"]);
  },
};

/** Every process with its environment: a letter that means another thing to each system. */
const WITH_ENVIRONMENTS = Deno.build.os === "darwin" ? ["-AEww"] : ["eww", "-e"];

async function readTable(options: string[], mark?: string): Promise<ProcessRow[]> {
  try {
    const { stdout } = await new Deno.Command("ps", {
      args: [...options, "-o", "pid=,ppid=,pgid=,sess=,stat=,rss=,args="],
      stdin: "null",
      stdout: "piped",
      stderr: "null",
    }).output();
    const lines = new TextDecoder().decode(stdout).split("\n");
    return lines.map((line) => parseRow(line, mark)).filter((row) => row !== null);
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

function parseRow(line: string, mark: string | undefined): ProcessRow | null {
  // Some systems print a session as an address.
  const match = /^\s*(\d+)\s+(\d+)\s+(\d+)\s+([0-9a-f]+)\s+(\S+)\s+(\d+)\s(.*)$/.exec(line);
  if (!match) return null;
  return {
    pid: Number(match[1]),
    parentPid: Number(match[2]),
    groupId: Number(match[3]),
    sessionId: parseInt(match[4]!, /[a-f]/.test(match[4]!) ? 16 : 10),
    state: match[5]!,
    marked: mark !== undefined && match[7]!.includes(` ${mark}`),
    residentBytes: Number(match[6]) * 1024,
    command: match[7]!,
  };
}
