import { failed, type Outcome, success } from "../core/outcome.ts";
import type { Socket, SocketFailure, SocketPort } from "../ports/socket.ts";

const READ_BYTES = 64 * 1024;

/** Outgoing TCP and TLS of the runtime. */
export const systemSockets: SocketPort = {
  connect: (hostname, port, signal) =>
    guarded(
      signal,
      () => Deno.connect({ hostname, port }),
      (connection) => connection.close(),
      (connection) => wrap(connection, (connection.remoteAddr as Deno.NetAddr).hostname),
    ),
};

function wrap(connection: Deno.TcpConn | Deno.TlsConn, address: string): Socket {
  const buffer = new Uint8Array(READ_BYTES);
  let open = true;
  const close = () => {
    if (!open) return;
    open = false;
    try {
      connection.close();
    } catch { /* it is gone already, which is what was wanted */ }
  };
  return {
    address,
    startTls: (hostname, signal) => {
      open = false;
      return guarded(
        signal,
        async () => {
          const secure = await Deno.startTls(connection as Deno.TcpConn, {
            hostname,
            alpnProtocols: ["http/1.1"],
          });
          const stop = () => secure.close();
          signal.addEventListener("abort", stop, { once: true });
          try {
            await secure.handshake();
          } catch (error) {
            try {
              secure.close();
            } catch { /* closed by the signal */ }
            throw error;
          } finally {
            signal.removeEventListener("abort", stop);
          }
          return secure;
        },
        (secure) => secure.close(),
        (secure) => wrap(secure, address),
      );
    },
    read: () =>
      attempt(async () => {
        try {
          const count = await connection.read(buffer);
          return count === null ? null : buffer.slice(0, count);
        } catch (error) {
          // Many servers close TLS without the notice that it asks for; framing tells if that was early.
          if (error instanceof Deno.errors.UnexpectedEof) return null;
          throw error;
        }
      }),
    write: (bytes) =>
      attempt(async () => {
        let written = 0;
        while (written < bytes.length) written += await connection.write(bytes.subarray(written));
      }),
    close,
  };
}

/** Waits for what opens a resource no longer than the signal; what comes later is closed. */
async function guarded<Resource>(
  signal: AbortSignal,
  open: () => Promise<Resource>,
  close: (resource: Resource) => void,
  use: (resource: Resource) => Socket,
): Promise<Outcome<Socket, SocketFailure>> {
  const aborted = failed<SocketFailure>({ class: "aborted", message: "aborted" });
  if (signal.aborted) return aborted;
  const opening = open().then(
    (resource) => ({ resource }),
    (error: unknown) => ({ error }),
  );
  let stop = () => {};
  const stopped = new Promise<null>((resolve) => {
    stop = () => resolve(null);
    signal.addEventListener("abort", stop, { once: true });
  });
  const first = await Promise.race([opening, stopped]);
  signal.removeEventListener("abort", stop);
  if (first === null) {
    opening.then((late) => "resource" in late && close(late.resource));
    return aborted;
  }
  return "resource" in first ? success(use(first.resource)) : failed(classify(first.error));
}

async function attempt<Value>(
  act: () => Promise<Value>,
): Promise<Outcome<Value, SocketFailure>> {
  try {
    return success(await act());
  } catch (error) {
    return failed(classify(error));
  }
}

function classify(error: unknown): SocketFailure {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof Deno.errors.NotCapable || error instanceof Deno.errors.PermissionDenied) {
    return { class: "denied", message };
  }
  if (error instanceof Deno.errors.ConnectionRefused) return { class: "refused", message };
  if (
    /lookup address|Name or service not known|No such host|nodename nor servname/i.test(message)
  ) {
    return { class: "dns", message };
  }
  if (
    error instanceof Deno.errors.ConnectionReset || error instanceof Deno.errors.BrokenPipe ||
    error instanceof Deno.errors.UnexpectedEof || error instanceof Deno.errors.ConnectionAborted
  ) return { class: "reset", message };
  if (/certificate|tls|handshake/i.test(message)) return { class: "tls", message };
  return { class: "other", message };
}
