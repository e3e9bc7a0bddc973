/** Hooks from outside: what hooks are given, may change, block and are told, at each event. */

import assert from "node:assert/strict";
import { type Program, programs } from "../program.ts";
import { type Script, type ScriptReply, startModelServer } from "../fakes/model_server_process.ts";
import { type Ran, readOnlyRecord, runProgram, type RunSpec, withDirectory } from "./harness.ts";

// deno-lint-ignore no-explicit-any
type Loose = any;

interface Case {
  name: string;
  replies: ScriptReply[];
  /** The last reply answers for ever. */
  loop?: boolean;
  /** Files of the project; those that end in `.sh` are the hooks. */
  files: Record<string, string>;
  /** `EVENT=FILE`, in order. */
  hooks: string[];
  args?: string[];
  env?: Record<string, string>;
  on?: RunSpec["on"];
  code?: number;
  more(facts: Facts): void | Promise<void>;
}

interface Facts {
  ran: Ran;
  project: string;
  record: Loose[];
  /** What each hook was given, in order. */
  inputs: Loose[];
  /** `hook.result` lines of telemetry. */
  told: Loose[];
  /** Everything that the run left on disk. */
  kept: string;
  /** What the model was sent last, as text. */
  lastSent: string;
}

const RESOURCES = decodeURIComponent(
  new URL("../hostile/mcp_server.ts", import.meta.url).pathname,
);
const LOG = "tr -d '\\n' >> hooks.log; echo >> hooks.log; ";
const read = (path: string): ScriptReply => ({
  calls: [{ name: "fs__read", arguments: { path } }],
});
const DONE: ScriptReply = { text: "Done." };
const observed = (record: Loose[]) => record.find((line) => line.type === "call.observed");

const CASES: Case[] = [
  {
    name: "before_action: replaced arguments go to the next hook and to the tool",
    replies: [read("a.txt"), DONE],
    files: {
      "a.txt": "the letter a\n",
      "b.txt": "the letter b\n",
      "c.txt": "the letter c\n",
      "one.sh": `${LOG} echo '{"arguments":{"path":"b.txt"}}'`,
      "two.sh": `${LOG} echo '{"arguments":{"path":"c.txt"}}'`,
      "three.sh": LOG,
    },
    hooks: ["before_action=one.sh", "before_action=two.sh", "before_action=three.sh"],
    more: ({ inputs, record, ran }) => {
      assert.deepEqual(inputs.map((input) => input.arguments.path), ["a.txt", "b.txt", "c.txt"]);
      const { run_id } = ran.json;
      assert.deepEqual(inputs[0], {
        event: "before_action",
        run_id,
        agent_path: "0",
        call: "c1-1",
        tool: "fs/read",
        arguments: { path: "a.txt" },
      });
      assert.match(JSON.stringify(observed(record).observation), /the letter c/);
      // What is really sent is named before it is sent.
      const types = record.map((line) => line.type);
      const hooks = record.filter((line) => line.type === "hook.ran");
      assert.deepEqual(hooks.map((line) => line.arguments?.path), ["b.txt", "c.txt", undefined]);
      assert.ok(types.lastIndexOf("hook.ran") < types.indexOf("call.observed"));
    },
  },
  {
    name: "before_action: exit 2 blocks with its reason; hooks behind it are not asked",
    replies: [read("a.txt"), DONE],
    files: {
      "a.txt": "the letter a\n",
      "one.sh": "echo 'not today: ask again' >&2; exit 2",
      "two.sh": LOG,
    },
    hooks: ["before_action=one.sh", "before_action=two.sh"],
    more: ({ record, inputs, lastSent, told, kept }) => {
      const why = "blocked by a hook: not today: ask again";
      assert.deepEqual(observed(record).observation, { class: "refused", why });
      assert.match(lastSent, /\[refused\] blocked by a hook: not today: ask again/);
      assert.deepEqual(inputs, []);
      assert.ok(!kept.includes("the letter a"));
      assert.deepEqual(told.map((line) => [line.hook, line.verdict, line.err.message]), [
        ["before_action", "block", "not today: ask again"],
      ]);
    },
  },
  {
    name: "before_action: any other exit blocks too, and is logged",
    replies: [read("a.txt"), DONE],
    files: { "a.txt": "a\n", "one.sh": "echo oops >&2; exit 3" },
    hooks: ["before_action=one.sh"],
    more: ({ record, told }) => {
      const why = "blocked by a hook: exit 3: oops";
      assert.deepEqual(observed(record).observation, { class: "refused", why });
      assert.deepEqual([told[0].verdict, told[0].level], ["failed", "warn"]);
    },
  },
  {
    name: "before_action: a command that does not exist blocks, and says so",
    replies: [read("a.txt"), DONE],
    files: { "a.txt": "a\n" },
    hooks: ["before_action=./missing"],
    more: ({ record }) => {
      assert.match(observed(record).observation.why, /^blocked by a hook: .*missing/);
    },
  },
  {
    name: "before_action: garbage is one clear line and changes nothing",
    replies: [read("a.txt"), DONE],
    files: { "a.txt": "the letter a\n", "one.sh": "echo 'all { fine'" },
    hooks: ["before_action=one.sh"],
    more: ({ record, told }) => {
      assert.equal(observed(record).observation.class, "ok");
      assert.equal(told.length, 1);
      assert.deepEqual([told[0].verdict, told[0].level], ["continue", "warn"]);
      assert.equal(
        told[0].err.message,
        'it printed no JSON but "all { fine"; it is not used',
      );
    },
  },
  {
    name: "before_action: arguments that do not fit the tool block",
    replies: [read("a.txt"), DONE],
    files: { "a.txt": "a\n", "one.sh": `echo '{"arguments":{"path":7}}'` },
    hooks: ["before_action=one.sh"],
    more: ({ record }) => {
      const { observation } = observed(record);
      assert.equal(observation.class, "refused");
      assert.match(
        observation.why,
        /^blocked by a hook: its arguments do not fit the tool: .*path/,
      );
    },
  },
  {
    name: "after_observation: each replaces what the one before left; nothing keeps the original",
    replies: [read("a.txt"), DONE],
    files: {
      "a.txt": "call 555-0199 or 555-0123\n",
      "one.sh":
        `sed 's/555-0199/[one]/' | sed 's/.*"text":"\\(.*\\)"}}$/{"observation":{"text":"\\1"}}/'`,
      "two.sh":
        `tee -a hooks.log | sed 's/555-0123/[two]/' | sed 's/.*"text":"\\(.*\\)"}}$/{"text":"\\1"}/'`,
      // The shortest form.
      "three.sh": `sed 's/.*"text":"\\(.*\\)"}}$/{"observation":"\\1"}/' | sed 's/call/ring/'`,
    },
    hooks: ["after_observation=one.sh", "after_observation=two.sh", "after_observation=three.sh"],
    more: ({ record, inputs, kept, lastSent, ran }) => {
      assert.equal(inputs[0].observation.class, "ok");
      assert.match(inputs[0].observation.text, /^call \[one\] or 555-0123/);
      assert.match(observed(record).observation.parts[0].text, /^ring \[one\] or \[two\]/);
      assert.match(lastSent, /ring \[one\] or \[two\]/);
      for (const text of [kept, ran.stderr, ran.stdout]) assert.ok(!/555-01/.test(text));
    },
  },
  {
    name:
      "after_observation: exit 2 withholds the result; exit 3 and garbage let it through, logged",
    replies: [read("a.txt"), read("b.txt"), DONE],
    files: {
      "a.txt": "the letter a\n",
      "b.txt": "the letter b\n",
      "one.sh": "if grep -q 'letter a'; then echo secret stuff >&2; exit 2; fi; echo x; exit 3",
    },
    hooks: ["after_observation=one.sh"],
    more: ({ record, told, lastSent }) => {
      const [first, second] = record.filter((line) => line.type === "call.observed");
      assert.equal(first.observation.class, "error");
      assert.equal(first.observation.message, "the result is withheld by a hook: secret stuff");
      assert.match(second.observation.parts[0].text, /the letter b/);
      assert.ok(!lastSent.includes("the letter a"));
      assert.deepEqual(told.map((line) => line.verdict), ["block", "failed"]);
    },
  },
  {
    name: "after_observation: holds for what the runtime's own tools bring in from servers",
    replies: [
      { calls: [{ name: "resource_read", arguments: { server: "mem", uri: "mem://one" } }] },
      DONE,
    ],
    files: { "one.sh": `${LOG} echo '{"text":"nothing to see"}'` },
    hooks: ["after_observation=one.sh"],
    args: [
      "--mcp",
      `mem=${Deno.execPath()} run --no-prompt ${RESOURCES} watched`,
      "--allow-trifecta",
    ],
    more: ({ inputs, record, kept }) => {
      assert.equal(inputs[0].tool, "self/resource_read");
      assert.match(inputs[0].observation.text, /content of mem:\/\/one/);
      assert.match(observed(record).observation.parts[0].text, /nothing to see/);
      assert.ok(!kept.includes("content of mem://one"));
    },
  },
  {
    name: "before_compaction: is given the path of the archive, which can be read",
    replies: [
      ...Array.from({ length: 6 }, (_, i) => read(`${i}.txt`)),
      { text: "Enough of it." },
    ],
    loop: true,
    files: {
      ...Object.fromEntries(
        Array.from({ length: 6 }, (_, i) => [`${i}.txt`, `${i} line of words\n`.repeat(500)]),
      ),
      "one.sh":
        `${LOG} tail -n 1 hooks.log | sed 's/.*"archive":"\\([^"]*\\)".*/\\1/' | xargs wc -l > lines`,
    },
    hooks: ["before_compaction=one.sh"],
    args: ["--context-window", "12000", "--max-output-tokens", "1000", "--keep-verbatim", "100"],
    more: ({ inputs, record, ran, project }) => {
      assert.ok(record.some((line) => line.type === "context.compacted"));
      assert.ok(inputs.length > 0);
      assert.equal(inputs[0].event, "before_compaction");
      assert.equal(inputs[0].archive, ran.json.record);
      // The archive holds everything up to the compaction.
      const lines = Number(Deno.readTextFileSync(`${project}/lines`).trim().split(/\s/)[0]);
      const compacted = record.findLastIndex((line) => line.type === "hook.ran");
      assert.equal(lines, compacted);
    },
  },
  {
    name: "on_stop: exit 2 makes completed a failed verification, once per final",
    replies: [
      { text: "Done?" },
      { calls: [{ name: "fs__write", arguments: { path: "ok.txt", content: "ok" } }] },
      { text: "Done!" },
    ],
    files: { "one.sh": `${LOG} test -e ok.txt || { echo 'ok.txt is missing' >&2; exit 2; }` },
    hooks: ["on_stop=one.sh"],
    args: ["--allow-write=.", "--allow-read="],
    more: ({ inputs, record, ran }) => {
      assert.deepEqual(
        inputs.map(({ status, result, partial }) => [status, result, partial]),
        [["completed", "Done?", false], ["completed", "Done!", false]],
      );
      const judged = record.filter((line) => line.type === "verify.judged");
      assert.deepEqual(judged.map((line) => line.passed), [false, true]);
      assert.equal(judged[0].items[0].kind, "hook");
      assert.equal(judged[0].items[0].detail, "ok.txt is missing");
      assert.equal(ran.json.result, "Done!");
      assert.equal(ran.json.verification.passed, true);
      assert.equal(record.at(-1).type, "run.ended");
    },
  },
  {
    name: "on_stop: exit 3 is logged and changes nothing",
    replies: [DONE],
    files: { "one.sh": "exit 3" },
    hooks: ["on_stop=one.sh"],
    more: ({ told, ran }) => {
      assert.equal(ran.json.status, "completed");
      assert.deepEqual(told.map((line) => line.verdict), ["failed"]);
    },
  },
  {
    name: "on_stop: is told of a run that stalled, after its record has its end",
    replies: [read("a.txt")],
    loop: true,
    files: { "a.txt": "a\n", "one.sh": LOG, "two.sh": "exit 2" },
    hooks: ["on_stop=one.sh", "on_stop=two.sh"],
    code: 1,
    more: ({ inputs, record, ran }) => {
      assert.deepEqual(inputs.map(({ status, abort }) => [status, abort]), [["stalled", null]]);
      assert.equal(inputs[0].reason, ran.json.reason);
      assert.equal(ran.json.status, "stalled");
      assert.equal(record.at(-1).type, "run.ended");
    },
  },
  {
    name: "on_stop: is told of a run that was cancelled",
    replies: [{ hang: true }],
    files: { "one.sh": LOG },
    hooks: ["on_stop=one.sh"],
    on: { event: "loop.start", act: (started) => started.signal("SIGTERM") },
    code: 143,
    more: ({ inputs }) => {
      assert.deepEqual(inputs.map(({ status, abort }) => [status, abort]), [["cancelled", null]]);
    },
  },
  {
    name: "on_stop: is told of a refusal",
    replies: [{ calls: [{ name: "task_refuse", arguments: { reason: "I must not" } }] }],
    files: { "one.sh": LOG },
    hooks: ["on_stop=one.sh"],
    code: 5,
    more: ({ inputs }) => {
      assert.deepEqual([inputs.length, inputs[0].status, inputs[0].reason], [
        1,
        "refused",
        "I must not",
      ]);
    },
  },
  {
    name: "on_stop: is told of an abort",
    replies: [{ status: 401, body: { error: { message: "no" } } }],
    files: { "one.sh": LOG },
    hooks: ["on_stop=one.sh"],
    code: 4,
    more: ({ inputs }) => {
      assert.deepEqual(inputs.map(({ status, abort }) => [status, abort]), [[
        null,
        "intelligence",
      ]]);
    },
  },
  {
    name: "on_stop: a slow hook at the deadline has its time, and the partial result stays",
    replies: [{ text: "So far.", calls: [{ name: "fs__list", arguments: {} }] }, { hang: true }],
    files: { "one.sh": `sleep 3; ${LOG}` },
    hooks: ["on_stop=one.sh"],
    args: ["--deadline", "4s"],
    code: 124,
    more: ({ inputs, ran }) => {
      assert.equal(inputs[0].status, "deadline");
      assert.equal(ran.json.result, "So far.");
    },
  },
  {
    name: "secrets: what a hook is given, says and prints has none",
    replies: [read("a.txt"), DONE],
    files: {
      "a.txt": "the key is tok-12345678-abcdef\n",
      "one.sh":
        `${LOG} env > env.txt; echo 'tok-12345678-abcdef' >&2; echo '{"text":"again tok-12345678-abcdef"}'`,
      "two.sh": `echo 'no: tok-12345678-abcdef' >&2; exit 3`,
    },
    hooks: ["after_observation=one.sh", "on_stop=two.sh"],
    env: { AGENT_INTELLIGENCE_TOKEN: "tok-12345678-abcdef", OTHER: "for nobody" },
    args: ["--log-content", "--log-level", "debug"],
    more: ({ inputs, kept, ran, project, told, lastSent }) => {
      assert.match(inputs[0].observation.text, /^the key is \*\*\*/);
      assert.match(lastSent, /again \*\*\*/);
      assert.equal(told.at(-1).err.message, "exit 3: no: ***");
      for (const text of [kept, ran.stderr, ran.stdout]) assert.ok(!text.includes("tok-12345678"));
      assert.ok(!/tok-12345678|for nobody/.test(Deno.readTextFileSync(`${project}/env.txt`)));
    },
  },
];

async function check(program: Program, each: Case): Promise<void> {
  const script: Script = { replies: each.replies, loop: each.loop === true };
  await using server = await startModelServer(script);
  await withDirectory(async ({ project, runs }) => {
    for (const [name, text] of Object.entries(each.files)) {
      await Deno.writeTextFile(`${project}/${name}`, text);
    }
    const hooks = each.hooks.flatMap((hook) => [
      "--hook",
      hook.endsWith(".sh") ? hook.replace("=", "=sh ") : hook,
    ]);
    const ran = await runProgram(program, {
      args: [
        ...["run", "Do it", "--intelligence", server.url, "--allow-read=.", ...hooks],
        ...["--run-dir", runs, "--output", "json", "--log-format", "json", ...each.args ?? []],
      ],
      cwd: project,
      ...(each.env ? { env: each.env } : {}),
      ...(each.on ? { on: each.on } : {}),
    });
    assert.equal(ran.code, each.code ?? 0, ran.stderr.slice(-3_000));
    const completions = await server.completions();
    const log = await Deno.readTextFile(`${project}/hooks.log`).catch(() => "");
    await each.more({
      ran,
      project,
      record: await readOnlyRecord(runs),
      inputs: log.trim() === "" ? [] : log.trim().split("\n").map((line) => JSON.parse(line)),
      told: ran.lines.filter((line) => line.event === "hook.result"),
      kept: await allText(runs),
      lastSent: JSON.stringify(completions.at(-1)?.body ?? null),
    });
  });
}

/** Every file below a directory, as one text. */
async function allText(directory: string): Promise<string> {
  let text = "";
  for await (const entry of Deno.readDir(directory)) {
    const path = `${directory}/${entry.name}`;
    text += entry.isDirectory ? await allText(path) : await Deno.readTextFile(path);
  }
  return text;
}

for (const program of programs()) {
  for (const each of CASES) {
    Deno.test(`hooks (${program.name}): ${each.name}`, () => check(program, each));
  }
}
