import type { NotifyPort } from "../ports/notify.ts";

/**
 * The service manager named by NOTIFY_SOCKET. A datagram where the runtime has them and can name the
 * socket; else the program systemd-notify, for which the unit needs NotifyAccess=all.
 */
export function openNotify(env: (name: string) => string | undefined): NotifyPort {
  const socket = env("NOTIFY_SOCKET");
  if (socket === undefined || !/^[/@]/.test(socket)) {
    return { present: false, watchdogMs: null, tell() {} };
  }
  const ours = env("WATCHDOG_PID");
  const periodUs = Number(env("WATCHDOG_USEC"));
  const watched = periodUs > 0 && (ours === undefined || Number(ours) === Deno.pid);
  // One at a time, in order: READY must not overtake STOPPING.
  let queue: Promise<void> = Promise.resolve();
  return {
    present: true,
    watchdogMs: watched ? Math.max(1, Math.floor(periodUs / 2000)) : null,
    tell(state) {
      queue = queue.then(() => send(socket, state)).catch(() => {});
    },
  };
}

async function send(socket: string, state: string): Promise<void> {
  if (await sendDatagram(socket, state)) return;
  const child = new Deno.Command("systemd-notify", {
    args: [`--pid=${Deno.pid}`, ...state.split("\n").filter((line) => line !== "")],
    stdin: "null",
    stdout: "null",
    stderr: "null",
  }).spawn();
  await child.status;
}

/** Whether it could be sent. A sender of datagrams needs a socket of its own, with a name. */
async function sendDatagram(socket: string, state: string): Promise<boolean> {
  if (typeof Deno.listenDatagram !== "function") return false;
  const own = `/tmp/agentd-notify-${Deno.pid}-${crypto.randomUUID().slice(0, 8)}.sock`;
  let connection: Deno.DatagramConn | undefined;
  try {
    connection = Deno.listenDatagram({ transport: "unixpacket", path: own });
    await connection.send(new TextEncoder().encode(state), {
      transport: "unixpacket",
      path: socket.replace(/^@/, "\0"),
    });
    return true;
  } catch {
    return false;
  } finally {
    connection?.close();
    try {
      Deno.removeSync(own);
    } catch { /* it was not made */ }
  }
}
