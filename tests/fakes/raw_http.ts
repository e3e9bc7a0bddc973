/**
 * A small HTTP/1.1 server over plain sockets, for fakes that must misbehave on the wire: cut a body
 * anywhere, close without an answer, stay silent. Requests carry `content-length`.
 */

const HEAD_BYTES_MAX = 64 * 1024;
const BODY_BYTES_MAX = 256 * 1024 * 1024;
const encoder = new TextEncoder();

/** One request, whole. */
export interface RawRequest {
  method: string;
  path: string;
  headers: Record<string, string>;
  body: string;
}

/** One client's connection. */
export class RawConnection {
  readonly #conn: Deno.TcpConn;
  #held: Uint8Array<ArrayBuffer> = new Uint8Array(0);
  /** Bytes written for the answer under way. */
  sentBytes = 0;

  constructor(conn: Deno.TcpConn) {
    this.#conn = conn;
    conn.setNoDelay(true);
  }

  /** The next request; null once the client is gone. */
  async readRequest(): Promise<RawRequest | null> {
    let end = this.#headEnd();
    while (end === -1) {
      if (this.#held.length > HEAD_BYTES_MAX || !await this.#readMore()) return null;
      end = this.#headEnd();
    }
    const lines = new TextDecoder().decode(this.#held.subarray(0, end)).split("\r\n");
    const [method, path] = lines[0]!.split(" ");
    const headers: Record<string, string> = {};
    for (const line of lines.slice(1)) {
      const colon = line.indexOf(":");
      if (colon > 0) headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
    }
    const length = Number(headers["content-length"] ?? 0);
    if (!Number.isInteger(length) || length < 0 || length > BODY_BYTES_MAX) return null;
    const start = end + 4;
    if (!await this.#readUntil(start + length)) return null;
    const body = new TextDecoder().decode(this.#held.subarray(start, start + length));
    this.#held = this.#held.slice(start + length);
    return { method: method ?? "", path: path ?? "", headers, body };
  }

  /** Writes; false once the client is gone. */
  async write(data: string | Uint8Array): Promise<boolean> {
    const bytes = typeof data === "string" ? encoder.encode(data) : data;
    try {
      let at = 0;
      while (at < bytes.length) {
        const wrote = await this.#conn.write(bytes.subarray(at));
        this.sentBytes += wrote;
        at += wrote;
      }
      return true;
    } catch {
      return false;
    }
  }

  /** Writes a whole answer. */
  async answer(status: number, headers: Record<string, string>, body: string): Promise<boolean> {
    const bytes = encoder.encode(body);
    const head = headOf(status, { ...headers, "content-length": String(bytes.length) });
    const all = new Uint8Array(head.length + bytes.length);
    all.set(head);
    all.set(bytes, head.length);
    return await this.write(all);
  }

  /** Until the client closes the connection or sends more. */
  async untilGone(): Promise<void> {
    await this.#readMore();
  }

  close(): void {
    try {
      this.#conn.close();
    } catch { /* closed already */ }
  }

  #headEnd(): number {
    const held = this.#held;
    for (let i = held.indexOf(13); i !== -1; i = held.indexOf(13, i + 1)) {
      if (held[i + 1] === 10 && held[i + 2] === 13 && held[i + 3] === 10) return i;
    }
    return -1;
  }

  async #readUntil(bytes: number): Promise<boolean> {
    if (this.#held.length >= bytes) return true;
    const whole = new Uint8Array(bytes);
    whole.set(this.#held);
    let at = this.#held.length;
    while (at < bytes) {
      const count = await this.#conn.read(whole.subarray(at)).catch(() => null);
      if (count === null) return false;
      at += count;
    }
    this.#held = whole;
    return true;
  }

  async #readMore(): Promise<boolean> {
    const buffer = new Uint8Array(16 * 1024);
    const count = await this.#conn.read(buffer).catch(() => null);
    if (count === null) return false;
    const joined = new Uint8Array(this.#held.length + count);
    joined.set(this.#held);
    joined.set(buffer.subarray(0, count), this.#held.length);
    this.#held = joined;
    return true;
  }
}

/** The head of an answer. */
export function headOf(status: number, headers: Record<string, string>): Uint8Array {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return encoder.encode(`HTTP/1.1 ${status} Status\r\n${lines.join("")}\r\n`);
}

/** Bytes as one chunk of a chunked body. */
export function chunkOf(bytes: Uint8Array): Uint8Array {
  const head = encoder.encode(bytes.length.toString(16) + "\r\n");
  const out = new Uint8Array(head.length + bytes.length + 2);
  out.set(head);
  out.set(bytes, head.length);
  out.set([13, 10], head.length + bytes.length);
  return out;
}

/** The end of a chunked body. */
export const LAST_CHUNK = encoder.encode("0\r\n\r\n");

/**
 * Serves connections until the listener closes. `handle` answers one request and says whether the
 * connection goes on.
 */
export async function serveRaw(
  listener: Deno.TcpListener,
  onConnection: () => void,
  handle: (request: RawRequest, connection: RawConnection) => Promise<"keep" | "close">,
): Promise<void> {
  for await (const conn of listener) {
    onConnection();
    void serveConnection(new RawConnection(conn), handle);
  }
}

async function serveConnection(
  connection: RawConnection,
  handle: (request: RawRequest, connection: RawConnection) => Promise<"keep" | "close">,
): Promise<void> {
  try {
    for (;;) {
      const request = await connection.readRequest();
      if (request === null) return;
      connection.sentBytes = 0;
      if (await handle(request, connection) === "close") return;
    }
  } finally {
    connection.close();
  }
}
