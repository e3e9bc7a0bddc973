import assert from "node:assert/strict";
import { toolRule } from "../../tests/fakes/tool_host.ts";
import { Rules } from "./rules.ts";

Deno.test("Rules: the longest matching glob wins, key by key", () => {
  const rules = new Rules({
    grant: ["*", "!secret"],
    timeoutMs: 60_000,
    pin: true,
    rules: [
      toolRule({
        glob: "docs/*",
        idempotent: true,
        timeoutMs: 1_000,
        rate: { calls: 3, perMs: 60_000 },
      }),
      toolRule({ glob: "docs/publish", grant: false, timeoutMs: 2_000 }),
      toolRule({ glob: "*", readOnly: true, poll: true }),
      toolRule({ glob: "ci/*", poll: false }),
      toolRule({ glob: "ci/?", poll: true }),
    ],
  });
  const rows: [name: string, expected: Partial<ReturnType<Rules["resolve"]>>][] = [
    ["docs/read", {
      granted: true,
      readOnly: true,
      idempotent: true,
      poll: true,
      timeoutMs: 1_000,
      rate: { calls: 3, perMs: 60_000, glob: "docs/*" },
    }],
    ["docs/publish", { granted: false, timeoutMs: 2_000, idempotent: true }],
    ["other/x", {
      granted: true,
      readOnly: true,
      idempotent: false,
      timeoutMs: 60_000,
      rate: null,
    }],
    ["secret/x", { granted: false }],
    ["ci/status", { poll: false }],
    // Of two globs of one length the later one wins.
    ["ci/s", { poll: true }],
  ];
  for (const [name, expected] of rows) {
    const resolved = rules.resolve(name);
    for (const [key, value] of Object.entries(expected)) {
      assert.deepEqual(resolved[key as keyof typeof resolved], value, `${name} ${key}`);
    }
  }
});
