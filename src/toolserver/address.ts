/** IP addresses, and which of them are no public ones. */

/** Bytes of an address: 4 or 16. */
export type AddressBytes = Uint8Array;

/** Parses `127.0.0.1`, `::1`, `::ffff:1.2.3.4`, with or without brackets or zone; else undefined. */
export function parseAddress(text: string): AddressBytes | undefined {
  const bare = text.replace(/^\[|\]$/g, "").replace(/%.*$/, "");
  return bare.includes(":") ? parseSix(bare) : parseFour(bare);
}

function parseFour(text: string): AddressBytes | undefined {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text);
  if (!match) return undefined;
  const bytes = match.slice(1).map(Number);
  return bytes.every((byte) => byte <= 255) ? Uint8Array.from(bytes) : undefined;
}

function parseSix(text: string): AddressBytes | undefined {
  const halves = text.split("::");
  if (halves.length > 2) return undefined;
  const head = parseGroups(halves[0]!);
  const tail = halves.length === 2 ? parseGroups(halves[1]!) : [];
  if (head === undefined || tail === undefined) return undefined;
  const missing = 8 - head.length - tail.length;
  if (halves.length === 2 ? missing < 1 : missing !== 0) return undefined;
  const groups = [...head, ...new Array<number>(missing).fill(0), ...tail];
  const bytes = new Uint8Array(16);
  groups.forEach((group, at) => {
    bytes[at * 2] = group >> 8;
    bytes[at * 2 + 1] = group & 255;
  });
  return bytes;
}

function parseGroups(text: string): number[] | undefined {
  if (text === "") return [];
  const groups: number[] = [];
  const parts = text.split(":");
  for (const [at, part] of parts.entries()) {
    const four = at === parts.length - 1 ? parseFour(part) : undefined;
    if (four !== undefined) groups.push(four[0]! * 256 + four[1]!, four[2]! * 256 + four[3]!);
    else if (/^[0-9A-Fa-f]{1,4}$/.test(part)) groups.push(Number.parseInt(part, 16));
    else return undefined;
  }
  return groups;
}

/** Whether two addresses are the same; an IPv4 address is the same as its IPv6 mapping. */
export function sameAddress(one: AddressBytes, other: AddressBytes): boolean {
  const a = embeddedFour(one, true) ?? one;
  const b = embeddedFour(other, true) ?? other;
  return a.length === b.length && a.every((byte, at) => byte === b[at]);
}

/** IANA special-purpose ranges (RFC 6890 and its registry), and what clouds put outside of them. */
const FOUR: readonly [string, number, string][] = [
  ["169.254.169.254", 32, "a cloud metadata address"],
  ["168.63.129.16", 32, "a cloud metadata address"],
  ["100.100.100.200", 32, "a cloud metadata address"],
  ["192.0.0.192", 32, "a cloud metadata address"],
  ["0.0.0.0", 8, "an address of this host"],
  ["10.0.0.0", 8, "a private address"],
  ["100.64.0.0", 10, "a carrier-grade NAT address"],
  ["127.0.0.0", 8, "a loopback address"],
  ["169.254.0.0", 16, "a link-local address"],
  ["172.16.0.0", 12, "a private address"],
  ["192.0.0.0", 24, "a reserved address"],
  ["192.0.2.0", 24, "a documentation address"],
  ["192.168.0.0", 16, "a private address"],
  ["198.18.0.0", 15, "a benchmarking address"],
  ["198.51.100.0", 24, "a documentation address"],
  ["203.0.113.0", 24, "a documentation address"],
  ["224.0.0.0", 4, "a multicast address"],
  ["240.0.0.0", 4, "a reserved address"],
];
const SIX: readonly [string, number, string][] = [
  ["fd00:ec2::254", 128, "a cloud metadata address"],
  ["fd20:ce::254", 128, "a cloud metadata address"],
  ["::1", 128, "a loopback address"],
  ["::", 128, "an address of this host"],
  ["64:ff9b:1::", 48, "a private address"],
  ["100::", 64, "a reserved address"],
  ["2001:db8::", 32, "a documentation address"],
  ["3fff::", 20, "a documentation address"],
  ["fc00::", 7, "a private address"],
  ["fe80::", 10, "a link-local address"],
  ["fec0::", 10, "a private address"],
  ["ff00::", 8, "a multicast address"],
];

/** What kind of address it is that is not public, else undefined. */
export function specialKind(bytes: AddressBytes): string | undefined {
  if (bytes.length === 4) return findRange(FOUR, bytes);
  const six = findRange(SIX, bytes);
  if (six !== undefined) return six;
  // An IPv4 address may be wrapped: what a translator would reach counts.
  const four = embeddedFour(bytes, false);
  return four === undefined ? undefined : findRange(FOUR, four);
}

/** The IPv4 address in a mapped one, or with `mappedOnly` false in any known wrapping. */
function embeddedFour(bytes: AddressBytes, mappedOnly: boolean): AddressBytes | undefined {
  if (bytes.length !== 16) return undefined;
  const zeros = (from: number, to: number) => bytes.subarray(from, to).every((byte) => byte === 0);
  if (zeros(0, 10) && bytes[10] === 255 && bytes[11] === 255) return bytes.slice(12);
  if (mappedOnly) return undefined;
  // IPv4-compatible, IPv4-translated (::ffff:0:a.b.c.d), NAT64, 6to4, Teredo (bits inverted).
  if (zeros(0, 12)) return bytes.slice(12);
  if (zeros(0, 8) && bytes[8] === 255 && bytes[9] === 255 && zeros(10, 12)) return bytes.slice(12);
  if (within(bytes, parseAddress("64:ff9b::")!, 96)) return bytes.slice(12);
  if (bytes[0] === 0x20 && bytes[1] === 0x02) return bytes.slice(2, 6);
  if (within(bytes, parseAddress("2001::")!, 32)) return bytes.slice(12).map((byte) => byte ^ 255);
  return undefined;
}

function findRange(
  ranges: readonly [string, number, string][],
  bytes: AddressBytes,
): string | undefined {
  return ranges.find(([prefix, bits]) => within(bytes, parseAddress(prefix)!, bits))?.[2];
}

function within(bytes: AddressBytes, prefix: AddressBytes, bits: number): boolean {
  for (let at = 0; at < bits; at++) {
    const mask = 128 >> (at & 7);
    if ((bytes[at >> 3]! & mask) !== (prefix[at >> 3]! & mask)) return false;
  }
  return true;
}
