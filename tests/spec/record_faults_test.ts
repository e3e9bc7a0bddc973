/** Commands on records, from outside: what cannot be done is one clear line, the right exit code, no change. */

import assert from "node:assert/strict";
import { programs } from "../program.ts";
import { runProgram } from "./harness.ts";
import { type Place, withPlace, withRun } from "./recorded_run.ts";

/** A run with one turn behind it that waits for its model, and what is done meanwhile. */
function whileRunning(place: Place, program: ReturnType<typeof programs>[number]) {
  return async (act: () => Promise<void>): Promise<void> => {
    const ran = await runProgram(program, {
      args: [
        ...["run", "Wait", "--intelligence", place.url, "--allow-read=.", "--run-id", "going"],
        ...["--run-dir", place.runs, "--log-format", "json"],
      ],
      cwd: place.project,
      on: { event: "loop.step", act: (started) => act().finally(() => started.signal("SIGTERM")) },
    });
    assert.equal(ran.code, 143, ran.stderr.slice(-2_000));
  };
}

const HANGING = {
  replies: [{ calls: [{ name: "fs__list", arguments: {} }] }, { hang: true, repeat: 4 }],
};

for (const program of programs()) {
  Deno.test(`faults (${program.name}): a RUN that is none, or not one, for every command`, () =>
    withRun(program, async ({ agentd, runs, project }) => {
      const [id] = [...Deno.readDirSync(runs)].map((entry) => entry.name);
      await Deno.mkdir(`${runs}/${id!.slice(0, 20)}-other`);
      await Deno.copyFile(
        `${runs}/${id}/record.jsonl`,
        `${runs}/${id!.slice(0, 20)}-other/record.jsonl`,
      );
      await Deno.mkdir(`${runs}/no-record`);
      const rows: [run: string, line: RegExp][] = [
        ["nope", /Cannot find the run "nope": there is none of that id in /],
        ["", /Cannot find the run ""/],
        ["no-record", /Cannot find the run "no-record"/],
        ["../outside", /Cannot find a run at ".*outside": no record\.jsonl there/],
        [".", /Cannot find a run at ".*": no record\.jsonl there/],
        ["\u001b[31mred", /Cannot find the run "\[31mred"/],
        [id!.slice(0, 20), /Cannot tell which run ".*" means: \S+, \S+$/],
      ];
      for (const command of ["inspect", "replay", "resume"]) {
        for (const [run, line] of rows) {
          const { stderr, stdout } = await agentd(2, command, run);
          assert.match(stderr.trimEnd(), line, command);
          assert.ok(
            stderr.startsWith("agentd: ") && stderr.trimEnd().split("\n").length === 1,
            stderr,
          );
          assert.equal(stdout, "");
        }
        assert.match((await agentd(2, command)).stderr, /^agentd: \w+ needs a RUN: /);
      }
      await Deno.writeTextFile(`${project}/page.html`, "mine");
      await agentd(2, "inspect", "nope", "--html", "page.html");
      assert.equal(await Deno.readTextFile(`${project}/page.html`), "mine");
      assert.match(
        (await agentd(2, "inspect", id!, "--html", "none/page.html")).stderr,
        /^agentd: Cannot write .*none\/page\.html: [^\n]*\n$/,
      );
      assert.match(
        (await agentd(2, "inspect", id!, "--json", "--format", "atif", "--follow")).stderr,
        /exclude each other/,
      );
    }));

  Deno.test(`faults (${program.name}): a damaged record is reported by its line, and read up to it`, () =>
    withRun(program, async ({ agentd, runs }) => {
      const [id] = [...Deno.readDirSync(runs)].map((entry) => entry.name);
      const path = `${runs}/${id}/record.jsonl`;
      const whole = Deno.readTextFileSync(path);
      const lines = whole.split("\n");
      const damage: [name: string, text: string, line: number][] = [
        ["not JSON", lines.with(11, "{ damaged").join("\n"), 12],
        ["changed", lines.with(11, lines[11]!.replace(/"ts":"..../, '"ts":"1999')).join("\n"), 12],
        ["missing", lines.toSpliced(11, 1).join("\n"), 12],
        ["binary", lines.with(11, "\0\u0001\u0002").join("\n"), 12],
      ];
      for (const [name, text, line] of damage) {
        Deno.writeTextFileSync(path, text);
        const replayed = await agentd(1, "replay", "last");
        assert.match(replayed.stdout, new RegExp(`first divergence at line ${line}: `), name);
        assert.match(replayed.stdout, /Replayed up to there: \d+ lines/);
        const inspected = await agentd(1, "inspect", "last");
        assert.match(inspected.stderr, new RegExp(`: line ${line}: [^\n]*\n$`), name);
        assert.match(inspected.stdout, /^1 +fs\/list/m);
        const exported = await agentd(1, "inspect", "last", "--format", "openai");
        assert.match(exported.stderr, new RegExp(`exported up to line ${line}: [^\n]*\n$`), name);
        assert.ok(exported.json.messages.length > 0);
        const resumed = await agentd(2, "resume", "last");
        assert.match(resumed.stderr, new RegExp(`^agentd: Cannot resume .*line ${line}: `), name);
        assert.equal(Deno.readTextFileSync(path), text);
      }
      // A torn last line is none of that: it is dropped, and said.
      Deno.writeTextFileSync(path, whole.slice(0, -9));
      const torn = await agentd(0, "replay", "last");
      assert.match(torn.stderr, /^agentd: .*: a torn last line of \d+ bytes was dropped\n$/);
      Deno.writeTextFileSync(path, "");
      assert.match((await agentd(2, "resume", "last")).stderr, /does not hold its start/);
      assert.match(
        (await agentd(2, "inspect", "last", "--format", "atif")).stderr,
        /does not hold its start/,
      );
    }));

  Deno.test(`faults (${program.name}): artifacts that are missing stop no command and no run`, () =>
    withPlace(program, {
      by: "turn",
      replies: [
        { calls: [{ name: "fs__read", arguments: { path: "big.txt", limit: 2_000 } }] },
        { text: "First.", calls: [{ name: "fs__list", arguments: {} }] },
        { calls: [{ name: "artifact_read", arguments: { id: "c1-1", offset: 0 } }] },
        { text: "All the same." },
      ],
    }, async ({ agentd, completions, project, runs, url }) => {
      await Deno.writeTextFile(`${project}/big.txt`, "a line of words and more\n".repeat(2_000));
      const model = ["--intelligence", url];
      await agentd(
        3,
        "run",
        "Read",
        ...model,
        "--allow-read=.",
        "--max-steps",
        "2",
        "--run-id",
        "a",
      );
      assert.ok(Deno.statSync(`${runs}/a/artifacts/c1-1`).size > 16 * 1024);
      await Deno.remove(`${runs}/a/artifacts`, { recursive: true });
      await agentd(0, "replay", "a");
      await agentd(0, "inspect", "a");
      await agentd(0, "inspect", "a", "--html", "a.html");
      for (const format of ["atif", "openai", "otlp"]) {
        await agentd(0, "inspect", "a", "--format", format);
      }
      await agentd(0, "resume", "a", "--max-steps", "+3");
      // What is gone is said to the model in one line; nothing pretends to be it.
      const last = JSON.stringify((await completions()).at(-1)!.body.messages.at(-1));
      assert.match(last, /\[error[^\]]*\].*The file of artifact c1-1 is missing; what was shown/);
      assert.ok(!last.includes("a line of words"));
    }));

  Deno.test(`faults (${program.name}): an import that is neither format is one line, exit 2`, () =>
    withPlace(program, {}, async ({ agentd, project }) => {
      const rows: [name: string, text: string | null][] = [
        ["empty.json", ""],
        ["text.json", "hello\n"],
        ["object.json", '{"a":1}'],
        ["list.json", "[1,2,3]"],
        ["cut.json", '{"messages":[{"role":"user"'],
        ["missing.json", null],
        [".", null],
      ];
      for (const [name, text] of rows) {
        if (text !== null) await Deno.writeTextFile(`${project}/${name}`, text);
        const { stderr, stdout } = await agentd(2, "inspect", "--import", name);
        assert.match(stderr, /^agentd: Cannot import [^\n]+\n$/, name);
        assert.equal(stdout, "");
      }
      assert.match(
        (await agentd(2, "inspect", "x", "--import", "list.json")).stderr,
        /--import judges a file in place of RUN/,
      );
    }));

  Deno.test(`running (${program.name}): is seen, followed, kept, and neither resumed nor pruned`, () =>
    withPlace(program, HANGING, async (place) => {
      const { agentd, project, runs } = place;
      let following: Promise<string> | undefined;
      await whileRunning(place, program)(async () => {
        assert.match((await agentd(0, "runs")).stdout, /^going .* \* running +1 /m);
        assert.match((await agentd(2, "resume", "going")).stderr, /it is still running\n$/);
        const pruned = await agentd(0, "runs", "--prune", "--keep", "0");
        assert.match(pruned.stdout, /^0 of 1 runs removed/);
        assert.match((await agentd(0, "inspect", "going")).stdout, /The run is still going on/);
        assert.match((await agentd(0, "replay", "going")).stdout, /replayed identically/);
        const child = new Deno.Command(program.command, {
          args: [...program.args, "inspect", "going", "--follow", "--run-dir", runs],
          cwd: project,
          stdin: "null",
          stdout: "piped",
          stderr: "null",
        }).spawn();
        // The first turn is shown while the second is waited for.
        const shown = Promise.withResolvers<void>();
        following = (async () => {
          let text = "";
          for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
            text += chunk;
            if (/^1 +fs\/list/m.test(text)) shown.resolve();
          }
          shown.resolve();
          assert.equal((await child.status).code, 0);
          return text;
        })();
        await shown.promise;
      });
      const text = await following!;
      assert.match(text, /^1 +fs\/list/m);
      assert.match(text, /^Ended cancelled: /m);
      assert.match((await agentd(0, "runs")).stdout, /^going .* cancelled +1 /m);
      const [row] = JSON.parse((await agentd(0, "runs", "--output", "json")).stdout);
      assert.ok(row.bytes > 1_000);
      await place.script({ replies: [{ text: "At last." }] });
      assert.equal((await agentd(0, "resume", "going")).stdout, "At last.\n");
      for (const keep of [[], ["--keep", "some"], ["--keep", "-1"]]) {
        await agentd(2, "runs", "--prune", ...keep);
      }
      await agentd(2, "runs", "--keep", "1");
      assert.match((await agentd(0, "runs", "--prune", "--keep", "1h")).stdout, /^0 of 1 runs/);
      assert.match(
        (await agentd(0, "runs", "--prune", "--keep", "0")).stdout,
        /1 of 1 runs removed/,
      );
      assert.deepEqual([...Deno.readDirSync(runs)], []);
    }));
}
