import assert from "node:assert/strict";
import { load, type Surroundings } from "../../tests/fakes/configuration.ts";
import type { RecordedRun } from "./reading.ts";

/** What a run was recorded with, and then the run gone on with. */
async function resume(first: Surroundings, then: Surroundings) {
  const { settings } = await load(first);
  const { configuration, task } = settings;
  const recorded: RecordedRun = { configuration, task, workingDirectory: null };
  return await load({ ...then, purpose: "resume", recorded });
}

const first: Surroundings = {
  flags: {
    instruction: ["the task"],
    max_steps: ["10"],
    tools: ["fs/*"],
    tool_timeout: ["5s"],
    allow_read: ["docs"],
    deadline: ["1m"],
    max_memory: ["512MiB"],
    system: ["s.md"],
  },
  files: { "s.md": "rules" },
};

Deno.test("loadSettings: a resumed run keeps what it was recorded with", async () => {
  const { settings, problems } = await resume(first, {
    // Neither the environment nor a found file of now counts.
    env: { AGENT_MAX_STEPS: "99" },
    files: { "agentd.yaml": "limits: { max_steps: 77 }\n" },
  });
  assert.deepEqual(problems, []);
  assert.equal(settings.limits.maxSteps, 10);
  assert.deepEqual(settings.tools.grant, ["fs/*"]);
  assert.equal(settings.tools.timeoutMs, 5000);
  assert.equal(settings.servers[0]!.name, "fs");
  assert.equal(settings.task.instruction, "the task");
  // Its file is gone by now; the record has the text.
  assert.equal(settings.task.system, "rules");
});

Deno.test("loadSettings: +N adds to what was recorded, a plain value replaces it", async () => {
  const rows: [
    flags: Record<string, string[]>,
    get: (limits: object) => unknown,
    value: unknown,
  ][] = [
    [{ max_steps: ["+20"] }, (limits) => (limits as { maxSteps: number }).maxSteps, 30],
    [{ max_steps: ["20"] }, (limits) => (limits as { maxSteps: number }).maxSteps, 20],
    [{ deadline: ["+90s"] }, (limits) => (limits as { deadlineMs: number }).deadlineMs, 150_000],
    [
      { max_memory: ["+512MiB"] },
      (limits) => (limits as { memoryBytesMax: number }).memoryBytesMax,
      1024 ** 3,
    ],
  ];
  for (const [flags, get, value] of rows) {
    const { settings } = await resume(first, { flags });
    assert.equal(get(settings.limits), value, JSON.stringify(flags));
  }
  const { problems } = await resume(first, { flags: { max_steps: ["+x"], mode: ["+1"] } });
  assert.deepEqual(problems, [
    '--max-steps: "+x" is not a whole number, 1 or more',
    '--mode: "+1" is not one of once, loop, reactive, schedule',
  ]);
});

Deno.test("loadSettings: a named file and flags change a resumed run", async () => {
  const { settings } = await resume(first, {
    flags: { config: ["c.yaml"], tools: ["!fs/write"] },
    files: { "c.yaml": "limits: { max_tokens: 5000 }\n" },
  });
  assert.equal(settings.limits.maxTokens, 5000);
  assert.deepEqual(settings.tools.grant, ["*", "!fs/write"]);
});

Deno.test("loadSettings: a credential that the record does not hold is asked for again", async () => {
  const servers = JSON.stringify({
    mcpServers: { a: { command: "x", env: { API_KEY: "5ecret" } } },
  });
  const given: Surroundings = {
    flags: { instruction: ["x"], mcp_config: ["m.json"] },
    files: { "m.json": servers },
  };
  const { problems } = await resume(given, {});
  assert.equal(problems.length, 1);
  assert.match(
    problems[0]!,
    /mcp_servers\.a\.env\.API_KEY: the record does not hold this credential/,
  );
  const again = await resume(given, { flags: { mcp_config: ["m.json"] }, files: given.files });
  assert.deepEqual(again.problems, []);
});
