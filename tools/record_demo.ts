/**
 * `deno task record-demo`: makes the demo's recording anew, by running the demo against an endpoint
 * that gives the replies below. They were written by hand, not by a model: the recording's first line
 * says so. With a model at hand, record a real one instead:
 *
 *     deno task agentd run … --record-model examples/demo/recording.jsonl
 */

import { startModelServer } from "../tests/fakes/model_server_process.ts";
import { clearOutput, demoArguments, RECORDING, runFromSource, SUMMARY } from "./demo.ts";

const DRAFT = `# agentd in short

What the documents of this repository say, for somebody who has never seen it.

## What it is

A program that runs one job for a language model: a task goes in, tools are granted, and a checked
result, a record and an exit code come out (README.md). The model decides what to do next; agentd
decides what it may do, how long, and whether it is done.

## How to try it

    npx -y deno@2.9.6 task demo
    npx -y deno@2.9.6 task test

The first runs the main job on these documents, the second runs every test.

## How it ends

| exit code | meaning |
| --- | --- |
| 0 | completed, and all that was declared holds |
| 1 | crashed, or stalled or looping with nothing to show |
| 2 | configuration or usage error |
| 3 | stopped short with a usable partial result |
| 4 | the model cannot be reached or refused the credentials |
| 5 | the model declined the task |
| 6 | a required tool server failed |
| 7 | a budget was spent with nothing to show |

## How it is built

Two pure state machines, each in a thin shell that performs effects (ARCHITECTURE.md). Folders:
src/core, src/ports and src/wire are what all others share; src/agent is the loop, with src/model,
src/mcp and src/selftools at its side; src/supervisor and src/broker own the processes, src/trigger
decides when to start; src/record keeps what happened; src/toolserver holds the built-in tools;
src/config and src/cli meet the user; src/sys alone touches the system.

## What it may do

Each process has the Deno permissions that its part of the job needs, and no more. permissions.md
lists them by process and kind, with what enforces each.
`;

const MENDED = {
  path: SUMMARY,
  old_text: "| 7 | a budget was spent with nothing to show |\n",
  new_text: "| 7 | a budget was spent with nothing to show |\n| 124 | the deadline passed |\n" +
    "| 130, 143 | cancelled by SIGINT, by SIGTERM |\n",
};

const CLAIM = JSON.stringify({
  title: "agentd in short",
  file: SUMMARY,
  documents: ["README.md", "ARCHITECTURE.md", "permissions.md"],
});

const REPLIES = [
  {
    text: "First I look at which documents there are.",
    calls: [{ name: "fs__glob", arguments: { pattern: "*.md" } }],
  },
  {
    text: "I read the three that the task names.",
    calls: ["README.md", "ARCHITECTURE.md", "permissions.md"].map((path) => ({
      name: "fs__read",
      arguments: { path },
    })),
  },
  {
    text: "I write the summary.",
    calls: [{ name: "fs__write", arguments: { path: SUMMARY, content: DRAFT } }],
  },
  { text: CLAIM },
  {
    text: "The table of exit codes is not complete. I add what the check names.",
    calls: [{ name: "fs__edit", arguments: MENDED }],
  },
  { text: CLAIM },
];

/** The first line: what agentd needs to know the file by, and where its content comes from. */
const HEADER = JSON.stringify({
  v: 1,
  kind: "agentd-recording",
  note: "Written by hand for the demo (tools/record_demo.ts); no model made these replies.",
});

if (import.meta.main) {
  const root = await Deno.realPath(`${import.meta.dirname}/..`);
  await clearOutput(root);
  const server = await startModelServer({ replies: REPLIES });
  const made = `${root}/out/recording.jsonl`;
  const code = await runFromSource(root, [
    ...demoArguments(server.url),
    "--model",
    "written-by-hand",
    "--record-model",
    made,
  ]);
  await server.close();
  if (code !== 0) {
    console.error(`Cannot record the demo: the run ended with exit code ${code}.`);
    Deno.exit(1);
  }
  const [, ...entries] = (await Deno.readTextFile(made)).trimEnd().split("\n");
  await Deno.writeTextFile(`${root}/${RECORDING}`, [HEADER, ...entries, ""].join("\n"));
  await Deno.remove(made);
  console.error(`${RECORDING}: ${entries.length} replies`);
}
