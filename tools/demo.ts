/**
 * `deno task demo`: the main job on this repository's own documents, from source. It uses the model
 * that `auto` finds, and otherwise a recording, which the program says.
 */

const root = await Deno.realPath(`${import.meta.dirname}/..`);
const summary = "out/summary.md";

/** The check is a program like any other: here a script with leave to read four files. */
const check = [
  Deno.execPath(),
  "run",
  "--no-prompt",
  `--allow-read=README.md,ARCHITECTURE.md,${summary}`,
  "examples/demo/check.ts",
].map(quote).join(" ");

const args = [
  "run",
  "@examples/demo/task.md",
  "--intelligence",
  "auto,recorded:examples/demo/recording.jsonl",
  "--allow-read=README.md,ARCHITECTURE.md,CONTRIBUTING.md,CHANGELOG.md,permissions.md,out",
  "--allow-write=out",
  "--output-schema",
  "examples/demo/summary.schema.json",
  "--require",
  summary,
  "--check",
  check,
  "--max-steps",
  "20",
  "--deadline",
  "5m",
  "--log-format",
  "text",
];

/** A word as a POSIX shell would have to read it. */
function quote(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

if (import.meta.main) {
  await Deno.mkdir(`${root}/out`, { recursive: true });
  await Deno.remove(`${root}/${summary}`).catch((error) => {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  });
  console.error(`agentd ${args.map(quote).join(" ")}\n`);
  const { code } = await new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "--no-prompt",
      "--allow-read",
      "--allow-write",
      "--allow-net",
      "--allow-env",
      "--allow-run",
      "--allow-sys",
      "main.ts",
      ...args,
    ],
    cwd: root,
    stdin: "null",
  }).spawn().status;
  if (code === 0) {
    const text = await Deno.readTextFile(`${root}/${summary}`);
    console.error(`\n${summary} (${text.split("\n").length - 1} lines) begins:\n`);
    console.error(text.split("\n").slice(0, 12).map((line) => `  ${line}`).join("\n"));
    console.error(
      "\nThe whole run, turn by turn: deno task agentd inspect last. Without a model of yours this " +
        "was the recording;\nset OPENAI_API_KEY or ANTHROPIC_API_KEY, or start Ollama, to see one work.",
    );
  } else console.error(`\nThe run ended with exit code ${code}; README.md says what it means.`);
  Deno.exit(code);
}
