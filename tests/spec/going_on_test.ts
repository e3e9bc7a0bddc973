/** From outside: who may go on with a record, from where, and under which terms. */

import assert from "node:assert/strict";
import type { Script } from "../fakes/model_server_process.ts";
import { programs } from "../program.ts";
import { withPlace } from "./recorded_run.ts";

const read = (path: string) => ({ calls: [{ name: "fs__read", arguments: { path } }] });

for (const program of programs()) {
  Deno.test(`fork (${program.name}): goes on under the terms that held in that iteration`, () => {
    const script: Script = { replies: [read("a.txt"), read("b.txt")] };
    return withPlace(program, script, async ({ agentd, url, script, completions }) => {
      const job = ["--allow-read=.", "--max-steps", "2", "--run-id", "job"];
      await agentd(7, "run", "Work", "--intelligence", url, ...job);
      const later = [read("a.txt"), {
        calls: [{ name: "fs__stat", arguments: { path: "a.txt" } }],
      }];
      await script({ replies: [...later, { text: "The end." }] });
      await agentd(0, "resume", "job", "--max-steps", "+8", "--model", "other");
      await script({ replies: [read("a.txt"), { text: "Another end." }] });
      const fork = ["replay", "job", "--with", "model", "--output", "json", "--from"];
      const { json } = await agentd(0, ...fork, "4");
      assert.deepEqual([json.status, json.result, json.usage.steps], [
        "completed",
        "Another end.",
        5,
      ]);
      assert.equal((await completions())[0]!.body.model, "other");
      for (const other of [["--until", "3"], ["--show", "context"]]) {
        const { stderr } = await agentd(2, ...fork, "4", ...other);
        assert.match(
          stderr,
          new RegExp(`^agentd: ${other[0]} is of a replay; a fork takes --from`),
        );
      }
      // Before the resume nothing of it holds.
      await script({ replies: [read("a.txt")] });
      const first = await agentd(7, ...fork, "2");
      assert.deepEqual([first.json.status, first.json.usage.steps], ["exhausted_steps", 2]);
      assert.equal((await completions())[0]!.body.model, "fake-model");
    });
  });

  Deno.test(`resume, fork (${program.name}): a subagent does not go on without its run`, () => {
    const script: Script = {
      routes: [{ when: "CHILD", replies: [read("a.txt")], loop: true }],
      replies: [
        {
          calls: [{
            name: "subagent_spawn",
            arguments: { objective: "CHILD", limits: { max_steps: 1 } },
          }],
        },
        { text: "Done." },
      ],
    };
    return withPlace(program, script, async ({ agentd, runs, url }) => {
      const job = ["--allow-read=.", "--run-id", "job"];
      await agentd(0, "run", "Work", "--intelligence", url, ...job);
      const child = `${runs}/job/agents/0.1`;
      const before = Deno.readTextFileSync(`${child}/record.jsonl`);
      const why = /it is the subagent 0\.1 of a run: only the whole run goes on\n$/;
      assert.match((await agentd(2, "resume", child, "--max-steps", "+5")).stderr, why);
      const fork = await agentd(2, "replay", child, "--from", "1", "--with", "model");
      assert.match(fork.stderr, why);
      assert.equal(Deno.readTextFileSync(`${child}/record.jsonl`), before);
      await agentd(0, "replay", child);
      assert.deepEqual([...Deno.readDirSync(runs)].map((entry) => entry.name), ["job"]);
    });
  });

  Deno.test(`resume (${program.name}): of two that read the same record one goes on`, {
    ignore: Deno.build.os === "windows",
  }, () =>
    withPlace(program, { replies: [read("a.txt")] }, async (place) => {
      const { agentd, project, runs, url, script } = place;
      const job = ["--allow-read=.", "--max-steps", "1", "--run-id", "job"];
      await agentd(7, "run", "Work", "--intelligence", url, ...job);
      await script({ replies: [{ text: "The end." }], loop: true });
      await new Deno.Command("mkfifo", { args: [`${project}/token`] }).output();
      const more = ["resume", "job", "--max-steps", "+5"];
      // It has read the record, and waits for its token.
      const slow = agentd(2, ...more, "--token-file", "token");
      const pipe = await Deno.open(`${project}/token`, { write: true });
      assert.equal((await agentd(0, ...more)).stdout, "The end.\n");
      const record = Deno.readTextFileSync(`${runs}/job/record.jsonl`);
      await pipe.write(new TextEncoder().encode("s3cr3t-token\n"));
      pipe.close();
      assert.match(
        (await slow).stderr,
        /^agentd: Cannot resume run job: its record has changed since it was read; look again$/m,
      );
      assert.equal(Deno.readTextFileSync(`${runs}/job/record.jsonl`), record);
    }));
}
