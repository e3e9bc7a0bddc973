import assert from "node:assert/strict";
import fc from "fast-check";
import { permissionFlags } from "../wire/permissions.ts";
import { parseHost, parsePermission, parsePermissionFlags } from "./flags.ts";

Deno.test("parsePermissionFlags: Deno's syntax", () => {
  const rows: [string[], Record<string, unknown>][] = [
    [["--allow-read"], { read: true }],
    [["-R"], { read: true }],
    [["--allow-read=a,/b/../c,./d/"], { read: ["/w/a", "/c", "/w/d"] }],
    [["-R=a", "--allow-read=b"], { read: ["/w/a", "/w/b"] }],
    [["--allow-read=a", "--allow-read"], { read: true }],
    [["--allow-read=a,,b"], { read: ["/w/a,b"] }],
    [["--allow-write=."], { write: ["/w"] }],
    [["-N=example.com,[::1]:80,10.0.0.1:8080"], {
      net: ["example.com", "[::1]:80", "10.0.0.1:8080"],
    }],
    [["--allow-run=git,/bin/x,./y"], { run: ["git", "/bin/x", "/w/y"] }],
    [["-E=A,B"], { env: ["A", "B"] }],
    [["--allow-read=a,a"], { read: ["/w/a"] }],
  ];
  for (const [args, wanted] of rows) {
    const { permissions, problems, rest } = parsePermissionFlags(args, "/w");
    assert.deepEqual(problems, [], args.join(" "));
    assert.deepEqual(rest, []);
    for (const [kind, permission] of Object.entries(permissions)) {
      assert.deepEqual(permission, wanted[kind] ?? false, `${args.join(" ")}: ${kind}`);
    }
  }
});

Deno.test("parsePermissionFlags: what is wrong is a problem and grants nothing", () => {
  const rows: [string, RegExp][] = [
    ["--allow-read=", /empty/],
    ["--allow-net=http://a.example/", /URL/],
    ["--allow-net=a b", /no host/],
    ["--allow-net=a.example:99999", /no host/],
    ["--allow-env=A=B", /no name/],
    ["--allow-all", /name what is allowed/],
    ["-A", /name what is allowed/],
    ["--allow-ffi", /name what is allowed/],
    ["--deny-read=/etc", /grant less/],
  ];
  for (const [flag, reason] of rows) {
    const { permissions, problems } = parsePermissionFlags([flag], "/w");
    assert.match(problems.join("\n"), reason, flag);
    assert.ok(Object.values(permissions).every((value) => value === false), flag);
  }
  assert.deepEqual(parsePermissionFlags(["fs", "--other", "-x"], "/w").rest, [
    "fs",
    "--other",
    "-x",
  ]);
});

Deno.test("parsePermissionFlags: reads back what permissionFlags writes", () => {
  const path = fc.stringMatching(/^\/[a-z,]{1,8}[a-z]$/);
  fc.assert(fc.property(fc.array(path, { minLength: 1, maxLength: 4 }), (paths) => {
    const set = parsePermissionFlags([], "/").permissions;
    const list = [...new Set(paths)];
    const flags = permissionFlags({ ...set, read: list, net: true });
    const back = parsePermissionFlags(flags, "/").permissions;
    assert.deepEqual(back, { ...set, read: list, net: true });
  }));
});

Deno.test("parsePermission: takes lists from a file as well", () => {
  assert.deepEqual(parsePermission("read", ["a", "b"], "/w").permission, ["/w/a", "/w/b"]);
  assert.deepEqual(parsePermission("net", [], "/w").permission, false);
});

Deno.test("parseHost: host and port", () => {
  assert.deepEqual(parseHost("Example.COM."), { host: "example.com", port: null });
  assert.deepEqual(parseHost("[::1]:80"), { host: "::1", port: 80 });
  assert.deepEqual(parseHost("::1"), { host: "::1", port: null });
  assert.deepEqual(parseHost("a:0"), undefined);
});
