import { failed, success } from "../core/outcome.ts";
import { withinTurns } from "../ports/clock.ts";
import type { LockPort } from "../ports/lock.ts";
import { systemClock } from "./clock.ts";

/** How long a lock that is free may take, where only the waiting kind of locking exists. */
const WAIT_MS = 250;

/** Paths whose lock another process holds and this one still waits for, one thread each. */
const waitingFor = new Set<string>();

/**
 * Whether a lock that another process holds is still waited for, where waiting cannot be given up:
 * such a process must end by `Deno.exit`, since it would not end by itself.
 */
export function isLockPending(): boolean {
  return waitingFor.size > 0;
}

/** Advisory file locks of the operating system: they end with the process, however it ends. */
export const systemLock: LockPort = {
  async tryLock(path) {
    // Asked again and again, it waits once.
    if (waitingFor.has(path)) return failed({ class: "held", message: heldBy(path) });
    let file: Deno.FsFile;
    try {
      file = Deno.openSync(path, { read: true, write: true, create: true, mode: 0o600 });
    } catch (error) {
      const denied = error instanceof Deno.errors.NotCapable ||
        error instanceof Deno.errors.PermissionDenied;
      const message = error instanceof Error ? error.message : String(error);
      return failed({ class: denied ? "denied" : "other", message: `${path}: ${message}` });
    }
    try {
      if (!await take(file, path, "exclusive")) {
        return failed({ class: "held", message: heldBy(path) });
      }
    } catch (error) {
      file.close();
      const message = error instanceof Error ? error.message : String(error);
      return failed({ class: "other", message: `${path}: ${message}` });
    }
    noteHolder(file);
    let released = false;
    return success({
      release() {
        if (released) return;
        released = true;
        letGo(file);
      },
    });
  },
  async isHeld(path) {
    if (waitingFor.has(path)) return true;
    let file: Deno.FsFile;
    try {
      file = Deno.openSync(path, { read: true });
    } catch {
      return false;
    }
    try {
      if (!await take(file, path, "shared")) return true;
    } catch {
      file.close();
      return false;
    }
    letGo(file);
    return false;
  },
};

function heldBy(path: string): string {
  return `${path} is held by another process`;
}

/** Whether the lock was taken; if not, the file is or will be closed. */
async function take(
  file: Deno.FsFile,
  path: string,
  kind: "exclusive" | "shared",
): Promise<boolean> {
  const exclusive = kind === "exclusive";
  // Deno 2.4, which the closed-network build runs on, has no tryLock.
  if (typeof file.tryLock === "function") {
    const taken = await file.tryLock(exclusive);
    if (!taken) file.close();
    return taken;
  }
  waitingFor.add(path);
  const lock = file.lock(exclusive).finally(() => waitingFor.delete(path));
  return await comesSoon(lock, () => letGo(file));
}

/** Whether a lock that was asked for comes while we wait; one that comes later is let go. */
export async function comesSoon(lock: Promise<void>, letGo: () => void): Promise<boolean> {
  let locked = false;
  let late = false;
  const waited = lock.then(() => {
    locked = true;
    if (late) letGo();
  });
  await withinTurns(systemClock, WAIT_MS, waited);
  late = !locked;
  return locked;
}

/**
 * Unlocks before it closes: a process that another thread is just starting has this file open too
 * until it executes its program, and closing ours alone would leave the lock with it until then.
 */
function letGo(file: Deno.FsFile): void {
  try {
    file.unlockSync();
  } finally {
    file.close();
  }
}

/** For people who look: the lock itself is not in the content. */
function noteHolder(file: Deno.FsFile): void {
  try {
    file.truncateSync(0);
    file.writeSync(new TextEncoder().encode(`${Deno.pid}\n`));
  } catch { /* it is held all the same */ }
}
