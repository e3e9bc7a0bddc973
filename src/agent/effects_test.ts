import assert from "node:assert/strict";
import { tool } from "../../tests/fakes/simulation.ts";
import { success } from "../core/outcome.ts";
import { systemDigest } from "../sys/digest.ts";
import type { CommandOutcome } from "../wire/worker.ts";
import { type EffectDeps, executeCall, runDeclared } from "./effects.ts";
import type { PlannedCall } from "./plan.ts";

const never = new AbortController().signal;

/** What a check comes to that printed so, its two streams having been read in this order. */
async function checked(stdout: string, stderr: string, output: string) {
  const outcome: CommandOutcome = {
    exitCode: 1,
    timedOut: false,
    output,
    stdout,
    stderr,
    totalBytes: output.length,
    failure: null,
    durationMs: 1,
  };
  const deps = {
    payload: {
      task: { require: [], checks: [{ command: ["test"], when: "turn", timeoutMs: 1 }] },
      servers: [],
    },
    broker: { runCheck: () => Promise.resolve(outcome) },
    digest: systemDigest,
    mask: (text: string) => text,
  } as unknown as EffectDeps;
  const [result] = await runDeclared(deps, "turn", never, null);
  return result!;
}

Deno.test("runDeclared: in what order a check's two streams were read is no news", async () => {
  const one = await checked("a\nb\n", "warning\n", "a\nb\nwarning\n");
  const other = await checked("a\nb\n", "warning\n", "a\nwarning\nb\n");
  assert.equal(one.digest, other.digest);
  const moved = await checked("a\n", "b\nwarning\n", "a\nb\nwarning\n");
  assert.notEqual(one.digest, moved.digest);
  const later = await checked("a\nb\n", "warning at 10:11:12\n", "");
  assert.equal((await checked("a\nb\n", "warning at 10:11:13\n", "")).digest, later.digest);
});

Deno.test("runDeclared: the graded line is the last of either stream", async () => {
  const rows: [stdout: string, stderr: string, graded: number | undefined][] = [
    ["x\nPROGRESS 3/10\n", "late warning\n", 3],
    ["x\n", "late\nPROGRESS 4/10\n", 4],
    ["PROGRESS 3/10\nx\n", "", undefined],
    ["PROGRESS 5/10\n", "PROGRESS 4/10\n", 5],
  ];
  for (const [stdout, stderr, graded] of rows) {
    for (const output of [stdout + stderr, stderr + stdout]) {
      assert.equal((await checked(stdout, stderr, output)).progress?.done, graded);
    }
  }
});

Deno.test("executeCall: where an answer says what of it may be new, the rest is no news", async () => {
  const digestOf = async (content: string, evidence?: string) => {
    const parts = [{ type: "text" as const, text: content }];
    const result = success({ parts, structured: null, isError: false });
    const deps = {
      clock: { monotonicMs: () => 0 },
      telemetry: { emit: () => {} },
      hooks: {
        beforeAction: (call: PlannedCall) => Promise.resolve(success(call.arguments)),
        afterObservation: (_call: PlannedCall, heard: unknown) => Promise.resolve(heard),
      },
      selfTools: { call: () => Promise.resolve({ result, evidence }) },
      digest: systemDigest,
      mask: (text: string) => text,
    } as unknown as EffectDeps;
    const call: PlannedCall = {
      call: "c1-1",
      tool: tool("self/subagent_spawn"),
      arguments: {},
      effect: "side_effect",
      showBytesMax: 1_024,
      mediaBytesMax: 0,
      mediaMax: 0,
    };
    return (await executeCall(deps, call, "key", never)).digest;
  };
  assert.notEqual(await digestOf("child 1"), await digestOf("child 2"));
  assert.equal(await digestOf("child 1", "done"), await digestOf("child 2", "done"));
  assert.notEqual(await digestOf("child 1", "done"), await digestOf("child 1", "failed"));
});
