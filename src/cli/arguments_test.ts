import assert from "node:assert/strict";
import { formatProblem } from "../config/problem.ts";
import { BARE } from "../config/texts.ts";
import { parseArguments } from "./arguments.ts";

Deno.test("parseArguments: commands, options and operands, in any order", async () => {
  const rows: [
    argv: string[],
    command: string,
    texts: Record<string, string[]>,
    operands: string[],
  ][] = [
    [["do this"], "run", {}, ["do this"]],
    [["run", "do this"], "run", {}, ["do this"]],
    [["run", "validate"], "run", {}, ["validate"]],
    [["run", "-"], "run", {}, ["-"]],
    [["run", "@task.md"], "run", {}, ["@task.md"]],
    [["--max-steps", "3", "do this"], "run", { max_steps: ["3"] }, ["do this"]],
    [["do this", "--max-steps=3"], "run", { max_steps: ["3"] }, ["do this"]],
    [["--config", "c.yaml", "validate"], "validate", { config: ["c.yaml"] }, []],
    [["--notes", "validate", "x"], "validate", { notes: [BARE] }, ["x"]],
    [["run", "--allow-read", "do this"], "run", { allow_read: [BARE] }, ["do this"]],
    [["run", "--allow-read=a,b", "x"], "run", { allow_read: ["a,b"] }, ["x"]],
    [["run", "--allow-read=", "x"], "run", { allow_read: [""] }, ["x"]],
    [["run", "--notes=false", "x"], "run", { notes: ["false"] }, ["x"]],
    [["run", "--mcp", "a=b", "--mcp", "c=d", "x"], "run", { mcp: ["a=b", "c=d"] }, ["x"]],
    [["run", "-o", "out", "-q", "x"], "run", { output_file: ["out"], quiet: [BARE] }, ["x"]],
    [["run", "-oout", "x"], "run", { output_file: ["out"] }, ["x"]],
    [["run", "--check", "--help", "x"], "run", { check: ["--help"] }, ["x"]],
    [["run", "--temperature", "-1", "x"], "run", { temperature: ["-1"] }, ["x"]],
    [["--", "validte"], "run", {}, ["validte"]],
    [["--", "help"], "run", {}, ["help"]],
    [["run", "help"], "run", {}, ["help"]],
    [["help me with this"], "run", {}, ["help me with this"]],
    [["run", "--", "--max-steps"], "run", {}, ["--max-steps"]],
    [["resume", "last", "--max-steps", "+20"], "resume", { max_steps: ["+20"] }, ["last"]],
    [["replay", "R", "--until", "3", "--show", "context"], "replay", {
      until: ["3"],
      show: ["context"],
    }, ["R"]],
    [["inspect", "R", "--json"], "inspect", { json: [BARE] }, ["R"]],
    [["runs", "--prune", "--keep", "30d"], "runs", { prune: [BARE], keep: ["30d"] }, []],
    [["validate", "--next", "5"], "validate", { next: ["5"] }, []],
    [["completions", "bash"], "completions", {}, ["bash"]],
    [["mcp", "fs", "--allow-read=."], "mcp", {}, ["fs", "--allow-read=."]],
    [[], "run", {}, []],
  ];
  for (const [argv, command, texts, operands] of rows) {
    const parsed = await parseArguments(argv);
    assert.deepEqual(parsed.problems, [], argv.join(" "));
    assert.equal(parsed.command.name, command, argv.join(" "));
    assert.deepEqual(parsed.texts, texts, argv.join(" "));
    assert.deepEqual(parsed.operands, operands, argv.join(" "));
  }
});

Deno.test("parseArguments: help and version stand anywhere but in a value", async () => {
  for (const argv of [["--help"], ["run", "-h"], ["validate", "x", "--help"], ["mcp", "--help"]]) {
    assert.ok((await parseArguments(argv)).help, argv.join(" "));
  }
  for (const argv of [["--version"], ["-V"], ["run", "--version"]]) {
    assert.ok((await parseArguments(argv)).version, argv.join(" "));
  }
});

Deno.test("parseArguments: every mistake is one line with what would be right", async () => {
  const rows: [argv: string[], lines: string[]][] = [
    [["--max-stepz", "5", "x"], ["--max-stepz: unknown option; did you mean --max-steps?"]],
    [["help"], [
      '"help": unknown command; did you mean agentd --help? As an instruction: agentd run help',
    ]],
    [["help", "resume"], [
      '"help": unknown command; did you mean agentd resume --help? As an instruction: agentd run help',
    ]],
    [["version"], [
      '"version": unknown command; did you mean agentd --version? As an instruction: agentd run ' +
      "version",
    ]],
    [["--versio"], ["--versio: unknown option; did you mean --version?"]],
    [["--hepl"], ["--hepl: unknown option; did you mean --help?"]],
    [["--max-stepz=5", "x"], ["--max-stepz: unknown option; did you mean --max-steps?"]],
    [
      ["--log", "x"],
      ["--log: unknown option; did you mean one of --log-level, --log-format, --log-content?"],
    ],
    [["run", "--reasoning", "x"], [
      "--reasoning: unknown option; did you mean --reasoning-effort?",
    ]],
    [["-x", "y"], ["-x: unknown option; agentd run --help lists the options"]],
    [["runs", "--max-steps", "3"], ["--max-steps: unknown option; it is an option of agentd run"]],
    [["run", "--until", "3", "x"], ["--until: unknown option; it is an option of agentd replay"]],
    [
      ["--max-stepz", "5", "--modle", "m", "x"],
      [
        "--max-stepz: unknown option; did you mean --max-steps?",
        "--modle: unknown option; did you mean --model?",
      ],
    ],
    [["run", "x", "--max-steps"], ["--max-steps: the value is missing; write --max-steps N"]],
    [["run", "x", "-o"], ["-o: the value is missing; write -o FILE"]],
    [
      ["run", "do", "this"],
      ["run: 2 arguments, where 1 is taken; put the instruction in quotes"],
    ],
    [
      ["resum", "last"],
      ['"resum": 2 arguments, where 1 is taken; did you mean resume?'],
    ],
    [
      ["do", "this"],
      ['"do": 2 arguments, where 1 is taken; put the instruction in quotes'],
    ],
    [
      ["validte"],
      ['"validte": unknown command; did you mean validate? As an instruction: agentd run validte'],
    ],
    [["runs", "x"], ['runs: "x" is too much: this command takes options only']],
  ];
  for (const [argv, lines] of rows) {
    const parsed = await parseArguments(argv);
    assert.deepEqual(parsed.problems.map(formatProblem), lines, argv.join(" "));
  }
});

Deno.test("parseArguments: what may be the value of an unknown option is not judged", async () => {
  const parsed = await parseArguments(["run", "--max-stepz", "5", "do this"]);
  assert.equal(parsed.problems.length, 1);
  assert.deepEqual(parsed.operands, ["do this"]);
});
