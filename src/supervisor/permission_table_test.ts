import assert from "node:assert/strict";
import { NO_PERMISSIONS } from "../wire/permissions.ts";
import { makeSettings } from "../../tests/supervised/settings.ts";
import { renderPermissions, reportPermissions } from "./permission_table.ts";

const settings = makeSettings({
  script: {},
  directory: "/w",
  settings: {
    servers: [
      {
        kind: "stdio",
        name: "notes",
        command: "notes",
        args: [],
        env: {},
        cwd: "/",
        required: true,
        startTimeoutMs: 1,
        sandbox: "bwrap",
      },
      {
        kind: "http",
        name: "web",
        url: "https://tools.example/mcp",
        headers: {},
        era: "auto",
        required: true,
        startTimeoutMs: 1,
      },
      {
        kind: "builtin",
        name: "fs",
        permissions: { ...NO_PERMISSIONS, read: ["/docs"] },
        sandbox: "none",
        required: true,
        startTimeoutMs: 1,
      },
    ],
  },
});

/** Columns are for the eye: one space between words is enough to compare. */
const squeeze = (text: string) => text.replace(/ +/g, " ");

Deno.test("reportPermissions: each process, by form; who brings which leg; the verdict", () => {
  const source = squeeze(renderPermissions(reportPermissions(settings, false)));
  assert.match(
    source,
    /agent, main thread\n held by --allow-… flags of its process\n read \/w\/runs\/<run>\n/,
  );
  assert.match(
    source,
    /agent, loop Worker\n held by Worker permissions\n read \/w\/runs\/<run>\n write \/w\/runs\/<run>\n net tools.example:443\n\n/,
  );
  assert.match(source, /tool server notes\n held by bwrap/);
  assert.match(source, /tool server web \(tools.example\)\n held by not ours/);
  assert.match(source, /tool server fs, Worker\n held by .*\n read \/docs\n\n/);
  assert.match(source, /fs\/\*: sensitive \(grants: read\)/);
  assert.match(source, /verdict: all 3 legs: refused/);
  const binary = squeeze(
    renderPermissions(reportPermissions({ ...settings, allowTrifecta: true }, true)),
  );
  assert.match(
    binary,
    /agent, main thread\n held by Deno.permissions.revoke.*\n run everything\n\n/,
  );
  assert.match(binary, /verdict: all 3 legs: granted, since --allow-trifecta is set/);
});
