/** What code in a tool server's Worker can do, by trying it. */

import assert from "node:assert/strict";
import { workerPermissions } from "../../src/toolserver/permissions.ts";
import type { PermissionSet } from "../../src/wire/payload.ts";
import { NO_PERMISSIONS } from "../../src/wire/permissions.ts";
import type { Sandbox, ServerKind } from "../../src/toolserver/messages.ts";

async function attempt(
  kind: ServerKind,
  grant: (directory: string) => Partial<PermissionSet>,
  sandbox: Sandbox = "none",
): Promise<Record<string, string>> {
  const root = await Deno.realPath(await Deno.makeTempDir({ prefix: "agentd-sandbox-" }));
  const directory = `${root}/granted`;
  await Deno.mkdir(directory);
  await Deno.writeTextFile(`${directory}/a`, "");
  await Deno.writeTextFile(`${root}/secret`, "");
  const permissions = workerPermissions(kind, { ...NO_PERMISSIONS, ...grant(directory) }, sandbox);
  const worker = new Worker(new URL("../hostile/tool_worker.ts", import.meta.url), {
    type: "module",
    deno: { permissions: { ...permissions } as Deno.PermissionOptionsObject },
  });
  const outcomes = await new Promise<Record<string, string>>((resolve, reject) => {
    worker.onmessage = (event) => resolve(event.data);
    worker.onerror = (event) => {
      event.preventDefault();
      reject(new Error(event.message));
    };
    worker.postMessage({ directory });
  });
  worker.terminate();
  await Deno.remove(root, { recursive: true });
  return outcomes;
}

/** What Deno says of a permission that is missing. */
const PERMISSION_ERROR = /^(?:Requires \w+ access|Can't escalate parent thread permissions)/;

/** Every attempt fails for want of permission, but for those named. */
function assertOnly(outcomes: Record<string, string>, allowed: string[]): void {
  assert.ok(Object.keys(outcomes).length > 15, "the attempts were made");
  for (const [name, outcome] of Object.entries(outcomes)) {
    if (allowed.includes(name)) assert.equal(outcome, "worked", name);
    else assert.match(outcome, PERMISSION_ERROR, name);
  }
}

const posix = Deno.build.os !== "windows";

Deno.test("fs Worker: reads where it may, and nothing else", async () => {
  assertOnly(await attempt("fs", (directory) => ({ read: [directory] })), ["read in the grant"]);
});

Deno.test("fs Worker: writes where it may, and nothing else", async () => {
  const outcomes = await attempt(
    "fs",
    (directory) => ({ write: [directory], net: ["127.0.0.1"], run: true }),
  );
  assertOnly(outcomes, ["read in the grant", "write in the grant"]);
});

Deno.test("http Worker: has no other permission than net", async () => {
  const outcomes = await attempt("http", () => ({ net: ["127.0.0.1:1"], read: true, run: true }));
  assertOnly(outcomes, []);
});

Deno.test("exec Worker: runs what it may, and cannot signal", { ignore: !posix }, async () => {
  const outcomes = await attempt("exec", () => ({ run: ["printf"], read: true, env: ["PATH"] }));
  assertOnly(outcomes, ["run a granted program"]);
  assertOnly(await attempt("exec", () => ({ run: ["printf"] }), "bwrap"), []);
  assertOnly(await attempt("exec", () => ({}), "bwrap"), []);
});
