/** The record from outside: what a record gives back once its run is over. */

import assert from "node:assert/strict";
import { Validator } from "@cfworker/json-schema";
import { programs } from "../program.ts";
import schema from "../schemas/atif-1.8.schema.json" with { type: "json" };
import { withRun } from "./recorded_run.ts";

for (const program of programs()) {
  Deno.test(`record (${program.name}): listed, replayed, inspected, without a model`, () =>
    withRun(program, async ({ agentd, completions, runs }) => {
      const before = (await completions()).length;
      const [run] = JSON.parse((await agentd(0, "runs", "--output", "json")).stdout);
      assert.equal(run.status, "completed");
      assert.equal(run.steps, 4);
      assert.equal(run.instruction, "Say what is there");
      const { stdout } = await agentd(0, "replay", run.run_id.slice(0, 20));
      assert.match(stdout, /replayed identically: .*4 steps; no model call, no tool call\n$/);
      const trace = JSON.parse((await agentd(0, "inspect", "last", "--json")).stdout);
      assert.equal(trace.first_non_advancing, 3);
      assert.deepEqual(
        trace.agents[0].iterations.map((each: { verdict: string }) => each.verdict),
        ["advanced", "advanced", "repeated", "answered"],
      );
      const table = (await agentd(0, "inspect", "last")).stdout;
      assert.match(table, /^3 +fs\/read .*repeated .*<- first without new evidence$/m);
      assert.match(table, /^Ended completed: /m);
      assert.equal((await completions()).length, before);
      const refused = await agentd(2, "resume", "last");
      assert.match(refused.stderr, /it ended completed, and nothing is left to do/);
      assert.equal(Deno.statSync(`${runs}/${run.run_id}/record.jsonl`).mode! & 0o777, 0o600);
    }));

  Deno.test(`record (${program.name}): what the model saw, and a fork from there`, () =>
    withRun(program, async ({ agentd, url, runs, script }) => {
      const shown = await agentd(0, "replay", "last", "--until", "2", "--show", "context");
      assert.match(shown.stdout, /^context [0-9a-f]{16} of iteration 2\n=== system\n/);
      assert.match(shown.stdout, /=== assistant\nI look\.\n-> fs__list /);
      const [old] = [...Deno.readDirSync(runs)].map((entry) => entry.name);
      const text = Deno.readTextFileSync(`${runs}/${old}/record.jsonl`);
      await script({ replies: [{ text: "Another end." }] });
      const fork = ["--from", "3", "--with", "model", "--intelligence", url];
      assert.equal((await agentd(0, "replay", "last", ...fork)).stdout.trim(), "Another end.");
      assert.equal(Deno.readTextFileSync(`${runs}/${old}/record.jsonl`), text);
      const listed = JSON.parse((await agentd(0, "runs", "--output", "json")).stdout);
      assert.equal(listed.length, 2);
      const forked = listed.find((run: { run_id: string }) => run.run_id !== old);
      assert.equal(forked.steps, 3);
      await agentd(0, "replay", forked.run_id);
    }));

  Deno.test(`record (${program.name}): exported, imported, as a page, pruned`, () =>
    withRun(program, async ({ agentd, project }) => {
      const atif = (await agentd(0, "inspect", "last", "--format", "atif")).stdout;
      const checked = new Validator(schema as object, "2020-12", false).validate(JSON.parse(atif));
      assert.deepEqual(checked.errors, []);
      await Deno.writeTextFile(`${project}/run.atif.json`, atif);
      const judged = await agentd(0, "inspect", "--import", "run.atif.json", "--json");
      assert.equal(JSON.parse(judged.stdout).first_non_advancing, 3);
      const openai = JSON.parse((await agentd(0, "inspect", "last", "--format", "openai")).stdout);
      assert.equal(openai.messages.at(-1).content, "The file says hello.");
      const otlp = JSON.parse((await agentd(0, "inspect", "last", "--format", "otlp")).stdout);
      assert.equal(otlp.resourceSpans[0].scopeSpans[0].spans.length, 1 + 4 + 3);
      await agentd(0, "inspect", "last", "--html", "run.html");
      assert.match(await Deno.readTextFile(`${project}/run.html`), /^<!DOCTYPE html>/);
      assert.match((await agentd(2, "inspect", "--import", "a.txt")).stderr, /it is not JSON/);
      const pruned = await agentd(0, "runs", "--prune", "--keep", "0");
      assert.match(pruned.stdout, /^removed .*\n1 of 1 runs removed, .* freed\n$/);
    }));

  Deno.test(`record (${program.name}): damage and unknown runs are one line and the right code`, () =>
    withRun(program, async ({ agentd, project, runs }) => {
      const [id] = [...Deno.readDirSync(runs)].map((entry) => entry.name);
      const path = `${runs}/${id}/record.jsonl`;
      const lines = Deno.readTextFileSync(path).split("\n");
      lines[6] = lines[6]!.replace("a", "b");
      Deno.writeTextFileSync(path, lines.join("\n"));
      assert.match((await agentd(1, "replay", "last")).stdout, /first divergence at line 7: /);
      assert.match((await agentd(1, "inspect", "last")).stderr, /line 7: /);
      assert.match((await agentd(2, "resume", "last")).stderr, /line 7: /);
      assert.match(
        (await agentd(2, "replay", "nope")).stderr,
        /^agentd: Cannot find the run "nope"/,
      );
      lines[0] = lines[0]!.replace('"v":1', '"v":9');
      Deno.writeTextFileSync(path, lines.join("\n"));
      const version =
        /^agentd: Cannot \w+ run \S+: .*line 1: it has format version 9; .* up to 1\n$/;
      for (const command of ["replay", "resume", "inspect"]) {
        const refused = await agentd(2, command, "last");
        assert.match(refused.stderr, version);
        assert.equal(refused.stdout, "");
      }
      for (const format of ["atif", "openai", "otlp"]) {
        assert.match((await agentd(2, "inspect", "last", "--format", format)).stderr, version);
      }
      await Deno.writeTextFile(`${project}/page.html`, "mine");
      assert.match((await agentd(2, "inspect", "last", "--html", "page.html")).stderr, version);
      assert.equal(await Deno.readTextFile(`${project}/page.html`), "mine");
    }));
}
