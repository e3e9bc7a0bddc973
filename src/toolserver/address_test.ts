import assert from "node:assert/strict";
import { parseAddress, sameAddress, specialKind } from "./address.ts";

Deno.test("parseAddress: takes addresses and nothing else", () => {
  const rows: [string, string | undefined][] = [
    ["127.0.0.1", "127,0,0,1"],
    ["256.0.0.1", undefined],
    ["1.2.3", undefined],
    ["0x7f.0.0.1", undefined],
    ["example.com", undefined],
    ["::1", "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,1"],
    ["[::1]", "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,1"],
    ["fe80::1%eth0", "254,128,0,0,0,0,0,0,0,0,0,0,0,0,0,1"],
    ["::ffff:1.2.3.4", "0,0,0,0,0,0,0,0,0,0,255,255,1,2,3,4"],
    ["1:2:3:4:5:6:7:8", "0,1,0,2,0,3,0,4,0,5,0,6,0,7,0,8"],
    ["1:2:3:4:5:6:7", undefined],
    ["1::2::3", undefined],
    ["1:2:3:4:5:6:7:8::", undefined],
    [":::", undefined],
    ["12345::", undefined],
  ];
  for (const [text, bytes] of rows) assert.equal(parseAddress(text)?.join(), bytes, text);
});

Deno.test("specialKind: no private, local or wrapped address counts as public", () => {
  const special = [
    "127.0.0.1 loopback",
    "127.255.255.255 loopback",
    "0.0.0.0 this host",
    "10.1.2.3 private",
    "172.16.0.1 private",
    "172.31.255.255 private",
    "192.168.1.1 private",
    "100.64.0.1 carrier-grade",
    "169.254.1.1 link-local",
    "169.254.169.254 metadata",
    "168.63.129.16 metadata",
    "100.100.100.200 metadata",
    "192.0.0.192 metadata",
    "198.18.0.1 benchmarking",
    "224.0.0.1 multicast",
    "255.255.255.255 reserved",
    "::1 loopback",
    ":: this host",
    "fd00:ec2::254 metadata",
    "fc00::1 private",
    "fdff::1 private",
    "fe80::1 link-local",
    "febf::1 link-local",
    "ff02::1 multicast",
    "::ffff:127.0.0.1 loopback",
    "::ffff:a9fe:a9fe metadata",
    "::127.0.0.1 loopback",
    "::ffff:0:10.0.0.1 private",
    "64:ff9b::10.0.0.1 private",
    "64:ff9b:1::1 private",
    "2002:7f00:1:: loopback",
    "2001:0:1:2:3:4:80ff:fffe loopback",
    "2001:db8::1 documentation",
  ];
  for (const row of special) {
    const [address, ...kind] = row.split(" ");
    assert.match(specialKind(parseAddress(address!)!) ?? "public", new RegExp(kind.join(" ")), row);
  }
  const open = [
    "1.1.1.1",
    "9.255.255.255",
    "11.0.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "169.253.255.255",
    "223.255.255.255",
    "2606:4700::1111",
    "64:ff9b::1.1.1.1",
    "::ffff:1.1.1.1",
    "2002:101:101::",
    "fe00::1",
  ];
  for (const address of open) assert.equal(specialKind(parseAddress(address)!), undefined, address);
});

Deno.test("sameAddress: an address is its own IPv6 mapping", () => {
  const same = (one: string, other: string) =>
    sameAddress(parseAddress(one)!, parseAddress(other)!);
  assert.ok(same("127.0.0.1", "::ffff:7f00:1"));
  assert.ok(same("::1", "0:0:0:0:0:0:0:1"));
  assert.ok(!same("127.0.0.1", "127.0.0.2"));
  assert.ok(!same("127.0.0.1", "::1"));
});
