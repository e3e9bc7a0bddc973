import assert from "node:assert/strict";
import { ManualClock } from "../../tests/fakes/manual_clock.ts";
import { assertGone } from "../../tests/supervised/harness.ts";
import { HOOK_OUTPUT_BYTES_MAX, HOOK_TIMEOUT_MS } from "../core/limits.ts";
import type { JsonObject } from "../core/json.ts";
import { Vault } from "../core/secret.ts";
import { systemProcess } from "../sys/process.ts";
import type { AgentPayload, HookSettings } from "../wire/payload.ts";
import type { CommandOutcome, HookOutcome, ToWorker } from "../wire/worker.ts";
import { Desk, hookOutcome } from "./desk.ts";
import { Servers } from "./servers.ts";

/** A desk over real processes and a clock moved by hand; gives the next hook's outcome. */
function openDesk(clock: ManualClock, on_stop: string[][]) {
  const hooks: HookSettings = {
    before_action: [],
    after_observation: [],
    before_compaction: [],
    on_stop,
  };
  const payload = { hooks, workingDirectory: "/", servers: [] } as unknown as AgentPayload;
  const answered = Promise.withResolvers<HookOutcome>();
  const vault = new Vault();
  const telemetry = { emit: () => {} };
  const program = { agentCommand: () => [], serverCommand: () => [] } as never;
  const deps = {
    payload,
    vault,
    environment: { PATH: Deno.env.get("PATH")! },
    groupId: -1,
    clock,
    process: systemProcess,
    telemetry,
  };
  const desk = new Desk({
    ...deps,
    servers: new Servers({ ...deps, program }),
    toSupervisor: () => {},
    toWorker: (message: ToWorker) => {
      if (message.type === "hook_ended") answered.resolve(message.outcome);
    },
    up: () => {},
    ended: () => {},
    failed: () => {},
  });
  const input: JsonObject = {};
  desk.receive({ type: "run_hook", id: 1, event: "on_stop", index: 0, input });
  return { desk, outcome: answered.promise };
}

/** Until the command is there: its time limit is the clock's timer. */
async function untilStarted(clock: ManualClock): Promise<void> {
  while (clock.pending === 0) await new Promise((resolve) => setTimeout(resolve, 0));
}

Deno.test("Desk: a hook has 10 seconds, to the millisecond, and its whole tree dies then", async () => {
  assert.equal(HOOK_TIMEOUT_MS, 10_000);
  const clock = new ManualClock();
  const mark = `600.${Math.floor(Math.random() * 1e9)}`;
  // A shell that outlives its child for a moment would say on stderr how that ended.
  const script = `exec 2>/dev/null; sleep ${mark} & sleep ${mark}`;
  const { outcome } = openDesk(clock, [["sh", "-c", script]]);
  let ended = false;
  void outcome.then(() => ended = true);
  await untilStarted(clock);
  clock.advance(9_999);
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(ended, false);
  clock.advance(1);
  const { verdict, reason } = await outcome;
  assert.deepEqual([verdict, reason], ["failed", "timed out"]);
  await assertGone(`sleep ${mark}`);
});

Deno.test("Desk.stop: a hook under way is ended", async () => {
  const clock = new ManualClock();
  const { desk, outcome } = openDesk(clock, [["sleep", "600"]]);
  await untilStarted(clock);
  desk.stop();
  assert.equal((await outcome).verdict, "failed");
});

Deno.test("hookOutcome: what exit code, output and stderr mean", () => {
  const end = (more: Partial<CommandOutcome>): CommandOutcome => ({
    exitCode: 0,
    timedOut: false,
    output: "",
    totalBytes: 0,
    failure: null,
    durationMs: 5,
    stdout: "",
    stderr: "",
    ...more,
  });
  const rows: [Partial<CommandOutcome>, Omit<HookOutcome, "durationMs">][] = [
    [{}, { verdict: "continue", replacement: null, ignored: null, reason: "" }],
    [{ stdout: ' {"a":1}\n' }, {
      verdict: "continue",
      replacement: { a: 1 },
      ignored: null,
      reason: "",
    }],
    [{ stdout: "fine\n" }, {
      verdict: "continue",
      replacement: null,
      ignored: 'it printed no JSON but "fine"; it is not used',
      reason: "",
    }],
    [{ stdout: '{"a":1}', totalBytes: HOOK_OUTPUT_BYTES_MAX }, {
      verdict: "continue",
      replacement: { a: 1 },
      ignored: null,
      reason: "",
    }],
    [{ stdout: '{"a":1}', totalBytes: HOOK_OUTPUT_BYTES_MAX + 1 }, {
      verdict: "continue",
      replacement: null,
      ignored: `it printed ${
        HOOK_OUTPUT_BYTES_MAX + 1
      } bytes, at most ${HOOK_OUTPUT_BYTES_MAX} are read`,
      reason: "",
    }],
    [{ exitCode: 2, stderr: " no\n", stdout: '{"a":1}' }, {
      verdict: "block",
      replacement: null,
      ignored: null,
      reason: "no",
    }],
    [{ exitCode: 1 }, { verdict: "failed", replacement: null, ignored: null, reason: "exit 1" }],
    [{ exitCode: null }, {
      verdict: "failed",
      replacement: null,
      ignored: null,
      reason: "exit by signal",
    }],
    [{ exitCode: null, timedOut: true, stderr: "slow" }, {
      verdict: "failed",
      replacement: null,
      ignored: null,
      reason: "timed out: slow",
    }],
    [{ exitCode: null, failure: "the command x does not exist" }, {
      verdict: "failed",
      replacement: null,
      ignored: null,
      reason: "the command x does not exist",
    }],
  ];
  for (const [given, expected] of rows) {
    const { durationMs, ...outcome } = hookOutcome(end(given));
    assert.equal(durationMs, 5);
    assert.deepEqual(outcome, expected);
  }
});
