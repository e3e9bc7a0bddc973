/**
 * `deno task demo`: the main job on this repository's own documents, from source. It uses the model
 * that `auto` finds, and otherwise a recording, and says which.
 */

import { BAKED_FLAGS } from "./build.ts";

/** The file that the job writes. */
export const SUMMARY = "out/summary.md";
/** The replies of a model that worked on the job once. */
export const RECORDING = "examples/demo/recording.jsonl";

/** The job's arguments, with a model to do it. */
export function demoArguments(intelligence: string): string[] {
  // The check is a program like any other: here a script that may read three files.
  const check = [
    Deno.execPath(),
    "run",
    "--no-prompt",
    `--allow-read=README.md,ARCHITECTURE.md,${SUMMARY}`,
    "examples/demo/check.ts",
  ];
  return [
    "run",
    "@examples/demo/task.md",
    "--intelligence",
    intelligence,
    "--allow-read=.",
    "--allow-write=out",
    "--output-schema",
    "examples/demo/summary.schema.json",
    "--require",
    SUMMARY,
    "--check",
    check.map(quote).join(" "),
    "--max-steps",
    "20",
    "--deadline",
    "5m",
  ];
}

/** A word as a POSIX shell would have to read it. */
function quote(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** Removes what an earlier run made, so that its check does not pass before this one begins. */
export async function clearOutput(root: string): Promise<void> {
  await Deno.mkdir(`${root}/out`, { recursive: true });
  await Deno.remove(`${root}/${SUMMARY}`).catch((error) => {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  });
}

/** Runs agentd from source; its exit code. */
export async function runFromSource(root: string, args: readonly string[]): Promise<number> {
  const { code } = await new Deno.Command(Deno.execPath(), {
    args: ["run", ...BAKED_FLAGS, "main.ts", ...args],
    cwd: root,
    stdin: "null",
  }).spawn().status;
  return code;
}

if (import.meta.main) {
  const root = await Deno.realPath(`${import.meta.dirname}/..`);
  // `--recorded`: whatever models there are.
  const auto = Deno.args.includes("--recorded") ? "" : "auto,";
  const args = [...demoArguments(`${auto}recorded:${RECORDING}`), "--log-format", "text"];
  await clearOutput(root);
  console.error(
    `agentd ${args.map(quote).join(" ")}\n\n` +
      "The check compares the summary with the documents. In the recording it refuses the first " +
      "version, and the model mends it.\n",
  );
  const code = await runFromSource(root, args);
  if (code === 0) {
    const lines = (await Deno.readTextFile(`${root}/${SUMMARY}`)).trimEnd().split("\n");
    console.error(`\n${SUMMARY}, ${lines.length} lines, begins:\n`);
    console.error(lines.slice(0, 12).map((line) => `  ${line}`).join("\n"));
    console.error("\nThe whole run, turn by turn: npx -y deno@2.9.6 task agentd inspect last");
  } else console.error(`\nThe run ended with exit code ${code}; README.md says what it means.`);
  Deno.exit(code);
}
