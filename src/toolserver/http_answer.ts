/** Answers of the http server: status, some headers, and the body as what it is. */

import { IMAGE_BYTES_MAX } from "../core/tool_limits.ts";
import { describeBinary, imageType, looksBinary, toBase64 } from "./content.ts";
import { BoundedBytes, type WireAnswer } from "./http_wire.ts";
import { type Answer, errorAnswer, quote } from "./tool.ts";

/** Of an answer's headers, what a caller can act on; dates and ids would make each answer new. */
const SHOWN_HEADERS = [
  "content-type",
  "content-length",
  "content-language",
  "location",
  "etag",
  "last-modified",
  "link",
  "retry-after",
  "allow",
  "www-authenticate",
];

/** Blocks for an answer that came from `url` after `hops` redirects. */
export async function describeAnswer(
  url: string,
  answer: WireAnswer,
  hops: number,
  bytesMax: number,
): Promise<Answer> {
  const lines = [`HTTP ${answer.status} ${answer.reason}`.trim()];
  if (hops > 0) lines.push(`url: ${url}`);
  for (const name of SHOWN_HEADERS) {
    const value = answer.headers.get(name);
    if (value !== undefined) lines.push(`${name}: ${value.slice(0, 1_000)}`);
  }
  const decoded = await decodeBody(answer, bytesMax);
  if (decoded === undefined) {
    return errorAnswer(
      `${lines.join("\n")}\n\nThe body is in encoding ` +
        `${quote(answer.headers.get("content-encoding") ?? "")}, which cannot be read.`,
    );
  }
  const { body, complete } = decoded;
  if (!complete) {
    const total = answer.headers.get("content-length");
    lines.push(
      `body cut at ${body.length} bytes${total === undefined ? "" : ` of ${total}`}; ` +
        "max_bytes or a Range header gets more",
    );
  }
  const blocks: Answer["blocks"] = [];
  const image = imageType(body);
  if (image !== undefined && complete && body.length <= IMAGE_BYTES_MAX) {
    blocks.push({ type: "image", data: toBase64(body), mimeType: image });
  } else if (body.length > 0) {
    const text = decodeText(body, answer.headers.get("content-type") ?? "");
    if (text !== undefined) blocks.push({ type: "text", text });
    else lines.push(`body not shown: ${describeBinary(body)}, ${body.length} bytes`);
  }
  return { blocks: [{ type: "text", text: lines.join("\n") }, ...blocks], isError: false };
}

/** The body without its content encoding, within the same bound; undefined if that is unknown. */
async function decodeBody(
  answer: WireAnswer,
  bytesMax: number,
): Promise<{ body: Uint8Array; complete: boolean } | undefined> {
  const encoding = (answer.headers.get("content-encoding") ?? "identity").toLowerCase();
  if (encoding === "identity" || answer.body.length === 0) {
    return { body: answer.body, complete: answer.complete };
  }
  const format = encoding === "x-gzip" ? "gzip" : encoding;
  if (format !== "gzip" && format !== "deflate") return undefined;
  const out = new BoundedBytes(bytesMax);
  const stream = piecesOf(answer.body).pipeThrough(new DecompressionStream(format));
  const reader = stream.getReader();
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return { body: out.whole(), complete: answer.complete };
      if (!out.add(value)) {
        await reader.cancel();
        return { body: out.whole(), complete: false };
      }
    }
  } catch {
    // A body that was cut, or is damaged: what came out before that is shown as cut.
    return { body: out.whole(), complete: false };
  }
}

/** A compressed byte becomes up to 1032: what one piece becomes is held whole before it is counted. */
const PIECE_BYTES = 1_024;

/** Bytes piece by piece, as they are asked for. */
function piecesOf(bytes: Uint8Array): ReadableStream<Uint8Array<ArrayBuffer>> {
  let at = 0;
  return new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull(controller): void {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(bytes.slice(at, at + PIECE_BYTES));
      at += PIECE_BYTES;
    },
  }, { highWaterMark: 0 });
}

function decodeText(body: Uint8Array, contentType: string): string | undefined {
  const type = contentType.split(";")[0]!.trim().toLowerCase();
  const texts =
    /^text\/|[/+](?:json|xml|yaml|javascript|ecmascript|x-www-form-urlencoded|x-ndjson|graphql|toml)$|^$/;
  const charset = /charset\s*=\s*"?([^\s;"]+)/i.exec(contentType)?.[1];
  if (charset === undefined && looksBinary(body)) return undefined;
  let decoder: TextDecoder;
  try {
    decoder = new TextDecoder(charset ?? "utf-8", { fatal: !texts.test(type) });
  } catch {
    decoder = new TextDecoder();
  }
  try {
    return decoder.decode(body);
  } catch {
    return undefined;
  }
}
