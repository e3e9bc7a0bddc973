import assert from "node:assert/strict";
import { load } from "../../tests/fakes/configuration.ts";
import { STARTER } from "./starter.ts";

const surroundings = {
  env: { MY_TOKEN: "t", DOCS_TOKEN: "d", SEARCH_TOKEN: "s" },
  files: { "result.schema.json": "{}" },
  prepare: (directory: string) => {
    // A program that any machine with the tests has.
    Deno.symlinkSync("/bin/sh", `${directory}/git`);
  },
};

Deno.test("STARTER: is valid as it is", async () => {
  const { settings, problems, notices } = await load({ files: { "agentd.yaml": STARTER } });
  assert.deepEqual([problems, notices], [[], []]);
  assert.deepEqual(settings.servers.map((server) => server.name), ["fs"]);
  assert.equal(settings.task.require.length, 1);
});

Deno.test("STARTER: is valid with every commented key switched on", async () => {
  const whole = STARTER.replace(/^#(?! )/gm, "").replace(/^# {2}(?=\S)/gm, "  ").replace(
    /^#(?= {2,})/gm,
    "",
  ).replace("run: [git]", "run: [./git]");
  assert.doesNotMatch(whole, /^#\w/m);
  const { settings, problems } = await load({
    ...surroundings,
    files: { ...surroundings.files, "agentd.yaml": whole },
  });
  assert.deepEqual(problems, []);
  assert.deepEqual(settings.servers.map((server) => server.name), [
    "docs",
    "search",
    "fs",
    "http",
    "exec",
  ]);
  assert.equal(settings.task.checks.length, 1);
  assert.equal(settings.limits.maxCost, 2.5);
});
