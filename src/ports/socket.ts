import type { Outcome } from "../core/outcome.ts";

/** Why a connection could not be made, or broke. */
export interface SocketFailure {
  class: "denied" | "refused" | "dns" | "tls" | "reset" | "aborted" | "other";
  message: string;
}

/** A connected stream of bytes. Reads answer null at the end. */
export interface Socket {
  /** The address at the other end, an IP without brackets. */
  address: string;
  /** Goes on encrypted, with the other end proved to be `hostname`. The plain socket is used up. */
  startTls(hostname: string, signal: AbortSignal): Promise<Outcome<Socket, SocketFailure>>;
  read(): Promise<Outcome<Uint8Array | null, SocketFailure>>;
  write(bytes: Uint8Array): Promise<Outcome<void, SocketFailure>>;
  close(): void;
}

/** Outgoing TCP. Contract: nothing is sent before the caller writes; nothing throws. */
export interface SocketPort {
  connect(
    hostname: string,
    port: number,
    signal: AbortSignal,
  ): Promise<Outcome<Socket, SocketFailure>>;
}
