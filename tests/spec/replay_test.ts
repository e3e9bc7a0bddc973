/** Replay, from outside: the context shown is the one that was sent, forks, recordings. */

import assert from "node:assert/strict";
import { programs } from "../program.ts";
import type { LoggedRequest, Script } from "../fakes/model_server_process.ts";
import { type Place, withPlace, withRun } from "./recorded_run.ts";

// deno-lint-ignore no-explicit-any
type Loose = any;

/** Nine turns with stubs, a domain error, an invalid call, notes of the harness, calls side by side. */
const BUSY: Script = {
  replies: [
    { text: "Ünïcode 🎈", calls: [{ name: "fs__list", arguments: { path: "." } }] },
    {
      calls: [
        { name: "fs__read", arguments: { path: "a.txt" } },
        { name: "fs__read", arguments: { path: "nothing.txt" } },
      ],
    },
    { calls: [{ name: "fs__read", arguments: { path: "big.txt", limit: 2_000 } }] },
    { calls: [{ name: "fs__read", arguments: '{"path": 7, "broken' }] },
    { calls: [{ name: "fs__stat", arguments: { path: "a.txt" } }] },
    { calls: [{ name: "fs__read", arguments: { path: "a.txt" } }] },
    { text: "Not yet." },
    { calls: [{ name: "fs__write", arguments: { path: "b.txt", content: "b" } }] },
    { text: "Done." },
  ],
};

/** Every word of a request as it went over the wire, in order, without white space. */
function wordsSent(dialect: string, body: Loose): string {
  const words: unknown[] = [];
  const take = (content: Loose) => {
    for (const part of Array.isArray(content) ? content : [content ?? ""]) {
      if (typeof part === "string") words.push(part);
      else if (part.type === "text") words.push(part.text);
      else if (part.type === "tool_use") words.push(part.name, JSON.stringify(part.input));
      else if (part.type === "tool_result") take(part.content);
    }
  };
  if (dialect === "anthropic") take(body.system);
  for (const message of body.messages) {
    take(message.content);
    for (const call of message.tool_calls ?? []) {
      words.push(call.function.name, call.function.arguments);
    }
  }
  return words.join("").replace(/\s+/g, "");
}

/** The same of what `replay --show context` says. */
function wordsShown(shown: Loose): string {
  const words: string[] = [shown.system];
  for (const message of shown.messages) {
    if (message.role === "assistant") {
      words.push(message.text);
      for (const call of message.calls) words.push(call.name, call.arguments);
    } else {
      for (const part of message.parts) words.push(part.text);
      if (message.note) words.push(message.note);
    }
  }
  return words.join("").replace(/\s+/g, "");
}

function toolsSent(dialect: string, body: Loose): Loose[] {
  return (body.tools ?? []).map((tool: Loose) =>
    dialect === "anthropic"
      ? [tool.name, tool.description, tool.input_schema]
      : [tool.function.name, tool.function.description, tool.function.parameters]
  );
}

async function assertShown(place: Place, dialect: string, sent: LoggedRequest[]): Promise<void> {
  assert.equal(sent.length, BUSY.replies!.length);
  for (const [index, { body }] of sent.entries()) {
    const until = ["--until", String(index + 1), "--show", "context"];
    const { json } = await place.agentd(0, "replay", "last", ...until, "--output", "json");
    assert.equal(json.step, index + 1);
    assert.equal(wordsShown(json), wordsSent(dialect, body), `iteration ${index + 1}`);
    assert.deepEqual(
      json.tools.map((tool: Loose) => [tool.name, tool.description, tool.inputSchema]),
      toolsSent(dialect, body),
    );
  }
}

for (const program of programs()) {
  for (const dialect of ["openai", "anthropic"]) {
    Deno.test(`replay (${program.name}): --show context is what went over the wire, ${dialect}`, () =>
      withPlace(program, BUSY, async (place) => {
        await Deno.writeTextFile(`${place.project}/big.txt`, "a line of words\n".repeat(2_000));
        const model = ["--intelligence", place.url, "--dialect", dialect, "--model", "m"];
        const job = ["--allow-read=.", "--allow-write=.", "--keep-verbatim", "1"];
        await place.agentd(0, "run", "Work", ...model, ...job, "--check", "test -e b.txt");
        await assertShown(place, dialect, await place.completions());
        // The form for people holds the same words.
        const last = String(BUSY.replies!.length);
        const shown = await place.agentd(0, "replay", "last", "--until", last, "--show", "context");
        assert.match(shown.stdout, /^context [0-9a-f]{16} of iteration 9\n=== system\n/);
        for (const word of ["Ünïcode 🎈", "check `test -e b.txt` failed", '"path":"big.txt"']) {
          assert.ok(shown.stdout.includes(word), word);
        }
      }));
  }

  Deno.test(`replay (${program.name}): a fork begins with the very request of that iteration`, () =>
    withRun(program, async ({ agentd, completions, script, url }) => {
      const old = await completions();
      await script({ replies: [{ text: "Another end." }] });
      const fork = await agentd(
        0,
        ...["replay", "last", "--from", "3", "--with", "model", "--run-id", "fork"],
        ...["--intelligence", url, "--max-steps", "+7", "--output", "json"],
      );
      assert.deepEqual([fork.json.run_id, fork.json.result], ["fork", "Another end."]);
      assert.equal(fork.json.usage.steps, 3);
      const [first] = await completions();
      assert.deepEqual(first!.body.messages.slice(1), old[2]!.body.messages.slice(1));
      await agentd(0, "replay", "fork");
      // Taken already, or not there: nothing is made and nothing is overwritten.
      const again = ["replay", "last", "--with", "model", "--run-id"];
      await agentd(2, ...again, "fork", "--from", "2");
      const far = await agentd(2, ...again, "far", "--from", "9");
      assert.match(
        far.stderr,
        /^agentd: Cannot fork run \S+ at iteration 9: it made \d iterations$/m,
      );
      const half = await agentd(2, "replay", "last", "--from", "2");
      assert.match(half.stderr, /^agentd: --from N and --with model belong together/);
      assert.equal(JSON.parse((await agentd(0, "runs", "--output", "json")).stdout).length, 2);
    }));

  Deno.test(`recordings (${program.name}): --record-model, and the same run without an endpoint`, () =>
    withPlace(program, BUSY, async ({ agentd, completions, project, url }) => {
      await Deno.writeTextFile(`${project}/big.txt`, "a line of words\n".repeat(2_000));
      const job = [
        ...["run", "Work", "--allow-read=.", "--allow-write=.", "--check", "test -e b.txt"],
        ...["--output", "json"],
      ];
      const live = await agentd(0, ...job, "--intelligence", url, "--record-model", "model.jsonl");
      assert.equal(Deno.statSync(`${project}/model.jsonl`).mode! & 0o777, 0o600);
      const asked = (await completions()).length;
      await Deno.remove(`${project}/b.txt`);
      const replayed = await agentd(0, ...job, "--intelligence", "recorded:model.jsonl");
      assert.equal((await completions()).length, asked);
      assert.equal(Deno.readTextFileSync(`${project}/b.txt`), "b");
      for (const key of ["status", "result", "reason", "verification"]) {
        assert.deepEqual(replayed.json[key], live.json[key], key);
      }
      assert.equal(replayed.json.usage.steps, live.json.usage.steps);

      const other = job.map((word) => word === "Work" ? "Other work" : word);
      const uncovered = await agentd(4, ...other, "--intelligence", "recorded:model.jsonl");
      assert.equal(uncovered.json.abort, "intelligence");
      assert.match(uncovered.json.reason, /^uncovered: /);
      const text = Deno.readTextFileSync(`${project}/model.jsonl`);
      await Deno.writeTextFile(`${project}/model.jsonl`, text.slice(0, -20));
      const broken = await agentd(2, ...job, "--intelligence", "recorded:model.jsonl");
      assert.match(broken.stderr, /model\.jsonl/);
    }));
}
