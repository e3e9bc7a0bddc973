import assert from "node:assert/strict";
import { systemClock } from "../sys/clock.ts";
import { systemFiles } from "../sys/files.ts";
import { systemProcess } from "../sys/process.ts";
import { Vault } from "../core/secret.ts";
import type { ProgramPort } from "../ports/self.ts";
import type { Status } from "../wire/result.ts";
import { NO_PERMISSIONS } from "../wire/permissions.ts";
import { SettlingProcess } from "../../tests/fakes/settling_process.ts";
import { makeSettings } from "../../tests/supervised/settings.ts";
import { assertGone, posixTest, withDirectory } from "../../tests/supervised/harness.ts";
import { Agent } from "./agent.ts";
import { rootPayload } from "./payload.ts";
import type { ChildPlan } from "./state.ts";

const HOSTILE = decodeURIComponent(new URL("../../tests/hostile/", import.meta.url).pathname);

interface Row {
  script: string;
  does?: "nothing" | "stop" | "kill";
  plan?: Partial<ChildPlan>;
  memoryBytesMax?: number;
  status: Status;
  reason: RegExp;
  events: string[];
}

const soonMs = 700;

const rows: Row[] = [
  {
    script: "ignore_term",
    plan: { startTimeoutMs: soonMs },
    status: "crashed",
    reason: /ready in time/,
    events: ["subagent.stuck", "subagent.signal", "subagent.signal"],
  },
  {
    script: "ignore_term",
    does: "stop",
    status: "cancelled",
    reason: /sigterm/,
    events: ["subagent.signal", "subagent.signal"],
  },
  {
    script: "ignore_term",
    does: "kill",
    status: "cancelled",
    reason: /sigterm/,
    events: ["subagent.signal"],
  },
  { script: "fork_and_exit", status: "crashed", reason: /code 0 without a result/, events: [] },
  {
    script: "leave_group",
    does: "stop",
    status: "cancelled",
    reason: /sigterm/,
    events: ["subagent.signal", "subagent.signal"],
  },
  {
    script: "leave_often",
    does: "kill",
    status: "cancelled",
    reason: /sigterm/,
    events: ["subagent.signal", "subagent.signal"],
  },
  {
    script: "leave_deeper",
    does: "kill",
    status: "cancelled",
    reason: /sigterm/,
    events: ["subagent.signal", "subagent.signal"],
  },
  {
    script: "spin",
    plan: { deadlineMs: soonMs },
    status: "deadline",
    reason: /deadline/,
    events: ["limit.exceeded", "subagent.signal"],
  },
  // Who floods may die of its pipe, which nobody reads any more, before it is signalled.
  { script: "flood", status: "crashed", reason: /not JSON/, events: [] },
  {
    script: "flood_no_line",
    status: "crashed",
    reason: /over 8388608 bytes/,
    events: [],
  },
  {
    script: "close_stdout",
    status: "crashed",
    reason: /lived on/,
    events: ["subagent.signal", "subagent.signal"],
  },
  {
    script: "stop_itself",
    plan: { startTimeoutMs: soonMs },
    status: "crashed",
    reason: /ready in time/,
    events: ["subagent.stuck", "subagent.signal", "subagent.signal"],
  },
  {
    script: "eat_memory",
    memoryBytesMax: 200 * 1024 * 1024,
    status: "crashed",
    reason: /^memory: .* at most 200MiB/,
    events: ["limit.exceeded", "subagent.signal"],
  },
  {
    script: "wrong_frame",
    status: "crashed",
    reason: /unknown type "obey"/,
    events: ["subagent.signal"],
  },
  {
    script: "future_frame",
    status: "crashed",
    reason: /version 2, not 1/,
    events: ["subagent.signal"],
  },
  {
    script: "lie",
    status: "crashed",
    reason: /result.status is "triumphant"/,
    events: ["subagent.signal"],
  },
  {
    script: "linger",
    status: "completed",
    reason: /done/,
    events: ["subagent.signal", "subagent.signal"],
  },
  { script: "exit_silently", status: "crashed", reason: /code 0 without a result/, events: [] },
  {
    script: "no_such_script",
    status: "crashed",
    reason: /exited with code 2|code 127/,
    events: [],
  },
];

for (const row of rows) {
  const name = `Agent: ${row.script}${
    row.does ? `, ${row.does}` : ""
  }: ${row.status}, nothing left`;
  posixTest(name, () => withDirectory((directory) => check(row, directory)));
}

async function check(row: Row, directory: string): Promise<void> {
  const events: string[] = [];
  const program: ProgramPort = {
    standalone: false,
    command: "sh",
    code: [],
    environment: {},
    args: () => [`${HOSTILE}${row.script}.sh`, directory],
  };
  await using process = new SettlingProcess();
  const agent = new Agent(
    {
      clock: systemClock,
      files: systemFiles,
      process,
      program,
      env: (name) => Deno.env.get(name),
      wrapper: [],
      telemetry: { emit: (event) => events.push(event) },
      vault: new Vault(),
      mask: new Vault(),
    },
    { ready: () => {}, progress: () => {}, frame: () => {} },
  );
  const settings = makeSettings({ script: {}, directory });
  const payload = rootPayload(
    settings,
    {
      runId: "run",
      agentId: "agent",
      path: "0",
      depth: 0,
      directory: `${directory}/runs/run`,
      traceId: "0".repeat(32),
      parentSpanId: null,
    },
    { kind: "fresh" },
    Date.now() + 60_000,
  );
  const nowMs = performance.now();
  const { deadlineMs = 60_000, ...plan } = row.plan ?? {};
  agent.start(payload, NO_PERMISSIONS, {
    startTimeoutMs: 60_000,
    progressTimeoutMs: 60_000,
    cancelRungMs: 300,
    ...plan,
    deadlineMs: nowMs + deadlineMs,
  });
  if (row.does === "stop" || row.does === "kill") {
    await untilRunning(agent.pid!, row.script, directory);
    row.does === "stop" ? agent.stop("sigterm") : agent.kill("sigterm");
  }
  let watching = row.memoryBytesMax !== undefined;
  const watched = (async () => {
    while (watching) agent.observe(await process.table(), row.memoryBytesMax!);
  })();
  const result = await agent.ended;
  watching = false;
  await watched;
  assert.equal(result.status, row.status);
  assert.match(result.reason, row.reason);
  for (const event of row.events) assert.ok(events.includes(event), `${event} in ${events}`);
  const signals = (list: string[]) => list.filter((event) => event === "subagent.signal").length;
  assert.ok(signals(events) >= signals(row.events), events.join());
  await assertGone(directory);
  const last = Deno.readTextFileSync(`${directory}/runs/run/record.jsonl`).trimEnd().split("\n").at(
    -1,
  )!;
  assert.equal(JSON.parse(last).type, "run.ended");
  assert.equal(JSON.parse(last).status, row.status);
}

/** Until the script itself, or the stray that it makes, shows in the process table. */
async function untilRunning(pid: number, script: string, directory: string): Promise<void> {
  const stray = `stray-of-${directory}`;
  for (;;) {
    const rows = await systemProcess.table();
    if (
      script.startsWith("leave_") &&
      rows.some((row) => row.command.includes(stray) && row.sessionId !== pid)
    ) return;
    if (
      !script.startsWith("leave_") &&
      rows.some((row) => row.pid === pid && row.command.includes(script))
    ) return;
  }
}
