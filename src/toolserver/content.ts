/** What bytes are, by their first ones: text, or a binary format with a name. */

/** Bytes that are looked at. */
export const SNIFF_BYTES = 8 * 1024;

const FORMATS: readonly [string, readonly number[], string][] = [
  ["PNG image", [0x89, 0x50, 0x4e, 0x47], "image/png"],
  ["JPEG image", [0xff, 0xd8, 0xff], "image/jpeg"],
  ["GIF image", [0x47, 0x49, 0x46, 0x38], "image/gif"],
  ["PDF document", [0x25, 0x50, 0x44, 0x46, 0x2d], "application/pdf"],
  ["ZIP archive", [0x50, 0x4b, 0x03, 0x04], "application/zip"],
  ["gzip data", [0x1f, 0x8b], "application/gzip"],
  ["zstd data", [0x28, 0xb5, 0x2f, 0xfd], "application/zstd"],
  ["xz data", [0xfd, 0x37, 0x7a, 0x58, 0x5a], "application/x-xz"],
  ["bzip2 data", [0x42, 0x5a, 0x68], "application/x-bzip2"],
  ["ELF program", [0x7f, 0x45, 0x4c, 0x46], "application/x-elf"],
  ["Mach-O program", [0xcf, 0xfa, 0xed, 0xfe], "application/x-mach-binary"],
  ["WebAssembly module", [0x00, 0x61, 0x73, 0x6d], "application/wasm"],
  ["SQLite database", [0x53, 0x51, 0x4c, 0x69, 0x74, 0x65], "application/vnd.sqlite3"],
  ["UTF-16 text", [0xff, 0xfe], "text/plain"],
  ["UTF-16 text", [0xfe, 0xff], "text/plain"],
];

function formatOf(head: Uint8Array): readonly [string, readonly number[], string] | undefined {
  const riff = head[0] === 0x52 && head[1] === 0x49 && head[8] === 0x57 && head[9] === 0x45;
  if (riff) return ["WebP image", [], "image/webp"];
  return FORMATS.find(([, magic]) => magic.every((byte, at) => head[at] === byte));
}

/** Whether bytes are no text: they have a NUL, or begin as a known binary format. */
export function looksBinary(head: Uint8Array): boolean {
  if (head.subarray(0, SNIFF_BYTES).includes(0)) return true;
  const format = formatOf(head);
  // Text may begin with "BZh"; a format of four bytes and more is none by chance.
  return format !== undefined && (format[1].length > 3 || format[1].length < 3);
}

/** The name of a binary format, or `unknown format`. */
export function describeBinary(head: Uint8Array): string {
  return formatOf(head)?.[0] ?? "unknown format";
}

/** The media type of an image that models take, else undefined. */
export function imageType(head: Uint8Array): string | undefined {
  const type = formatOf(head)?.[2];
  return type !== undefined && /^image\/(?:png|jpeg|gif|webp)$/.test(type) ? type : undefined;
}

/** Base64 of bytes. */
export function toBase64(bytes: Uint8Array): string {
  let binary = "";
  // In parts: a call takes only so many arguments.
  for (let at = 0; at < bytes.length; at += 8_192) {
    binary += String.fromCharCode(...bytes.subarray(at, at + 8_192));
  }
  return btoa(binary);
}
