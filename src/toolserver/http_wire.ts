/**
 * One HTTP/1.1 exchange over a socket (RFC 9112). The server speaks it itself rather than by `fetch`,
 * because only so it knows which address it is connected to before it sends anything.
 */

import { joinBytes } from "../core/bytes.ts";
import { FETCH_HEAD_BYTES_MAX } from "../core/tool_limits.ts";
import type { Socket } from "../ports/socket.ts";

/** A request as it goes out; `host`, `content-length` and `connection` are added. */
export interface WireRequest {
  method: string;
  /** Path and query. */
  target: string;
  host: string;
  headers: readonly (readonly [string, string])[];
  body: Uint8Array | null;
}

/** An answer; the body was read up to a bound. */
export interface WireAnswer {
  status: number;
  reason: string;
  /** Lower-case names; several of one name are joined by a comma. */
  headers: Map<string, string>;
  body: Uint8Array;
  /** Whether the body ends where `body` does. */
  complete: boolean;
}

/** The other side breaks the protocol or off. */
export class WireError extends Error {
  override name = "WireError";
}

const encoder = new TextEncoder();
const latin = new TextDecoder("latin1");
const INTERIM_MAX = 10;

/** Sends a request and reads the answer, of its body at most `bytesMax` bytes. */
export async function exchange(
  socket: Socket,
  request: WireRequest,
  bytesMax: number,
): Promise<WireAnswer> {
  const lines = [
    `${request.method} ${request.target} HTTP/1.1`,
    `host: ${request.host}`,
    ...request.headers.map(([name, value]) => `${name}: ${value}`),
    "connection: close",
  ];
  if (request.body !== null) lines.push(`content-length: ${request.body.length}`);
  await write(socket, encoder.encode(lines.join("\r\n") + "\r\n\r\n"));
  if (request.body !== null) await write(socket, request.body);
  const reader = new Reader(socket);
  for (let interim = 0; interim <= INTERIM_MAX; interim++) {
    const { status, reason, headers } = await readHead(reader);
    if (status === 101) throw new WireError("it answers with another protocol");
    if (status < 200) continue;
    const empty = request.method === "HEAD" || status === 204 || status === 304;
    const { body, complete } = empty
      ? { body: new Uint8Array(0), complete: true }
      : await readBody(reader, headers, bytesMax);
    return { status, reason, headers, body, complete };
  }
  throw new WireError(`it sends over ${INTERIM_MAX} interim answers`);
}

async function write(socket: Socket, bytes: Uint8Array): Promise<void> {
  const written = await socket.write(bytes);
  if (!written.ok) {
    throw new WireError(`the connection broke while sending (${written.failure.message})`);
  }
}

async function readHead(
  reader: Reader,
): Promise<{ status: number; reason: string; headers: Map<string, string> }> {
  const budget = { bytes: FETCH_HEAD_BYTES_MAX };
  const first = await reader.line(budget);
  const match = /^HTTP\/1\.[01] (\d{3})(?: (.*))?$/.exec(first);
  if (!match) throw new WireError("it does not answer in HTTP/1.1");
  const headers = new Map<string, string>();
  for (;;) {
    const line = await reader.line(budget);
    if (line === "") break;
    const field = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*$/.exec(line);
    if (!field) throw new WireError("it sends a header that is none");
    const name = field[1]!.toLowerCase();
    const known = headers.get(name);
    headers.set(name, known === undefined ? field[2]! : `${known}, ${field[2]!}`);
  }
  return { status: Number(match[1]), reason: match[2] ?? "", headers };
}

async function readBody(
  reader: Reader,
  headers: Map<string, string>,
  bytesMax: number,
): Promise<{ body: Uint8Array; complete: boolean }> {
  const body = new BoundedBytes(bytesMax);
  const encoding = headers.get("transfer-encoding")?.toLowerCase();
  if (encoding !== undefined) {
    if (encoding !== "chunked") throw new WireError(`it uses transfer encoding ${encoding}`);
    return { complete: await readChunks(reader, body), body: body.whole() };
  }
  const length = headers.get("content-length");
  if (length === undefined) {
    for (;;) {
      const part = await reader.some(64 * 1024);
      if (part === null) return { complete: true, body: body.whole() };
      if (!body.add(part)) return { complete: false, body: body.whole() };
    }
  }
  // The same length said twice is one; two lengths are an attack or a fault.
  const lengths = new Set(length.split(",").map((text) => text.trim()));
  const value = lengths.size === 1 && /^\d{1,15}$/.test([...lengths][0]!)
    ? Number([...lengths][0])
    : NaN;
  if (Number.isNaN(value)) throw new WireError(`its content-length is ${JSON.stringify(length)}`);
  return { complete: await readExactly(reader, body, value), body: body.whole() };
}

async function readChunks(reader: Reader, body: BoundedBytes): Promise<boolean> {
  for (;;) {
    const line = await reader.line({ bytes: 4_096 });
    const size = /^([0-9A-Fa-f]{1,12})[ \t]*(?:;.*)?$/.exec(line);
    if (!size) throw new WireError("it sends a chunk without its size");
    const bytes = Number.parseInt(size[1]!, 16);
    if (bytes === 0) {
      const budget = { bytes: FETCH_HEAD_BYTES_MAX };
      while (await reader.line(budget) !== "");
      return true;
    }
    if (!await readExactly(reader, body, bytes)) return false;
    if (await reader.line({ bytes: 2 }) !== "") {
      throw new WireError("a chunk is longer than it says");
    }
  }
}

/** Reads `count` bytes; false if the bound was met first. */
async function readExactly(reader: Reader, body: BoundedBytes, count: number): Promise<boolean> {
  for (let left = count; left > 0;) {
    const part = await reader.some(left);
    if (part === null) throw new WireError("the connection broke off in the middle of the body");
    left -= part.length;
    if (!body.add(part)) return false;
  }
  return true;
}

/** Bytes up to a bound; copied, since a part of one byte may be a view of a large buffer. */
export class BoundedBytes {
  readonly #max: number;
  #held = new Uint8Array(0);
  #bytes = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** Adds a part; false if not all of it has room. */
  add(part: Uint8Array): boolean {
    const kept = part.subarray(0, this.#max - this.#bytes);
    const bytes = this.#bytes + kept.length;
    if (bytes > this.#held.length) {
      const grown = new Uint8Array(Math.min(this.#max, Math.max(4_096, 2 * bytes)));
      grown.set(this.#held.subarray(0, this.#bytes));
      this.#held = grown;
    }
    this.#held.set(kept, this.#bytes);
    this.#bytes = bytes;
    return kept.length === part.length;
  }

  /** What was added, in a buffer that later additions leave alone. */
  whole(): Uint8Array {
    return this.#held.slice(0, this.#bytes);
  }
}

/** Lines and parts out of a socket. */
class Reader {
  readonly #socket: Socket;
  #buffer: Uint8Array = new Uint8Array(0);

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** Some bytes, at most `max`; null at the end. */
  async some(max: number): Promise<Uint8Array | null> {
    if (this.#buffer.length === 0) {
      const read = await this.#socket.read();
      if (!read.ok) throw new WireError(`the connection broke (${read.failure.message})`);
      if (read.value === null) return null;
      this.#buffer = read.value;
    }
    const part = this.#buffer.subarray(0, max);
    this.#buffer = this.#buffer.subarray(part.length);
    return part;
  }

  /** A line without its end; its bytes count against the budget. */
  async line(budget: { bytes: number }): Promise<string> {
    let text = "";
    for (;;) {
      const part = await this.some(4_096);
      if (part === null) throw new WireError("the connection closed before the answer was whole");
      const end = part.indexOf(10);
      const taken = end === -1 ? part : part.subarray(0, end + 1);
      budget.bytes -= taken.length;
      if (budget.bytes < 0) throw new WireError("its header is too large");
      text += latin.decode(taken);
      if (end === -1) continue;
      if (taken.length < part.length) this.#unread(part.subarray(taken.length));
      return text.replace(/\r?\n$/, "");
    }
  }

  #unread(rest: Uint8Array): void {
    this.#buffer = this.#buffer.length === 0 ? rest : joinBytes([rest, this.#buffer]);
  }
}
