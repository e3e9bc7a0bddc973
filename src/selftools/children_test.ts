import assert from "node:assert/strict";
import { ManualClock } from "../../tests/fakes/manual_clock.ts";
import { INLINE_RESULT_BYTES_MAX } from "../core/limits.ts";
import type { Observation } from "../agent/observation.ts";
import type { BrokerPort } from "../ports/broker.ts";
import { Artifacts } from "../record/artifacts.ts";
import { systemFiles } from "../sys/files.ts";
import { failedResult } from "../wire/result.ts";
import type { SelfToolAnswer } from "./answer.ts";
import { Children } from "./children.ts";

const never = new AbortController().signal;
const ROOM = 16 * 1024;

/** Children of a supervisor that grants every spawn, and remembers what it was asked. */
async function withChildren(
  act: (facts: {
    children: Children;
    clock: ManualClock;
    asked: string[];
    directory: string;
    spawn(disposition?: string): Promise<string>;
    end(id: string, result?: string): void;
  }) => Promise<void>,
): Promise<void> {
  const directory = await Deno.makeTempDir();
  const clock = new ManualClock();
  const asked: string[] = [];
  let spawned = 0;
  const refuse = () => Promise.reject(new Error("not asked for"));
  const broker: BrokerPort = {
    runCheck: refuse,
    runRequire: refuse,
    runHook: refuse,
    progress: () => {},
    request: (op) => {
      asked.push(op);
      const value = op === "spawn"
        ? { child_id: `id-${++spawned}`, path: `0.${spawned}` }
        : `${op} done`;
      return Promise.resolve({ ok: true, value });
    },
  };
  const children = new Children({
    broker,
    clock,
    artifacts: new Artifacts({ files: systemFiles, directory }),
  });
  try {
    await act({
      children,
      clock,
      asked,
      directory,
      spawn: async (disposition = "async") => {
        await children.spawn({ objective: "x", disposition }, never);
        return `id-${spawned}`;
      },
      end: (id, result = "found") =>
        children.ended({
          childId: id,
          path: id.replace("id-", "0."),
          status: "completed",
          result: { ...failedResult("completed", "done"), result },
        }),
    });
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}

function textOf(answer: SelfToolAnswer): string {
  assert.ok("result" in answer && answer.result.ok, JSON.stringify(answer));
  return answer.result.value.parts.map((part) => part.type === "text" ? part.text : "").join("\n");
}

function partialOf(answer: SelfToolAnswer): Extract<Observation, { class: "partial" }> {
  assert.ok("observation" in answer && answer.observation.class === "partial");
  return answer.observation;
}

Deno.test("Children: an await without names tells of each end once, detached ones left out", () =>
  withChildren(async ({ children, spawn, end }) => {
    const [one, two] = [await spawn(), await spawn()];
    await spawn("detach");
    end(one);
    const first = children.await({ ids: [one] }, never, null, ROOM);
    assert.match(textOf(await first), /"child_id":"id-1".*"result":"found"/);
    const rest = children.await({}, never, null, ROOM);
    end(two, "also");
    const told = textOf(await rest);
    assert.match(told, /"child_id":"id-2"/);
    assert.doesNotMatch(told, /id-1|id-3/);
    assert.match(textOf(await children.await({}, never, null, ROOM)), /no subagents to wait for/);
    // Named, it is told again, by id or by path.
    assert.match(textOf(await children.await({ ids: ["0.1"] }, never, null, ROOM)), /id-1/);
  }));

Deno.test("Children: time up is partial, and what does not fit is told with the next await", () =>
  withChildren(async ({ children, clock, spawn, end }) => {
    const ids = [await spawn(), await spawn(), await spawn()];
    for (const id of ids.slice(0, 2)) end(id, "y".repeat(400));
    const late = children.await({}, never, 50, 600);
    clock.advance(50);
    const partial = partialOf(await late);
    assert.equal(partial.done, "id-1");
    assert.equal(partial.missing, "still running: id-3; over, but no room here: id-2");
    assert.equal(partial.parts.length, 1);
    end(ids[2]!);
    const rest = textOf(await children.await({}, never, null, ROOM));
    assert.match(rest, /id-2.*\n.*id-3/);
    assert.doesNotMatch(rest, /id-1/);
    assert.equal(clock.pending, 0);
  }));

Deno.test("Children: a result at the bound is shown, one past it is an artifact with a summary", () =>
  withChildren(async ({ children, directory, spawn, end }) => {
    const [fits, large] = [await spawn(), await spawn()];
    end(fits, "x".repeat(INLINE_RESULT_BYTES_MAX));
    end(large, "x".repeat(INLINE_RESULT_BYTES_MAX + 1));
    const [one, two] = textOf(await children.await({}, never, null, ROOM)).split("\n")
      .map((line) => JSON.parse(line));
    assert.equal(one.result.length, INLINE_RESULT_BYTES_MAX);
    assert.deepEqual([two.result, two.bytes], [undefined, INLINE_RESULT_BYTES_MAX + 1]);
    assert.equal(two.artifact, "child-id-2");
    assert.equal(
      Deno.readTextFileSync(`${directory}/artifacts/child-id-2`).length,
      INLINE_RESULT_BYTES_MAX + 1,
    );
  }));

Deno.test("Children: what is new of a subagent is how it ended, not its name or its bill", () =>
  withChildren(async ({ children, end }) => {
    const evidence = async (id: string, result: string) => {
      const spawned = children.spawn({ objective: "x" }, never);
      end(id, result);
      return (await spawned).evidence;
    };
    const first = await evidence("id-1", "all tests pass");
    assert.ok(first !== undefined);
    assert.equal(await evidence("id-2", "all tests pass"), first);
    assert.notEqual(await evidence("id-3", "two tests fail"), first);
  }));

Deno.test("Children: an end that comes before the reply to its spawn is not lost", () =>
  withChildren(async ({ children, end }) => {
    const spawned = children.spawn({ objective: "x" }, never);
    end("id-1", "quick");
    assert.match(textOf(await spawned), /"result":"quick"/);
  }));

Deno.test("Children: a sync spawn that is withdrawn takes its subagent back", () =>
  withChildren(async ({ children, asked, clock }) => {
    const controller = new AbortController();
    const spawned = children.spawn({ objective: "x" }, controller.signal);
    await Promise.resolve();
    controller.abort();
    const answer = await spawned;
    assert.ok("result" in answer && !answer.result.ok);
    assert.equal(answer.result.failure.class, "cancelled");
    assert.deepEqual(asked, ["spawn", "child_cancel"]);
    assert.equal(clock.pending, 0);
  }));
